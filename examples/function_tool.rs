//! A function becomes a tool: its doc comments and types are all that the model needs.
//!
//! `cargo run -p haft-examples --example function_tool`

#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use haft::{Hydrate, Tool, ToolContext, ToolError};

#[derive(Clone, Copy, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Unit {
    Celsius,
    Fahrenheit,
}

#[derive(serde::Serialize)]
struct Weather {
    degrees: i32,
    unit: Unit,
    sky: &'static str,
}

/// Get the current weather for a location.
///
/// Uses the nearest station.
#[haft::tool(
    tags = ["weather"],
    read_only,
    timeout = "10s",
    example(input = {"location": "Oslo, NO"}, output = {"degrees": 4, "unit": "celsius"}),
)]
fn get_current_weather(
    /// City and country, for example "Oslo, NO"
    location: String,
    /// Unit of the answer
    #[tool(default = Unit::Celsius)]
    unit: Unit,
) -> Result<Weather, String> {
    let (celsius, sky) = match location.as_str() {
        "Oslo, NO" => (4, "snow"),
        "Cairo, EG" => (31, "clear"),
        other => return Err(format!("no station near `{other}`: try a larger city")),
    };
    let degrees = match unit {
        Unit::Celsius => celsius,
        Unit::Fahrenheit => celsius * 9 / 5 + 32,
    };
    Ok(Weather { degrees, unit, sky })
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), ToolError> {
    println!("The definition, of which the model reads name, description and parameters:\n");
    println!("{:#}\n", get_current_weather::definition().to_json());

    println!("It calls; nothing that it writes reaches the tool unchecked:\n");
    for written in [
        r#"{"location": "Oslo, NO"}"#,
        r#"{"location": "Cairo, EG", "unit": "fahrenheit"}"#,
        r#"{"location": "Atlantis"}"#,
        r#"{"city": "Oslo, NO", "unit": "kelvin"}"#,
        r#"{"location": "Osl"#,
    ] {
        println!("  {written}");
        let mut result = get_current_weather::hydrate(written);
        let Some(call) = result.tool.take() else {
            println!("    ✗ {}", result.text_for_model().unwrap_or_default());
            continue;
        };
        match call.run(&ToolContext::default()).await {
            Ok(output) => println!("    → {}", output.text_for_model()),
            Err(error) => println!("    ✗ {error}"),
        }
    }

    // Without a model it is the function that it was.
    let here =
        get_current_weather::call("Oslo, NO".into(), Unit::Celsius).map_err(ToolError::new)?;
    println!("\nCalled from Rust: {} degrees, {}", here.degrees, here.sky);
    Ok(())
}
