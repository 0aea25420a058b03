//! What becomes of calls.

use std::sync::Arc;

use haft_hydrate::JsonSchemaFactory;
use haft_mcp::gateway::{Gateway, ListedTool};
use rmcp::model::{ClientRequest, ErrorCode, Request};
use rmcp::service::{PeerRequestOptions, ServiceError};
use serde_json::{Value, json};

use crate::client::{ERAS, Heard, Person, call, connect, params, text};
use crate::toolbox::{Toolbox, object};

#[tokio::test]
async fn a_result_is_passed_on_unchanged() {
    let gateway = Gateway::builder(Toolbox::of(&["echo", "fail"]))
        .build()
        .unwrap();
    for era in ERAS {
        let client = connect(&gateway, "a", Person::helpful(era).0).await;
        let result = call(&client, "box__echo", json!({"text": "x", "b": [1, null]})).await;
        assert_eq!(text(&result), r#"{"text":"x","b":[1,null]}"#);
        assert_eq!(
            result.structured_content,
            Some(json!({"text": "x", "b": [1, null]}))
        );
        assert_eq!(result.is_error, None);
        assert_eq!(result.meta.unwrap().0, object(json!({"from": "echo"})));

        let result = call(&client, "box__fail", json!({})).await;
        assert_eq!(result.is_error, Some(true));
        assert_eq!(text(&result), "It did not work.");
        // An explicit nothing is something.
        assert_eq!(result.structured_content, Some(Value::Null));
    }
}

#[tokio::test]
async fn an_unknown_tool_is_a_bad_parameter() {
    let toolbox = Toolbox::of(&["echo"]);
    let gateway = Gateway::builder(toolbox.clone()).build().unwrap();
    for era in ERAS {
        let client = connect(&gateway, "a", Person::helpful(era).0).await;
        // The facade's tools are unknown where there is no facade.
        for name in ["box__nothing", "search_tools", "call_tool", ""] {
            let error = client.call_tool(params(name, json!({}))).await.unwrap_err();
            let ServiceError::McpError(error) = error else {
                panic!("{error}")
            };
            assert_eq!(error.code, ErrorCode::INVALID_PARAMS);
            assert_eq!(error.message, format!("unknown tool `{name}`"));
        }
    }
    assert_eq!(toolbox.calls(), []);
}

#[tokio::test]
async fn arguments_that_do_not_fit_never_reach_the_backend() {
    let schema = json!({
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        "required": ["n"]
    });
    let listed = ListedTool::new("box__echo", object(schema)).of_server("box", "echo");
    let toolbox = Toolbox::new([listed]);
    let gateway = Gateway::builder(toolbox.clone())
        .validator(Arc::new(JsonSchemaFactory))
        .build()
        .unwrap();
    for era in ERAS {
        let client = connect(&gateway, "a", Person::helpful(era).0).await;
        let result = call(&client, "box__echo", json!({"n": "many"})).await;
        assert_eq!(result.is_error, Some(true));
        let said = text(&result);
        assert!(
            said.starts_with("invalid arguments for `box__echo`:"),
            "{said}"
        );
        assert!(said.contains("`/n`"), "{said}");
        assert_eq!(toolbox.calls().len(), 0);
    }
    let client = connect(&gateway, "a", Person::helpful(ERAS[0]).0).await;
    assert_eq!(
        call(&client, "box__echo", json!({"n": 3})).await.is_error,
        None
    );
}

#[tokio::test]
async fn progress_arrives_in_order_and_only_upwards() {
    let gateway = Gateway::builder(Toolbox::of(&["steps"])).build().unwrap();
    for era in ERAS {
        let (person, mut heard) = Person::helpful(era);
        let client = connect(&gateway, "a", person).await;
        call(&client, "box__steps", json!({})).await;
        for at in [1.0, 2.0, 3.0] {
            assert_eq!(heard.recv().await, Some(Heard::Progress(at)), "{era:?}");
        }
        client.cancel().await.unwrap();
        assert_eq!(heard.recv().await, None);
    }
}

#[tokio::test]
async fn a_call_that_is_cancelled_is_cancelled_behind_the_gateway() {
    for era in ERAS {
        let toolbox = Toolbox::of(&["wait"]);
        let gateway = Gateway::builder(toolbox.clone()).build().unwrap();
        let client = connect(&gateway, "a", Person::helpful(era).0).await;
        let request = ClientRequest::CallToolRequest(Request::new(params("box__wait", json!({}))));
        let options = PeerRequestOptions::no_options();
        let handle = client
            .send_cancellable_request(request, options)
            .await
            .unwrap();
        toolbox.started().await;
        handle.cancel(Some("enough".into())).await.unwrap();
        toolbox.stopped().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_goes_away_takes_its_calls_along() {
    for era in ERAS {
        let toolbox = Toolbox::of(&["wait"]);
        let gateway = Gateway::builder(toolbox.clone()).build().unwrap();
        let client = connect(&gateway, "a", Person::helpful(era).0).await;
        let request = ClientRequest::CallToolRequest(Request::new(params("box__wait", json!({}))));
        let options = PeerRequestOptions::no_options();
        let _handle = client
            .send_cancellable_request(request, options)
            .await
            .unwrap();
        toolbox.started().await;
        client.cancel().await.unwrap();
        toolbox.stopped().await;
    }
}

#[tokio::test]
async fn closing_the_gateway_ends_what_is_under_way() {
    for era in ERAS {
        let toolbox = Toolbox::of(&["wait"]);
        let gateway = Gateway::builder(toolbox.clone()).build().unwrap();
        let client = connect(&gateway, "a", Person::helpful(era).0).await;
        let request = ClientRequest::CallToolRequest(Request::new(params("box__wait", json!({}))));
        let options = PeerRequestOptions::no_options();
        let _handle = client
            .send_cancellable_request(request, options)
            .await
            .unwrap();
        toolbox.started().await;
        gateway.close();
        toolbox.stopped().await;
    }
}

#[tokio::test]
async fn a_tool_that_breaks_down_costs_one_call() {
    let gateway = Gateway::builder(Toolbox::of(&["panic", "echo"]))
        .build()
        .unwrap();
    for era in ERAS {
        let client = connect(&gateway, "a", Person::helpful(era).0).await;
        let error = client.call_tool(params("box__panic", json!({}))).await;
        let ServiceError::McpError(error) = error.unwrap_err() else {
            panic!("no answer")
        };
        assert_eq!(error.code, ErrorCode::INTERNAL_ERROR);
        assert_eq!(error.message, "the request broke down inside");
        assert_eq!(call(&client, "box__echo", json!({})).await.is_error, None);
    }
}

#[tokio::test]
async fn the_callers_trace_goes_on_and_nothing_else_of_what_it_says_about_itself() {
    let gateway = Gateway::builder(Toolbox::of(&["trace"])).build().unwrap();
    for era in ERAS {
        let client = connect(&gateway, "a", Person::helpful(era).0).await;
        let mut request = params("box__trace", json!({}));
        let meta = object(json!({"traceparent": "00-1-2-3", "baggage": "k=v", "secret": "x"}));
        request.meta = Some(meta.into());
        let result = client.call_tool(request).await.unwrap();
        let expected = r#"{"baggage": "k=v", "traceparent": "00-1-2-3"}"#;
        assert_eq!(text(&result), expected, "{era:?}");
    }
}
