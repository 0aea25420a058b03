//! Who answers: the engine of this process, or a server.

use std::error::Error;

use haft::Value;

use super::answer::Reply;
use super::desk::Desk;
use super::engine::Engine;
use super::server::Server;

pub(super) enum Partner {
    Engine(Box<Engine>),
    Server(Box<Server>),
}

impl Partner {
    /// One line about who answers.
    pub(super) fn told(&self) -> String {
        match self {
            Self::Engine(engine) => format!("{}, in this process", engine.name()),
            Self::Server(server) => format!("{} at {}", server.name(), server.base()),
        }
    }

    /// Ends what was started for the conversation.
    pub(super) async fn close(&self) {
        if let Self::Engine(engine) = self {
            engine.close().await;
        }
    }

    pub(super) fn name(&self) -> &str {
        match self {
            Self::Engine(engine) => engine.name(),
            Self::Server(server) => server.name(),
        }
    }

    pub(super) fn models(&self) -> Vec<String> {
        match self {
            Self::Engine(engine) => engine.models(),
            Self::Server(server) => server.models(),
        }
    }

    pub(super) async fn choose(&mut self, name: &str) -> Result<(), Box<dyn Error>> {
        match self {
            Self::Engine(engine) => engine.choose(name),
            Self::Server(server) => server.choose(name).await,
        }
    }

    pub(super) fn tools(&self) -> Vec<(String, String)> {
        match self {
            Self::Engine(engine) => engine.tools(),
            Self::Server(server) => server.tools(),
        }
    }

    /// The conversation of a server's API, if it is in one.
    pub(super) fn conversation(&self) -> Option<&str> {
        match self {
            Self::Engine(_) => None,
            Self::Server(server) => server.conversation(),
        }
    }

    /// What was said before this conversation was taken up.
    pub(super) fn past(&self) -> &[Value] {
        match self {
            Self::Engine(_) => &[],
            Self::Server(server) => server.past(),
        }
    }

    pub(super) async fn begin_anew(&mut self) -> Result<(), Box<dyn Error>> {
        match self {
            Self::Engine(engine) => {
                engine.begin_anew();
                Ok(())
            }
            Self::Server(server) => Ok(server.begin_anew().await?),
        }
    }

    pub(super) async fn answer(
        &mut self,
        message: &str,
        desk: &mut Desk,
    ) -> Result<Reply, Box<dyn Error>> {
        match self {
            Self::Engine(engine) => engine.answer(message, desk).await,
            Self::Server(server) => server.answer(message, desk).await,
        }
    }
}
