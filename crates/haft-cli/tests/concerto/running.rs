//! `haft run`.

use std::io::Read as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::kit::{expected, folder, printed, program, say};
use crate::support::{haft, told};

#[test]
fn the_programs_of_the_reference_print_what_it_says() {
    let folder = folder(&[]);
    for name in ["a", "b", "c", "d", "h"] {
        let out = printed(
            folder.path(),
            &["run", "--mock", &program(&format!("{name}.conc"))],
        );
        assert_eq!(out, expected(&format!("{name}.out")), "program {name}");
    }
    assert_eq!(printed(folder.path(), &["run", &program("j.conc")]), "18\n");
    let out = printed(folder.path(), &["run", &program("g.conc")]);
    assert_eq!(out, "[emit:direct] 6.56 ft\n");
}

#[test]
fn program_f_tells_of_its_pipeline_first() {
    let folder = folder(&[]);
    let out = printed(folder.path(), &["run", &program("f.conc")]);
    let lines: Vec<&str> = out.lines().collect();
    let channels: Vec<&str> = lines[..8]
        .iter()
        .map(|line| line.split([':', ']']).nth(2).unwrap())
        .collect();
    let stage = ["stage_start", "stage_complete"];
    let mut told = vec!["start"];
    told.extend(stage.iter().cycle().take(6));
    told.push("complete");
    assert_eq!(channels, told);
    assert_eq!(lines[8..].join("\n") + "\n", expected("f.out"));
}

const MIXED: &str = "println(\"one\");\nemit(\"two\", { \"k\": [1, 2.0, nil] });\nprint(\"thr\");\n\
                     print(\"ee\\n\");\nemit(\"four\");\nstd::log::warn(\"aside\");\n";

#[test]
fn words_and_emits_come_in_order_and_logs_beside_them() {
    let folder = folder(&[("app.conc", MIXED)]);
    let (code, out, aside) = say(folder.path(), &["run", "app.conc"]);
    assert_eq!(code, Some(0));
    assert_eq!(
        out,
        "one\n[emit:two] {\"k\": [1, 2, nil]}\nthree\n[emit:four] nil\n"
    );
    assert_eq!(aside, "[WARN]  aside\n");
}

#[test]
fn emits_can_be_json_or_nothing() {
    let folder = folder(&[("app.conc", MIXED)]);
    let (_, out, _) = say(folder.path(), &["run", "app.conc", "--emit", "json"]);
    let two = "{\"channel\":\"two\",\"payload\":{\"k\":[1,2.0,null]}}";
    let four = "{\"channel\":\"four\",\"payload\":null}";
    assert_eq!(out, format!("one\n{two}\nthree\n{four}\n"));
    let (_, out, _) = say(folder.path(), &["run", "app.conc", "-q"]);
    assert_eq!(out, "one\nthree\n");
    assert_eq!(
        say(folder.path(), &["run", "app.conc", "--emit", "xml"]).0,
        Some(2)
    );
}

#[test]
fn what_ends_a_program_is_told_and_ends_with_one() {
    for (text, words) in [
        ("println(1 / 0);", "division by zero"),
        (
            "let a = [1]; println(a[5]);",
            "index error: index 5 out of bounds (length 1)",
        ),
        (
            "fn main() -> Result<Int, String> { Err(\"no\") }",
            "unhandled error: no",
        ),
        ("panic(\"enough\");", "panic: enough"),
        (
            "assert_eq(1, 2);",
            "unhandled error: assertion failed: 1 != 2",
        ),
        (
            "fn f(n: Int) -> Int { f(n + 1) } println(f(0));",
            "max call depth exceeded (10000)",
        ),
    ] {
        let text = format!("println(\"before\");\n{text}\n")
            .replace("println(\"before\");\nfn main", "fn before() {}\nfn main");
        let folder = folder(&[("app.conc", &text)]);
        let (code, out, aside) = say(folder.path(), &["run", "app.conc", "-q"]);
        assert_eq!(code, Some(1), "{text}");
        assert_eq!(aside, format!("runtime error: {words}\n"));
        assert!(out.is_empty() || out == "before\n", "{out}");
    }
}

#[test]
fn debugging_says_where() {
    let half = "pub fn half(n: Int) -> Int {\n    10 / n\n}\n";
    let app = "mod sums;\n@test fn fails() { sums::half(0); }\nprintln(sums::half(0));\n";
    let folder = folder(&[("app.conc", app), ("sums.conc", half)]);
    let (code, _, aside) = say(folder.path(), &["run", "app.conc", "--debug"]);
    assert_eq!(code, Some(1));
    let place = "sums.conc:2:5 in `sums::half`\n";
    assert_eq!(
        aside,
        format!("runtime error: division by zero\n  at {place}")
    );
    let (_, out, _) = say(folder.path(), &["test", "app.conc", "--debug"]);
    assert!(
        out.ends_with(&format!("fails -- division by zero\n      at {place}")),
        "{out}"
    );
    let (_, out, _) = say(folder.path(), &["test", "app.conc"]);
    assert!(out.ends_with("fails -- division by zero\n"), "{out}");
}

