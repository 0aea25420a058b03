//! Every piece of the document on dynamic tool binding, with the declarations that it assumes.

use haft_models::testing::{call, say};
use serde_json::json;

use crate::kit::{bodies, manifest, messages, provider, results, run, stage, tools};
use crate::mcp::{command, fake};

/// What the pieces assume: `Model`, its tools, a memory.
const ASSUMED: &str = r#"
memory m: Memory = Memory::new();
memory conversation: Memory = Memory::new();
tool Calculator {
    @describe("Add two numbers")
    pub fn add(@param("first number") a: Int, @param("second number") b: Int) -> Int {
        a + b
    }
}
tool FileManager { @describe("Read a file") pub fn read(@param("Path") path: String) -> String { path } }
tool SearchTool { @describe("Search") pub fn search(@param("Words") words: String) -> String { words } }
tool DatabaseTool { @describe("Query") pub fn query(@param("Words") words: String) -> String { words } }
model Model { provider: desk, base: "gpt-4o", tools: [FileManager] }
let prompt = "What now?";
"#;

async fn offered(piece: &str) -> Option<Vec<String>> {
    let server = provider([say("fine").forever()]).await;
    run(
        &server,
        &format!("{ASSUMED}\n{piece}\nemit(\"text\", result.unwrap().text);"),
    )
    .await;
    let bodies = bodies(&server);
    assert_eq!(bodies.len(), 1);
    let tools = tools(&bodies[0])?;
    Some(tools.into_iter().map(str::to_owned).collect())
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[tokio::test]
async fn with_tools_adds_to_the_models_own_and_none_is_there_twice() {
    let piece = "let result = Model.with_tools([Calculator, FileManager]).execute(prompt);";
    assert_eq!(
        offered(piece).await,
        Some(names(&["FileManager__read", "Calculator__add"]))
    );
}

#[tokio::test]
async fn without_tools_sends_no_tools_at_all() {
    let piece = "let result = Model.without_tools().execute(prompt);";
    assert_eq!(offered(piece).await, None);
}

#[tokio::test]
async fn without_tools_drops_the_models_own_only_in_either_order() {
    for piece in [
        "let result = Model.without_tools().with_tools([Calculator]).execute(prompt);",
        "let result = Model.with_tools([Calculator]).without_tools().execute(prompt);",
    ] {
        assert_eq!(offered(piece).await, Some(names(&["Calculator__add"])));
    }
    let piece = "let result = Model.with_tools([]).execute(prompt);";
    assert_eq!(offered(piece).await, Some(names(&["FileManager__read"])));
}

#[tokio::test]
async fn memory_and_tools_compose() {
    let piece = "let result = Model.with_memory(m).with_tools([Calculator]).execute(prompt);";
    assert_eq!(
        offered(piece).await,
        Some(names(&["FileManager__read", "Calculator__add"]))
    );
    let piece = "let result = Model
        .with_memory(conversation)
        .with_tools([SearchTool, DatabaseTool])
        .execute(prompt);
        emit(\"kept\", conversation.len());";
    assert_eq!(
        offered(piece).await,
        Some(names(&[
            "FileManager__read",
            "SearchTool__search",
            "DatabaseTool__query"
        ]))
    );
}

#[tokio::test]
async fn a_builder_is_a_value_that_is_used_again_and_changes_nobody() {
    let server = provider([say("fine").forever()]).await;
    let program = format!(
        "{ASSUMED}
        let base = Model.with_tools([Calculator]);
        let more = base.with_tools([SearchTool]);
        base.execute(prompt); more.execute(prompt); base.execute(prompt); Model.execute(prompt);"
    );
    run(&server, &program).await;
    let bodies = bodies(&server);
    let offered: Vec<usize> = bodies.iter().map(|it| tools(it).unwrap().len()).collect();
    assert_eq!(offered, [2, 3, 2, 1]);
}

#[tokio::test]
async fn an_mcp_server_of_the_manifest_and_a_tool_are_there_for_one_call() {
    let server = provider([
        call("Calculator__add", json!({"a": 2, "b": 2})).with_id("c1"),
        say("4"),
        say("again"),
    ])
    .await;
    let program = r#"
        tool Calculator {
            @describe("Add two numbers")
            pub fn add(@param("first number") a: Int, @param("second number") b: Int) -> Int {
                a + b
            }
        }
        model Assistant {
            provider: openai,
            base: "gpt-4o",
            tools: [WebSearch],  // static MCP tool
        }
        // WebSearch + Calculator available for this call
        let result = Assistant.with_tools([Calculator]).execute("What is 2+2?");
        emit("answer", result.unwrap().text);
        Assistant.execute("And now?");
    "#;
    let text = manifest(&server.base_url(), &command("WebSearch", &fake()));
    let text = text.replace("connections.desk", "connections.openai");
    let stage = stage(&text, program, |_| {});
    assert_eq!(stage.run().await.unwrap(), "[emit:answer] 4\n");
    let bodies = bodies(&server);
    let web = [
        "WebSearch__search",
        "WebSearch__fail",
        "WebSearch__counted",
        "WebSearch__secret",
    ];
    let with_calculator: Vec<&str> = web.iter().copied().chain(["Calculator__add"]).collect();
    assert_eq!(tools(&bodies[0]).unwrap(), with_calculator);
    assert_eq!(tools(&bodies[2]).unwrap(), web);
    assert_eq!(results(&bodies[1]), ["4"]);
    let function = &bodies[0]["tools"][4]["function"];
    assert_eq!(function["description"], "Add two numbers");
    let parameters = json!({"type": "object", "properties": {
        "a": {"type": "integer", "description": "first number"},
        "b": {"type": "integer", "description": "second number"}}, "required": ["a", "b"]});
    assert_eq!(function["parameters"], parameters);
}

#[tokio::test]
async fn a_body_that_is_only_a_comment_gives_null() {
    let server = provider([
        call(
            "Summarizer__summarize",
            json!({"text": "long", "max_words": 3}),
        )
        .with_id("c1"),
        say("done"),
    ])
    .await;
    let program = r#"
        tool Summarizer {
            @describe("Summarize text to a given length")
            pub fn summarize(
                @param("Text to summarize") text: String,
                @param("Maximum word count") max_words: Int,
            ) -> String {
                // implementation
            }
        }
        model Researcher {
            provider: openai,
            base: "gpt-4o",
            tools: [WebSearch],
        }
        // Research with web search + summarization
        let result = Researcher.with_tools([Summarizer]).execute("Research quantum computing");
        emit("text", result.unwrap().text);
    "#;
    let text = manifest(&server.base_url(), &command("WebSearch", &fake()));
    let text = text.replace("connections.desk", "connections.openai");
    let stage = stage(&text, program, |_| {});
    assert_eq!(stage.run().await.unwrap(), "[emit:text] done\n");
    let bodies = bodies(&server);
    assert_eq!(tools(&bodies[0]).unwrap().len(), 5);
    assert_eq!(results(&bodies[1]), ["null"]);
}

#[tokio::test]
async fn a_poem_needs_no_tools_and_starts_no_server() {
    let server = provider([say("Waves.")]).await;
    let program = r#"
        tool Calculator { @describe("Add") pub fn add(@param("a") a: Int) -> Int { a } }
        model Writer {
            provider: openai,
            base: "gpt-4o",
            tools: [WebSearch, Calculator],
        }
        // Creative writing -- no tools needed
        let poem = Writer.without_tools().execute("Write a poem about the ocean");
        emit("poem", poem.unwrap().text);
    "#;
    let folder = tempfile::tempdir().unwrap();
    let started = folder.path().join("started");
    let line = format!("{} {}", fake(), started.display());
    let text = manifest(&server.base_url(), &command("WebSearch", &line));
    let text = text.replace("connections.desk", "connections.openai");
    let stage = stage(&text, program, |_| {});
    assert_eq!(stage.run().await.unwrap(), "[emit:poem] Waves.\n");
    let bodies = bodies(&server);
    assert_eq!(tools(&bodies[0]), None);
    assert_eq!(bodies[0]["model"], "gpt-4o");
    assert_eq!(
        messages(&bodies[0]),
        [("user", "Write a poem about the ocean".to_owned())]
    );
    assert!(!started.exists(), "nobody needed the server");
}

/// The tools of a program's IR, as JSON.
fn compiled(program: &str) -> serde_json::Value {
    let options = haft_concerto::Options::default();
    let compiled =
        haft_concerto::compile(&haft_concerto::Source::new("main.conc", program), &options);
    assert!(!compiled.has_errors(), "{}", compiled.render());
    let json: serde_json::Value = serde_json::from_str(&compiled.ir.unwrap().to_json()).unwrap();
    json["tools"].clone()
}

#[test]
fn the_compiler_generates_tool_schemas() {
    let tools = compiled(
        r#"
        tool Calculator {
            @describe("Add two numbers together")
            pub fn add(
                @param("The first number") a: Int,
                @param("The second number") b: Int,
            ) -> Int {
                a + b
            }
        }
    "#,
    );
    let expected = json!([{
        "method_name": "Calculator::add",
        "description": "Add two numbers together",
        "parameters": {
            "type": "object",
            "properties": {
                "a": { "type": "integer", "description": "The first number" },
                "b": { "type": "integer", "description": "The second number" }
            },
            "required": ["a", "b"]
        }
    }]);
    assert_eq!(tools[0]["tool_schemas"], expected);
    assert_eq!(
        (&tools[0]["name"], &tools[0]["module"]),
        (&json!("Calculator"), &json!("main"))
    );
    assert_eq!(tools[0]["methods"].as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn every_type_of_a_parameter_reaches_the_provider_as_the_table_says() {
    let server = provider([say("fine")]).await;
    let program = r#"
        tool T {
            @describe("x")
            pub fn f(
                @param("i") i: Int, @param("f") f: Float, @param("s") s: String, @param("b") b: Bool,
                @param("a") a: Array<Int>, @param("m") m: Map<String, Int>, @param("o") o: Option<String>,
            ) -> Int { 1 }
        }
        model M { provider: desk, base: "small", tools: [T] }
        M.execute("x");
    "#;
    run(&server, program).await;
    let bodies = bodies(&server);
    let parameters = &bodies[0]["tools"][0]["function"]["parameters"];
    let of = |name: &str| {
        let mut schema = parameters["properties"][name].clone();
        schema.as_object_mut().unwrap().remove("description");
        schema
    };
    assert_eq!(of("i"), json!({"type": "integer"}));
    assert_eq!(of("f"), json!({"type": "number"}));
    assert_eq!(of("s"), json!({"type": "string"}));
    assert_eq!(of("b"), json!({"type": "boolean"}));
    assert_eq!(
        of("a"),
        json!({"type": "array", "items": {"type": "integer"}})
    );
    // An adapter may say of an open object that it names no members.
    assert_eq!(of("m")["type"], "object");
    assert_eq!(of("o"), json!({"type": "string"}));
    assert_eq!(
        parameters["required"],
        json!(["i", "f", "s", "b", "a", "m"])
    );
}
