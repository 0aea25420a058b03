//! What holds for every tree.

use proptest::prelude::*;

use super::*;

/// A section as it is thrown together: its parts, and those inside it.
#[derive(Debug, Clone)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "independent properties, thrown one by one"
)]
struct Plan {
    is_summary: bool,
    can_be_disabled: bool,
    has_tool: bool,
    has_body: bool,
    inside: Vec<Plan>,
}

fn plan() -> impl Strategy<Value = Plan> {
    let parts = || (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    let of = |((is_summary, can_be_disabled, has_tool, has_body), inside)| Plan {
        is_summary,
        can_be_disabled,
        has_tool,
        has_body,
        inside,
    };
    let leaf = parts().prop_map(move |parts| of((parts, Vec::new())));
    leaf.prop_recursive(5, 40, 4, move |inner| {
        (parts(), prop::collection::vec(inner, 0..4)).prop_map(of)
    })
}

/// What a tool is called, and what is said of it, in words that stand nowhere else.
const TOOL_WORDS: [&str; 3] = ["zq_tool", "zq description", "zq_example"];

fn zq_tool(path: &str) -> Arc<dyn ToolObject> {
    let definition = ToolDefinition::from_json(json!({
        "type": "function",
        "name": format!("zq_tool_{}", path.replace('.', "_")),
        "description": format!("zq description of {path}"),
        "parameters": {"type": "object"},
        "annotations": {"examples": [{"input": {"zq_example": path}}]}
    }));
    function_tool(definition.unwrap())
}

fn sections(plans: &[Plan], around: &str) -> Vec<Section> {
    let sections = plans.iter().enumerate().map(|(at, plan)| {
        let key = format!("s{at}");
        let path = format!("{around}{key}");
        let mut section = Section::new(&key, format!("Title {path}"))
            .summary(format!("Summary of [{path}]"))
            .visibility(if plan.is_summary {
                Visibility::Summary
            } else {
                Visibility::Full
            })
            .children(sections(&plan.inside, &format!("{path}.")));
        if plan.has_body {
            section = section.body(format!("Body of [{path}]"));
        }
        if plan.has_tool {
            section = section.tool(zq_tool(&path));
        }
        if plan.can_be_disabled {
            section = section.enabled_when(|params, _| params.get("off").is_none());
        }
        section
    });
    sections.collect()
}

/// A prompt, and some paths of it that were opened.
fn cases() -> impl Strategy<Value = (Prompt, Vec<String>, Collect)> {
    let plans = prop::collection::vec(plan(), 0..5);
    let collect = prop_oneof![Just(Collect::Shown), Just(Collect::All)];
    (plans, any::<u64>(), collect).prop_map(|(plans, opened, collect)| {
        let prompt = prompt(sections(&plans, ""));
        let paths = prompt.sections().enumerate();
        let opened = paths
            .filter(|(at, _)| opened >> (at % 64) & 1 == 1)
            .map(|(_, section)| section.path().to_owned())
            .collect();
        (prompt, opened, collect)
    })
}

fn context(opened: &[String], collect: Collect) -> Context<'static> {
    let context = Context::new().collect(collect);
    opened.iter().fold(context, Context::opened)
}

fn headings(text: &str) -> Vec<&str> {
    text.lines().filter(|line| line.starts_with("##")).collect()
}

/// By definition, word for word, from the path down; the renderer walks once.
fn state_by_definition(context: &Context<'_>, path: &str, plans: &Plans<'_>) -> SectionState {
    let steps: Vec<usize> = path
        .match_indices('.')
        .map(|(at, _)| at)
        .chain([path.len()])
        .collect();
    let way: Vec<&str> = steps.iter().map(|end| &path[..*end]).collect();
    let is_off = |path: &&str| plans.can_be_disabled(path) && context.params.get("off").is_some();
    if way.iter().any(is_off) {
        return SectionState::Disabled;
    }
    let visibility = |path: &str| {
        let overridden = context.passed.get(path).or(context.stored.get(path));
        overridden.unwrap_or(plans.visibility(path))
    };
    let is_hidden = way[..way.len() - 1]
        .iter()
        .enumerate()
        .any(|(at, ancestor)| {
            visibility(ancestor) == Visibility::Summary
                && !way[at + 1..]
                    .iter()
                    .any(|below| context.stored.opens(below))
        });
    match visibility(path) {
        _ if is_hidden => SectionState::Hidden,
        Visibility::Summary => SectionState::Summarized,
        Visibility::Full => SectionState::Shown,
    }
}

