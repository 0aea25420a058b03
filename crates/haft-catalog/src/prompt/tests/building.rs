//! What is refused before anything is rendered.

use super::*;

fn refused(sections: impl IntoIterator<Item = Section>) -> PromptError {
    let template = PromptTemplate::<String>::new("test", "prompt").sections(sections);
    template.build().unwrap_err()
}

/// R15
#[test]
fn a_key_with_a_dot_is_refused() {
    let error = refused([Section::new("a.b", "A")]);
    assert_eq!(error, PromptError::InvalidSectionKey { key: "a.b".into() });
    assert_eq!(
        error.to_string(),
        "Invalid section key 'a.b': only [a-z0-9_-] is allowed"
    );
    let inside = refused([section("a").child(section("B"))]);
    assert_eq!(
        inside.to_string(),
        "Invalid section key 'B': only [a-z0-9_-] is allowed"
    );
}

#[test]
fn a_key_of_legal_characters_is_told_what_else_is_wrong() {
    for key in ["", "_a", "-", &"x".repeat(65)] {
        let error = refused([Section::new(key, "A")]).to_string();
        assert!(error.contains("1 to 64 characters"), "{error}");
    }
}

#[test]
fn siblings_have_different_keys_and_cousins_may_share_one() {
    let error = refused([section("a").child(section("x")).child(section("x"))]);
    assert_eq!(error, PromptError::DuplicateSection { path: "a.x".into() });
    let prompt = prompt([
        section("a").child(section("x")),
        section("x").child(section("x")),
    ]);
    assert!(prompt.contains("a.x") && prompt.contains("x") && prompt.contains("x.x"));
}

/// R21
#[test]
fn a_tool_is_in_a_prompt_once_whatever_is_shown_of_it() {
    let error = refused([
        summarized("a").child(summarized("b").tool(tool("find"))),
        section("c").enabled(false).tool(tool("find")),
    ]);
    assert_eq!(
        error.to_string(),
        "tool `find` is in section `a.b` and again in section `c`: take one out, or rename it"
    );
    let in_one = refused([section("a").tools([tool("find"), tool("find")])]);
    assert!(matches!(
        in_one,
        PromptError::DuplicateTool { first, second, .. } if first == "a" && second == "a"
    ));
}

#[test]
fn names_of_hafts_own_tools_are_taken() {
    for name in haft_core::RESERVED_NAMES {
        let error = refused([section("a").tool(tool(name))]);
        assert!(matches!(error, PromptError::ReservedName { .. }), "{name}");
    }
}

#[test]
fn a_tool_that_is_none_is_refused_with_its_section() {
    let broken = ToolDefinition::builder("no schema")
        .build()
        .map(function_tool);
    let error = refused([section("a").child(section("b").tool(broken))]).to_string();
    assert!(error.starts_with("a tool of section `a.b` cannot be used: "));
}

#[test]
fn a_title_is_1_to_120_characters_on_one_line() {
    for bad in ["", "  ", "a\nb", "a\u{7}", &"é".repeat(121)] {
        let error = refused([Section::new("a", bad)]);
        assert!(matches!(error, PromptError::InvalidTitle { .. }), "{bad}");
    }
    prompt([Section::new("a", "é".repeat(120))]);
}

#[test]
fn eight_sections_may_be_around_one() {
    let nested =
        |depth: usize| (0..depth).fold(section("leaf"), |inner, _| section("s").child(inner));
    let prompt = prompt([nested(8)]);
    assert_eq!(prompt.sections().last().unwrap().depth(), MAX_DEPTH);
    let path = format!("{}leaf", "s.".repeat(9));
    assert_eq!(refused([nested(9)]), PromptError::TooDeep { path });
}

#[test]
fn a_section_that_is_always_a_summary_has_one() {
    let silent = |summary: &str| {
        let section = section("b").summary(summary);
        section.visibility(Visibility::Summary)
    };
    let missing = PromptError::MissingSummary { path: "a.b".into() };
    for summary in ["", " \n "] {
        assert_eq!(refused([section("a").child(silent(summary))]), missing);
    }
    let none = section("b").visibility(Visibility::Summary);
    assert_eq!(refused([section("a").child(none)]), missing);
}

