//! The prompts and resources of a server of a pool: lists that are answered from what is known and
//! refreshed in the background, and requests over whichever connection there is.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::{Map, Value};
use tokio::sync::watch;
use tokio::time::Instant;

use super::call::{Using, again};
use super::subscriptions::Subscriptions;
use super::{Server, State, is_gone, locked};
use crate::connection::{CallOptions, Completed, Connection};
use crate::error::{Cause, McpError};
use crate::item_list::ServerList;
use crate::log_message::LogLevel;
use crate::offered::{PromptDef, ResourceDef};
use crate::traffic::ServerEvent;

/// A list of a server that sends no notices of changes is believed at least this long.
const FRESH_AT_LEAST: Duration = Duration::from_secs(10);

/// How long a list that could not be read is not asked for again.
const RETRY_AFTER: Duration = Duration::from_secs(10);

/// Notices of changes that come within this time are answered by one list.
const COALESCED: Duration = Duration::from_millis(250);

/// The resources and resource templates of a server.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ServerResources {
    /// The resources.
    pub resources: ServerList<ResourceDef>,
    /// The resource templates; the `uri` of each is its URI template.
    pub templates: ServerList<ResourceDef>,
}

/// What a server offers beside tools, as far as it is known, and what is wanted of it.
#[derive(Debug, Default)]
pub(in crate::pool) struct Offers {
    prompts: KnownList<ServerList<PromptDef>>,
    resources: KnownList<ServerResources>,
    pub(super) subscriptions: Subscriptions,
    log_level: Mutex<Option<LogLevel>>,
}

/// The last list that was read, and how its reading stands.
#[derive(Debug)]
struct KnownList<T> {
    known: RwLock<Known<T>>,
    /// When the reading that is under way began.
    reading_since: Mutex<Option<Instant>>,
    /// Counts the readings that have ended.
    readings: watch::Sender<u64>,
}

#[derive(Debug)]
struct Known<T> {
    list: Option<Arc<T>>,
    /// When it was read; not set after a notice of changes and for a new connection.
    read_at: Option<Instant>,
    failed_at: Option<Instant>,
    /// Counts the notices of changes and the connections.
    expired: u64,
}

impl<T> Default for KnownList<T> {
    fn default() -> Self {
        Self {
            known: RwLock::new(Known {
                list: None,
                read_at: None,
                failed_at: None,
                expired: 0,
            }),
            reading_since: Mutex::default(),
            readings: watch::Sender::new(0),
        }
    }
}

impl<T> KnownList<T> {
    fn list(&self) -> Option<Arc<T>> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.list.clone()
    }

    fn expire(&self) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        (known.read_at, known.failed_at) = (None, None);
        known.expired = known.expired.wrapping_add(1);
    }

    fn is_current(&self) -> bool {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.read_at.is_some()
    }

    fn expired(&self) -> u64 {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.expired
    }
}

/// A kind of list that servers have beside tools.
trait Offer: PartialEq + Send + Sync + Sized + 'static {
    const EVENT: ServerEvent;

    fn known(offers: &Offers) -> &KnownList<Self>;

    fn read(connection: &Connection) -> BoxFuture<'_, Result<Self, McpError>>;

    /// How long it stays fresh, where the server sends no notices of changes.
    fn ttl(&self) -> Duration;

    /// Whether the server sends notices of its changes.
    fn has_notices(connection: &Connection) -> bool;

    fn diagnostics(&self) -> Vec<&String>;
}

impl Offer for ServerList<PromptDef> {
    const EVENT: ServerEvent = ServerEvent::PromptsChanged;

    fn known(offers: &Offers) -> &KnownList<Self> {
        &offers.prompts
    }

    fn read(connection: &Connection) -> BoxFuture<'_, Result<Self, McpError>> {
        Box::pin(connection.list_prompts())
    }

    fn ttl(&self) -> Duration {
        self.ttl
    }

    fn has_notices(connection: &Connection) -> bool {
        let capabilities = connection.identity().capabilities;
        capabilities.prompts_list_changed || !capabilities.prompts
    }

    fn diagnostics(&self) -> Vec<&String> {
        self.diagnostics.iter().collect()
    }
}

impl Offer for ServerResources {
    const EVENT: ServerEvent = ServerEvent::ResourcesChanged;

    fn known(offers: &Offers) -> &KnownList<Self> {
        &offers.resources
    }

