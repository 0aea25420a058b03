//! A pool as a model.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream;
use futures_util::StreamExt as _;
use haft_core::{
    BoxFuture, Capabilities, FinishReason, Item, Model, ModelError, ModelErrorKind, ModelEvent,
    ModelOptions, ModelRequest, ModelStream, UnsupportedContent,
};

use super::affinity::{self, Affinity};
use super::member::Visit;
use super::round::Round;
use super::{Member, Standing, Witness};
use crate::lift::broken_off;

/// Several backends, asked in order: the first that answers is the model.
///
/// Towards whoever asks it is its first backend: name, provider, and what it can take are that one's.
/// What decides how a request is written is narrowed to what all of them can, so that it can go to
/// any; one that cannot take what a request holds is passed over.
///
/// A conversation stays with a backend that stood in as long as that one is well.
///
/// ```
/// use haft_core::Model;
/// use haft_models::pool::{BreakerSettings, Member, Pool};
/// use haft_models::{Adapter, Backend, ModelConfig};
/// use std::sync::Arc;
///
/// let member = |name: &str, port: u16| {
///     let mut config = ModelConfig::new(name, Adapter::OpenaiChat);
///     config.base_url = Some(format!("http://127.0.0.1:{port}/v1"));
///     let backend = Backend::from_config(&config)?;
///     let member = Member::new(name, backend).breaker(BreakerSettings::default());
///     Ok::<_, haft_models::ConfigError>(Arc::new(member))
/// };
/// let pool = Pool::new(member("near", 8080)?, [member("far", 8081)?]);
/// assert_eq!((pool.name(), pool.members().len()), ("near", 2));
/// # Ok::<(), haft_models::ConfigError>(())
/// ```
pub struct Pool {
    /// At least one.
    members: Vec<Arc<Member>>,
    affinity: Affinity,
    /// Whether all of them stand in for somebody else.
    stands_in: bool,
}

impl Pool {
    /// One backend and those that stand in for it, in this order.
    pub fn new(first: Arc<Member>, others: impl IntoIterator<Item = Arc<Member>>) -> Self {
        let mut members = vec![first];
        for other in others {
            if !members.iter().any(|member| Arc::ptr_eq(member, &other)) {
                members.push(other);
            }
        }
        Self {
            members,
            affinity: Affinity::default(),
            stands_in: false,
        }
    }

    /// The same, all of them in place of somebody else.
    pub(super) fn standing_in(mut self) -> Self {
        self.stands_in = true;
        self
    }

    /// Notes who answers.
    pub(super) fn hear(&self, at: usize, witness: Option<&Witness>) {
        let name = self.members[at].name();
        let is_stand_in = self.stands_in || at != 0;
        if let Some(witness) = witness {
            witness.hear(name, is_stand_in);
        }
        if is_stand_in {
            tracing::info!(backend = &**name, "another backend answers");
        }
    }

    /// The backends, in the order in which they are asked.
    pub fn members(&self) -> &[Arc<Member>] {
        &self.members
    }

    /// Whether the next request would be let through to one of them.
    pub fn is_usable(&self) -> bool {
        let mut members = self.members.iter();
        members.any(|member| member.standing().is_usable())
    }

    /// The same model for one run, with somebody who hears which backends answer it.
    pub fn heard_by(self: &Arc<Self>, witness: Witness) -> Arc<dyn Model> {
        Arc::new(Witnessed {
            pool: Arc::clone(self),
            witness,
        })
    }

    fn first(&self) -> &Arc<dyn Model> {
        self.members[0].model()
    }

    async fn ask(
        &self,
        mut request: ModelRequest,
        witness: Option<&Witness>,
    ) -> Result<ModelStream, ModelError> {
        let has_others = self.members.len() > 1;
        let stays_with = if has_others {
            self.affinity.place(&request, now())
        } else {
            None
        };
        let mut round = Round::new(&self.members, stays_with, |_| true);
        while let Some((at, visit)) = round.next(|member| can_take(member, &request)) {
            let key = has_others && self.affinity.concerns(at);
            let key = key.then(|| affinity::key(&request));
            let asked = if round.is_last() {
                std::mem::take(&mut request)
            } else {
                request.clone()
            };
            match begin(&visit, asked).await {
                Ok((first, rest)) => {
                    visit.began();
                    self.hear(at, witness);
                    round.tell_failures(at, witness);
                    if let Some(key) = key {
                        self.affinity.keep(key, at, now());
                    }
                    let first = Some(first);
                    return Ok(Box::pin(Answer { first, rest, visit }));
                }
                Err(error) => round.failed(at, visit, error)?,
            }
        }
        Err(round.end())
    }
}

