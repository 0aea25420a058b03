//! What a prompt shows.

use haft_core::{SessionState, Slice};
use serde::{Deserialize, Serialize};

use super::*;

fn state_of(prompt: &Prompt, context: &Context<'_>, path: &str) -> SectionState {
    let rendered = prompt.render(context).unwrap();
    let found = states(&rendered).into_iter().find(|(p, _)| *p == path);
    found.unwrap().1
}

#[test]
fn headings_get_deeper_up_to_six_marks_and_keep_their_numbers() {
    let nested = (1..=6).rev().fold(section("s7"), |inner, level| {
        section(&format!("s{level}")).child(inner)
    });
    let rendered = prompt([section("first"), nested]).render(&Context::new());
    let text = rendered.unwrap().text;
    let headings: Vec<_> = text.lines().filter(|line| line.starts_with('#')).collect();
    assert_eq!(headings[1], "## 2. s1 (s1)");
    assert_eq!(headings[4], "##### 2.1.1.1. s4 (s1.s2.s3.s4)");
    assert_eq!(headings[5], "###### 2.1.1.1.1. s5 (s1.s2.s3.s4.s5)");
    assert_eq!(
        headings[7],
        "###### 2.1.1.1.1.1.1. s7 (s1.s2.s3.s4.s5.s6.s7)"
    );
}

#[test]
fn an_empty_body_leaves_no_gap() {
    let rendered = prompt([
        Section::new("a", "A").child(section("b")),
        Section::new("c", "C").body("$nothing"),
    ])
    .render(&Context::new().param("nothing", " "));
    assert_eq!(
        rendered.unwrap().text,
        "## 1. A (a)\n\n### 1.1. b (a.b)\n\nBody of b.\n\n## 2. C (c)"
    );
}

#[test]
fn a_prompt_of_nothing_is_empty() {
    let rendered = prompt([]).render(&Context::new()).unwrap();
    assert_eq!(rendered.text, "");
    assert!(!rendered.offers_read_section);
    let off = prompt([section("a").enabled(false)]);
    assert_eq!(off.render(&Context::new()).unwrap().text, "");
}

#[test]
fn the_override_of_a_rendering_goes_before_that_of_the_conversation_and_before_the_author() {
    let prompt = prompt([summarized("a"), section("b").summary("B.")]);
    let both = |path: &str, visibility| Overrides::new().with(path, visibility);
    let plain = Context::new();
    assert_eq!(state_of(&prompt, &plain, "a"), SectionState::Summarized);
    assert_eq!(state_of(&prompt, &plain, "b"), SectionState::Shown);

    let stored = Context::new().stored(both("a", Visibility::Full));
    assert_eq!(state_of(&prompt, &stored, "a"), SectionState::Shown);
    let passed = stored.passed(both("a", Visibility::Summary));
    assert_eq!(state_of(&prompt, &passed, "a"), SectionState::Summarized);
    let stored = Context::new().stored(both("b", Visibility::Summary));
    assert_eq!(state_of(&prompt, &stored, "b"), SectionState::Summarized);
    let passed = Context::new().passed(both("a", Visibility::Full));
    assert_eq!(state_of(&prompt, &passed, "a"), SectionState::Shown);
}

#[test]
fn an_override_for_an_unknown_path_is_of_no_effect() {
    let context = Context::new().opened("nowhere").opened("ref.limits.deeper");
    let with = golden().render(&context).unwrap();
    let without = golden().render(&Context::new()).unwrap();
    assert_eq!(with.text, without.text);
    assert_eq!(states(&with), states(&without));
}

#[test]
fn what_is_inside_a_summary_is_hidden_unless_it_was_opened() {
    let prompt = prompt([summarized("a")
        .tool(tool("of_a"))
        .child(
            section("b")
                .tool(tool("of_b"))
                .child(section("c").tool(tool("of_c")).child(section("d")))
                .child(section("e")),
        )
        .child(summarized("f").child(section("g")))]);
    let rendered = prompt.render(&Context::new().opened("a.b.c")).unwrap();
    assert_eq!(
        states(&rendered),
        [
            ("a", SectionState::Summarized),
            ("a.b", SectionState::Hidden),
            ("a.b.c", SectionState::Shown),
            ("a.b.c.d", SectionState::Shown),
            ("a.b.e", SectionState::Hidden),
            ("a.f", SectionState::Hidden),
            ("a.f.g", SectionState::Hidden),
        ]
    );
    assert_eq!(names(&rendered.tools), ["of_c"]);
    assert_eq!(
        rendered.text,
        "## 1. a (a)\n\nSummary of a.\n\n---\n[This section is summarized. To view full content, \
         call `read_section` with key \"a\".]\n\n\
         #### 1.1.1. c (a.b.c)\n\nBody of c.\n\n\
         ##### 1.1.1.1. d (a.b.c.d)\n\nBody of d."
    );
}

#[test]
fn a_summary_below_one_that_was_opened_hides_again_what_is_inside_it() {
    let prompt = prompt([summarized("a")
        .child(section("b").child(summarized("c").child(section("d").child(section("e")))))]);
    let state = |opened: &[&str], path: &str| {
        let context = opened
            .iter()
            .fold(Context::new(), |c, path| c.opened(*path));
        state_of(&prompt, &context, path)
    };
    assert_eq!(state(&["a.b"], "a.b.c"), SectionState::Summarized);
    assert_eq!(state(&["a.b"], "a.b.c.d"), SectionState::Hidden);
    assert_eq!(state(&["a.b.c.d"], "a.b.c.d"), SectionState::Shown);
    assert_eq!(state(&["a.b.c.d"], "a.b.c.d.e"), SectionState::Shown);
    assert_eq!(state(&["a.b.c.d"], "a.b.c"), SectionState::Hidden);
    assert_eq!(state(&["a"], "a.b"), SectionState::Shown);
}