/// The plans by path.
struct Plans<'a>(&'a [Plan]);

impl Plans<'_> {
    fn at(&self, path: &str) -> &Plan {
        let mut plans = self.0;
        let mut found = None;
        for key in path.split('.') {
            let plan = &plans[key[1..].parse::<usize>().unwrap()];
            found = Some(plan);
            plans = &plan.inside;
        }
        found.unwrap()
    }

    fn visibility(&self, path: &str) -> Visibility {
        if self.at(path).is_summary {
            Visibility::Summary
        } else {
            Visibility::Full
        }
    }

    fn can_be_disabled(&self, path: &str) -> bool {
        self.at(path).can_be_disabled
    }
}

proptest! {
    #[test]
    fn rendering_twice_gives_the_same_bytes((prompt, opened, collect) in cases()) {
        let context = context(&opened, collect);
        let one = prompt.render(&context).unwrap();
        let other = prompt.render(&context).unwrap();
        prop_assert_eq!(&one.text, &other.text);
        prop_assert_eq!(one.states, other.states);
        prop_assert_eq!(names(&one.tools), names(&other.tools));
        prop_assert!(!one.text.ends_with('\n') && !one.text.contains("\n\n\n"));
    }

    #[test]
    fn numbers_do_not_move_when_something_is_switched_off((prompt, opened, collect) in cases()) {
        let context = context(&opened, collect);
        let whole = prompt.render(&context).unwrap().text;
        let rest = prompt.render(&context.param("off", "")).unwrap().text;
        let whole = headings(&whole);
        prop_assert!(headings(&rest).iter().all(|heading| whole.contains(heading)));
    }

    #[test]
    fn every_state_is_what_its_definition_says(
        plans in prop::collection::vec(plan(), 0..5),
        opened in any::<u64>(),
        closed in any::<u64>(),
        passed in any::<u64>(),
        is_off in any::<bool>(),
    ) {
        let prompt = prompt(sections(&plans, ""));
        let mut context = Context::new();
        if is_off {
            context = context.param("off", "");
        }
        for (at, section) in prompt.sections().enumerate() {
            let bit = |bits: u64| bits >> (at % 64) & 1 == 1;
            if bit(opened) {
                context.stored.set(section.path(), Visibility::Full);
            } else if bit(closed) {
                context.stored.set(section.path(), Visibility::Summary);
            }
            if bit(passed) && bit(passed >> 1) {
                let visibility = if bit(closed) { Visibility::Full } else { Visibility::Summary };
                context.passed.set(section.path(), visibility);
            }
        }
        let rendered = prompt.render(&context).unwrap();
        for (path, state) in states(&rendered) {
            let defined = state_by_definition(&context, path, &Plans(&plans));
            prop_assert_eq!(state, defined, "{}", path);
            let shows = |text: &str| rendered.text.contains(&format!("{text} of [{path}]"));
            let has_body = Plans(&plans).at(path).has_body;
            prop_assert_eq!(shows("Summary"), state == SectionState::Summarized);
            prop_assert_eq!(shows("Body"), state == SectionState::Shown && has_body);
        }
    }

    #[test]
    fn what_is_not_shown_tells_nothing_about_its_tools((prompt, opened, collect) in cases()) {
        let context = context(&opened, collect);
        let rendered = prompt.render(&context).unwrap();
        for ((path, state), section) in states(&rendered).into_iter().zip(prompt.sections()) {
            if state == SectionState::Shown || section.tools().is_empty() {
                continue;
            }
            let name = section.tools()[0].definition().name().to_string();
            let is_named = rendered.text.lines().any(|line| line == format!("- {name}"));
            prop_assert!(!is_named, "{}", path);
            let example = format!("{{\"zq_example\":\"{path}\"}}");
            prop_assert!(!rendered.text.contains(&example));
        }
        if !states(&rendered).iter().any(|(_, state)| *state == SectionState::Shown) {
            prop_assert!(TOOL_WORDS.iter().all(|word| !rendered.text.contains(word)));
        }
    }

    #[test]
    fn the_tools_of_every_section_with_examples_shown_are_offered((prompt, opened, collect) in cases()) {
        let context = context(&opened, collect);
        let rendered = prompt.render(&context).unwrap();
        let offered = names(&rendered.tools);
        for line in rendered.text.lines().filter(|line| line.starts_with("- zq_tool")) {
            prop_assert!(offered.contains(&&line[2..]));
        }
        for section in prompt.sections() {
            let read = prompt.read(section.path(), &context).unwrap();
            let brought = names(&read.collected);
            for line in read.text.lines().filter(|line| line.starts_with("- zq_tool")) {
                let name = &line[2..];
                prop_assert!(offered.contains(&name) != brought.contains(&name));
            }
        }
    }

    #[test]
    fn what_a_read_collects_is_what_the_next_rendering_adds((prompt, opened, collect) in cases()) {
        let context = context(&opened, collect);
        let before = prompt.render(&context).unwrap();
        for section in prompt.sections() {
            let read = prompt.read(section.path(), &context).unwrap();
            prop_assert_eq!(read.changes_override, !read.collected.is_empty());
            if !read.changes_override {
                continue;
            }
            let after = prompt.render(&context.clone().opened(section.path())).unwrap();
            let mut expected: Vec<_> = names(&before.tools);
            expected.extend(names(&read.collected));
            expected.sort_unstable();
            let mut offered = names(&after.tools);
            offered.sort_unstable();
            prop_assert_eq!(offered, expected);
        }
    }

    #[test]
    fn whoever_reads_every_key_that_is_told_has_seen_everything((prompt, opened, collect) in cases()) {
        let mut context = context(&opened, collect);
        let mut seen = prompt.render(&context).unwrap().text;
        let mut tools = names_of(&prompt.render(&context).unwrap().tools);
        let mut read = std::collections::BTreeSet::new();
        // Every round reads one key more, and there are no more keys than sections.
        while let Some(key) = next_key(&seen, &read) {
            let answer = prompt.read(&key, &context).unwrap();
            prop_assert!(answer.is_success);
            seen.push('\n');
            seen.push_str(&answer.text);
            tools.extend(names_of(&answer.collected));
            if answer.changes_override {
                context = context.opened(&key);
            }
            read.insert(key);
        }
        for section in prompt.sections() {
            let heading = format!(" {}. {} ({})", section.number(), section.title(), section.path());
            prop_assert!(seen.contains(&heading), "{}", section.path());
            let body = format!("Body of [{}]", section.path());
            let has_body = prompt.read(section.path(), &context).unwrap().text.contains(&body);
            prop_assert_eq!(has_body, seen.contains(&body));
            for tool in section.tools() {
                let name = tool.definition().name().to_string();
                let times = tools.iter().filter(|tool| **tool == name).count();
                prop_assert_eq!(times, 1, "{}", name);
            }
        }
    }
}

fn names_of(tools: &[SectionTool]) -> Vec<String> {
    names(tools).into_iter().map(str::to_owned).collect()
}

/// A key that a text tells to read and that was not read yet.
fn next_key(text: &str, read: &std::collections::BTreeSet<String>) -> Option<String> {
    let keys = text.split("call `read_section` with key \"").skip(1);
    let mut keys = keys.filter_map(|rest| rest.split('"').next());
    keys.find(|key| !read.contains(*key)).map(str::to_owned)
}
