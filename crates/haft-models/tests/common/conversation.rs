//! One conversation that has everything, for every adapter's golden request.

use std::sync::Arc;

use haft_core::{
    CallOutput, ContentPart, Conversation, FunctionCallOutput, Item, Message, ModelRequest,
    Reasoning, Role, ToolDefinition, ToolSpecs,
};
use serde_json::{Map, json};

/// A red pixel.
pub const PIXEL: &str = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJggg==";

/// Instructions; a user with an image; thoughts, text and two parallel calls; their outputs in the
/// other order, one of them an error; the answer; the user again. Three tools.
pub fn request() -> ModelRequest {
    ModelRequest {
        instructions: Some(Arc::from("You are a travel agent. Be brief.")),
        conversation: conversation(),
        tools: tools(),
        ..ModelRequest::default()
    }
}

pub fn conversation() -> Conversation {
    let image = Message {
        content: vec![
            ContentPart::InputText {
                text: "Where is this, and how is the weather there and in Oslo?".into(),
            },
            ContentPart::InputImage {
                image_url: PIXEL.into(),
                detail: Some("low".into()),
            },
            ContentPart::InputImage {
                image_url: "https://example.com/fjord.jpg".into(),
                detail: None,
            },
        ],
        ..Message::new(Role::User, "")
    };
    let thoughts = Reasoning {
        id: Some("rs_1".into()),
        summary: vec![ContentPart::SummaryText {
            text: "Looks like Bergen.".into(),
        }],
        content: vec![ContentPart::ReasoningText {
            text: "A fjord, rain: Bergen. Two cities to look up.".into(),
        }],
        ..Reasoning::default()
    };
    [
        Item::Message(image),
        Item::Reasoning(thoughts),
        Item::assistant("This is Bergen. Let me look."),
        Item::function_call(
            "call_bergen",
            "get_weather",
            r#"{"city": "Bergen", "unit":"celsius"}"#,
        ),
        Item::function_call("call_oslo", "get_weather", r#"{"city":"Oslo"}"#),
        Item::FunctionCallOutput(
            FunctionCallOutput::new("call_oslo", "Tool 'get_weather' failed: no such station")
                .as_error(),
        ),
        Item::function_call_output("call_bergen", "11 °C, rain"),
        Item::assistant("Bergen has 11 °C and rain; Oslo does not answer."),
        Item::user("And the way there?"),
    ]
    .into_iter()
    .collect()
}

/// The same conversation, whose last output holds an image.
pub fn conversation_with_image_output() -> Conversation {
    let output = FunctionCallOutput {
        output: CallOutput::Parts(vec![
            ContentPart::InputText {
                text: "The map:".into(),
            },
            ContentPart::InputImage {
                image_url: PIXEL.into(),
                detail: None,
            },
        ]),
        ..FunctionCallOutput::new("call_map", "")
    };
    let mut conversation = conversation();
    conversation.push(Item::function_call("call_map", "draw_map", "{}"));
    conversation.push(Item::FunctionCallOutput(output));
    conversation
}

/// A conversation without the images that are only pointed to.
pub fn without_addresses(conversation: &Conversation) -> Conversation {
    let items = conversation.entries().iter().map(|entry| {
        let mut item = entry.item().clone();
        if let Item::Message(message) = &mut item {
            message.content.retain(|part| {
                !matches!(part, ContentPart::InputImage { image_url, .. } if image_url.starts_with("http"))
            });
        }
        item
    });
    items.collect()
}

/// An item that no adapter knows.
pub fn unknown_item() -> Item {
    let mut members = Map::new();
    members.insert("type".into(), json!("mystery_call"));
    members.insert("secret_of_life".into(), json!(42));
    Item::Other(members)
}

/// A plain tool, one with a reference and a nullable property, one without parameters.
pub fn tools() -> ToolSpecs {
    let weather = ToolDefinition::builder("get_weather")
        .description("Get the weather of a city.")
        .parameters(json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {
                "city": {"type": "string", "description": "Its name."},
                "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]}
            },
            "required": ["city"]
        }));
    let route = ToolDefinition::builder("find_route")
        .description("Find the way between two places.")
        .strict(true)
        .parameters(json!({
            "type": "object",
            "properties": {
                "from": {"$ref": "#/$defs/Place", "description": "Where it begins."},
                "to": {"$ref": "#/$defs/Place"},
                "via": {"anyOf": [{"$ref": "#/$defs/Place"}, {"type": "null"}], "default": null},
                "changes": {"type": "integer", "minimum": 0}
            },
            "required": ["from", "to"],
            "additionalProperties": false,
            "$defs": {
                "Place": {
                    "type": "object",
                    "description": "A place.",
                    "properties": {"name": {"type": "string"}},
                    "required": ["name"]
                }
            }
        }));
    let map = ToolDefinition::builder("draw_map").parameters(json!({"type": "object"}));
    [weather, route, map]
        .map(|tool| tool.build().unwrap())
        .into_iter()
        .collect()
}
