//! One conversation with 2,000 tools in 60 sections, once with every section open and once with
//! sections that the model reads when it needs them. Both end with the same answer; what they send is
//! counted in real tokens and drawn into `docs/tokens-per-turn.svg`.
//!
//! `cargo run -p haft-examples --example two_thousand_tools`

#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use haft::prompt::{Prompt, PromptTemplate, Section, Visibility};
use haft::testing::{ScriptedModel, Step, call, say};
use haft::{
    Defer, LoopDetection, ModelRequest, Outcome, ToolDefinition, ToolObject, ViewFormat,
    dynamic_tool, json,
};

const SECTIONS: usize = 60;
const TOOLS: usize = 2_000;

const FIELDS: [&str; 10] = [
    "billing",
    "shipping",
    "support",
    "payroll",
    "inventory",
    "hiring",
    "travel",
    "security",
    "marketing",
    "research",
];
const REGIONS: [&str; 6] = ["north", "south", "east", "west", "online", "partner"];
const VERBS: [&str; 6] = ["list", "find", "create", "update", "close", "export"];
const THINGS: [&str; 6] = ["orders", "cases", "people", "reports", "plans", "alerts"];

/// One of the 2,000: it says what it was asked.
fn tool(section: &str, number: usize) -> Result<Arc<dyn ToolObject>, Box<dyn Error>> {
    let (verb, thing) = (VERBS[number % 6], THINGS[number / 6 % 6]);
    let name = format!("{section}_{verb}_{thing}");
    let definition = ToolDefinition::builder(&name)
        .description(format!(
            "{verb} the {thing} of {section}. Give a filter to narrow them down; without one, all \
             that are open are meant."
        ))
        .parameters(json!({
            "type": "object",
            "properties": {
                "filter": {"type": "string", "description": "Words that must occur."},
                "limit": {"type": "integer", "description": "How many at most."},
            },
            "additionalProperties": false,
        }))
        .build()?;
    Ok(dynamic_tool(definition, move |arguments, _| {
        let answer = format!("{name}: 3 found for {}", arguments["filter"]);
        async move { Ok(answer) }
    }))
}

/// 60 sections with a summary each, and their tools.
fn prompt() -> Result<Prompt, Box<dyn Error>> {
    let mut template = PromptTemplate::new("examples", "company")
        .section(Section::new("task", "Task").body("Answer questions about the company."));
    let mut left = TOOLS;
    for at in 0..SECTIONS {
        let (field, region) = (FIELDS[at % 10], REGIONS[at / 10]);
        let key = format!("{field}_{region}");
        let share = left / (SECTIONS - at);
        let tools: Result<Vec<_>, _> = (0..share).map(|number| tool(&key, number)).collect();
        left -= share;
        template = template.section(
            Section::new(&key, format!("{field}, {region}"))
                .body(format!(
                    "Everything about {field} in the {region} branch. Dates are ISO 8601."
                ))
                .summary(format!("{field} in the {region} branch."))
                .visibility(Visibility::Summary)
                .tools(tools?),
        );
    }
    Ok(template.build()?)
}

/// What the model does: four questions of the user's day, each in another part of the company.
fn visits() -> [(&'static str, &'static str); 4] {
    [
        ("billing_north", "billing_north_find_orders"),
        ("support_east", "support_east_list_cases"),
        ("travel_online", "travel_online_create_plans"),
        ("security_west", "security_west_export_alerts"),
    ]
}

/// The tokens of everything that a request holds.
fn tokens(request: &ModelRequest) -> usize {
    let count = |text: &str| bpe_openai::o200k_base().count(text);
    let instructions = request.instructions.as_deref().map_or(0, count);
    let tools = request
        .tools
        .iter()
        .map(|tool| tool.definition().view(ViewFormat::Responses));
    let tools: usize = tools.map(|tool| count(&tool.to_string())).sum();
    let items = request
        .conversation
        .items()
        .map(|item| count(&json!(item).to_string()));
    instructions + tools + items.sum::<usize>()
}

/// A conversation, and what each of its requests cost.
async fn talk(prompt: &Prompt, is_open: bool) -> Result<(Outcome, Vec<usize>), Box<dyn Error>> {
    let mut steps: Vec<Step> = Vec::new();
    for (section, tool) in visits() {
        if !is_open {
            steps.push(call("read_section", json!({"section_key": section})));
        }
        steps.push(call(tool, json!({"filter": "late"})));
        steps.push(call(tool, json!({"filter": "urgent"})));
    }
    steps.push(say("Six things are late, six are urgent."));
    let model = ScriptedModel::new(steps);
    let mut run = haft::run(model.clone())
        .prompt(prompt)
        .loop_detection(LoopDetection::off())
        .defer(Defer::Never)
        .max_rounds(20)
        .user("What needs attention today?");
    if is_open {
        for section in prompt.sections() {
            run = run.visibility(section.path(), Visibility::Full);
        }
    }
    let outcome = run.await?;
    model.assert_finished();
    Ok((outcome, model.received().iter().map(tokens).collect()))
}