    fn read(connection: &Connection) -> BoxFuture<'_, Result<Self, McpError>> {
        Box::pin(async move {
            let (resources, templates) = tokio::join!(
                connection.list_resources(),
                connection.list_resource_templates()
            );
            // One of the two lists does not cost the other one.
            match (resources, templates) {
                (Err(error), Err(_)) => Err(error),
                (Err(error), _) | (_, Err(error)) if is_gone(&error) => Err(error),
                (resources, templates) => Ok(Self {
                    resources: or_noted(resources),
                    templates: or_noted(templates),
                }),
            }
        })
    }

    fn ttl(&self) -> Duration {
        self.resources.ttl.min(self.templates.ttl)
    }

    fn has_notices(connection: &Connection) -> bool {
        let capabilities = connection.identity().capabilities;
        capabilities.resources_list_changed || !capabilities.resources
    }

    fn diagnostics(&self) -> Vec<&String> {
        let resources = self.resources.diagnostics.iter();
        resources.chain(&self.templates.diagnostics).collect()
    }
}

/// The list, or an empty one with the reason why it could not be read.
fn or_noted<T>(list: Result<ServerList<T>, McpError>) -> ServerList<T> {
    list.unwrap_or_else(|error| ServerList {
        diagnostics: vec![error.to_string()],
        ..ServerList::default()
    })
}

impl Server {
    /// The prompts as far as they are known, without waiting.
    pub fn known_prompts(&self) -> Option<Arc<ServerList<PromptDef>>> {
        self.offers.prompts.list()
    }

    /// The resources and templates as far as they are known, without waiting.
    pub fn known_resources(&self) -> Option<Arc<ServerResources>> {
        self.offers.resources.list()
    }

