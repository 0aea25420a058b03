//! What `#[haft::tool]` promises about definitions. Parameters are in
//! `tool_parameters.rs`, what a call does is in `tool_calls.rs`.

#![deny(warnings)]

use std::sync::Arc;

use haft::{NoSchemaMode, Run, Tool, ToolContext, ToolError, ToolKind, Value, json};

mod weather {
    use super::{Tool, ToolContext, Value};

    #[derive(Debug, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    #[serde(rename_all = "lowercase")]
    pub(super) enum Unit {
        Celsius,
        Fahrenheit,
    }

    #[derive(serde::Serialize)]
    pub(super) struct Weather {
        degrees: i8,
    }

    #[derive(Debug)]
    pub(super) struct WeatherError;

    impl std::fmt::Display for WeatherError {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("no station answers")
        }
    }

    /// Get the current weather for a location.
    ///
    /// Uses the nearest station.
    #[haft::tool(tags = ["weather"], read_only)]
    pub(super) async fn get_current_weather(
        /// City and country, for example "Oslo, NO"
        location: String,
        /// Unit of the answer
        #[tool(default = Unit::Celsius)]
        unit: Unit,
        ctx: &ToolContext,
    ) -> Result<Weather, WeatherError> {
        let _ = ctx.call_id();
        match (location.as_str(), unit) {
            ("Oslo, NO", Unit::Celsius) => Ok(Weather { degrees: 4 }),
            ("Oslo, NO", Unit::Fahrenheit) => Ok(Weather { degrees: 39 }),
            _ => std::future::ready(Err(WeatherError)).await,
        }
    }

    pub(super) fn definition() -> Value {
        get_current_weather::definition().to_json()
    }
}

/// Look up a customer by number.
#[haft::tool(name = "lookup_customer")]
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct LookupCustomer {
    /// Customer number
    id: u64,
    /// Also return closed accounts
    #[serde(default)]
    include_closed: bool,
}

impl Run for LookupCustomer {
    type Output = String;

    async fn run(self, _: &ToolContext) -> Result<String, ToolError> {
        Ok(format!("{} {}", self.id, self.include_closed))
    }
}

fn parameters<T: Tool>() -> Value {
    T::definition().parameters().cloned().unwrap_or_default()
}

#[test]
fn the_function_of_the_reference_has_exactly_the_definition_of_the_reference() {
    assert_eq!(
        weather::definition(),
        json!({
            "type": "function",
            "name": "get_current_weather",
            "description":
                "Get the current weather for a location.\n\nUses the nearest station.",
            "parameters": {
                "type": "object",
                "properties": {
                    "location": {
                        "type": "string",
                        "description": "City and country, for example \"Oslo, NO\""
                    },
                    "unit": {
                        "type": "string",
                        "enum": ["celsius", "fahrenheit"],
                        "description": "Unit of the answer",
                        "default": "celsius"
                    }
                },
                "required": ["location"],
                "additionalProperties": false
            },
            "annotations": {"tags": ["weather"], "read_only": true}
        })
    );
}

#[test]
fn the_struct_of_the_reference_is_its_own_argument_object() {
    assert_eq!(
        LookupCustomer::definition().to_json(),
        json!({
            "type": "function",
            "name": "lookup_customer",
            "description": "Look up a customer by number.",
            "parameters": {
                "type": "object",
                "properties": {
                    "id": {
                        "type": "integer",
                        "format": "uint64",
                        "minimum": 0,
                        "description": "Customer number"
                    },
                    "include_closed": {
                        "type": "boolean",
                        "description": "Also return closed accounts",
                        "default": false
                    }
                },
                "required": ["id"],
                "additionalProperties": false
            }
        })
    );
}

#[test]
fn the_definition_is_the_same_object_from_64_threads() {
    /// Race.
    #[haft::tool]
    fn race() {}

    let address = || Arc::as_ptr(race::definition()) as usize;
    let start = std::sync::Barrier::new(64);
    let addresses: Vec<usize> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..64)
            .map(|_| {
                scope.spawn(|| {
                    start.wait();
                    address()
                })
            })
            .collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    assert!(addresses.iter().all(|&a| a == address()));
    let object = race::into_object().unwrap();
    assert!(Arc::ptr_eq(object.definition(), race::definition()));
}

