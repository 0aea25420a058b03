//! Agents and `listen` (§18), with real processes.

use std::path::Path;

use crate::kit::{manifest, stage};

/// A shell script in a folder, and the manifest's entry for it.
fn agent(folder: &Path, script: &str, more: &str) -> String {
    let path = folder.join("agent.sh");
    std::fs::write(&path, script).unwrap();
    let entry = format!(
        "[agents.helper]\ncommand = \"sh {}\"\n{more}",
        path.display()
    );
    manifest("http://127.0.0.1:9", &entry)
}

async fn run(script: &str, more: &str, program: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let stage = stage(&agent(folder.path(), script, more), program, |_| {});
    stage.run().await.unwrap()
}

const ECHO: &str = "n=0\nwhile read -r line; do n=$((n+1)); echo \"$n: $line\"; done\n";

#[tokio::test]
async fn one_line_in_one_line_out_and_the_process_stays() {
    let program = r#"
        agent A { connector: helper, input_format: "text", output_format: "text" }
        memory log: Memory = Memory::new();
        emit("a", A.execute("first"));
        emit("b", A.with_memory(log).execute("second\nline"));
        for m in log.messages() { emit("m", "${m.role}: ${m.content}"); }
    "#;
    let printed = run(ECHO, "", program).await;
    let expected = "[emit:a] Ok(1: first)\n[emit:b] Ok(2: second line)\n\
                    [emit:m] user: second\nline\n[emit:m] assistant: 2: second line\n";
    assert_eq!(printed, expected);
}

#[tokio::test]
async fn json_goes_in_and_its_text_comes_out() {
    let script = r#"
        read -r init
        printf '{"type":"init_ack"}\n'
        read -r line
        printf '{"text":"heard","was":1}\n'
        read -r line2
        printf '%s\n' "$init"
        read -r line3
        printf '%s\n' "$line2"
    "#;
    let program = r#"
        schema Init { type: String }
        agent A { connector: helper, input_format: "json", output_format: "json" }
        emit("a", A.execute("one"));
        emit("b", A.execute_with_schema<Init>("two").unwrap().type);
        emit("c", A.with_context({ "k": [1] }).execute("three"));
    "#;
    let printed = run(script, "params = { level = 3 }\n", program).await;
    let expected = "[emit:a] Ok(heard)\n[emit:b] init\n[emit:c] Ok({\"prompt\":\"two\"})\n";
    assert_eq!(printed, expected);
}

#[tokio::test]
async fn context_is_in_the_line() {
    let script = "while read -r line; do printf '%s\\n' \"$line\"; done";
    let program = r#"
        agent A { connector: helper, input_format: "json", output_format: "text" }
        emit("c", A.with_context({ "k": [1] }).execute("x").unwrap());
    "#;
    let printed = run(script, "", program).await;
    assert_eq!(
        printed,
        "[emit:c] {\"prompt\":\"x\",\"context\":{\"k\":[1]}}\n"
    );
}

#[tokio::test]
async fn what_goes_wrong_is_an_error() {
    let program = r#"
        schema S { n: Int }
        agent A { connector: helper, input_format: "text", output_format: "text", timeout: 1 }
        emit("a", A.execute("x"));
        emit("b", A.execute("x"));
    "#;
    let printed = run("echo gone away >&2; exit 3", "", program).await;
    assert!(printed.contains("[emit:a] Err(agent 'A': "), "{printed}");
    let printed = run("sleep 60", "", program).await;
    assert!(
        printed.contains("[emit:a] Err(agent 'A' did not answer within 1s)"),
        "{printed}"
    );
    let schema = program.replace("A.execute(\"x\")", "A.execute_with_schema<S>(\"x\")");
    let printed = run(ECHO, "", &schema).await;
    assert!(
        printed.contains("[emit:a] Err(schema validation failed after 1 attempts: "),
        "{printed}"
    );
}

#[tokio::test]
async fn a_command_of_the_source_needs_permission() {
    let program = r#"
        agent A { connector: helper, command: "sh -c true", input_format: "text", output_format: "text" }
        emit("a", A.execute("x"));
    "#;
    let printed = run(ECHO, "", program).await;
    assert!(printed.contains("permission denied"), "{printed}");
}

