//! Questions to the client, in all four pairs of eras.

use std::time::Duration;

use haft_mcp::gateway::Gateway;
use rmcp::model::{CallToolResponse, ElicitationAction, ErrorCode, InputRequiredResult};
use rmcp::service::ServiceError;
use serde_json::{Value, json};

use crate::client::{Connection, ERAS, Era, Heard, Person, call, connect, params, text};
use crate::toolbox::Toolbox;

/// A first round that must end with a question.
async fn asked(client: &Connection, name: &str) -> InputRequiredResult {
    asked_with(client, name, json!({})).await
}

async fn asked_with(client: &Connection, name: &str, arguments: Value) -> InputRequiredResult {
    match client
        .call_tool_once(params(name, arguments))
        .await
        .unwrap()
    {
        CallToolResponse::InputRequired(result) => result,
        other => panic!("{other:?}"),
    }
}

fn name() -> Value {
    json!({"action": "accept", "content": {"name": "Ada"}})
}

/// The next round.
async fn answer(
    client: &Connection,
    tool: &str,
    (key, value): (&str, Value),
    state: &str,
) -> Result<CallToolResponse, ServiceError> {
    let params = params(tool, json!({}))
        .with_input_responses([(key.to_owned(), value)].into())
        .with_request_state(state);
    client.call_tool_once(params).await
}

