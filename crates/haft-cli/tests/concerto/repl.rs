//! `haft repl`, from a pipe and at a terminal.

use crate::kit::folder;
use crate::support::terminal::{CTRL_C, CTRL_D, Terminal};
use crate::support::{haft, told};

fn session(arguments: &[&str], lines: &str) -> (Option<i32>, String, String) {
    let folder = folder(&[("units.conc", "pub fn double(n: Int) -> Int { n * 2 }\n")]);
    let mut all = vec!["repl"];
    all.extend(arguments);
    told(haft(folder.path(), &all), lines)
}

#[test]
fn values_are_shown_and_what_was_declared_stays() {
    let lines = "let x = 20;\nfn add(n: Int) -> Int {\n\n  n + x2(1)\n}\nfn x2(n: Int) -> Int { n * 2 }\n\
                 fn add(n: Int) -> Int {\n\n  n + x2(1)\n}\nadd(x)\nlet mut xs = [1];\nxs.push(x);\nxs\n\
                 \"text ${x}\"\nprintln(\"printed\")\nemit(\"c\", 1)\nmod units;\nunits::double(4)\n";
    let (code, out, aside) = session(&[], lines);
    assert_eq!(
        out, "22\n[1, 20]\ntext 20\nprinted\n[emit:c] 1\n8\n",
        "{aside}"
    );
    assert!(
        aside.starts_with("repl-2.conc:3:7: error[E010]: `x2` is not defined"),
        "{aside}"
    );
    assert_eq!(code, Some(1), "something was wrong on the way");
    assert_eq!(session(&[], "1 +\n2\n").0, Some(0));
}

#[test]
fn errors_leave_the_session_as_it_was() {
    let lines = "let mut n = 1;\nn = 2; 1 / 0\nn\nn = \nlet o = ;\nn + 1\nlet s = \"a\nn + 2\n";
    let (_, out, aside) = session(&[], lines);
    assert!(
        aside.contains("runtime error: division by zero\n"),
        "{aside}"
    );
    assert!(aside.contains("error[E002]"), "{aside}");
    assert!(out.starts_with("1\n"), "{out}");
    assert!(out.ends_with("3\n"), "{out}");
}

#[test]
fn commands_begin_with_a_colon() {
    let (code, out, aside) = session(
        &[],
        ":help\n:type [1]\n:type\n:nonsense\nlet x = 1;\n:reset\nx\n",
    );
    assert_eq!(code, Some(1));
    assert!(out.contains(":reset") && out.ends_with("Array\n"), "{out}");
    assert!(aside.contains("`:type` wants an expression"), "{aside}");
    assert!(aside.contains("there is no command `:nonsense`"), "{aside}");
    assert!(aside.contains("`x` is not defined"), "{aside}");
    let (code, out, _) = session(&[], "1\n:quit\n2\n");
    assert_eq!((code, out.as_str()), (Some(0), "1\n"));
}

#[test]
fn models_permissions_and_limits_are_those_of_run() {
    let ask = "model M { provider: anybody, base: \"b\" }\nM.execute(\"hi\").unwrap().text\n";
    let (code, out, aside) = session(&["--mock"], ask);
    assert_eq!(
        (code, out.as_str()),
        (Some(0), "[mock response to: hi]\n"),
        "{aside}"
    );
    assert!(session(&[], ask).2.contains("error[E022]"));
    let read = "std::fs::read_file(\"units.conc\").is_ok()\n";
    assert_eq!(session(&[], read).1, "false\n");
    assert_eq!(session(&["--allow-fs=."], read).1, "true\n");
    let (_, out, aside) = session(&["--max-steps", "100000"], "while true { }\n7\n");
    assert!(aside.contains("max steps exceeded"), "{aside}");
    assert_eq!(out, "7\n");
}

#[test]
fn what_is_not_finished_at_the_end_is_told() {
    let (code, out, aside) = session(&[], "fn f( {\n");
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert!(aside.contains("error[E002]"), "{aside}");
}

#[test]
fn at_a_terminal_lines_go_on_history_is_there_and_ctrl_c_stops_what_runs() {
    let folder = folder(&[]);
    let mut terminal = Terminal::run(folder.path(), &["repl"]);
    terminal.sees(":help");
    terminal.sees("> ");
    terminal.line("fn twice(n: Int) -> Int {");
    terminal.line("n * 2 }");
    terminal.sees("> ");
    terminal.line("twice(2100) + 1");
    terminal.sees("\n4201");
    terminal.sees("> ");
    // The line before, again.
    terminal.keys("\u{1b}[A\r");
    terminal.sees("\n4201");
    terminal.sees("> ");
    terminal.keys(":he\t");
    terminal.sees(":help");
    terminal.keys("\r");
    terminal.sees(":reset");
    terminal.sees("> ");
    terminal.line("println(\"go\"); while true { }");
    terminal.sees("\ngo");
    terminal.keys(CTRL_C);
    terminal.sees("interrupted");
    terminal.sees("> ");
    // What is begun is dropped.
    terminal.keys("twice(");
    terminal.keys(CTRL_C);
    terminal.sees("> ");
    terminal.line("println(\"\\u{1b}[2Jsafe\")");
    let shown = terminal.sees("safe\r\n");
    let last = shown.rsplit('\n').nth(1).unwrap();
    assert!(!last.contains("\u{1b}[2J"), "{shown:?}");
    terminal.sees("> ");
    terminal.keys(CTRL_D);
    assert_eq!(terminal.ends().0, Some(0));
}
