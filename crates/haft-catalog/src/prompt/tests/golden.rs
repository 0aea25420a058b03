//! The renderings that are fixed byte for byte.

use super::*;

const PROMPT: &str = r#"## 1. Task (task)

Answer questions.

## 2. Reference (ref)

API notes.

---
[This section is summarized. To view full content, call `read_section` with key "ref".]

## 4. Style (style)

Be brief."#;

const READ: &str = r#"Content of section 'ref':

## 2. Reference (ref)

All API notes.

### 2.1. Limits (ref.limits)

10 rps.

### 2.2. Errors (ref.errors)

Error codes.

---
[This section is summarized. To view full content, call `read_section` with key "ref.errors".]"#;

#[test]
fn the_prompt_is_rendered_as_written_down() {
    let rendered = golden().render(&Context::new()).unwrap();
    assert_eq!(rendered.text, PROMPT);
    assert!(rendered.tools.is_empty());
    assert!(rendered.offers_read_section);
    assert_eq!(
        states(&rendered),
        [
            ("task", SectionState::Shown),
            ("ref", SectionState::Summarized),
            ("ref.limits", SectionState::Hidden),
            ("ref.errors", SectionState::Hidden),
            ("old", SectionState::Disabled),
            ("style", SectionState::Shown),
        ]
    );
}

#[test]
fn a_section_is_read_as_written_down() {
    let read = golden().read("ref", &Context::new()).unwrap();
    assert_eq!(read.text, READ);
    assert_eq!(names(&read.collected), ["search", "cite"]);
    assert!(read.is_success && read.changes_override && !read.is_already_expanded);
    assert!(read.offers_read_section);
}

#[test]
fn once_it_was_read_its_tools_are_offered_and_those_of_what_stays_summarized_are_not() {
    let context = Context::new().opened("ref");
    let rendered = golden().render(&context).unwrap();
    assert_eq!(names(&rendered.tools), ["search", "cite"]);
    assert!(rendered.offers_read_section);

    let read = golden().read("ref.errors", &context).unwrap();
    assert_eq!(names(&read.collected), ["explain"]);
    let rendered = golden().render(&context.opened("ref.errors")).unwrap();
    assert_eq!(names(&rendered.tools), ["search", "cite", "explain"]);
    assert!(!rendered.offers_read_section);
}

#[test]
fn examples_stand_behind_the_body_of_a_section_in_full() {
    let definition = ToolDefinition::from_json(json!({
        "type": "function",
        "name": "add",
        "parameters": {"type": "object"},
        "annotations": {"examples": [
            {"input": {"b": 2, "a": 1}, "output": 3},
            {"input": {}}
        ]}
    }));
    let prompt = prompt([summarized("math")
        .tool(tool("plain"))
        .tool(definition.unwrap())
        .child(section("more"))]);
    let closed = prompt.render(&Context::new()).unwrap();
    assert!(!closed.text.contains("Tools:") && !closed.text.contains("add"));
    let opened = prompt.render(&Context::new().opened("math")).unwrap();
    assert_eq!(
        opened.text,
        "## 1. math (math)\n\nBody of math.\n\nTools:\n- add\n\
         ```json\n{\"input\":{\"b\":2,\"a\":1},\"output\":3}\n```\n\
         ```json\n{\"input\":{}}\n```\n\n\
         ### 1.1. more (math.more)\n\nBody of more."
    );
}

#[test]
fn the_tool_is_offered_as_written_down() {
    let definition = read_section_definition().unwrap();
    assert_eq!(
        definition.to_json(),
        json!({
            "type": "function",
            "name": "read_section",
            "description": "Read the full content of a summarized section.",
            "parameters": {
                "type": "object",
                "properties": {"section_key": {
                    "type": "string",
                    "description": "Section key as shown in parentheses in its heading."
                }},
                "required": ["section_key"],
                "additionalProperties": false
            }
        })
    );
}