const TALK: &str = r#"
    read -r line
    printf '{"type":"progress","percent":50}\n'
    printf '{"type":"question","text":"name?"}\n'
    read -r answer
    printf '{"type":"odd","n":1}\n'
    printf '{"type":"result","answer":%s,"prompt":"%s"}\n' "$answer" "$line"
"#;

#[tokio::test]
async fn messages_go_to_handlers_and_their_values_back() {
    let program = r#"
        agent A { connector: helper, input_format: "text", output_format: "json" }
        let who = "Ada";
        let r = listen A.execute("go") {
            "progress" => |m| { emit("progress", m.percent); },
            "question" => |m| { "${who} ${m.text}" },
        };
        emit("r", r.unwrap().answer.value);
        emit("p", r.unwrap().prompt);
        emit("t", r.unwrap().type);
    "#;
    let printed = run(TALK, "", program).await;
    let expected = "[emit:listen:start] {\"agent\": A, \"listen\": $listen_1}\n\
        [emit:progress] 50\n\
        [emit:listen:unhandled] {\"agent\": A, \"type\": odd, \"message\": {\"n\": 1, \"type\": odd}}\n\
        [emit:listen:complete] {\"agent\": A}\n\
        [emit:r] Ada name?\n[emit:p] go\n[emit:t] nil\n";
    assert_eq!(printed, expected);
}

#[tokio::test]
async fn a_raise_in_a_handler_an_error_message_and_a_plain_line_end_it() {
    let program = r#"
        agent A { connector: helper, input_format: "text", output_format: "json" }
        let r = listen A.execute("go") {
            "progress" => |m| { throw "no patience"; },
        };
        emit("r", r);
    "#;
    let printed = run(TALK, "", program).await;
    let end =
        "[emit:listen:error] {\"agent\": A, \"error\": no patience}\n[emit:r] Err(no patience)\n";
    assert!(printed.ends_with(end), "{printed}");
    let script = "read -r line\nprintf '{\"type\":\"error\",\"message\":\"broken\"}\\n'; sleep 5";
    let printed = run(script, "", program).await;
    assert!(printed.ends_with("[emit:r] Err(broken)\n"), "{printed}");
    let printed = run("read -r line\necho just words; sleep 5", "", program).await;
    assert!(
        printed.ends_with("[emit:r] Ok({\"text\": just words})\n"),
        "{printed}"
    );
    let printed = run("read -r line\nexit 3", "", program).await;
    assert!(
        printed.contains("[emit:r] Err(agent 'A': it ended"),
        "{printed}"
    );
}

#[tokio::test]
async fn an_agent_that_is_talking_is_busy() {
    let program = r#"
        agent A { connector: helper, input_format: "text", output_format: "json", timeout: 1 }
        let r = listen A.execute("go") {
            "progress" => |m| { emit("inner", A.execute("again")); },
        };
        emit("r", r.is_ok());
    "#;
    let script = r#"
        read -r line
        printf '{"type":"progress"}\n'
        printf '{"type":"result"}\n'
        sleep 5
    "#;
    let printed = run(script, "", program).await;
    assert!(
        printed.contains("[emit:inner] Err(agent 'A' is busy)"),
        "{printed}"
    );
    assert!(printed.ends_with("[emit:r] true\n"), "{printed}");
}

#[tokio::test]
async fn nobody_is_left_when_the_host_is_closed_or_cancelled() {
    let folder = tempfile::tempdir().unwrap();
    let number = folder.path().join("number");
    let script = format!(
        "sleep 1000 &\necho $! > {0}.tmp; mv {0}.tmp {0}\nread -r line\nsleep 1000\n",
        number.display()
    );
    let program = r#"
        agent A { connector: helper, input_format: "text", output_format: "text" }
        emit("a", A.execute("x"));
    "#;
    let stage = stage(&agent(folder.path(), &script, ""), program, |_| {});
    let running = {
        let host = stage.host.clone();
        let printed = stage.printed.clone();
        tokio::spawn(async move { host.run(Box::new(printed)).await })
    };
    while !number.exists() {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    stage.host.cancel();
    let ended = running.await.unwrap().unwrap_err();
    assert!(ended.is_cancelled, "{ended}");
    stage.host.close().await;
    let pid = std::fs::read_to_string(&number)
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    for _ in 0..100 {
        if rustix::process::test_kill_process(pid).is_err() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    panic!("what the agent started is still there");
}