#[test]
fn the_derives_may_stand_above_the_attribute() {
    /// Ping a host.
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    #[haft::tool]
    struct PingHost {
        /// Its name
        host: String,
    }
    impl Run for PingHost {
        type Output = String;
        async fn run(self, _: &ToolContext) -> Result<String, ToolError> {
            Ok(self.host)
        }
    }
    assert_eq!(
        parameters::<PingHost>(),
        json!({
            "type": "object",
            "properties": {"host": {"type": "string", "description": "Its name"}},
            "required": ["host"],
            "additionalProperties": false
        })
    );
}

#[test]
fn a_name_is_given_or_the_functions_or_the_structs_in_snake_case() {
    /// One.
    #[haft::tool(name = "Other-Name_1")]
    fn one() {}
    /// Two.
    #[haft::tool]
    fn r#loop() {}
    /// Three.
    #[haft::tool]
    struct HTTPFetch;
    impl Run for HTTPFetch {
        type Output = ();
        async fn run(self, _: &ToolContext) -> Result<(), ToolError> {
            Ok(())
        }
    }
    assert_eq!(one::definition().name().as_str(), "Other-Name_1");
    assert_eq!(r#loop::definition().name().as_str(), "loop");
    assert_eq!(HTTPFetch::definition().name().as_str(), "http_fetch");
}

#[test]
fn every_annotation_arrives() {
    /// Everything.
    ///
    /// More of it.
    #[haft::tool(
        title = "Everything",
        brief = "All at once.",
        tags = ["a", "b"],
        roles = ["admin"],
        destructive,
        idempotent = true,
        open_world,
        sequential,
        read_only = false,
        safe = false,
        strict,
        timeout = "30s",
        example(input = {"n": 1, "list": [true, null]}, output = {"ok": [1, 2]}),
        example(input = {"n": -2}),
        depends_on = ["other_tool"],
        defer = "never",
    )]
    fn everything(n: i8) -> i8 {
        n
    }
    let definition = everything::definition();
    assert_eq!(definition.brief(), "All at once.");
    assert_eq!(definition.strict(), Some(true));
    assert_eq!(
        definition.to_json()["annotations"],
        json!({
            "title": "Everything",
            "brief": "All at once.",
            "tags": ["a", "b"],
            "safe": false,
            "destructive": true,
            "idempotent": true,
            "open_world": true,
            "sequential": true,
            "timeout_ms": 30000,
            "roles": ["admin"],
            "examples": [
                {"input": {"n": 1, "list": [true, null]}, "output": {"ok": [1, 2]}},
                {"input": {"n": -2}}
            ],
            "depends_on": ["other_tool"],
            "defer": "never"
        })
    );
}

#[test]
fn a_timeout_may_be_given_in_milliseconds() {
    /// Wait.
    #[haft::tool(timeout_ms = 1_500, strict = false)]
    fn wait() {}
    assert_eq!(wait::definition().annotations().timeout_ms, Some(1_500));
    assert_eq!(wait::definition().strict(), Some(false));
}

#[test]
fn a_macro_tool_runs_in_this_process() {
    assert_eq!(LookupCustomer::definition().kind(), &ToolKind::Internal);
}

#[test]
fn a_tool_without_schema_opts_out_by_name() {
    /// Anything goes.
    #[haft::tool(no_schema = "human-approval")]
    fn anything(whatever: Value) -> Value {
        whatever
    }
    let definition = anything::definition();
    assert_eq!(definition.parameters(), None);
    assert_eq!(
        definition.no_schema_mode(),
        Some(NoSchemaMode::HumanApproval)
    );
}

