//! What `#[haft::tool]` promises about parameters and their schema.

#![deny(warnings)]

use std::collections::BTreeMap;

use haft::{Run, Tool, ToolContext, ToolError, Value, json};

fn parameters<T: Tool>() -> Value {
    T::definition().parameters().cloned().unwrap_or_default()
}

fn names(schema: &Value) -> Vec<&str> {
    let Some(properties) = schema["properties"].as_object() else {
        return Vec::new();
    };
    properties.keys().map(String::as_str).collect()
}

#[test]
fn members_keep_the_order_of_the_source() {
    /// Order.
    #[haft::tool]
    fn order(zulu: bool, _ctx: &ToolContext, alpha: bool, mike: bool) -> [bool; 3] {
        [zulu, alpha, mike]
    }
    let schema = parameters::<order>();
    assert_eq!(names(&schema), ["zulu", "alpha", "mike"]);
    assert_eq!(schema["required"], json!(["zulu", "alpha", "mike"]));
}

#[test]
fn the_context_is_not_part_of_the_schema_wherever_it_stands() {
    /// First.
    #[haft::tool]
    fn first(_ctx: &haft::ToolContext, a: u8) -> u8 {
        a
    }
    /// Last.
    #[haft::tool]
    fn last(a: u8, _: &'_ ToolContext) -> u8 {
        a
    }
    assert_eq!(names(&parameters::<first>()), ["a"]);
    assert_eq!(names(&parameters::<last>()), ["a"]);
}

#[test]
fn an_option_may_be_left_out_or_null() {
    /// Search.
    #[haft::tool]
    fn search(query: String, limit: Option<u8>) -> String {
        format!("{query} {limit:?}")
    }
    let schema = parameters::<search>();
    assert_eq!(schema["required"], json!(["query"]));
    assert_eq!(
        schema["properties"]["limit"]["type"],
        json!(["integer", "null"])
    );
    assert_eq!(schema["properties"]["limit"].get("default"), None);
}

#[test]
fn a_default_is_in_the_schema_if_it_can_be_serialised() {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Silent {
        level: u8,
    }
    /// Defaults.
    #[haft::tool]
    fn defaults(
        #[tool(default = 3)] count: u8,
        #[tool(default = "metric")] system: String,
        #[tool(default = vec![1, 2])] list: Vec<i32>,
        #[tool(default = Silent { level: 1 })] silent: Silent,
    ) -> String {
        format!("{count} {system} {list:?} {}", silent.level)
    }
    let schema = parameters::<defaults>();
    assert_eq!(schema.get("required"), None);
    assert_eq!(schema["properties"]["count"]["default"], json!(3));
    assert_eq!(schema["properties"]["system"]["default"], json!("metric"));
    assert_eq!(schema["properties"]["list"]["default"], json!([1, 2]));
    assert_eq!(schema["properties"]["silent"].get("default"), None);
}

#[test]
fn serde_and_schemars_attributes_pass_through() {
    /// Attributes.
    #[haft::tool]
    fn attributes(
        #[serde(rename = "fromCity")] from_city: String,
        #[schemars(range(min = 1, max = 9))] seats: u8,
        #[serde(default)] flexible: bool,
        r#type: String,
    ) -> String {
        format!("{from_city} {seats} {flexible} {type}")
    }
    let schema = parameters::<attributes>();
    assert_eq!(names(&schema), ["fromCity", "seats", "flexible", "type"]);
    assert_eq!(schema["properties"]["seats"]["maximum"], 9);
    assert_eq!(schema["required"], json!(["fromCity", "seats", "type"]));
}

#[test]
fn the_type_mapping_of_concerto_holds_for_parameters() {
    /// Types.
    #[haft::tool]
    #[allow(clippy::too_many_arguments)]
    fn types(
        int: i64,
        float: f64,
        string: String,
        bool: bool,
        array: Vec<String>,
        map: BTreeMap<String, i64>,
        option: Option<String>,
    ) -> Value {
        json!([int, float, string, bool, array, map, option])
    }
    let schema = parameters::<types>();
    let kinds: Vec<_> = schema["properties"]
        .as_object()
        .unwrap()
        .values()
        .map(|property| property["type"].clone())
        .collect();
    assert_eq!(
        json!(kinds),
        json!([
            "integer",
            "number",
            "string",
            "boolean",
            "array",
            "object",
            ["string", "null"]
        ])
    );
}

#[test]
fn a_tool_without_parameters_takes_an_empty_closed_object() {
    /// Function.
    #[haft::tool]
    fn function() {}
    /// Unit struct.
    #[haft::tool]
    struct Unit;
    impl Run for Unit {
        type Output = ();
        async fn run(self, _: &ToolContext) -> Result<(), ToolError> {
            Ok(())
        }
    }
    /// Empty struct.
    #[haft::tool]
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Empty {}
    impl Run for Empty {
        type Output = ();
        async fn run(self, _: &ToolContext) -> Result<(), ToolError> {
            Ok(())
        }
    }
    let empty = json!({"type": "object", "properties": {}, "additionalProperties": false});
    assert_eq!(parameters::<function>(), empty);
    assert_eq!(parameters::<Unit>(), empty);
    assert_eq!(parameters::<Empty>(), empty);
}

#[test]
fn an_attribute_below_the_tool_that_removes_it_removes_all_of_it() {
    /// Gone.
    #[haft::tool]
    #[cfg(any())]
    fn gone(missing: NoSuchType) {}
    /// Partly gone.
    #[haft::tool]
    fn partly(
        kept: u8,
        #[cfg(any())]
        #[tool(default = NoSuchType)]
        missing: NoSuchType,
    ) -> u8 {
        kept
    }
    assert_eq!(names(&parameters::<partly>()), ["kept"]);
}
