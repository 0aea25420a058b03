//! async-openai against `haft serve`: `async-openai-client BASE_URL TASK` prints the result as one line of JSON.

use std::error::Error;

use async_openai::Client;
use async_openai::config::OpenAIConfig;
use async_openai::types::responses::{
    CreateResponse, CreateResponseArgs, EasyInputMessage, FunctionCallOutput,
    FunctionCallOutputItemParam, FunctionTool, IncludeEnum, InputItem, Item, OutputItem, Response,
    ResponseFormatJsonSchema, ResponseStreamEvent, ResponseTextParam,
    TextResponseFormatConfiguration,
};
use futures::StreamExt;
use serde_json::{Value, json};

type Failure = Box<dyn Error>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let (Some(base_url), Some(task)) = (arguments.next(), arguments.next()) else {
        return Err("usage: async-openai-client BASE_URL TASK".into());
    };
    // recipe: async-openai
    let config = OpenAIConfig::new()
        .with_api_base(base_url)
        .with_api_key("test");
    let client = Client::with_config(config);
    // end
    let result = match task.as_str() {
        "plain" => plain(&client).await?,
        "streamed" => streamed(&client).await?,
        "tools" => tools(&client, false).await?,
        "tools-streamed" => tools(&client, true).await?,
        "structured" => structured(&client).await?,
        _ => return Err(format!("unknown task `{task}`").into()),
    };
    println!("{result}");
    Ok(())
}

async fn plain(client: &Client<OpenAIConfig>) -> Result<Value, Failure> {
    let request = CreateResponseArgs::default()
        .model("double")
        .instructions("Be brief.")
        .input("hi")
        .build()?;
    let response = client.responses().create(request).await?;
    let usage = response.usage.as_ref().map(|usage| usage.input_tokens);
    Ok(json!({"text": response.output_text(), "status": response.status, "input_tokens": usage}))
}

async fn streamed(client: &Client<OpenAIConfig>) -> Result<Value, Failure> {
    let request = CreateResponseArgs::default()
        .model("double")
        .input("count")
        .build()?;
    let (response, deltas, types) = stream(client, request).await?;
    Ok(json!({"text": response.output_text(), "deltas": deltas, "types": types}))
}

/// Runs a tool loop without stored responses: every request sends all items again.
async fn tools(client: &Client<OpenAIConfig>, is_streamed: bool) -> Result<Value, Failure> {
    let weather = FunctionTool {
        name: "get_weather".into(),
        description: Some("The weather in a city".into()),
        parameters: Some(json!({
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
            "additionalProperties": false,
        })),
        strict: Some(true),
        ..Default::default()
    };
    let mut input = vec![InputItem::from(EasyInputMessage::from("Weather in Oslo?"))];
    let (mut cities, mut statuses) = (Vec::new(), Vec::new());
    loop {
        let request = CreateResponseArgs::default()
            .model("double")
            .input(input.clone())
            .tools(vec![weather.clone().into()])
            .include(vec![IncludeEnum::ReasoningEncryptedContent])
            .store(false)
            .build()?;
        let response = if is_streamed {
            stream(client, request).await?.0
        } else {
            client.responses().create(request).await?
        };
        statuses.push(serde_json::to_value(&response.status)?);
        let mut outputs = Vec::new();
        for item in &response.output {
            if let OutputItem::FunctionCall(call) = item {
                let arguments: Value = serde_json::from_str(&call.arguments)?;
                let city = arguments["city"].as_str().unwrap_or_default().to_owned();
                outputs.push(output(&call.call_id, format!("rain in {city}")));
                cities.push(city);
            }
        }
        if outputs.is_empty() {
            let text = response.output_text();
            return Ok(json!({"text": text, "asked": cities, "statuses": statuses}));
        }
        input.extend(response.output.into_iter().map(InputItem::from));
        input.extend(outputs);
    }
}

fn output(call_id: &str, text: String) -> InputItem {
    InputItem::from(Item::FunctionCallOutput(FunctionCallOutputItemParam {
        call_id: Some(call_id.into()),
        output: FunctionCallOutput::Text(text),
        id: None,
        status: None,
        name: None,
        namespace: None,
        caller: None,
    }))
}

async fn structured(client: &Client<OpenAIConfig>) -> Result<Value, Failure> {
    let format = TextResponseFormatConfiguration::JsonSchema(ResponseFormatJsonSchema {
        name: "city".into(),
        description: None,
        schema: json!({
            "type": "object",
            "properties": {"name": {"type": "string"}, "population": {"type": "integer"}},
            "required": ["name", "population"],
            "additionalProperties": false,
        }),
        strict: Some(true),
    });
    let request = CreateResponseArgs::default()
        .model("double")
        .input("Describe Oslo.")
        .text(ResponseTextParam {
            format,
            verbosity: None,
        })
        .build()?;
    let response = client.responses().create(request).await?;
    Ok(serde_json::from_str(
        &response.output_text().unwrap_or_default(),
    )?)
}

/// Reads a stream through the typed events. Fails on the first event that async-openai cannot deserialize.
async fn stream(
    client: &Client<OpenAIConfig>,
    request: CreateResponse,
) -> Result<(Response, Vec<String>, Vec<Value>), Failure> {
    let mut events = client.responses().create_stream(request).await?;
    let (mut deltas, mut types, mut completed) = (Vec::new(), Vec::new(), None);
    while let Some(event) = events.next().await {
        let event = event?;
        types.push(serde_json::to_value(&event)?["type"].take());
        match event {
            ResponseStreamEvent::ResponseOutputTextDelta(event) => deltas.push(event.delta),
            ResponseStreamEvent::ResponseCompleted(event) => completed = Some(event.response),
            _ => {}
        }
    }
    let response = completed.ok_or("the stream ended without `response.completed`")?;
    Ok((response, deltas, types))
}
