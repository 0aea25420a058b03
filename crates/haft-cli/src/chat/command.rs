//! What a line that begins with `/` means.

use crate::text::nearest;

/// Every command: its name, what comes behind it, and what it does.
pub(super) const COMMANDS: [(&str, &str, &str); 9] = [
    ("/help", "", "show this"),
    ("/tools", "", "list the tools that the model may use"),
    (
        "/model",
        "[NAME]",
        "show who answers, or let another one answer",
    ),
    ("/new", "", "begin a new conversation"),
    (
        "/save",
        "FILE",
        "write the conversation to a file; `.json` keeps every item",
    ),
    ("/usage", "", "show what the conversation has cost"),
    (
        "/output",
        "CALL_ID TEXT",
        "answer a call that the model waits for",
    ),
    ("/quit", "", "leave"),
    ("/exit", "", "the same"),
];

/// A command.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Command {
    Help,
    Tools,
    Model(Option<String>),
    New,
    Save(String),
    Usage,
    Output { call_id: String, text: String },
    Quit,
}

/// What a line is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    Message(String),
    Command(Command),
    /// A command that is none, and what to say about it.
    Mistake(String),
}

/// Reads a line. Two slashes begin a message with one.
pub(super) fn read(line: &str) -> Line {
    let Some(rest) = line.strip_prefix('/') else {
        return Line::Message(line.to_owned());
    };
    if rest.starts_with('/') {
        return Line::Message(rest.to_owned());
    }
    let (name, argument) = match line.split_once(char::is_whitespace) {
        Some((name, argument)) => (name, argument.trim()),
        None => (line.trim_end(), ""),
    };
    let command = match (name, argument) {
        ("/help" | "/?", "") => Command::Help,
        ("/tools", "") => Command::Tools,
        ("/model", "") => Command::Model(None),
        ("/model", name) => Command::Model(Some(name.to_owned())),
        ("/new", "") => Command::New,
        ("/usage", "") => Command::Usage,
        ("/quit" | "/exit" | "/q", "") => Command::Quit,
        ("/save", "") => return mistake(name, "say where to: `/save FILE`"),
        ("/save", file) => Command::Save(file.to_owned()),
        ("/output", argument) => match argument.split_once(char::is_whitespace) {
            Some((call_id, text)) if !text.trim().is_empty() => Command::Output {
                call_id: call_id.to_owned(),
                text: text.trim().to_owned(),
            },
            _ => {
                return mistake(
                    name,
                    "say which call and what came of it: `/output CALL_ID TEXT`",
                );
            }
        },
        (name, _) if COMMANDS.iter().any(|(known, ..)| *known == name) => {
            return mistake(name, "nothing comes behind it");
        }
        (name, _) => return unknown(name),
    };
    Line::Command(command)
}

fn mistake(name: &str, remedy: &str) -> Line {
    Line::Mistake(format!("`{name}`: {remedy}"))
}

fn unknown(name: &str) -> Line {
    let names = COMMANDS.iter().map(|(known, ..)| *known);
    let meant = match nearest(name, names) {
        Some(known) => format!("did you mean `{known}`?"),
        None => String::from("`/help` shows those that there are"),
    };
    let slash = "a message with a slash in front begins with two";
    Line::Mistake(format!("there is no command `{name}`: {meant}; {slash}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_with_a_slash_are_commands() {
        let output = Command::Output {
            call_id: "call_1".into(),
            text: "4 °C and snow".into(),
        };
        for (line, command) in [
            ("/help", Command::Help),
            ("/model", Command::Model(None)),
            ("/model  gpt ", Command::Model(Some("gpt".into()))),
            ("/save a b.json", Command::Save("a b.json".into())),
            ("/output call_1  4 °C and snow", output),
            ("/exit ", Command::Quit),
        ] {
            assert_eq!(read(line), Line::Command(command), "{line}");
        }
        assert_eq!(
            read("//etc is a folder"),
            Line::Message("/etc is a folder".into())
        );
        assert_eq!(read(" /help"), Line::Message(" /help".into()));
    }

    #[test]
    fn every_command_that_is_told_of_is_known() {
        for (name, arguments, _) in COMMANDS {
            let line = format!("{name} {arguments}");
            assert!(matches!(read(&line), Line::Command(_)), "{line}");
        }
    }

    #[test]
    fn mistakes_are_told_with_what_was_meant() {
        for (line, words) in [
            ("/hlep", "did you mean `/help`?"),
            ("/dance", "`/help` shows"),
            ("/save", "`/save FILE`"),
            ("/output call_1", "`/output CALL_ID TEXT`"),
            ("/quit now", "nothing comes behind it"),
        ] {
            let Line::Mistake(told) = read(line) else {
                panic!("{line}");
            };
            assert!(told.contains(words), "{told}");
        }
    }
}