    /// The prompts. The server is connected to if it has to be; where that fails, those that are known
    /// from before are the answer.
    ///
    /// ```no_run
    /// # async fn example(pool: haft_mcp::Pool) -> Result<(), Box<dyn std::error::Error>> {
    /// let server = pool.server("files").ok_or("no such server")?;
    /// for prompt in &server.prompts().await?.items {
    ///     println!("{}: {:?}", prompt.name, prompt.description);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn prompts(self: &Arc<Self>) -> Result<Arc<ServerList<PromptDef>>, McpError> {
        self.offered().await
    }

    /// The resources and resource templates, as [`prompts`](Self::prompts) gives the prompts.
    pub async fn resources(self: &Arc<Self>) -> Result<Arc<ServerResources>, McpError> {
        self.offered().await
    }

    /// The prompts that are known. They are refreshed in the background where they are old; only where
    /// none are known yet they are waited for, this long at most.
    pub async fn prompts_within(
        self: &Arc<Self>,
        limit: Duration,
    ) -> Option<Arc<ServerList<PromptDef>>> {
        self.offered_within(limit).await
    }

    /// The resources and templates that are known, as [`prompts_within`](Self::prompts_within) gives the
    /// prompts.
    pub async fn resources_within(
        self: &Arc<Self>,
        limit: Duration,
    ) -> Option<Arc<ServerResources>> {
        self.offered_within(limit).await
    }

    async fn offered<T: Offer>(self: &Arc<Self>) -> Result<Arc<T>, McpError> {
        self.touch();
        if let Some(list) = self.fresh::<T>() {
            return Ok(list);
        }
        match self.read_offer::<T>().await {
            Ok(list) => Ok(list),
            Err(error) => T::known(&self.offers).list().ok_or(error),
        }
    }

    async fn offered_within<T: Offer>(self: &Arc<Self>, limit: Duration) -> Option<Arc<T>> {
        self.touch();
        if let Some(list) = self.fresh::<T>() {
            return Some(list);
        }
        let offer = T::known(&self.offers);
        let mut readings = offer.readings.subscribe();
        readings.mark_unchanged();
        let since = self.start_reading::<T>();
        let known = offer.list();
        if known.is_some() || matches!(self.state(), State::Failed { .. }) {
            return known;
        }
        let _ = tokio::time::timeout_at(since? + limit, readings.changed()).await;
        offer.list()
    }

    /// The list, if it was read a moment ago or the server sends notices of its changes.
    fn fresh<T: Offer>(&self) -> Option<Arc<T>> {
        let connection = self.connected();
        let known = T::known(&self.offers).known.read();
        let known = known.unwrap_or_else(PoisonError::into_inner);
        let (list, read_at) = (known.list.as_ref()?, known.read_at?);
        let is_fresh = read_at.elapsed() < list.ttl().max(FRESH_AT_LEAST)
            || connection.is_some_and(|connection| T::has_notices(&connection));
        is_fresh.then(|| Arc::clone(list))
    }

    /// Reads a list in the background, unless that is under way; when it began. Nothing is read shortly
    /// after a failure.
    fn start_reading<T: Offer>(self: &Arc<Self>) -> Option<Instant> {
        let offer = T::known(&self.offers);
        {
            let known = offer.known.read().unwrap_or_else(PoisonError::into_inner);
            let failed = known.failed_at.map(|at| at.elapsed());
            if failed.is_some_and(|elapsed| elapsed < RETRY_AFTER) {
                return None;
            }
        }
        let mut since = locked(&offer.reading_since);
        if let Some(since) = *since {
            return Some(since);
        }
        let now = Instant::now();
        *since = Some(now);
        drop(since);
        let server = Arc::clone(self);
        tokio::spawn(async move {
            let _reading = Reading::<T>(&server, std::marker::PhantomData);
            loop {
                if let Err(error) = server.read_offer::<T>().await {
                    tracing::warn!(server = %server.label(), %error, "failed to list what the server offers beside tools");
                    return;
                }
                if T::known(&server.offers).is_current() {
                    return;
                }
                // It changed while it was read. Further notices within this time count as one.
                tokio::time::sleep(COALESCED).await;
            }
        });
        Some(now)
    }

    async fn read_offer<T: Offer>(self: &Arc<Self>) -> Result<Arc<T>, McpError> {
        let offer = T::known(&self.offers);
        // A new connection expires what was known.
        self.connection().await?;
        let expired = offer.expired();
        let read = self.over_connection(|connection| T::read(connection)).await;
        let mut known = offer.known.write().unwrap_or_else(PoisonError::into_inner);
        let list = match read {
            Ok(list) => Arc::new(list),
            Err(error) => {
                known.failed_at = Some(Instant::now());
                return Err(error);
            }
        };
        let has_changed = known.list.as_ref().is_none_or(|before| **before != *list);
        *known = Known {
            list: Some(Arc::clone(&list)),
            read_at: (known.expired == expired).then(Instant::now),
            failed_at: None,
            expired: known.expired,
        };
        drop(known);
        if has_changed {
            for diagnostic in list.diagnostics() {
                tracing::warn!(server = %self.label(), "{diagnostic}");
            }
            self.publish(T::EVENT);
        }
        Ok(list)
    }

    /// Makes a request over the connection, and once more over a new one if that one has ended. Only for
    /// requests that change nothing.
    async fn over_connection<T>(
        self: &Arc<Self>,
        mut request: impl FnMut(&Connection) -> BoxFuture<'_, Result<T, McpError>>,
    ) -> Result<T, McpError> {
        let _using = Using::new(self);
        let connection = self.connection().await?;
        match request(&connection).await {
            Err(error) if is_gone(&error) => {
                self.discard(&connection);
                let connection = self.connection().await?;
                request(&connection).await
            }
            answer => answer,
        }
    }

    /// Reads a resource by the URI that the server knows; the result is as the server wrote it.
    ///
    /// ```no_run
    /// # async fn example(pool: haft_mcp::Pool) -> Result<(), Box<dyn std::error::Error>> {
    /// use haft_mcp::CallOptions;
    /// let server = pool.server("files").ok_or("no such server")?;
    /// let result = server.read("file:///srv/README.md", CallOptions::default()).await?;
    /// println!("{}", result["contents"][0]["text"]);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn read(
        self: &Arc<Self>,
        uri: &str,
        mut options: CallOptions<'_>,
    ) -> Result<Value, McpError> {
        let _using = Using::new(self);
        let connection = self.connection_unless(&options.cancel).await?;
        match connection.read_resource(uri, again(&mut options)).await {
            Err(error) if is_gone(&error) => {
                self.discard(&connection);
                let connection = self.connection_unless(&options.cancel).await?;
                connection.read_resource(uri, options).await
            }
            answer => answer,
        }
    }

    /// Gets a prompt by the name that the server knows; the result is as the server wrote it.
    pub async fn get_prompt(
        self: &Arc<Self>,
        name: &str,
        arguments: Map<String, Value>,
        mut options: CallOptions<'_>,
    ) -> Result<Value, McpError> {
        let _using = Using::new(self);
        let connection = self.connection_unless(&options.cancel).await?;
        let first = connection
            .get_prompt(name, arguments.clone(), again(&mut options))
            .await;
        match first {
            Err(error) if is_gone(&error) => {
                self.discard(&connection);
                let connection = self.connection_unless(&options.cancel).await?;
                connection.get_prompt(name, arguments, options).await
            }
            answer => answer,
        }
    }

    /// Completes an argument of a prompt or a resource template; `known` are the arguments that are
    /// decided already. `null` from a server that offers no completion.
    pub async fn complete(
        self: &Arc<Self>,
        of: &Completed,
        argument: &str,
        value: &str,
        known: BTreeMap<String, String>,
        mut options: CallOptions<'_>,
    ) -> Result<Value, McpError> {
        let _using = Using::new(self);
        let connection = self.connection_unless(&options.cancel).await?;
        let (first_known, first_options) = (known.clone(), again(&mut options));
        let first = connection
            .complete(of, argument, value, first_known, first_options)
            .await;
        match first {
            Err(error) if is_gone(&error) => {
                self.discard(&connection);
                let connection = self.connection_unless(&options.cancel).await?;
                connection
                    .complete(of, argument, value, known, options)
                    .await
            }
            answer => answer,
        }
    }

    /// Sets the least severe log messages that a legacy server sends, now and over later connections.
    /// Modern servers are told with each request ([`CallOptions::log_level`]).
    pub fn set_log_level(self: &Arc<Self>, level: LogLevel) {
        let before = locked(&self.offers.log_level).replace(level);
        let Some(connection) = self.connected().filter(|_| before != Some(level)) else {
            return;
        };
        let server = Arc::clone(self);
        tokio::spawn(async move { server.send_log_level(&connection).await });
    }

    pub(super) async fn send_log_level(&self, connection: &Connection) {
        let level = *locked(&self.offers.log_level);
        let Some(level) = level else {
            return;
        };
        if let Err(error) = connection.set_log_level(level).await {
            tracing::debug!(server = %self.label(), %error, "failed to set the log level");
        }
    }

    /// Takes note of what a connection reported.
    pub(in crate::pool) fn reported(self: &Arc<Self>, event: ServerEvent) {
        match event {
            ServerEvent::PromptsChanged => self.expire_offer::<ServerList<PromptDef>>(),
            ServerEvent::ResourcesChanged => self.expire_offer::<ServerResources>(),
            ServerEvent::Log(message) => {
                let text = haft_core::cut(&crate::text::visible(&message.data.to_string()));
                let logger = message.logger.as_deref().unwrap_or_default();
                tracing::debug!(server = %self.label(), level = message.level.as_str(), logger, text, "log message of the server");
                self.publish(ServerEvent::Log(message));
            }
            event @ ServerEvent::ResourceUpdated(_) => self.publish(event),
        }
    }

    /// Lets a list be read anew: now if it is in use, else when it is asked for.
    fn expire_offer<T: Offer>(self: &Arc<Self>) {
        let offer = T::known(&self.offers);
        offer.expire();
        if offer.list().is_some() {
            self.start_reading::<T>();
        }
    }

    /// Brings a new connection to where the last one was: lists that are in use are read anew, the log
    /// level and the subscriptions are set.
    pub(super) fn resume_offers(self: &Arc<Self>, connection: &Arc<Connection>) {
        self.expire_offer::<ServerList<PromptDef>>();
        self.expire_offer::<ServerResources>();
        let (server, connection) = (Arc::clone(self), Arc::clone(connection));
        tokio::spawn(async move {
            server.send_log_level(&connection).await;
            server.resume_subscriptions(&connection).await;
        });
    }

    pub(super) fn publish(&self, event: ServerEvent) {
        let server = Arc::from(self.label().as_str());
        // It fails if there are no listeners, which is no error.
        let _ = self
            .parts
            .events
            .send(super::super::PoolEvent { server, event });
    }

    pub(super) fn unsupported(&self, what: &str) -> McpError {
        self.failure(Cause::Protocol {
            code: -32601,
            message: format!("the server does not offer {what}"),
        })
    }
}

/// Ends a reading in the background, also when it is dropped halfway.
struct Reading<'a, T: Offer>(&'a Server, std::marker::PhantomData<T>);

impl<T: Offer> Drop for Reading<'_, T> {
    fn drop(&mut self) {
        let offer = T::known(&self.0.offers);
        *locked(&offer.reading_since) = None;
        offer
            .readings
            .send_modify(|count| *count = count.wrapping_add(1));
    }
}