fn assert_refused(answer: Result<CallToolResponse, ServiceError>) {
    match answer {
        Err(ServiceError::McpError(error)) => {
            assert_eq!(error.code, ErrorCode::INVALID_PARAMS);
            let text = "the `requestState` does not belong to this request or is too old";
            assert!(error.message.starts_with(text), "{}", error.message);
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_question_reaches_the_person_whatever_the_eras() {
    let toolbox = Toolbox::of(&["ask", "needs"]);
    let gateway = Gateway::builder(toolbox).build().unwrap();
    for era in ERAS {
        for tool in ["box__ask", "box__needs"] {
            let (person, mut heard) = Person::helpful(era);
            let client = connect(&gateway, "a", person).await;
            let result = call(&client, tool, json!({})).await;
            assert_eq!(text(&result), "Hello, \"Ada\"!", "{era:?} {tool}");
            let question = Heard::Asked("What is your name?".into());
            assert_eq!(heard.recv().await, Some(question));
        }
    }
}

#[tokio::test]
async fn a_call_is_done_once_however_often_its_client_comes_back() {
    let toolbox = Toolbox::of(&["ask"]);
    let gateway = Gateway::builder(toolbox.clone()).build().unwrap();
    let client = connect(&gateway, "a", Person::helpful(Era::Modern).0).await;
    call(&client, "box__ask", json!({})).await;
    assert_eq!(toolbox.calls().len(), 1);
}

#[tokio::test]
async fn a_yes_is_a_yes_and_everything_else_is_a_no() {
    use ElicitationAction::{Accept, Cancel, Decline};
    let gateway = Gateway::builder(Toolbox::of(&["confirm"])).build().unwrap();
    for era in ERAS {
        for (action, said) in [
            (Accept, "Done."),
            (Decline, "It was not allowed."),
            (Cancel, "It was not allowed."),
        ] {
            let (person, _) = Person::answering(era, action.clone(), json!({}));
            let client = connect(&gateway, "a", person).await;
            let result = call(&client, "box__confirm", json!({})).await;
            assert_eq!(text(&result), said, "{era:?} {action:?}");
        }
        let client = connect(&gateway, "a", Person::mute(era).0).await;
        let result = call(&client, "box__confirm", json!({})).await;
        assert_eq!(result.is_error, Some(true));
        let said =
            "Nobody could be asked: the client does not offer a form to be filled in (elicitation)";
        assert_eq!(text(&result), said);
    }
}

#[tokio::test]
async fn a_client_that_cannot_be_asked_is_told_what_was_wanted() {
    let gateway = Gateway::builder(Toolbox::of(&["needs"])).build().unwrap();
    for era in ERAS {
        let client = connect(&gateway, "a", Person::mute(era).0).await;
        let result = call(&client, "box__needs", json!({})).await;
        assert_eq!(result.is_error, Some(true), "{era:?}");
        assert_eq!(
            text(&result),
            "the tool wants a form to be filled in (elicitation), which this client does not offer. \
             It asked: What is your name?"
        );
    }
}

#[tokio::test]
async fn questions_are_marked_with_their_server() {
    let gateway = Gateway::builder(Toolbox::of(&["ask", "needs"]))
        .build()
        .unwrap();
    let client = connect(&gateway, "a", Person::helpful(Era::Modern).0).await;
    for (tool, key) in [("box__ask", "box__input"), ("box__needs", "box__who")] {
        let result = asked(&client, tool).await;
        let requests = result.input_requests.unwrap();
        assert_eq!(requests.keys().collect::<Vec<_>>(), [key]);
        let answered = answer(&client, tool, (key, name()), &result.request_state.unwrap()).await;
        assert!(matches!(answered, Ok(CallToolResponse::Complete(_))));
    }
}

#[tokio::test]
async fn a_state_is_good_only_for_its_own_request() {
    let gateway = Gateway::builder(Toolbox::of(&["ask", "needs"]))
        .build()
        .unwrap();
    let own = connect(&gateway, "a", Person::helpful(Era::Modern).0).await;
    let foreign = connect(&gateway, "b", Person::helpful(Era::Modern).0).await;
    for (tool, key) in [("box__ask", "box__input"), ("box__needs", "box__who")] {
        let state = asked(&own, tool).await.request_state.unwrap();
        // Somebody else's.
        assert_refused(answer(&foreign, tool, (key, name()), &state).await);
        // Changed.
        assert_refused(answer(&own, tool, (key, name()), &format!("{state}x")).await);
        // Of another tool.
        let other = if tool == "box__ask" {
            "box__needs"
        } else {
            "box__ask"
        };
        assert_refused(answer(&own, other, (key, name()), &state).await);
        // Of other arguments.
        let others = asked_with(&own, tool, json!({"text": "x"})).await;
        assert_refused(answer(&own, tool, (key, name()), &others.request_state.unwrap()).await);
        // None of that did it any harm.
        let answered = answer(&own, tool, (key, name()), &state).await;
        assert!(
            matches!(answered, Ok(CallToolResponse::Complete(_))),
            "{tool}"
        );
    }
}

#[tokio::test]
async fn a_call_that_waits_is_answered_once() {
    let gateway = Gateway::builder(Toolbox::of(&["ask"])).build().unwrap();
    let client = connect(&gateway, "a", Person::helpful(Era::Modern).0).await;
    let state = asked(&client, "box__ask").await.request_state.unwrap();
    let key = "box__input";
    assert!(
        answer(&client, "box__ask", (key, name()), &state)
            .await
            .is_ok()
    );
    assert_refused(answer(&client, "box__ask", (key, name()), &state).await);
}

#[tokio::test]
async fn a_wrong_answer_is_asked_for_again() {
    let gateway = Gateway::builder(Toolbox::of(&["ask", "needs"]))
        .build()
        .unwrap();
    let client = connect(&gateway, "a", Person::helpful(Era::Modern).0).await;
    for (tool, key) in [("box__ask", "box__input"), ("box__needs", "box__who")] {
        let mut state = asked(&client, tool).await.request_state.unwrap();
        for wrong in ["other__input", "input", "who"] {
            let again = answer(&client, tool, (wrong, name()), &state)
                .await
                .unwrap();
            let CallToolResponse::InputRequired(result) = again else {
                panic!("{again:?}")
            };
            assert!(result.input_requests.unwrap().contains_key(key));
            state = result.request_state.unwrap();
        }
        let CallToolResponse::Complete(result) =
            answer(&client, tool, (key, name()), &state).await.unwrap()
        else {
            panic!("it is still asked for")
        };
        assert_eq!(text(&result), "Hello, \"Ada\"!");
    }
    let not_an_object = answer(&client, "box__needs", ("box__who", json!(12345)), "x").await;
    assert!(matches!(not_an_object, Err(ServiceError::McpError(error))
        if error.code == ErrorCode::INVALID_PARAMS));
}

#[tokio::test]
async fn a_tool_that_asks_for_ever_is_stopped() {
    let toolbox = Toolbox::of(&["nag"]);
    let gateway = Gateway::builder(toolbox.clone()).build().unwrap();
    // A legacy client is asked in the midst; the gateway counts.
    let client = connect(&gateway, "a", Person::helpful(Era::Legacy).0).await;
    let result = call(&client, "box__nag", json!({})).await;
    assert_eq!(result.is_error, Some(true));
    assert!(text(&result).starts_with("the tool asked for input too often"));
    assert_eq!(toolbox.calls().len(), 11);

    // A modern one comes back with what the gateway has counted.
    let client = connect(&gateway, "a", Person::helpful(Era::Modern).0).await;
    let mut state = asked(&client, "box__nag").await.request_state.unwrap();
    let mut rounds = 1;
    let result = loop {
        let next = answer(&client, "box__nag", ("box__who", name()), &state).await;
        match next.unwrap() {
            CallToolResponse::InputRequired(result) => state = result.request_state.unwrap(),
            CallToolResponse::Complete(result) => break result,
            other => panic!("{other:?}"),
        }
        rounds += 1;
    };
    assert_eq!(rounds, 10);
    assert!(text(&result).starts_with("the tool asked for input too often"));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_nobody_answers_ends() {
    let toolbox = Toolbox::of(&["ask"]);
    let gateway = Gateway::builder(toolbox.clone()).build().unwrap();
    let client = connect(&gateway, "a", Person::helpful(Era::Modern).0).await;
    let state = asked(&client, "box__ask").await.request_state.unwrap();
    tokio::time::sleep(Duration::from_mins(14)).await;
    let before = tokio::time::timeout(Duration::from_secs(1), toolbox.stopped()).await;
    assert!(before.is_err(), "it ended too soon");
    tokio::time::sleep(Duration::from_mins(1)).await;
    toolbox.stopped().await;
    assert_refused(answer(&client, "box__ask", ("box__input", name()), &state).await);
}

#[tokio::test]
async fn closing_the_gateway_ends_calls_that_wait_for_an_answer() {
    let toolbox = Toolbox::of(&["ask"]);
    let gateway = Gateway::builder(toolbox.clone()).build().unwrap();
    let client = connect(&gateway, "a", Person::helpful(Era::Modern).0).await;
    asked(&client, "box__ask").await;
    gateway.close();
    toolbox.stopped().await;
}

#[tokio::test]
async fn there_is_a_limit_to_what_waits() {
    let gateway = Gateway::builder(Toolbox::of(&["ask"])).build().unwrap();
    let client = connect(&gateway, "a", Person::helpful(Era::Modern).0).await;
    for _ in 0..32 {
        asked(&client, "box__ask").await;
    }
    let one_more = client.call_tool_once(params("box__ask", json!({}))).await;
    let CallToolResponse::Complete(result) = one_more.unwrap() else {
        panic!("it waits")
    };
    assert_eq!(
        text(&result),
        "too many calls wait for input already: answer them first, or call again later"
    );
    // Another caller is not concerned.
    let other = connect(&gateway, "b", Person::helpful(Era::Modern).0).await;
    asked(&other, "box__ask").await;
}
