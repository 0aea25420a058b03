//! The test kit: a model, or a whole model server, that answers from a script.
//!
//! What comes in: a [`Script`]. What goes out: [`ScriptedModel`], a model in this process, and, with
//! the feature `testing`, `ScriptedServer`, the same script on loopback in the wire forms of Chat
//! Completions, Responses, Anthropic Messages and Ollama. It must never reach out of this machine.
//!
//! A whole test:
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
//! use haft_core::{Conversation, Item, Model, ModelRequest};
//! use haft_models::testing::{ScriptedModel, call, output_contains, say, user_contains};
//! use serde_json::json;
//!
//! let model = ScriptedModel::new([
//!     call("get_weather", json!({"city": "Oslo"})).expect(user_contains("weather")),
//!     say("Take an umbrella.").expect(output_contains("rain")),
//! ]);
//!
//! let mut conversation = Conversation::from("How is the weather in Oslo?");
//! let request = ModelRequest { conversation: conversation.clone(), ..Default::default() };
//! model.send(request).await?; // your code would read the call, and run the tool
//! conversation.push(Item::function_call("call_1", "get_weather", r#"{"city":"Oslo"}"#));
//! conversation.push(Item::function_call_output("call_1", "rain all day"));
//! model.send(ModelRequest { conversation, ..Default::default() }).await?;
//! model.assert_finished();
//! # Ok::<(), Box<dyn std::error::Error>>(()) })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[cfg(feature = "testing")]
mod delivery;
#[cfg(feature = "testing")]
mod protocol;
#[cfg(feature = "testing")]
mod read;
#[cfg(feature = "testing")]
mod received;
#[cfg(feature = "testing")]
mod render;
#[cfg(feature = "testing")]
mod server;

#[cfg(feature = "testing")]
pub use protocol::Protocol;
#[cfg(feature = "testing")]
pub use received::ReceivedRequest;
#[cfg(feature = "testing")]
pub use server::ScriptedServer;

pub use crate::scripted::*;
