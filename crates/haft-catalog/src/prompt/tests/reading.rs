//! What a model is told that asks for a section.

use super::*;

/// One row of the table: what is read, what the answer begins with, what it brings.
struct Row {
    key: &'static str,
    line: &'static str,
    has_content: bool,
    tools: &'static [&'static str],
}

/// A tree in which every state occurs: `top` is shown, `sum` summarized, `sum.full` and `sum.sum`
/// hidden, `off` and what is in it disabled.
fn all_states() -> Prompt {
    prompt([
        section("top").tool(tool("of_top")),
        summarized("sum")
            .tool(tool("of_sum"))
            .child(section("full").tool(tool("of_full")))
            .child(summarized("sum").tool(tool("of_inner"))),
        section("off")
            .enabled(false)
            .tool(tool("of_off"))
            .child(section("in").tool(tool("of_in"))),
    ])
}

#[test]
fn every_state_has_its_answer() {
    let rows = [
        Row {
            key: "nope",
            line: "Unknown section key: 'nope'",
            has_content: false,
            tools: &[],
        },
        Row {
            key: "off",
            line: "Unknown section key: 'off'",
            has_content: false,
            tools: &[],
        },
        Row {
            key: "off.in",
            line: "Unknown section key: 'off.in'",
            has_content: false,
            tools: &[],
        },
        Row {
            key: "top",
            line: "Section is already expanded.",
            has_content: true,
            tools: &[],
        },
        Row {
            key: "sum",
            line: "Content of section 'sum':",
            has_content: true,
            tools: &["of_sum", "of_full"],
        },
        Row {
            key: "sum.full",
            line: "Content of section 'sum.full':",
            has_content: true,
            tools: &["of_full"],
        },
        Row {
            key: "sum.sum",
            line: "Content of section 'sum.sum':",
            has_content: true,
            tools: &["of_inner"],
        },
    ];
    for row in rows {
        let read = all_states().read(row.key, &Context::new()).unwrap();
        assert_eq!(read.is_success, row.has_content, "{}", row.key);
        assert_eq!(names(&read.collected), row.tools, "{}", row.key);
        assert_eq!(read.changes_override, !row.tools.is_empty());
        assert_eq!(
            read.is_already_expanded,
            row.line == "Section is already expanded."
        );
        match read.content {
            Some(content) => assert_eq!(read.text, format!("{}\n\n{content}", row.line)),
            None => assert_eq!(read.text, row.line),
        }
    }
}

/// R1
#[test]
fn a_disabled_section_cannot_be_told_from_one_that_is_not_there() {
    let told = |key: &str| {
        let read = all_states().read(key, &Context::new()).unwrap();
        let text = read.text.replace(key, "K");
        (read.is_success, text, read.content, read.collected.len())
    };
    assert_eq!(told("off"), told("nope"));
    assert_eq!(told("off.in"), told("nope"));
    let opened = Context::new().opened("off").opened("off.in");
    let read = all_states().read("off.in", &opened).unwrap();
    assert_eq!(read.text, "Unknown section key: 'off.in'");
}

#[test]
fn a_key_is_taken_as_it_is() {
    for key in ["", " ref", "ref ", "REF", "ref.", ".ref", "errors", "2"] {
        let read = golden().read(key, &Context::new()).unwrap();
        assert_eq!(read.text, format!("Unknown section key: '{key}'"));
        assert!(!read.is_success);
    }
}

/// R2
#[test]
fn a_summary_says_nothing_about_tools() {
    for context in [Context::new(), Context::new().collect(Collect::All)] {
        let texts = [
            golden().render(&context).unwrap().text,
            golden().read("ref", &context).unwrap().text,
        ];
        for word in ["explain", "What explain is good for", "ool"] {
            assert!(texts.iter().all(|text| !text.contains(word)), "{word}");
        }
        assert!(!texts[0].contains("search") && !texts[0].contains("cite"));
    }
}

/// R3
#[test]
fn a_full_child_of_a_summary_is_read_by_its_path_at_any_time() {
    let read = golden().read("ref.limits", &Context::new()).unwrap();
    assert_eq!(
        read.text,
        "Content of section 'ref.limits':\n\n### 2.1. Limits (ref.limits)\n\n10 rps."
    );
    let after = Context::new().opened("ref");
    let read = golden().read("ref.limits", &after).unwrap();
    assert_eq!(
        read.text,
        "Section is already expanded.\n\n### 2.1. Limits (ref.limits)\n\n10 rps."
    );
}

