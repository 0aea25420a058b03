//! What clients send who mean no good: refused, and nobody else notices.

use haft_core::Defer;
use haft_models::ScriptedModel;
use haft_models::testing::say;
use serde_json::{Map, Value, json};

use crate::support::{Setup, function, item_types, serve};

/// A function with this many regular expressions, all different.
fn with_patterns(name: &str, count: usize) -> Value {
    let properties = (0..count).map(|at| {
        let pattern = format!("^{name}{at}$");
        (
            format!("p{at}"),
            json!({"type": "string", "pattern": pattern}),
        )
    });
    let mut tool = function(name);
    tool["parameters"]["properties"] = Value::Object(properties.collect::<Map<_, _>>());
    tool
}

#[tokio::test]
async fn a_flood_of_regular_expressions_is_refused_wherever_it_comes_in() {
    let (served, _) = serve([say("fine").forever()]).await;
    let tools: Vec<_> = (0..5)
        .map(|at| with_patterns(&format!("tool{at}"), 500))
        .collect();
    let refused = served.post("/responses", json!({"input": "x", "tools": tools}));
    assert_eq!(
        refused.await.error(),
        (
            400,
            "invalid_function_parameters",
            Some("tools[3].parameters")
        )
    );
    let items: Vec<_> = tools
        .iter()
        .map(|tool| json!({"type": "additional_tools", "role": "developer", "tools": [tool]}))
        .collect();
    let refused = served.post("/responses", json!({"input": items}));
    assert_eq!(
        refused.await.error(),
        (
            400,
            "invalid_function_parameters",
            Some("input[3].tools[0].parameters")
        )
    );
    let functions: Vec<_> = tools
        .iter()
        .map(|tool| json!({"type": "function", "function": tool}))
        .collect();
    let messages = json!([{"role": "user", "content": "x"}]);
    let body = json!({"model": "default", "messages": messages, "tools": functions});
    let refused = served.post("/chat/completions", body);
    assert_eq!(
        refused.await.error(),
        (
            400,
            "invalid_function_parameters",
            Some("tools[3].function.parameters")
        )
    );
    let few = with_patterns("few", 50);
    served.create(json!({"input": "x", "tools": [few]})).await;
}

#[tokio::test]
async fn a_body_of_a_million_values_is_too_large() {
    let (served, _) = serve([say("fine")]).await;
    let body = json!({"input": "x", "client_metadata": vec![0; 1_000_001]});
    let refused = served.post("/responses", body).await;
    assert_eq!(refused.error(), (413, "request_too_large", None));
}

#[tokio::test]
async fn a_large_request_is_answered_like_a_small_one() {
    let model = ScriptedModel::new([say("one"), say("two")]);
    let shown = Setup::of(model.clone());
    let shown = shown.options(|options| options.loop_options.defer = Defer::Never);
    let served = shown.serve().await;
    let tools: Vec<_> = (0..300).map(|at| function(&format!("tool{at}"))).collect();
    let items: Vec<_> = (0..300)
        .map(|at| json!({"role": "user", "content": format!("{at} {}", "x".repeat(1_000))}))
        .collect();
    let body = json!({"input": items, "tools": tools});
    let first = served.create(body.clone()).await;
    assert_eq!(item_types(&first), ["message"]);
    assert_eq!(model.received()[0].tools.len(), 300);
    let counted = served.post("/responses/input_tokens", body).await.ok();
    assert!(counted["input_tokens"].as_u64().unwrap() > 10_000);
    let next = json!({"input": "and?", "previous_response_id": first["id"]});
    assert_eq!(served.create(next).await["status"], "completed");
    let mut wrong = json!({"input": "x".repeat(200_000), "tools": [function("f"), function("f")]});
    let refused = served.post("/responses", wrong.clone()).await;
    assert_eq!(
        refused.error(),
        (400, "duplicate_tool", Some("tools[1].name"))
    );
    wrong["tools"] = json!("none");
    let refused = served.post("/responses", wrong).await;
    assert_eq!(refused.error(), (400, "invalid_type", Some("tools")));
}
