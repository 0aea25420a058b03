//! The IR as other tools read it: its members, what is left out, and files of the older toolchain.

#![allow(clippy::unwrap_used, clippy::expect_used)] // helpers of tests

use haft_concerto::host::Offline;
use haft_concerto::ir::Module;
use haft_concerto::load::{LoadErrorKind, load};
use haft_concerto::manifest::Manifest;
use haft_concerto::natives::Permissions;
use haft_concerto::vm::{Limits, Machine, Output};
use haft_concerto::{Options, Source, compile};
use serde_json::{Value, json};

const MANIFEST: &str = "\
[project]
name = \"shape\"
[connections.second]
provider = \"mock\"
[connections.desk]
provider = \"openai\"
api_key_env = \"DESK_KEY\"
default_model = \"small\"
[mcp.Search]
transport = \"stdio\"
command = \"search-server\"
[agents.coder]
transport = \"stdio\"
command = \"coder\"
";

fn written(text: &str) -> String {
    let options = Options {
        manifest: Some(Manifest::read(MANIFEST).unwrap()),
        ..Options::default()
    };
    let compiled = compile(&Source::new("src/shape.conc", text), &options);
    assert!(!compiled.has_errors(), "{}", compiled.render());
    compiled.ir.unwrap().to_json()
}

fn shape() -> Value {
    let text = written(include_str!("programs/shape.conc"));
    serde_json::from_str(&text).unwrap()
}

fn named<'v>(list: &'v Value, name: &str) -> &'v Value {
    let all = list.as_array().unwrap();
    all.iter()
        .find(|it| it["name"] == name)
        .unwrap_or_else(|| panic!("no `{name}` in {list}"))
}

#[test]
fn the_top_says_what_it_is() {
    let ir = shape();
    assert_eq!(ir["version"], "0.1.0");
    assert_eq!(ir["module"], "shape");
    assert_eq!(ir["source_file"], "src/shape.conc");
    let metadata = &ir["metadata"];
    assert_eq!(metadata["entry_point"], "main");
    assert_eq!(metadata["compiled_at"], "");
    for member in ["compiler_version", "optimization_level", "debug_info"] {
        assert!(!metadata[member].is_null(), "{member}");
    }
}

#[test]
fn what_is_empty_is_left_out_and_equal_input_gives_equal_bytes() {
    let text = written("fn main() {}");
    let ir: Value = serde_json::from_str(&text).unwrap();
    for member in [
        "models",
        "tools",
        "schemas",
        "pipelines",
        "tests",
        "listens",
        "types",
    ] {
        assert!(ir.get(member).is_none(), "{member}");
    }
    assert!(text.starts_with("{\n  \"version\": \"0.1.0\",\n"), "{text}");
    let again = written("fn main() {}");
    assert_eq!(text, again);
    // Schemas of tools are there even if there are none.
    let ir: Value = serde_json::from_str(&written("tool T { fn f() {} } fn main() {}")).unwrap();
    assert_eq!(ir["tools"][0]["tool_schemas"], json!([]));
}

#[test]
fn constants_have_a_type_and_a_value() {
    let ir: Value =
        serde_json::from_str(&written("fn main() { println(700000, 2.5, \"t\"); }")).unwrap();
    let constants = ir["constants"].as_array().unwrap();
    for (place, constant) in constants.iter().enumerate() {
        assert_eq!(constant["index"], place);
    }
    let has = |ty: &str, value: Value| {
        let mut all = constants.iter();
        all.any(|it| it["type"] == ty && it["value"] == value)
    };
    assert!(has("int", json!(700_000)) && has("float", json!(2.5)) && has("string", json!("t")));
}

#[test]
fn types_functions_and_tests_have_the_members_of_the_reference() {
    let ir = shape();
    let point = named(&ir["types"], "P");
    assert_eq!(point["kind"], "struct");
    assert_eq!(point["fields"][0]["name"], "x");
    assert_eq!(point["fields"][0]["type"], "Int");
    assert_eq!(point["fields"][1]["required"], false);
    let variants = &named(&ir["types"], "E")["variants"];
    assert_eq!(variants[1], json!({"name": "B", "data": ["Int", "String"]}));

    let function = named(&ir["functions"], "f");
    assert_eq!(function["module"], "shape");
    assert_eq!(function["visibility"], "public");
    assert_eq!(function["is_async"], true);
    assert_eq!(function["return_type"], "Option<Int>");
    assert_eq!(
        function["params"][0],
        json!({"name": "a", "type": "Array<Int>"})
    );
    assert_eq!(function["params"][1]["type"], "\"a\" | \"b\"");
    let main = named(&ir["functions"], "main");
    assert_eq!(main["return_type"], "nil");
    assert_eq!(main["visibility"], "private");
    let code = main["instructions"].as_array().unwrap();
    assert!(code.iter().all(|it| it["op"].is_string()));
    let spans: Vec<&Value> = code.iter().filter_map(|it| it.get("span")).collect();
    assert!(
        spans.iter().all(|it| it[0] == 18) && !spans.is_empty(),
        "{spans:?}"
    );

    let test = &ir["tests"][0];
    assert_eq!(test["description"], "does :: it");
    assert_eq!(test["expect_fail"], true);
    assert_eq!(test["expect_fail_message"], "no");
    assert!(!test["instructions"].as_array().unwrap().is_empty());
    let functions = ir["functions"].as_array().unwrap();
    assert!(
        functions.iter().all(|it| it["name"] != "t"),
        "tests cannot be called"
    );
}

