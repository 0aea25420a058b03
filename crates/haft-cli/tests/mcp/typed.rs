//! What servers ask in the middle of a call, at a terminal and where there is none.

use serde_json::json;

use crate::kit::{fake, folder, mcp};
use crate::support::terminal::{CTRL_C, CTRL_D, Terminal};
use crate::support::{haft, scripted, told};

fn both() -> String {
    let modern = fake("modern", "modern", "");
    format!("{modern}{}", fake("legacy", "legacy", ""))
}

/// Fills in the form of the fake: a name, and the colour that it proposes.
fn fill_in(terminal: &mut Terminal, server: &str) {
    terminal.sees(&format!("MCP server `{server}` asks"));
    terminal.sees("Who?");
    terminal.sees("name (text): ");
    terminal.answer("Ann");
    terminal.sees("red");
    terminal.sees("colour (one of these) [blue]: ");
    terminal.answer("");
    terminal.sees(&format!("this goes to `{server}`:"));
    terminal.sees("name: \"Ann\"");
    terminal.sees("send it? [y]es, [n]o: ");
    terminal.answer("y");
}

#[test]
fn a_call_by_hand_asks_the_person_at_the_terminal() {
    let folder = folder(&both());
    for server in ["modern", "legacy"] {
        let mut terminal = Terminal::run(folder.path(), &["mcp", "call", server, "ask"]);
        fill_in(&mut terminal, server);
        terminal.sees(r#""content":{"name":"Ann","colour":"blue"}"#);
        assert_eq!(terminal.ends().0, Some(0), "{server}");
    }
}

#[test]
fn ctrl_c_at_a_question_declines_it_and_the_call_goes_on() {
    let folder = folder(&both());
    for server in ["modern", "legacy"] {
        let mut terminal = Terminal::run(folder.path(), &["mcp", "call", server, "ask"]);
        terminal.sees("name (text): ");
        terminal.keys(CTRL_C);
        terminal.sees(r#""action":"decline""#);
        assert_eq!(terminal.ends().0, Some(0), "{server}");
    }
}

#[test]
fn where_nobody_is_the_question_is_refused_with_what_it_was() {
    let folder = folder(&both());
    let (code, _, aside) = mcp(folder.path(), &["call", "modern", "ask"]);
    assert_eq!(code, Some(1));
    let wanted = "cannot be given here: a form to be filled in (elicitation). It asks: Who?";
    assert!(aside.contains(wanted), "{aside}");
    let (_, out, _) = mcp(folder.path(), &["call", "legacy", "ask"]);
    let refused = "there is no terminal to ask at, and the server wants a form to be filled in";
    assert!(out.contains(refused), "{out}");
    let steps = [
        json!({"calls": [{"name": "modern__ask", "arguments": {}}]}),
        json!({"expect": {"outputs": [{"is_error": true}]}, "text": "As you wish."}),
    ];
    scripted(folder.path(), &both(), &steps);
    let (code, out, aside) = told(haft(folder.path(), &["chat"]), "go\n");
    assert_eq!(code, Some(0), "{out}{aside}");
    assert!(out.contains("As you wish."), "{out}{aside}");
}

#[test]
fn a_conversation_asks_the_person_as_well() {
    let folder = folder("");
    let steps = [
        json!({"calls": [{"name": "modern__ask", "arguments": {}}]}),
        json!({"text": "first."}),
        json!({"calls": [{"name": "legacy__ask", "arguments": {}}]}),
        json!({"text": "second."}),
        json!({"calls": [{"name": "legacy__ask", "arguments": {}}]}),
        json!({"text": "third."}),
    ];
    scripted(folder.path(), &both(), &steps);
    let mut terminal = Terminal::run(folder.path(), &["chat"]);
    terminal.sees("> ");
    for (server, end) in [("modern", "first."), ("legacy", "second.")] {
        terminal.line("go");
        fill_in(&mut terminal, server);
        terminal.sees("Ann");
        terminal.sees(end);
        terminal.sees("> ");
    }
    terminal.line("go");
    terminal.sees("name (text): ");
    terminal.keys(CTRL_C);
    terminal.sees("decline");
    terminal.sees("third.");
    terminal.sees("> ");
    terminal.keys(CTRL_D);
    assert_eq!(terminal.ends().0, Some(0));
}
