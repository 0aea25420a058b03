use clap::CommandFactory as _;

use super::*;

#[test]
fn a_model_is_named_by_its_adapter_and_its_own_name() {
    assert_eq!("offline".parse(), Ok(ModelChoice::Offline));
    assert_eq!(
        "ollama:qwen3:8b".parse(),
        Ok(ModelChoice::Ollama("qwen3:8b".into()))
    );
    for (text, complaint) in [
        ("gpt-5.2", "`gpt-5.2` is no adapter"),
        ("anthropic", "write `anthropic:NAME`"),
        ("anthropic: ", "write `anthropic:NAME`"),
        ("", "`` is no adapter"),
    ] {
        let error = text.parse::<ModelChoice>().unwrap_err();
        assert!(error.contains(complaint), "{error}");
    }
}

#[test]
fn the_table_of_arguments_is_sound() {
    Arguments::command().debug_assert();
}

/// The words of a line, as a shell would see them.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for character in line.chars() {
        match (quote, character) {
            (None, '\'' | '"') => quote = Some(character),
            (Some(open), close) if open == close => quote = None,
            (None, ' ') => words.push(String::new()),
            (_, other) => words.last_mut().unwrap().push(other),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// What a shell would give to `haft`: up to a comment, another command or a file.
fn command(line: &str) -> Option<&str> {
    let at = line.find("haft ")?;
    let command = &line[at..];
    let ends = ["  ", " #", " |", " >", " <"];
    let end = ends.iter().filter_map(|end| command.find(end)).min();
    Some(&command[..end.unwrap_or(command.len())])
}

#[test]
fn every_command_of_the_guide_and_of_the_help_can_be_given() {
    let guide = include_str!("../../../../docs/guide-cli.md");
    let readme = include_str!("../../../../README.md");
    let fenced = [guide, readme].into_iter().flat_map(|text| {
        let blocks = text.split("```sh\n").skip(1);
        blocks.map(|block| block.split("```").next().unwrap())
    });
    let fenced = fenced.flat_map(str::lines);
    let helps = [
        MAIN_HELP,
        COMPLETIONS_HELP,
        SERVE_HELP,
        CHAT_HELP,
        RESPONSES_HELP,
        MCP_HELP,
        RUN_HELP,
        TEST_HELP,
        FMT_HELP,
        REPL_HELP,
    ];
    let helps = helps.into_iter().flat_map(str::lines);
    let helps = helps.filter(|line| line.starts_with("  "));
    let commands: Vec<_> = fenced.chain(helps).filter_map(command).collect();
    assert!(commands.len() > 30, "{commands:?}");
    for command in commands {
        let parsed = Arguments::try_parse_from(words(command));
        assert!(parsed.is_ok(), "{command}: {}", parsed.unwrap_err());
    }
}
