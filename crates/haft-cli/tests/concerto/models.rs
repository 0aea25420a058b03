//! Programs that ask a model over real HTTP, through `Concerto.toml` and through `haft.toml`.

use haft::testing::{ScriptedCall, ScriptedServer, Step, calls, say as answer};
use serde_json::{Value, json};

use crate::kit::{folder, program, say};
use crate::support::{haft, told};

fn script() -> Vec<Step> {
    vec![
        calls([
            ScriptedCall::new("Till__add", json!({"a": 19, "b": 23})),
            ScriptedCall::new("Till__halve", json!({"n": 7})),
        ]),
        answer("Sum 42; 7 is odd."),
    ]
}

/// What program I prints, and the bodies that the model got.
async fn program_i(files: impl Fn(&str) -> Vec<(&'static str, String)>) -> (String, Vec<Value>) {
    let server = ScriptedServer::start(script()).await.unwrap();
    let text = std::fs::read_to_string(program("i.conc")).unwrap();
    let mut files = files(&server.base_url());
    files.push(("app.conc", text));
    let files: Vec<(&str, &str)> = files.iter().map(|(a, b)| (*a, b.as_str())).collect();
    let folder = folder(&files);
    let mut command = haft(folder.path(), &["run", "app.conc"]);
    // Standard error stays empty: a script has no log, whatever the filter says.
    command.env("DESK_KEY", "sk-desk").env("HAFT_LOG", "trace");
    let (code, out, aside) = tokio::task::spawn_blocking(move || told(command, ""))
        .await
        .unwrap();
    assert_eq!((code, aside.as_str()), (Some(0), ""), "{out}");
    server.assert_finished();
    let received = server.received();
    assert_eq!(received[0].header("authorization"), Some("present"));
    (out, received.into_iter().map(|it| it.body).collect())
}

fn check(out: &str, bodies: &[Value]) {
    assert_eq!(out, "[emit:answer] Sum 42; 7 is odd.\n");
    let tools = bodies[0]["tools"].as_array().unwrap().iter();
    let names: Vec<_> = tools
        .map(|it| it["function"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["Till__add", "Till__halve"]);
    assert_eq!(bodies[0]["model"], "small");
    let messages = bodies[1]["messages"].as_array().unwrap();
    let roles: Vec<_> = messages
        .iter()
        .map(|it| it["role"].as_str().unwrap())
        .collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool", "tool"]);
    assert_eq!(messages[3]["content"], "42");
    assert_eq!(messages[4]["content"], "{\"error\":\"odd amount 7\"}");
}

#[tokio::test(flavor = "multi_thread")]
async fn program_i_through_the_manifest() {
    let (out, bodies) = program_i(|address| {
        let manifest = format!(
            "[project]\nname = \"p\"\n[connections.desk]\nprovider = \"openai\"\n\
             api_key_env = \"DESK_KEY\"\nbase_url = \"{address}\"\n"
        );
        vec![("Concerto.toml", manifest)]
    })
    .await;
    check(&out, &bodies);
}

#[tokio::test(flavor = "multi_thread")]
async fn program_i_through_a_model_of_haft() {
    let (out, bodies) = program_i(|address| {
        let entry = format!(
            "[[model]]\nname = \"desk\"\nadapter = \"openai-chat\"\nmodel = \"other\"\n\
             base_url = \"{address}\"\napi_key_env = \"DESK_KEY\"\n"
        );
        vec![("haft.toml", entry)]
    })
    .await;
    check(&out, &bodies);
}

#[test]
fn a_missing_key_is_an_error_of_the_call_and_never_a_mock() {
    let entry =
        "[[model]]\nname = \"desk\"\nadapter = \"openai-chat\"\napi_key_env = \"NO_SUCH_KEY\"\n";
    let manifest = "[project]\nname = \"p\"\n[connections.desk]\nprovider = \"openai\"\n\
                    api_key_env = \"NO_SUCH_KEY\"\n";
    for (name, text) in [("haft.toml", entry), ("Concerto.toml", manifest)] {
        let program = std::fs::read_to_string(program("i.conc")).unwrap();
        let folder = folder(&[(name, text), ("app.conc", &program)]);
        assert_eq!(say(folder.path(), &["check", "app.conc"]).0, Some(0));
        let (code, out, aside) = say(folder.path(), &["run", "app.conc"]);
        assert_eq!(code, Some(0), "{aside}");
        assert!(out.starts_with("[emit:failed] "), "{out}");
        assert!(out.contains("NO_SUCH_KEY"), "{out}");
        let (_, out, _) = say(folder.path(), &["run", "--mock", "app.conc"]);
        assert!(
            out.starts_with("[emit:answer] [mock response to: "),
            "{out}"
        );
        let mut mocked = haft(folder.path(), &["run", "app.conc"]);
        mocked.env("HAFT_MOCK", "1");
        assert!(told(mocked, "").1.starts_with("[emit:answer] [mock "));
    }
}

#[test]
fn a_broken_configuration_is_told() {
    let folder = folder(&[
        ("haft.toml", "[[model]]\nnam = 1\n"),
        ("app.conc", "println(1);"),
    ]);
    let (code, out, aside) = say(folder.path(), &["run", "app.conc"]);
    assert_eq!((code, out.as_str()), (Some(2), ""));
    assert!(aside.starts_with("haft.toml:2:1: "), "{aside}");
}

#[tokio::test(flavor = "multi_thread")]
async fn live_tests_ask_the_model_and_mocks_stay_mocks() {
    let server = ScriptedServer::start(vec![answer("from afar")])
        .await
        .unwrap();
    let text = "model M { provider: desk, base: \"small\" }\n\
                @test\nfn live() { assert_eq(M.execute(\"hi\").unwrap().text, \"from afar\"); }\n\
                @test\nfn mocked() { mock M { response: \"near\" } \
                assert_eq(M.execute(\"hi\").unwrap().text, \"near\"); }\n";
    let entry = format!(
        "[[model]]\nname = \"other\"\naliases = [\"desk\"]\nadapter = \"openai-chat\"\nbase_url = \"{}\"\n",
        server.base_url()
    );
    let folder = folder(&[("haft.toml", &entry), ("app.conc", text)]);
    let command = haft(folder.path(), &["test", "--live", "app.conc"]);
    let (code, out, aside) = tokio::task::spawn_blocking(move || told(command, ""))
        .await
        .unwrap();
    assert_eq!((code, aside.as_str()), (Some(0), ""), "{out}");
    assert!(
        out.ends_with("test result: ok. 2 passed, 0 failed\n"),
        "{out}"
    );
    server.assert_finished();
}
