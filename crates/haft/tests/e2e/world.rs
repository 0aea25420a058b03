//! The models under test and the tools that they call.

use std::sync::Arc;

use haft::models::{Anthropic, ChatQuirks, ChatServer, Ollama, OpenAiChat, OpenAiResponses};
use haft::testing::{Script, ScriptedServer};
use haft::{
    Backoff, Model, ModelOptions, Outcome, Session, Streaming, ToolDefinition, ToolError, ToolRef,
    engine, json,
};

/// The key that must never be seen anywhere but at the provider.
pub const KEY: &str = "sk-hunter2-e2e";

/// An adapter and the server that it takes the scripted one for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Provider {
    /// Chat Completions at `OpenAI`.
    Chat,
    /// Chat Completions at a server of which nothing is known.
    OtherChat,
    Responses,
    Anthropic,
    Ollama,
}

impl Provider {
    pub const ALL: [Self; 5] = [
        Self::Chat,
        Self::OtherChat,
        Self::Responses,
        Self::Anthropic,
        Self::Ollama,
    ];

    /// The name of its snapshots.
    pub fn title(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::OtherChat => "other_chat",
            Self::Responses => "responses",
            Self::Anthropic => "anthropic",
            Self::Ollama => "ollama",
        }
    }

    /// The adapter, pointed at the scripted server.
    pub fn model(self, server: &ScriptedServer) -> Arc<dyn Model> {
        match self {
            Self::Chat => Arc::new(chat(server).quirks(ChatQuirks {
                server: Some(ChatServer::Openai),
                ..ChatQuirks::default()
            })),
            Self::OtherChat => Arc::new(chat(server)),
            Self::Responses => Arc::new(responses(server)),
            Self::Anthropic => Arc::new(anthropic(server)),
            Self::Ollama => Arc::new(ollama(server)),
        }
    }

    /// Whether it says of a result that it tells of a failure.
    pub fn marks_errors(self) -> bool {
        self == Self::Anthropic
    }

    /// Whether it can hold the model to the form of an answer and let it call tools all the same.
    pub fn binds_answers_beside_tools(self) -> bool {
        !matches!(self, Self::OtherChat | Self::Ollama)
    }

    /// Whether its calls have ids on the wire.
    pub fn has_call_ids(self) -> bool {
        self != Self::Ollama
    }
}

pub fn chat(server: &ScriptedServer) -> OpenAiChat {
    OpenAiChat::new("m")
        .base_url(&server.base_url())
        .api_key(KEY)
}

pub fn responses(server: &ScriptedServer) -> OpenAiResponses {
    OpenAiResponses::new("m")
        .base_url(&server.base_url())
        .api_key(KEY)
}

pub fn anthropic(server: &ScriptedServer) -> Anthropic {
    Anthropic::new("m").base_url(&server.url()).api_key(KEY)
}

pub fn ollama(server: &ScriptedServer) -> Ollama {
    Ollama::new("m").base_url(&server.url()).api_key(KEY)
}

/// One provider, and how its answers are asked for.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    pub provider: Provider,
    pub stream: Streaming,
}

impl Case {
    /// A server with this script.
    pub async fn server(self, script: impl Into<Script>) -> ScriptedServer {
        ScriptedServer::start(script).await.unwrap()
    }

    /// A run against the server, whose retries do not wait longer than they are told to.
    pub fn run(self, server: &ScriptedServer) -> engine::Run {
        self.run_of(self.provider.model(server))
    }

    pub fn run_of(self, model: impl Model) -> engine::Run {
        let options = ModelOptions {
            stream: self.stream,
            ..ModelOptions::default()
        };
        haft::run(model).model_options(options).retry(Backoff {
            base: std::time::Duration::from_millis(1),
            cap: std::time::Duration::from_millis(2),
            ..Backoff::default()
        })
    }
}

/// Every provider, streamed and whole.
pub fn cases() -> impl Iterator<Item = Case> {
    Provider::ALL.into_iter().flat_map(|provider| {
        [Streaming::Pieces, Streaming::Whole].map(|stream| Case { provider, stream })
    })
}

/// Every provider, streamed.
pub fn streamed() -> impl Iterator<Item = Case> {
    cases().filter(|case| case.stream == Streaming::Pieces)
}

/// The weather somewhere.
#[haft::tool(read_only)]
pub async fn get_weather(
    /// The city
    city: String,
) -> Result<String, ToolError> {
    if city == "Atlantis" {
        return Err(ToolError::new("no such city"));
    }
    tokio::task::yield_now().await;
    Ok(format!("rain in {city}"))
}

/// Put a note away.
#[haft::tool]
pub fn note(
    /// What to write down
    text: String,
    /// How important it is
    #[tool(default = 1)]
    weight: i64,
) -> String {
    format!("noted {text} ({weight})")
}

/// A function of the caller's.
pub fn ask_user() -> ToolRef {
    let definition = ToolDefinition::builder("ask_user")
        .description("Ask the user")
        .parameters(json!({
            "type": "object",
            "properties": {"question": {"type": "string"}},
            "required": ["question"],
            "additionalProperties": false
        }));
    definition.build().unwrap().into()
}

/// The two tools that run here.
pub fn tools() -> Vec<ToolRef> {
    vec![get_weather.into(), note.into()]
}

/// Through JSON, as another process would see it.
pub fn stored(session: &Session) -> Session {
    serde_json::from_str(&serde_json::to_string(session).unwrap()).unwrap()
}

/// Whether all calls of the conversation have their outputs.
pub fn assert_whole(outcome: &Outcome) {
    outcome.session.conversation().verify().unwrap();
}

/// Does the same for each case, all at once.
pub async fn each<F: Future<Output = ()> + Send + 'static>(
    cases: impl IntoIterator<Item = Case>,
    test: impl Fn(Case) -> F,
) {
    let mut running = tokio::task::JoinSet::new();
    for case in cases {
        let test = test(case);
        running.spawn(async move {
            let ended = tokio::spawn(test).await;
            assert!(ended.is_ok(), "{case:?} failed, as said above");
        });
    }
    while let Some(ended) = running.join_next().await {
        ended.unwrap();
    }
}