#[test]
fn an_override_of_one_rendering_opens_nothing_explicitly() {
    let passed = Overrides::new().with("ref.limits", Visibility::Full);
    let context = Context::new().passed(passed);
    assert_eq!(
        state_of(&golden(), &context, "ref.limits"),
        SectionState::Hidden
    );
}

#[test]
fn what_is_disabled_takes_everything_inside_with_it_even_if_it_was_opened() {
    let prompt = prompt([
        section("a")
            .enabled(false)
            .child(section("b").tool(tool("x"))),
        section("c"),
    ]);
    let rendered = prompt.render(&Context::new().opened("a.b").opened("a"));
    let rendered = rendered.unwrap();
    assert_eq!(rendered.text, "## 2. c (c)\n\nBody of c.");
    assert!(rendered.tools.is_empty());
    assert_eq!(states(&rendered)[1], ("a.b", SectionState::Disabled));
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct Level(u32);

impl Slice for Level {
    const NAME: &'static str = "level";
}

#[test]
fn predicates_see_the_parameters_and_the_state_of_the_session_or_of_one_call() {
    let level = |state: &StateView<'_>| state.get::<Level>().map_or(0, |level| level.0);
    let prompt = prompt([
        section("a")
            .summary("A.")
            .visibility_when(move |_, state| match level(state) {
                0 => Visibility::Summary,
                _ => Visibility::Full,
            }),
        section("b").enabled_when(|params, _| params.get("b").is_some()),
    ]);
    let none = Context::new();
    assert_eq!(state_of(&prompt, &none, "a"), SectionState::Summarized);
    assert_eq!(state_of(&prompt, &none, "b"), SectionState::Disabled);
    assert_eq!(
        state_of(&prompt, &none.param("b", ""), "b"),
        SectionState::Shown
    );

    let state = SessionState::builder().slice::<Level>().build().unwrap();
    let call = state.begin("call_1", "up");
    call.update::<Level>(|level| level.0 = 1).unwrap();
    let in_session = Context::new().state(&state);
    assert_eq!(
        state_of(&prompt, &in_session, "a"),
        SectionState::Summarized
    );
    let in_call = Context::new().state(&call);
    assert_eq!(state_of(&prompt, &in_call, "a"), SectionState::Shown);
}

#[test]
fn nothing_is_decided_inside_what_is_disabled_nor_where_it_is_overridden() {
    let never = section("b")
        .summary("B.")
        .visibility_when(|_, _| panic!("asked"));
    let prompt = prompt([section("a").enabled(false).child(never.clone()), never]);
    let passed = Overrides::new().with("b", Visibility::Full);
    assert!(prompt.render(&Context::new().passed(passed)).is_ok());
}

#[test]
fn a_predicate_that_panics_is_an_error_with_its_section() {
    let prompt = prompt([section("a").child(section("b").enabled_when(|_, _| panic!("oh")))]);
    let error = prompt.render(&Context::new()).unwrap_err().to_string();
    assert_eq!(error, "what decides about section `a.b` panicked: oh");
}

#[test]
fn a_placeholder_that_nothing_is_given_for_stops_everything() {
    let prompt = prompt([
        Section::new("a", "A").body("Fine."),
        summarized("b").child(Section::new("c", "C").body("In $region.")),
        Section::new("d", "D").body("In $nowhere.").enabled(false),
    ]);
    let error = prompt.render(&Context::new()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the body of section `b.c` has a placeholder `$region` and there is no parameter \
         `region`: give it, or write `$$` for a dollar sign"
    );
    assert_eq!(prompt.read("b", &Context::new()).unwrap_err(), error);
    assert!(prompt.render(&Context::new().param("region", "eu")).is_ok());
}

#[test]
fn a_summary_that_turns_out_to_be_missing_is_an_error_of_the_rendering() {
    let missing = |path: &str| RenderError::MissingSummary { path: path.into() };
    let overridden = Context::new().stored(Overrides::new().with("a", Visibility::Summary));
    let render = |section: Section, context: &Context<'_>| {
        prompt([section])
            .render(context)
            .map(|rendered| rendered.text)
    };
    assert_eq!(render(section("a"), &overridden), Err(missing("a")));
    let decided = section("a").visibility_when(|_, _| Visibility::Summary);
    assert_eq!(render(decided, &Context::new()), Err(missing("a")));
    let empty = section("a").summary("$s").visibility(Visibility::Summary);
    let context = Context::new().param("s", "\n");
    assert_eq!(render(empty, &context), Err(missing("a")));
}

#[test]
fn what_a_conversation_opened_survives_as_json_and_is_rolled_back_with_its_call() {
    let state = SessionState::builder()
        .slice::<Overrides>()
        .build()
        .unwrap();
    let open = |path: &'static str| {
        let call = state.begin("call_1", "read_section");
        let open = move |opened: &mut Overrides| {
            opened.set(path, Visibility::Full);
        };
        call.update::<Overrides>(open).unwrap();
        call
    };
    open("ref").commit().unwrap();
    open("ref.errors").rollback().unwrap();
    let json = serde_json::to_value(&*state.get::<Overrides>().unwrap()).unwrap();
    assert_eq!(json, json!({"ref": "full"}));
    let opened: Overrides = serde_json::from_value(json).unwrap();
    let rendered = golden().render(&Context::new().stored(opened)).unwrap();
    assert_eq!(names(&rendered.tools), ["search", "cite"]);
}