#[test]
fn a_dollar_sign_that_means_nothing_is_refused_with_its_place() {
    let error = refused([section("a").child(Section::new("b", "B").body("\n  It costs\n  $5."))]);
    assert_eq!(
        error.to_string(),
        "the body of section `a.b`, line 3: `$5.` is no placeholder: write `$name` or `${name}`, \
         or write `$$` for a dollar sign"
    );
    let error = refused([section("a").summary("${")]).to_string();
    assert!(error.starts_with("the summary of section `a`, line 1: "));
}

#[test]
fn a_prompt_has_a_name_of_two_keys() {
    for (ns, key) in [("", "a"), ("a", ""), ("A", "b"), ("a", "b.c"), ("a/b", "c")] {
        let refused = PromptTemplate::<String>::new(ns, key).build().unwrap_err();
        assert!(
            matches!(refused, PromptError::InvalidName { .. }),
            "{ns}/{key}"
        );
    }
    assert_eq!(golden().name(), "test/prompt");
}

#[test]
fn a_server_is_a_section_with_its_label_its_description_and_its_tools() {
    let label = haft_core::Namespace::new("GitHub").unwrap();
    let server = Section::of_server(&label, "Issues for $5.\n", [tool("GitHub__list")]);
    let prompt = prompt([server.visibility(Visibility::Summary)]);
    let rendered = prompt.render(&Context::new()).unwrap();
    assert!(rendered.tools.is_empty());
    assert_eq!(
        rendered.text,
        "## 1. GitHub (github)\n\nIssues for $5.\n\n---\n[This section is summarized. To view full \
         content, call `read_section` with key \"github\".]"
    );
    let read = prompt.read("github", &Context::new()).unwrap();
    assert_eq!(
        read.text,
        "Content of section 'github':\n\n## 1. GitHub (github)"
    );
    assert_eq!(names(&read.collected), ["GitHub__list"]);
}

#[test]
fn a_server_that_nothing_is_said_of_cannot_be_summarized() {
    let label = haft_core::Namespace::new("files").unwrap();
    let server = || Section::of_server(&label, " ", [tool("files__read")]);
    assert_eq!(
        refused([server().visibility(Visibility::Summary)]),
        PromptError::MissingSummary {
            path: "files".into()
        }
    );
    let rendered = prompt([server()]).render(&Context::new()).unwrap();
    assert_eq!(names(&rendered.tools), ["files__read"]);
}

#[test]
fn the_placeholders_of_a_prompt_can_be_asked_for() {
    let prompt = prompt([
        Section::new("a", "A").body("$x ${y}"),
        Section::new("b", "B")
            .summary("$x $z")
            .literal_body("$5")
            .enabled(false),
    ]);
    assert!(prompt.placeholders().into_iter().eq(["x", "y", "z"]));
}

#[test]
fn what_holds_for_the_tools_of_a_section_is_found_by_its_path() {
    struct Named(&'static str);
    impl haft_core::Policy for Named {
        fn name(&self) -> &str {
            self.0
        }
        fn check(
            &self,
            _: &haft_core::PolicyCall<'_>,
            _: &haft_core::SessionState,
        ) -> haft_core::Verdict {
            haft_core::Verdict::Deny("never".into())
        }
    }
    impl haft_core::FeedbackProvider for Named {
        fn name(&self) -> &str {
            self.0
        }
        fn triggers(&self) -> &[haft_core::FeedbackTrigger] {
            &[]
        }
        fn block(&self, _: &haft_core::FeedbackMoment<'_>) -> Option<String> {
            None
        }
    }
    let inner = section("b")
        .policy(Named("own"))
        .feedback(Named("own words"));
    let prompt = PromptTemplate::<u32>::new("test", "prompt")
        .section(section("a").child(inner))
        .policy(Named("all"))
        .feedback(Named("all words"))
        .build()
        .unwrap()
        .untyped();
    let own = prompt.section("a.b").unwrap();
    assert_eq!(own.policies()[0].name(), "own");
    assert_eq!(own.feedback()[0].name(), "own words");
    assert!(prompt.section("a").unwrap().policies().is_empty());
    assert_eq!(prompt.policies()[0].name(), "all");
    assert_eq!(prompt.feedback()[0].name(), "all words");
}