/// R4: whatever a read brings is offered once its override is stored, and nothing else is.
#[test]
fn what_was_collected_is_what_the_next_rendering_offers() {
    for collect in [Collect::Shown, Collect::All] {
        for key in ["ref", "ref.errors", "ref.limits"] {
            let before = Context::new().collect(collect);
            let mut offered = names_of(&golden().render(&before).unwrap().tools);
            let read = golden().read(key, &before).unwrap();
            let after = if read.changes_override {
                before.opened(key)
            } else {
                before
            };
            offered.extend(names_of(&read.collected));
            let next = names_of(&golden().render(&after).unwrap().tools);
            assert_eq!(offered, next, "{key} {collect:?}");
        }
    }
}

fn names_of(tools: &[SectionTool]) -> Vec<String> {
    names(tools).into_iter().map(str::to_owned).collect()
}

/// R5
#[test]
fn read_section_is_offered_wherever_a_text_names_it() {
    let deep = prompt([
        summarized("a").child(summarized("b").child(summarized("c").tool(tool("x")))),
        section("z"),
    ]);
    let contexts = [
        Context::new(),
        Context::new().opened("a"),
        Context::new().opened("a.b"),
        Context::new().opened("a.b.c"),
        Context::new().opened("a").opened("a.b").opened("a.b.c"),
    ];
    for context in contexts {
        let rendered = deep.render(&context).unwrap();
        assert_eq!(
            rendered.offers_read_section,
            rendered.text.contains("`read_section`")
        );
        for section in deep.sections() {
            let read = deep.read(section.path(), &context).unwrap();
            assert_eq!(
                read.offers_read_section,
                read.text.contains("`read_section`")
            );
            assert!(!read.offers_read_section || rendered.offers_read_section);
        }
    }
}

#[test]
fn a_read_without_tools_changes_nothing_and_may_be_repeated() {
    let prompt = prompt([summarized("a").child(section("b"))]);
    let context = Context::new();
    let first = prompt.read("a", &context).unwrap();
    assert!(first.is_success && !first.changes_override);
    assert_eq!(prompt.read("a", &context).unwrap().text, first.text);
    assert!(first.text.starts_with("Content of section 'a':\n\n## 1. a"));
}

#[test]
fn tools_that_are_offered_already_are_not_collected_again() {
    let prompt = prompt([summarized("a").tool(tool("of_a")).child(
        section("b")
            .tool(tool("of_b"))
            .child(section("c").tool(tool("of_c"))),
    )]);
    let read = prompt.read("a", &Context::new().opened("a.b")).unwrap();
    assert_eq!(names(&read.collected), ["of_a"]);
    assert!(read.content.unwrap().contains("Body of c."));
}

#[test]
fn reading_leaves_out_what_is_disabled_and_keeps_summaries_inside() {
    let prompt = prompt([summarized("a")
        .child(section("b").enabled(false).child(section("x")))
        .child(summarized("c").child(section("d").tool(tool("of_d"))))
        .child(section("e"))]);
    let read = prompt.read("a", &Context::new()).unwrap();
    assert_eq!(
        read.content.unwrap(),
        "## 1. a (a)\n\nBody of a.\n\n\
         ### 1.2. c (a.c)\n\nSummary of c.\n\n---\n[This section is summarized. To view full \
         content, call `read_section` with key \"a.c\".]\n\n\
         ### 1.3. e (a.e)\n\nBody of e."
    );
    assert!(read.collected.is_empty());
}

#[test]
fn reading_follows_the_overrides_and_parameters_of_the_prompt() {
    let prompt =
        prompt([summarized("a").child(Section::new("b", "B").body("For $who.").summary("$who"))]);
    let passed = Overrides::new().with("a.b", Visibility::Summary);
    let context = Context::new().param("who", "you").passed(passed);
    let read = prompt.read("a", &context).unwrap();
    assert!(read.text.contains("\n\nyou\n\n---\n"));
    let read = prompt.read("a.b", &context).unwrap();
    assert!(read.text.ends_with("### 1.1. B (a.b)\n\nFor you."));
}

#[test]
fn all_tools_inside_come_along_where_that_is_asked_for() {
    let prompt = prompt([summarized("a")
        .tool(tool("of_a"))
        .child(summarized("b").tool(tool("of_b")))
        .child(section("off").enabled(false).tool(tool("of_off")))
        .child(section("c").tool(tool("of_c")))]);
    let context = Context::new().collect(Collect::All);
    assert!(prompt.render(&context).unwrap().tools.is_empty());
    let read = prompt.read("a", &context).unwrap();
    assert_eq!(names(&read.collected), ["of_a", "of_b", "of_c"]);
    // What is in the prompt after a restart is what was injected without one.
    let context = context.opened("a");
    let rendered = prompt.render(&context).unwrap();
    assert_eq!(names(&rendered.tools), ["of_a", "of_b", "of_c"]);
    assert!(rendered.text.contains("Summary of b."));
    let again = prompt.read("a.b", &context).unwrap();
    assert!(again.collected.is_empty() && !again.changes_override);
    assert!(again.text.contains("Body of b."));
}
