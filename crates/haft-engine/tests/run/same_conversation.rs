//! Whether tools are injected or the model is started anew: the same decisions of a model give the same
//! conversation, but for the one message that says how a section was opened.

use std::sync::Arc;

use fastrand::Rng;
use haft_catalog::prompt::{Collect, Prompt, PromptTemplate, Section, Visibility};
use haft_core::{Capabilities, Item, ModelResponse, ToolObject, ToolOutput};
use haft_engine::{LoopDetection, LoopOptions, Outcome, Run};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::script::{Reply, Script, says};
use crate::tools::tool;

/// A tree by chance, and what is in it.
#[derive(Default)]
struct Grown {
    paths: Vec<String>,
    tools: Vec<String>,
}

fn echo(name: &str) -> Arc<dyn ToolObject> {
    tool(name, |text| Ok(ToolOutput::text(text)))
}

fn grow(random: &mut Rng, around: &str, depth: usize, grown: &mut Grown) -> Section {
    let key = format!("s{}", grown.paths.len());
    let path = if around.is_empty() {
        key.clone()
    } else {
        format!("{around}.{key}")
    };
    grown.paths.push(path.clone());
    let visibility = if random.u8(0..3) == 0 {
        Visibility::Full
    } else {
        Visibility::Summary
    };
    let mut section = Section::new(&key, format!("Title {key}"))
        .body(format!("Body of {key}."))
        .summary(format!("Summary of {key}."))
        .visibility(visibility)
        .enabled(random.u8(0..8) > 0);
    for _ in 0..random.usize(0..3) {
        let name = format!("t{}", grown.tools.len());
        section = section.tool(echo(&name));
        grown.tools.push(name);
    }
    let children = if depth < 3 { random.usize(0..3) } else { 0 };
    for _ in 0..children {
        section = section.child(grow(random, &path, depth + 1, grown));
    }
    section
}

fn prompt(random: &mut Rng) -> (Prompt, Grown) {
    let mut grown = Grown::default();
    let mut template = PromptTemplate::new("test", "grown");
    for _ in 0..random.usize(1..4) {
        template = template.section(grow(random, "", 0, &mut grown));
    }
    (template.build().unwrap(), grown)
}

/// Answers of reads and calls, known and unknown, several at once.
fn decisions(random: &mut Rng, grown: &Grown) -> Vec<Reply> {
    let mut replies: Vec<_> = (0..random.usize(1..7))
        .map(|round| {
            let calls = (0..random.usize(1..4)).map(|at| {
                let id = format!("c{round}_{at}");
                if grown.tools.is_empty() || random.u8(0..3) > 0 {
                    let key = match random.u8(0..8) {
                        0 => "nowhere",
                        _ => &grown.paths[random.usize(..grown.paths.len())],
                    };
                    let arguments = json!({"section_key": key}).to_string();
                    Item::function_call(id, "read_section", arguments)
                } else {
                    let name = &grown.tools[random.usize(..grown.tools.len())];
                    let arguments = json!({"text": format!("said {round}")}).to_string();
                    Item::function_call(id, name, arguments)
                }
            });
            Reply::Answer(ModelResponse::of(calls.collect::<Vec<_>>()))
        })
        .collect();
    replies.push(says("done"));
    replies
}

async fn play(prompt: &Prompt, replies: Vec<Reply>, collect: Collect, is_dynamic: bool) -> Outcome {
    let capabilities = Capabilities {
        supports_dynamic_tools: is_dynamic,
        ..Capabilities::default()
    };
    let options = LoopOptions {
        max_rounds: 50,
        max_restarts: 50,
        loop_detection: LoopDetection::off(),
        ..LoopOptions::default()
    };
    Run::new(Script::with_capabilities(replies, capabilities))
        .options(options)
        .prompt(prompt)
        .collect(collect)
        .user("go")
        .await
        .unwrap()
}

/// The conversation, less what may differ: how a section was opened, and in which order a refusal lists
/// what is offered.
fn told(outcome: &Outcome) -> Vec<Value> {
    let opened: Vec<_> = outcome
        .tool_calls
        .iter()
        .filter(|call| {
            let tools = call.value.as_ref().map(|value| &value["expanded_tools"]);
            tools.is_some_and(|tools| tools.as_array().is_some_and(|tools| !tools.is_empty()))
        })
        .map(|call| call.call_id.clone())
        .collect();
    let items = outcome.session.items().map(|item| {
        let mut json = json!(item);
        let call_id = json["call_id"].as_str().unwrap_or_default().to_owned();
        if let Some(text) = json["output"].as_str() {
            json["output"] = if opened.contains(&call_id) {
                "opened".into()
            } else if let Some((what, listed)) = text.split_once("Available tools: ") {
                let mut names: Vec<_> = listed.trim_end_matches('.').split(", ").collect();
                names.sort_unstable();
                format!("{what}{names:?}").into()
            } else {
                text.into()
            };
        }
        json
    });
    items.collect()
}

fn compare(seed: u64) -> Result<(), TestCaseError> {
    let mut random = Rng::with_seed(seed);
    let (prompt, grown) = prompt(&mut random);
    let replies = decisions(&mut random, &grown);
    let collect = if random.bool() {
        Collect::Shown
    } else {
        Collect::All
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let injected = runtime.block_on(play(&prompt, replies.clone(), collect, true));
    let restarted = runtime.block_on(play(&prompt, replies, collect, false));
    prop_assert_eq!(told(&injected), told(&restarted));
    prop_assert_eq!(
        &injected.session.visibility_overrides(),
        &restarted.session.visibility_overrides()
    );
    let dynamic = injected.counters.disclosure_dynamic;
    prop_assert_eq!(injected.counters.disclosure_restarts, 0);
    prop_assert!(restarted.counters.disclosure_restarts <= dynamic);
    prop_assert_eq!(restarted.counters.disclosure_restarts == 0, dynamic == 0);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn injection_and_restart_give_the_same_conversation(seed: u64) {
        compare(seed)?;
    }
}