#[test]
fn limits_are_kept() {
    let deep = "fn f(n: Int) -> Int { if n == 0 { 0 } else { 1 + f(n - 1) } } println(f(200));";
    let steps = "let mut i = 0; while true { i += 1; }";
    let memory = "let mut xs = [\"\"]; while true { xs.push(\"x\".repeat(100000)); }";
    let folder = folder(&[("d.conc", deep), ("s.conc", steps), ("m.conc", memory)]);
    for (arguments, words) in [
        (
            ["run", "d.conc", "--max-depth", "100"],
            "max call depth exceeded (100)",
        ),
        (
            ["run", "s.conc", "--max-steps", "100000"],
            "max steps exceeded (100000)",
        ),
        (
            ["run", "m.conc", "--max-memory", "16"],
            "max memory exceeded (16 MiB)",
        ),
    ] {
        let (code, out, aside) = say(folder.path(), &arguments);
        assert_eq!((code, out.as_str()), (Some(1), ""), "{aside}");
        assert!(
            aside.contains(&format!("runtime error: {words}\n")),
            "{aside}"
        );
    }
    assert_eq!(printed(folder.path(), &["run", "d.conc"]), "200\n");
    for limit in ["--max-depth", "--max-steps", "--max-memory"] {
        let (code, ..) = say(folder.path(), &["run", "d.conc", limit, "0"]);
        assert_eq!(code, Some(2));
    }
}

#[test]
fn files_and_variables_are_reached_only_with_permission() {
    let text = "println(std::fs::read_file(\"data/a.txt\"), std::fs::read_file(\"b.txt\"), \
                std::env::get(\"GREETING\"));\n";
    let try_env =
        "println(try { std::env::has(\"GREETING\") } catch RuntimeError(e) { e.message });\n";
    let folder = folder(&[
        ("app.conc", text),
        ("env.conc", try_env),
        ("data/a.txt", "A"),
        ("b.txt", "B"),
    ]);
    let run = |arguments: &[&str]| {
        let mut all = vec!["run"];
        all.extend(arguments);
        let mut command = haft(folder.path(), &all);
        command.env("GREETING", "hello");
        told(command, "")
    };
    let (code, out, _) = run(&["env.conc"]);
    assert_eq!(code, Some(0));
    assert!(out.starts_with("permission denied: "), "{out}");
    assert_eq!(run(&["env.conc", "--allow-env"]).1, "true\n");
    let (_, out, _) = run(&["app.conc", "--allow-env=GREETING", "--allow-fs=data"]);
    assert!(
        out.starts_with("Ok(A) Err(permission denied: b.txt"),
        "{out}"
    );
    assert!(out.ends_with("Some(hello)\n"), "{out}");
    let (_, out, _) = run(&["app.conc", "--allow-env=GREETING", "--allow-fs"]);
    assert_eq!(out, "Ok(A) Ok(B) Some(hello)\n");
    // What the manifest grants begins at its folder, wherever it is run from.
    let manifest = "[project]\nname = \"p\"\n[permissions]\nfs = [\"./data\"]\nenv = true\n";
    std::fs::write(folder.path().join("Concerto.toml"), manifest).unwrap();
    let (_, out, _) = run(&["app.conc"]);
    assert!(
        out.starts_with("Ok(A) Err(permission denied: b.txt"),
        "{out}"
    );
    assert!(out.ends_with("Some(hello)\n"), "{out}");
    assert_eq!(run(&["app.conc", "--allow-fs="]).0, Some(2));
}

#[test]
fn hosts_are_reached_only_with_permission() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        use std::io::Write as _;
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi");
        }
    });
    let text = format!(
        "match std::http::get(\"http://{address}/\") {{ Ok(r) => println(r.status, r.body), \
         Err(e) => println(e) }}\n"
    );
    let folder = folder(&[("app.conc", &text)]);
    let out = printed(folder.path(), &["run", "app.conc"]);
    assert!(out.starts_with("permission denied: "), "{out}");
    let out = printed(folder.path(), &["run", "app.conc", "--allow-net=127.0.0.1"]);
    assert_eq!(out, "200 hi\n");
    let out = printed(
        folder.path(),
        &["run", "app.conc", "--allow-net=example.com"],
    );
    assert!(out.starts_with("permission denied: "), "{out}");
}

#[test]
fn whoever_has_read_enough_is_no_failure() {
    let text = "let mut i = 0; while true { println(i); i += 1; }";
    let folder = folder(&[("app.conc", text)]);
    let mut child = haft(folder.path(), &["run", "app.conc"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = child.stdout.take().unwrap();
    out.read_exact(&mut [0; 100]).unwrap();
    drop(out);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
}

#[test]
fn what_was_printed_is_there_before_a_wait_and_ctrl_c_ends_it() {
    for body in ["std::time::sleep(60000);", "while true { }"] {
        let text = format!("print(\"ready\"); {body} println(\"never\");");
        let folder = folder(&[("app.conc", &text)]);
        let mut child = haft(folder.path(), &["run", "app.conc"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut out = child.stdout.take().unwrap();
        let mut ready = [0; 5];
        out.read_exact(&mut ready).unwrap();
        assert_eq!(&ready, b"ready");
        let begun = Instant::now();
        let id = child.id().to_string();
        let kill = std::process::Command::new("kill")
            .args(["-s", "INT", &id])
            .status();
        assert!(kill.unwrap().success());
        let status = child.wait().unwrap();
        assert_eq!(status.code(), Some(130));
        assert!(
            begun.elapsed() < Duration::from_secs(20),
            "it was waited for"
        );
        let mut rest = String::new();
        out.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "");
    }
}

#[test]
fn wrong_uses_end_with_two() {
    let folder = folder(&[("app.conc", "println(1);")]);
    for arguments in [
        &["run"][..],
        &["run", "app.conc", "more.conc"],
        &["run", "app.conc", "--max-depth", "x"],
        &["check"],
        &["compile"],
        &["test"],
        &["repl", "app.conc"],
    ] {
        let (code, out, aside) = say(folder.path(), arguments);
        assert_eq!((code, out.as_str()), (Some(2), ""), "{aside}");
    }
}