#[test]
fn models_and_tools_have_the_members_of_the_reference() {
    let ir = shape();
    let model = named(&ir["models"], "M");
    assert_eq!(model["connection"], "desk");
    let config = &model["config"];
    assert_eq!(config["base"], "small");
    assert_eq!(config["temperature"].as_f64(), Some(0.0));
    assert_eq!(config["max_tokens"], 9);
    assert_eq!(config["timeout"].as_f64(), Some(4.0));
    assert_eq!(config["system_prompt"], "hi");
    assert_eq!(model["tools"], json!(["T"]));
    assert_eq!(
        model["decorators"],
        json!([{"name": "retry", "args": [{"max": 2}, {"backoff": "none"}]}, {"name": "log"}])
    );
    let computed = named(&ir["models"], "N")["config"]["system_prompt_fn"]
        .as_str()
        .unwrap();
    named(&ir["functions"], computed);

    let tool = named(&ir["tools"], "T");
    assert_eq!(tool["description"], "d");
    assert_eq!(tool["methods"].as_array().unwrap().len(), 2);
    assert_eq!(
        tool["methods"][0]["params"][0]["name"], "n",
        "`self` is no parameter"
    );
    let expected = json!([{
        "method_name": "T::add",
        "description": "Adds",
        "parameters": {
            "type": "object",
            "properties": {"n": {"type": "integer", "description": "n"}},
            "required": []
        }
    }]);
    assert_eq!(tool["tool_schemas"], expected);
}

#[test]
fn schemas_are_standard_json_schema() {
    let ir = shape();
    let schema = named(&ir["schemas"], "S");
    assert_eq!(schema["validation_mode"], "strict");
    let json_schema = &schema["json_schema"];
    assert_eq!(json_schema["type"], "object");
    let properties = &json_schema["properties"];
    assert_eq!(properties["a"]["type"], "integer");
    assert_eq!(
        properties["u"],
        json!({"type": "string", "enum": ["x", "y"]})
    );
    assert_eq!(properties["o"]["type"], "array");
    assert_eq!(properties["o"]["items"]["type"], "string");
    assert_eq!(
        properties["n"]["properties"]["t"]["type"], "string",
        "inlined"
    );
    assert_eq!(properties["m"]["type"], "object");
    let names: Vec<&String> = properties.as_object().unwrap().keys().collect();
    assert_eq!(names, ["a", "u", "o", "n", "m", "k", "d"]);
    assert_eq!(json_schema["required"], json!(["a", "u", "n", "m"]));
    let option = properties["k"].to_string();
    assert!(
        option.contains("boolean") && option.contains("null"),
        "{option}"
    );
}

#[test]
fn stores_pipelines_agents_and_listens_have_the_members_of_the_reference() {
    let ir = shape();
    assert_eq!(
        ir["hashmaps"],
        json!([{"name": "h", "key_type": "String", "value_type": "Int"}])
    );
    assert_eq!(
        ir["memories"],
        json!([{"name": "m", "max_messages": 5}, {"name": "all"}])
    );
    assert_eq!(ir["ledgers"], json!([{"name": "l"}]));
    let pipeline = &ir["pipelines"][0];
    assert_eq!(pipeline["name"], "Q");
    assert_eq!(pipeline["input_type"], "String");
    assert_eq!(pipeline["output_type"], "Int");
    let stage = &pipeline["stages"][0];
    assert_eq!(stage["name"], "a");
    assert_eq!(stage["input_type"], "String");
    assert_eq!(stage["output_type"], "Int");
    assert_eq!(
        stage["decorators"],
        json!([{"name": "timeout", "args": [{"seconds": 2}]}])
    );
    let agent = &ir["agents"][0];
    assert_eq!(agent["connector"], "coder");
    assert_eq!(agent["input_format"], "text");
    assert_eq!(agent["output_format"], "json");
    assert_eq!(agent["timeout"], 3);
    assert_eq!(agent["command"], "coder");
    let listen = &ir["listens"][0];
    assert!(listen["name"].as_str().unwrap().starts_with("$listen_"));
    assert_eq!(listen["agent"], "A");
    assert_eq!(listen["handlers"][0]["message_type"], "note");
    assert_eq!(listen["handlers"][0]["param"]["name"], "m");
    assert!(listen["handlers"][0]["instructions"].is_array());
}