const WIDTH: usize = 640;
const HEIGHT: usize = 320;
const LEFT: usize = 70;
const TOP: usize = 30;

/// Both lines, on a scale of powers of ten.
fn draw(open: &[usize], read: &[usize]) -> Result<String, std::fmt::Error> {
    let turns = open.len().max(read.len());
    let x = |turn: usize| LEFT + turn * (WIDTH - LEFT - 20) / (turns - 1).max(1);
    // From 100 to 1,000,000 tokens, in hundredths of a power of ten.
    let y = |tokens: usize| {
        let share = (log_hundredths(tokens).saturating_sub(200)).min(400);
        HEIGHT - 30 - share * (HEIGHT - 30 - TOP) / 400
    };
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n\
         <text x=\"{LEFT}\" y=\"18\">Tokens per request, {TOOLS} tools in {SECTIONS} sections</text>\n"
    );
    for power in [100, 1_000, 10_000, 100_000, 1_000_000] {
        let at = y(power);
        writeln!(
            svg,
            "<line x1=\"{LEFT}\" y1=\"{at}\" x2=\"{}\" y2=\"{at}\" stroke=\"#ddd\"/>\
             <text x=\"{}\" y=\"{}\" text-anchor=\"end\">{power}</text>",
            WIDTH - 20,
            LEFT - 6,
            at + 4
        )?;
    }
    for turn in 0..turns {
        let (at, number) = (x(turn), turn + 1);
        writeln!(
            svg,
            "<text x=\"{at}\" y=\"{}\" text-anchor=\"middle\">{number}</text>",
            HEIGHT - 12
        )?;
    }
    for (line, colour, words) in [
        (open, "#c33", "all sections open"),
        (read, "#36c", "sections read when needed"),
    ] {
        let points: Vec<_> = line
            .iter()
            .enumerate()
            .map(|(turn, tokens)| format!("{},{}", x(turn), y(*tokens)))
            .collect();
        let label = y(line[0]) - 8;
        writeln!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>\
             <text x=\"{}\" y=\"{label}\" fill=\"{colour}\">{words}</text>",
            points.join(" "),
            LEFT + 6
        )?;
    }
    svg.push_str("</svg>\n");
    Ok(svg)
}

/// A hundred times the logarithm to the base of ten, in whole numbers: the same on every machine.
fn log_hundredths(number: usize) -> usize {
    // 10^(1/100) in parts of a million.
    let (mut power, mut reached) = (0, 1_000_000_u128);
    let wanted = u128::try_from(number)
        .unwrap_or(u128::MAX)
        .saturating_mul(1_000_000);
    while reached < wanted {
        reached += reached * 23_293 / 1_000_000;
        power += 1;
    }
    power
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let prompt = prompt()?;
    let tools: usize = prompt.sections().map(|section| section.tools().len()).sum();
    assert_eq!((prompt.sections().len(), tools), (SECTIONS + 1, TOOLS));
    let (with_all, open) = talk(&prompt, true).await?;
    let (with_reads, read) = talk(&prompt, false).await?;
    assert_eq!(with_all.text, with_reads.text);
    assert_eq!(with_reads.counters.disclosure_dynamic, 4);
    let (all, some) = (open.iter().sum::<usize>(), read.iter().sum::<usize>());
    println!("turn  all open  read when needed");
    for turn in 0..open.len().max(read.len()) {
        let cell = |line: &[usize]| line.get(turn).map_or(String::new(), ToString::to_string);
        println!("{:>4}  {:>8}  {:>16}", turn + 1, cell(&open), cell(&read));
    }
    println!("sum   {all:>8}  {some:>16}");
    assert!(
        some * 5 < all,
        "reading sections must save more than four fifths"
    );
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/tokens-per-turn.svg");
    let svg = draw(&open, &read)?;
    // The same run draws the same picture: an unchanged one is left alone.
    if std::fs::read_to_string(&file).ok().as_deref() != Some(&*svg) {
        std::fs::write(&file, svg)?;
    }
    Ok(())
}