#[test]
fn an_output_schema_is_declared_only_when_asked_for() {
    type Fallible<T> = Result<T, ToolError>;
    #[derive(serde::Serialize, schemars::JsonSchema)]
    struct Point {
        x: i8,
        label: Option<String>,
    }
    const POINT: Point = Point { x: 1, label: None };
    /// Plain.
    #[haft::tool(output_schema)]
    fn plain() -> Point {
        POINT
    }
    /// Behind an alias.
    #[haft::tool(output_schema)]
    #[allow(clippy::unnecessary_wraps, reason = "the type is what is tested")]
    fn behind_an_alias() -> Fallible<Point> {
        Ok(POINT)
    }
    /// On a struct.
    #[haft::tool(output_schema)]
    struct OnAStruct;
    impl Run for OnAStruct {
        type Output = Point;
        async fn run(self, _: &ToolContext) -> Result<Point, ToolError> {
            Ok(POINT)
        }
    }
    /// Not asked.
    #[haft::tool]
    fn not_asked() -> Point {
        POINT
    }
    let point = json!({
        "type": "object",
        "properties": {
            "x": {"type": "integer", "format": "int8", "minimum": -128, "maximum": 127},
            "label": {"type": ["string", "null"]}
        },
        "required": ["x", "label"],
        "additionalProperties": false
    });
    assert_eq!(plain::definition().output_schema(), Some(&point));
    assert_eq!(behind_an_alias::definition().output_schema(), Some(&point));
    assert_eq!(OnAStruct::definition().output_schema(), Some(&point));
    assert_eq!(not_asked::definition().output_schema(), None);
}

#[test]
fn a_validator_is_attached_and_made_once() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static MADE: AtomicUsize = AtomicUsize::new(0);

    struct Never;
    impl haft::Validator for Never {
        fn validate(&self, _: &Value) -> Vec<haft::ValidationError> {
            Vec::new()
        }
    }
    fn never() -> Arc<dyn haft::Validator> {
        MADE.fetch_add(1, Ordering::SeqCst);
        Arc::new(Never)
    }
    /// Guarded.
    #[haft::tool(validator = never)]
    fn guarded() {}

    let object = guarded::into_object().unwrap();
    let first = object.validator().unwrap();
    assert!(Arc::ptr_eq(&first, &object.validator().unwrap()));
    assert_eq!(MADE.load(Ordering::SeqCst), 1);
    assert!(weather::get_current_weather::validator().is_none());
}

#[test]
fn a_description_may_come_from_any_kind_of_doc() {
    /**
     * Draws a star.
     *
     * Slowly.
     */
    #[haft::tool]
    fn block() {}
    #[doc = "Plain attribute."]
    #[doc = concat!("And ", "a macro.")]
    #[doc(alias = "other")]
    #[haft::tool]
    fn attribute() {}
    assert_eq!(
        block::definition().description(),
        Some("Draws a star.\n\nSlowly.")
    );
    assert_eq!(
        attribute::definition().description(),
        Some("Plain attribute. And a macro.")
    );
}

#[test]
fn a_schema_that_is_no_object_is_an_error_and_not_a_panic() {
    /// Transparent.
    #[haft::tool]
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    #[serde(transparent)]
    struct Transparent {
        text: String,
    }
    impl Run for Transparent {
        type Output = String;
        async fn run(self, _: &ToolContext) -> Result<String, ToolError> {
            Ok(self.text)
        }
    }
    let first = Transparent::try_definition().unwrap_err();
    assert!(matches!(first, haft::DefinitionError::InvalidSchema { .. }));
    assert!(std::ptr::eq(
        first,
        Transparent::try_definition().unwrap_err()
    ));
    assert!(Transparent::into_object().is_err());
}

#[test]
fn tools_lists_functions_and_structs_alike() {
    use weather::get_current_weather;
    let listed: Vec<String> = haft::tools![get_current_weather, LookupCustomer]
        .into_iter()
        .map(|source| {
            source
                .into_object()
                .unwrap()
                .definition()
                .name()
                .to_string()
        })
        .collect();
    assert_eq!(listed, ["get_current_weather", "lookup_customer"]);
}