#[test]
fn connections_stand_in_the_order_of_the_manifest_without_secrets() {
    let ir = shape();
    let connections = ir["connections"].as_array().unwrap();
    let names: Vec<&str> = connections
        .iter()
        .map(|it| it["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["second", "desk", "Search"]);
    assert_eq!(connections[1]["config"]["api_key_env"], "DESK_KEY");
    assert_eq!(connections[2]["config"]["type"], "mcp");
}

struct Silent(std::sync::Arc<std::sync::Mutex<String>>);

impl Output for Silent {
    fn print(&mut self, text: &str) {
        self.0.lock().unwrap().push_str(text);
    }

    fn log(&mut self, _: &str) {}
}

fn run(ir: &Value) -> (String, Result<String, String>) {
    let module = Module::from_json(&ir.to_string()).unwrap();
    let program = load(module).unwrap();
    let printed = std::sync::Arc::default();
    let output = Box::new(Silent(std::sync::Arc::clone(&printed)));
    let mut machine = Machine::new(program, Permissions::default(), Limits::default(), output);
    let ended = Offline::new(&mut machine, |_, _, _| {}).run();
    let said = printed.lock().unwrap().clone();
    (said, ended.map(|value| value.to_string()))
}

/// A file as the older toolchain writes it: no `receiver`, no `captures`, names on the stack.
fn upstream(main: &Value) -> Value {
    json!({
        "version": "0.1.0",
        "module": "old",
        "source_file": "old.conc",
        "constants": [
            {"index": 0, "type": "int", "value": 20},
            {"index": 1, "type": "int", "value": 22},
            {"index": 2, "type": "string", "value": "sum"},
            {"index": 3, "type": "nil", "value": null}
        ],
        "types": [],
        "functions": [
            {"name": "add", "module": "old", "visibility": "private",
             "params": [{"name": "a", "type": "Int"}, {"name": "b", "type": "Int"}],
             "return_type": "Int", "is_async": false, "locals": [],
             "instructions": [
                {"op": "LOAD_LOCAL", "name": "a"}, {"op": "LOAD_LOCAL", "name": "b"},
                {"op": "ADD"}, {"op": "RETURN"}]},
            {"name": "main", "module": "old", "visibility": "private", "params": [],
             "return_type": "nil", "is_async": false, "locals": ["x"], "instructions": main}
        ],
        "schemas": [{"name": "S", "json_schema": {"type": "object", "properties": {"n": {"type": "Int"}, "tags": {"type": "Array<String>"}}, "required": ["n"]}, "validation_mode": "strict"}],
        "metadata": {"compiler_version": "0.1.0", "compiled_at": "", "optimization_level": 0, "debug_info": true, "entry_point": "main"}
    })
}

#[test]
fn files_of_the_older_toolchain_run() {
    let main = json!([
        {"op": "LOAD_CONST", "arg": 0}, {"op": "LOAD_CONST", "arg": 1},
        {"op": "LOAD_GLOBAL", "name": "add"}, {"op": "CALL", "argc": 2},
        {"op": "STORE_LOCAL", "name": "x"},
        {"op": "LOAD_CONST", "arg": 2}, {"op": "LOAD_LOCAL", "name": "x"},
        {"op": "LOAD_GLOBAL", "name": "println"}, {"op": "CALL", "argc": 2}, {"op": "POP"},
        {"op": "LOAD_CONST", "arg": 3}, {"op": "RETURN"}
    ]);
    assert_eq!(
        run(&upstream(&main)),
        ("sum 42\n".to_owned(), Ok("nil".to_owned()))
    );
}

#[test]
fn a_name_that_nobody_has_is_a_fault_when_it_is_reached() {
    let main = json!([{"op": "LOAD_GLOBAL", "name": "nobody"}, {"op": "RETURN"}]);
    let error = run(&upstream(&main)).1.expect_err("it fails");
    assert!(error.starts_with("name error: "), "{error}");
}

/// The table of the reference, type by type.
#[test]
fn types_of_parameters_become_schemas() {
    let text = "struct P { x: Int } enum E { A } type Ids = Array<Int>;
        tool T { @describe(\"d\") pub fn f(i: Int, f: Float, s: String, b: Bool, a: Array<Array<Int>>,
            m: Map<String, Int>, p: P, any: Any, o: Option<Float>, u: \"a\" | \"b\", ids: Ids, d: Bool = true) {} }
        fn main() {}";
    let ir: Value = serde_json::from_str(&written(text)).unwrap();
    let parameters = &ir["tools"][0]["tool_schemas"][0]["parameters"];
    let properties = &parameters["properties"];
    for (name, ty) in [
        ("i", "integer"),
        ("f", "number"),
        ("s", "string"),
        ("b", "boolean"),
        ("a", "array"),
        ("m", "object"),
        ("p", "object"),
        ("o", "number"),
        ("u", "string"),
        ("ids", "array"),
        ("d", "boolean"),
    ] {
        assert_eq!(properties[name]["type"], ty, "{name}");
    }
    let inner = &properties["a"]["items"];
    assert_eq!(
        inner,
        &json!({"type": "array", "items": {"type": "integer"}})
    );
    assert_eq!(properties["u"]["enum"], json!(["a", "b"]));
    assert_eq!(
        parameters["required"],
        json!(["i", "f", "s", "b", "a", "m", "p", "any", "u", "ids"])
    );
    let names: Vec<&String> = properties.as_object().unwrap().keys().collect();
    assert_eq!(names.len(), 12);
    assert_eq!(names[0], "i", "source order");
}

#[test]
fn schemas_of_the_older_toolchain_become_standard_ones() {
    let main = json!([{"op": "LOAD_CONST", "arg": 3}, {"op": "RETURN"}]);
    let module = Module::from_json(&upstream(&main).to_string()).unwrap();
    let program = load(module).unwrap();
    let properties = &program.ir().schemas[0].json_schema["properties"];
    assert_eq!(properties["n"]["type"], "integer");
    assert_eq!(properties["tags"]["type"], "array");
}

#[test]
fn damaged_files_are_refused_with_a_reason() {
    let kind = |main: Value| {
        let module = Module::from_json(&upstream(&main).to_string()).unwrap();
        load(module).expect_err("it is refused").kind
    };
    assert_eq!(
        kind(json!([{"op": "NO_SUCH_THING"}])),
        LoadErrorKind::Opcode
    );
    assert_eq!(
        kind(json!([{"op": "LOAD_CONST", "arg": 99}, {"op": "RETURN"}])),
        LoadErrorKind::Constant(99)
    );
    assert!(matches!(
        kind(json!([{"op": "LOAD_CONST", "arg": 0}, {"op": "JUMP", "offset": 9000}])),
        LoadErrorKind::Jump(9000)
    ));
    assert!(matches!(
        kind(json!([{"op": "POP"}])),
        LoadErrorKind::Underflow { .. }
    ));
    assert!(matches!(
        kind(json!([{"op": "LOAD_CONST", "arg": 0}, {"op": "JUMP", "offset": 0}])),
        LoadErrorKind::Imbalance { .. }
    ));
    for text in [
        "",
        "[]",
        "{}",
        "{\"version\": 3}",
        "{\"version\": \"0.2.0\"}",
        "nonsense",
    ] {
        let error = Module::from_json(text).expect_err(text).to_string();
        assert!(!error.is_empty() && !error.contains("unwrap"), "{error}");
    }
    // A byte order mark says nothing.
    let marked = format!("\u{feff}{}", upstream(&json!([{"op": "RETURN"}])));
    assert!(Module::from_json(&marked).is_ok());
    // A later 0.1.x is the same language.
    let mut later = upstream(&json!([{"op": "LOAD_CONST", "arg": 0}, {"op": "RETURN"}]));
    later["version"] = json!("0.1.7");
    assert_eq!(run(&later).1, Ok("20".to_owned()));
}

#[test]
fn every_function_knows_its_file() {
    let part = "const SHARP: Int = 1 / 0;\n\
                pub fn f(x: Int) -> Int {\n    let g = || 1 / x;\n    g()\n}\n\
                tool T { fn m() -> Int { 1 / 0 } }\n\
                pipeline P(n: Int) -> Int { stage s(n: Int) -> Int { n } }\n\
                @test fn t() { f(0); }\n";
    let files = std::collections::BTreeMap::from([("src/part.conc".to_owned(), part.to_owned())]);
    let source =
        Source::new("src/main.conc", "mod part;\nfn main() { part::f(0); }\n").with(&files);
    let ir = compile(&source, &Options::default()).ir.unwrap();
    let ir = haft_concerto::ir::Module::from_json(&ir.to_json()).unwrap();
    for name in [
        "part::f",
        "$closure_1",
        "$const_part::SHARP",
        "part::T::m",
        "part::P::s",
        "t",
    ] {
        assert_eq!(ir.source_of(name), "src/part.conc", "{name}");
    }
    for name in ["main", "$init", "nobody"] {
        assert_eq!(ir.source_of(name), "src/main.conc", "{name}");
    }
    // A program of one file says nothing about it.
    let one = compile(&Source::new("a.conc", "println(1);"), &Options::default());
    assert!(!one.ir.unwrap().to_json().contains("\"source\""));
}
