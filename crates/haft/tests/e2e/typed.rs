//! Answers of a type: by the provider's own means where it has them, in words where not.

use haft::models::CapabilityOverrides;
use haft::testing::{call, say};
use haft::{End, FailedReason, Value, engine, json};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::world::{Provider, anthropic, cases, chat, each, ollama, responses, streamed, tools};

/// A forecast.
#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Forecast {
    /// Where
    city: String,
    degrees: i32,
    note: Option<String>,
}

const GOOD: &str = r#"{"city": "Oslo", "degrees": -4}"#;

fn oslo() -> Forecast {
    Forecast {
        city: "Oslo".into(),
        degrees: -4,
        note: None,
    }
}

fn asking(run: engine::Run) -> engine::Run {
    run.tools(tools())
        .instructions("Be brief.")
        .answer_as::<Forecast>()
        .user("How is it?")
}

/// Where each provider takes the schema of an answer.
fn native(provider: Provider, body: &Value) -> Option<&Value> {
    body.pointer(match provider {
        Provider::Chat | Provider::OtherChat => "/response_format/json_schema/schema",
        Provider::Responses => "/text/format/schema",
        Provider::Anthropic => "/output_config/format/schema",
        Provider::Ollama => "/format",
    })
}

#[tokio::test]
async fn tools_run_first_and_the_answer_has_the_demanded_form() {
    each(cases(), |case| async move {
        let script = [call("get_weather", json!({"city": "Oslo"})), say(GOOD)];
        let server = case.server(script).await;
        let outcome = asking(case.run(&server)).await.unwrap();
        assert!(outcome.is_completed(), "{:?}", outcome.end);
        assert_eq!(outcome.output_as::<Forecast>(), Some(oslo()));
        assert_eq!(outcome.tool_calls.len(), 1);
        for request in server.received() {
            if !case.provider.binds_answers_beside_tools() {
                assert_eq!(native(case.provider, &request.body), None);
                let told = request.view.instructions.unwrap();
                assert!(told.contains("\"degrees\""), "{told}");
                continue;
            }
            let schema = native(case.provider, &request.body);
            let schema = schema.unwrap_or_else(|| panic!("{:#}", request.body));
            assert_eq!(schema["properties"]["degrees"]["type"], "integer");
            assert_eq!(request.view.instructions.as_deref(), Some("Be brief."));
        }
        server.assert_finished();
    })
    .await;
}

#[tokio::test]
async fn a_strict_form_is_only_claimed_where_the_schema_is_one() {
    // The provider refuses the whole request if one property of a strict schema is optional or one
    // of its objects open.
    for provider in [Provider::Chat, Provider::Responses] {
        let case = streamed().find(|case| case.provider == provider).unwrap();
        let server = case.server([say(GOOD).times(2)]).await;
        let strict = |body: &Value| {
            let place = match provider {
                Provider::Chat => "/response_format/json_schema/strict",
                _ => "/text/format/strict",
            };
            body.pointer(place).cloned()
        };
        asking(case.run(&server)).await.unwrap();
        let loose = json!({
            "type": "object",
            "properties": {"city": {"type": "string"}, "degrees": {"type": "integer"}},
            "required": ["city"],
            "additionalProperties": false
        });
        let asked = case
            .run(&server)
            .answer_schema("loose", loose.clone())
            .user("How is it?");
        assert!(asked.await.unwrap().is_completed());
        let received = server.received();
        assert_eq!(strict(&received[0].body), Some(json!(true)));
        let schema = native(provider, &received[0].body).unwrap();
        assert_eq!(schema["required"], json!(["city", "degrees", "note"]));
        assert_ne!(strict(&received[1].body), Some(json!(true)));
        assert_eq!(native(provider, &received[1].body), Some(&loose));
    }
}

#[tokio::test]
async fn without_tools_every_provider_is_given_the_schema() {
    each(cases(), |case| async move {
        let server = case.server([say(GOOD)]).await;
        let run = case.run(&server).answer_as::<Forecast>().user("How is it?");
        let outcome = run.await.unwrap();
        assert_eq!(
            outcome.output_as::<Forecast>(),
            Some(oslo()),
            "{:?}",
            outcome.end
        );
        let request = &server.received()[0];
        assert!(
            native(case.provider, &request.body).is_some(),
            "{:#}",
            request.body
        );
        assert_eq!(request.view.instructions, None);
    })
    .await;
}

#[tokio::test]
async fn without_such_means_the_schema_is_told_in_words() {
    let plain = CapabilityOverrides {
        structured_output: Some(false),
        ..CapabilityOverrides::default()
    };
    each(cases(), move |case| async move {
        let server = case.server([say(GOOD)]).await;
        let model = match case.provider {
            Provider::Chat | Provider::OtherChat => {
                case.run_of(chat(&server).with_capabilities(plain))
            }
            Provider::Responses => case.run_of(responses(&server).with_capabilities(plain)),
            Provider::Anthropic => case.run_of(anthropic(&server).with_capabilities(plain)),
            Provider::Ollama => case.run_of(ollama(&server).with_capabilities(plain)),
        };
        let outcome = asking(model).await.unwrap();
        assert_eq!(
            outcome.output_as::<Forecast>(),
            Some(oslo()),
            "{:?}",
            outcome.end
        );
        let request = &server.received()[0];
        assert_eq!(native(case.provider, &request.body), None);
        let told = request.view.instructions.clone().unwrap();
        assert!(
            told.starts_with("Be brief.\n\nAnswer with JSON only"),
            "{told}"
        );
        assert!(told.contains("\"degrees\""), "{told}");
    })
    .await;
}

#[tokio::test]
async fn a_wrong_form_is_complained_about_and_in_the_end_refused() {
    each(cases(), |case| async move {
        let server = case
            .server([say("sunny"), say(r#"{"city": 5}"#), say(GOOD)])
            .await;
        let outcome = asking(case.run(&server)).await.unwrap();
        assert_eq!(
            outcome.output_as::<Forecast>(),
            Some(oslo()),
            "{:?}",
            outcome.end
        );
        let complaint = server.received()[2].view.user.clone().unwrap();
        assert!(complaint.contains("'city' must be string"), "{complaint}");

        let server = case.server([say("sunny").times(3)]).await;
        let outcome = asking(case.run(&server)).await.unwrap();
        let End::Failed { reason, .. } = &outcome.end else {
            panic!("{:?}", outcome.end)
        };
        assert_eq!(
            (reason, outcome.output.as_ref()),
            (&FailedReason::OutputInvalid, None)
        );
        server.assert_finished();
    })
    .await;
}