/// Asks a backend and waits for the first piece of its answer: until then another may be asked.
async fn begin(
    visit: &Visit,
    request: ModelRequest,
) -> Result<(ModelEvent, ModelStream), ModelError> {
    let mut stream = visit.member().model().send(request).await?;
    let first = stream.next().await.unwrap_or_else(|| Err(broken_off()))?;
    Ok((first, stream))
}

/// Whether a backend takes everything that a request holds.
fn can_take(member: &Member, request: &ModelRequest) -> bool {
    let model = member.model();
    let mut items = request.conversation.items();
    items.all(|item| model.unsupported(item).is_none())
}

fn now() -> std::time::Instant {
    tokio::time::Instant::now().into_std()
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool")
            .field("members", &self.members)
            .finish_non_exhaustive()
    }
}

impl Model for Pool {
    fn name(&self) -> &str {
        self.first().name()
    }

    fn provider(&self) -> &str {
        self.first().provider()
    }

    fn capabilities(&self) -> Capabilities {
        let mut capabilities = self.first().capabilities();
        let mut others = self.members[1..].iter().peekable();
        if others.peek().is_none() {
            return capabilities;
        }
        for member in others {
            let others = member.model().capabilities();
            capabilities.supports_dynamic_tools &= others.supports_dynamic_tools;
            capabilities.native_deferred_loading &= others.native_deferred_loading;
            capabilities.tool_references &= others.tool_references;
            capabilities.structured_output &= others.structured_output;
            capabilities.structured_output_with_tools &= others.structured_output_with_tools;
            capabilities.provider_tools = capabilities
                .provider_tools
                .intersection(&others.provider_tools);
            capabilities.repeats_calls |= others.repeats_calls;
        }
        // How much fits depends on who will be asked.
        let asked = self.members.iter().find(|member| {
            let standing = member.standing();
            standing.is_usable() && !matches!(standing, Standing::Resting(_))
        });
        if let Some(asked) = asked {
            capabilities.context_tokens = asked.model().capabilities().context_tokens;
        }
        capabilities
    }

    fn unsupported(&self, item: &Item) -> Option<UnsupportedContent> {
        self.first().unsupported(item)
    }

    fn reads_compaction(&self) -> bool {
        let mut members = self.members.iter();
        members.all(|member| member.model().reads_compaction())
    }

    fn ignored_options(&self, options: &ModelOptions) -> Vec<&'static str> {
        self.first().ignored_options(options)
    }

    fn send(&self, request: ModelRequest) -> BoxFuture<'_, Result<ModelStream, ModelError>> {
        Box::pin(self.ask(request, None))
    }
}

/// A pool with somebody who hears who answers.
struct Witnessed {
    pool: Arc<Pool>,
    witness: Witness,
}

impl Model for Witnessed {
    fn name(&self) -> &str {
        self.pool.name()
    }

    fn provider(&self) -> &str {
        self.pool.provider()
    }

    fn capabilities(&self) -> Capabilities {
        self.pool.capabilities()
    }

    fn unsupported(&self, item: &Item) -> Option<UnsupportedContent> {
        self.pool.unsupported(item)
    }

    fn reads_compaction(&self) -> bool {
        self.pool.reads_compaction()
    }

    fn ignored_options(&self, options: &ModelOptions) -> Vec<&'static str> {
        self.pool.ignored_options(options)
    }

    fn send(&self, request: ModelRequest) -> BoxFuture<'_, Result<ModelStream, ModelError>> {
        Box::pin(self.pool.ask(request, Some(&self.witness)))
    }
}

/// An answer that has begun, on its way. The breaker hears how it ends; dropping it says nothing
/// about the backend.
struct Answer {
    first: Option<ModelEvent>,
    rest: ModelStream,
    visit: Visit,
}

impl Stream for Answer {
    type Item = Result<ModelEvent, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = match self.first.take() {
            Some(first) => Poll::Ready(Some(Ok(first))),
            None => self.rest.as_mut().poll_next(cx),
        };
        match &next {
            Poll::Ready(Some(Ok(ModelEvent::Finished { finish, .. }))) => match finish {
                FinishReason::Error => {
                    let words = "it says that the answer failed";
                    let error = ModelError::new(ModelErrorKind::ServerError, words);
                    self.visit.failed(&error);
                }
                _ => self.visit.succeeded(),
            },
            Poll::Ready(Some(Err(error))) => self.visit.failed(error),
            Poll::Ready(None) => self.visit.failed(&broken_off()),
            Poll::Ready(Some(Ok(_))) | Poll::Pending => {}
        }
        next
    }
}
