//! The script as a model in this process.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use haft_core::{
    BoxFuture, Capabilities, ForcedChoice, Model, ModelError, ModelRequest, ModelStream,
};

use super::fault::Fault;
use super::playback;
use super::player::{Player, ScriptFailure};
use super::script::Script;
use super::view::RequestView;

/// A model that answers from a script, without a network. Clones play the same script together, so
/// a test keeps one to look at.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// use haft_core::{Model, ModelRequest};
/// use haft_models::scripted::{ScriptedModel, say, user_contains};
///
/// let model = ScriptedModel::new([say("hello").expect(user_contains("hi"))]);
/// let request = ModelRequest { conversation: "hi there".into(), ..ModelRequest::default() };
/// let stream = model.send(request).await?;
/// # drop(stream);
/// assert_eq!(model.received().len(), 1);
/// model.assert_finished();
/// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct ScriptedModel {
    name: Arc<str>,
    capabilities: Capabilities,
    player: Arc<Player>,
    received: Arc<Mutex<Vec<ModelRequest>>>,
}

impl ScriptedModel {
    /// A model that can do everything that a provider of the Responses API can.
    pub fn new(script: impl Into<Script>) -> Self {
        Self {
            name: "scripted".into(),
            capabilities: Capabilities {
                supports_dynamic_tools: true,
                parallel_calls: true,
                strict_schemas: true,
                named_choice: true,
                forced_choice: ForcedChoice::Named,
                none_choice: true,
                // It searches for nobody.
                native_deferred_loading: false,
                tool_references: false,
                image_input: true,
                file_input: true,
                video_input: true,
                structured_output: true,
                structured_output_with_tools: true,
                provider_tools: haft_core::ProviderTools::default(),
                repeats_calls: false,
                context_tokens: None,
            },
            player: Arc::new(Player::new(script.into())),
            received: Arc::default(),
        }
    }

    /// Sets the model's name; `scripted` by default.
    #[must_use]
    pub fn named(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = name.into();
        self
    }

    /// Sets what it declares to be able to do.
    #[must_use]
    pub fn with_capabilities(mut self, capabilities: Capabilities) -> Self {
        self.capabilities = capabilities;
        self
    }

    /// Every request so far, in order, also those that the script did not foresee.
    pub fn received(&self) -> Vec<ModelRequest> {
        self.requests().clone()
    }

    /// Whether every request was as the script says and every step was taken.
    pub fn verify(&self) -> Result<(), ScriptFailure> {
        self.player.verify()
    }

    /// Fails the test unless every request was as the script says and every step was taken.
    ///
    /// # Panics
    ///
    /// When [`verify`](Self::verify) has something to say, with its words.
    #[track_caller]
    pub fn assert_finished(&self) {
        if let Err(failure) = self.verify() {
            panic!("{failure}");
        }
    }

    fn requests(&self) -> MutexGuard<'_, Vec<ModelRequest>> {
        self.received.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Model for ScriptedModel {
    fn name(&self) -> &str {
        &self.name
    }

    fn provider(&self) -> &'static str {
        "scripted"
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities.clone()
    }

    fn send(&self, request: ModelRequest) -> BoxFuture<'_, Result<ModelStream, ModelError>> {
        Box::pin(async move {
            let view = RequestView::from(&request);
            let streaming = request.options.stream;
            self.requests().push(request);
            let answer = self.player.play(&view)?;
            match &answer.step.fault {
                Some(Fault::Hang) => std::future::pending().await,
                Some(fault) => fault.refusal().map_or(Ok(()), Err)?,
                None => {}
            }
            Ok(playback::stream(answer, &self.name, streaming))
        })
    }
}
