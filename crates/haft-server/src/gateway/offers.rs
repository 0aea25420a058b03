//! Prompts and resources of MCP servers behind the gateway.
//!
//! Prompts have the names of tools, `LABEL__NAME`. The URI of a resource stays as it is; if two servers list
//! the same one, it belongs to the first in the order of the configuration, and that of the other one becomes
//! `haft+LABEL:URI`. A URI of that form always goes to the server with that label.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use haft_mcp::gateway::{
    BackendError, CacheHints, CallContext, Caller, Completion, CompletionOf, CompletionRequest,
    ListedPrompt, ListedResource, Listing, PromptArgument, PromptMessage, PromptOutcome,
    PromptRequest, ReadOutcome, ReadRequest, WatchGuard,
};
use haft_mcp::{
    Asker, CallOptions, Cause, Completed, Era, McpError, PromptDef, ResourceDef, Server,
    ServerList, ServerResources, exposed_name, exposed_name_hashed,
};
use serde_json::Value;

use super::backend::CatalogBackend;
use super::links::uri_of;
use super::passing::AskCaller;
use super::remote::client_trace;
use super::server_logs::ActiveRequest;
use super::uri_template::UriTemplate;

/// How long a list waits for servers of which nothing is known yet. Those that take longer come with a
/// notice that the list has changed.
const LIST_WAIT: Duration = Duration::from_secs(2);

/// How long names are, as those of tools.
const NAME_BYTES: usize = 48;

/// What a URI begins with that names its server.
const SCHEME: &str = "haft+";

const RESOURCE_NOT_FOUND: i64 = -32002;
const INVALID_PARAMS: i64 = -32602;

/// A prompt, its name here and its server.
struct Prompt {
    name: String,
    server: Arc<Server>,
    definition: PromptDef,
}

/// A resource or template, its URI here and its server.
pub(super) struct Resource {
    pub(super) uri: String,
    server: Arc<Server>,
    definition: ResourceDef,
}

/// Where a resource is read: its server, and the URI by which the server knows it.
struct Route {
    server: Arc<Server>,
    uri: String,
}

impl CatalogBackend {
    /// The prompts of these servers. Of two with the same name the later one has a hash behind its own.
    fn named_prompts(servers: &[Arc<Server>]) -> Vec<Prompt> {
        let mut names = HashSet::new();
        let mut prompts = Vec::new();
        for server in servers {
            let known = server.known_prompts();
            for definition in known.iter().flat_map(|known| &known.items) {
                let raw = &definition.name;
                let mut name = exposed_name(server.label(), raw, NAME_BYTES);
                if names.contains(name.as_str()) {
                    name = exposed_name_hashed(server.label(), raw, NAME_BYTES);
                }
                if names.insert(name.as_str().to_owned()) {
                    prompts.push(Prompt {
                        name: name.as_str().to_owned(),
                        server: Arc::clone(server),
                        definition: definition.clone(),
                    });
                }
            }
        }
        prompts
    }

    /// All servers of this gateway, of which only those are asked that the caller may use. Names and URIs are
    /// the same for every caller, whatever each of them may use.
    fn naming_servers(&self, caller: &Caller) -> Vec<Arc<Server>> {
        let mut selected = self.selected(caller);
        let all = self.all_selected().into_iter();
        let all = all.map(|server| {
            let own = selected.iter().position(|it| it.label() == server.label());
            own.map_or(server, |own| selected.swap_remove(own))
        });
        all.collect()
    }

    fn admits_offer(&self, caller: &Caller, server: &Server, name: &str) -> bool {
        let label = server.label().as_str();
        self.access().admits_item(caller, label, name)
    }

    /// The prompts that this caller may use.
    pub(super) async fn list_prompts(&self, caller: &Caller) -> Listing<ListedPrompt> {
        let lists = self.read_prompts(caller).await;
        let hints = lists.iter().map(|list| {
            let list = list.as_ref()?;
            Some((list.ttl, list.is_public))
        });
        let hints = self.offer_hints(hints);
        let prompts = Self::named_prompts(&self.naming_servers(caller)).into_iter();
        let prompts =
            prompts.filter(|it| self.admits_offer(caller, &it.server, &it.definition.name));
        Listing {
            items: prompts.map(listed_prompt).collect(),
            hints,
        }
    }

    /// What is not known yet may be there for those who ask again.
    fn offer_hints(&self, lists: impl Iterator<Item = Option<(Duration, bool)>>) -> CacheHints {
        lists.fold(self.own_hints(), |hints, list| {
            let (ttl, public) = list.unwrap_or_default();
            hints.joined(CacheHints { ttl, public })
        })
    }

    /// What the caller's servers list, as far as it comes in time.
    async fn read_prompts(&self, caller: &Caller) -> Vec<Option<Arc<ServerList<PromptDef>>>> {
        let servers = self.selected(caller);
        join_all(servers.iter().map(|it| it.prompts_within(LIST_WAIT))).await
    }

    async fn read_resources(&self, caller: &Caller) -> Vec<Option<Arc<ServerResources>>> {
        let servers = self.selected(caller);
        join_all(servers.iter().map(|it| it.resources_within(LIST_WAIT))).await
    }

    async fn find_prompt(&self, caller: &Caller, name: &str) -> Result<Prompt, BackendError> {
        let servers = self.naming_servers(caller);
        let find = || {
            let mut prompts = Self::named_prompts(&servers).into_iter();
            let found = prompts.find(|it| it.name == name)?;
            self.admits_offer(caller, &found.server, &found.definition.name)
                .then_some(found)
        };
        let mut found = find();
        if found.is_none() {
            // Perhaps its server has not been asked yet.
            self.read_prompts(caller).await;
            found = find();
        }
        found.ok_or_else(|| BackendError::UnknownPrompt(name.to_owned()))
    }

    pub(super) async fn get_prompt(
        &self,
        request: PromptRequest,
        context: CallContext,
    ) -> Result<PromptOutcome, BackendError> {
        let prompt = self.find_prompt(context.caller(), &request.name).await?;
        let (server, name) = (&prompt.server, &prompt.definition.name);
        let active = self.logs.enter(server, &context);
        let report = context.clone();
        let mut on_progress = move |progress| report.progress(progress);
        let options = options(&context, &mut on_progress, &active);
        let result = server.get_prompt(name, request.arguments, options).await;
        let result = result.map_err(|error| refused(&error, None))?;
        let messages = result.get("messages").and_then(Value::as_array);
        let messages = messages.map(Vec::as_slice).unwrap_or_default().iter();
        let mut messages: Vec<PromptMessage> = messages
            .map(|message| PromptMessage {
                from_model: message.get("role").and_then(Value::as_str) == Some("assistant"),
                content: message.get("content").cloned().unwrap_or_default(),
            })
            .collect();
        let blocks = messages.iter_mut().map(|message| &mut message.content);
        self.note_links(context.caller(), server, blocks);
        Ok(PromptOutcome {
            description: result["description"].as_str().map(haft_mcp::visible),
            messages,
            meta: result.get("_meta").and_then(Value::as_object).cloned(),
        })
    }

    /// The resources, or the templates, of these servers under their URIs here.
    fn placed<'s>(
        servers: &'s [Arc<Server>],
        of: impl Fn(&ServerResources) -> &[ResourceDef] + 's,
    ) -> Vec<Resource> {
        let mut uris = HashSet::new();
        let mut resources = Vec::new();
        for server in servers {
            let Some(known) = server.known_resources() else {
                continue;
            };
            for definition in of(&known) {
                let uri = &definition.uri;
                let uri = if uris.contains(uri) {
                    wrapped(server.label().as_str(), uri)
                } else {
                    uri.clone()
                };
                uris.insert(uri.clone());
                resources.push(Resource {
                    uri,
                    server: Arc::clone(server),
                    definition: definition.clone(),
                });
            }
        }
        resources
    }

    fn placed_resources(servers: &[Arc<Server>]) -> Vec<Resource> {
        Self::placed(servers, |known| &known.resources.items)
    }

    fn placed_templates(servers: &[Arc<Server>]) -> Vec<Resource> {
        Self::placed(servers, |known| &known.templates.items)
    }

    pub(super) async fn list_resources(&self, caller: &Caller) -> Listing<ListedResource> {
        self.list_placed(caller, Self::placed_resources).await
    }

    pub(super) async fn list_templates(&self, caller: &Caller) -> Listing<ListedResource> {
        self.list_placed(caller, Self::placed_templates).await
    }

    async fn list_placed(
        &self,
        caller: &Caller,
        placed: impl Fn(&[Arc<Server>]) -> Vec<Resource>,
    ) -> Listing<ListedResource> {
        let lists = self.read_resources(caller).await;
        let hints = lists.iter().map(|list| {
            let list = list.as_ref()?;
            let (resources, templates) = (&list.resources, &list.templates);
            let is_public = resources.is_public && templates.is_public;
            Some((resources.ttl.min(templates.ttl), is_public))
        });
        let hints = self.offer_hints(hints);
        let resources = placed(&self.naming_servers(caller)).into_iter();
        let admitted = |it: &Resource| self.admits_offer(caller, &it.server, &it.definition.uri);
        let resources = resources.filter(admitted);
        Listing {
            items: resources.map(listed_resource).collect(),
            hints,
        }
    }

    /// The server of a resource, by what is known: a URI that names it, the server that lists the URI, the one
    /// whose template fits best, the one that this caller got the URI from.
    fn route(&self, caller: &Caller, servers: &[Arc<Server>], uri: &str) -> Option<Route> {
        let labelled = |label: &str| {
            let mut servers = servers.iter();
            servers.find(|it| it.label().as_str() == label).cloned()
        };
        let route = || {
            if let Some((label, raw)) = unwrapped(uri) {
                return Some((labelled(label)?, raw));
            }
            if let Some(found) = listing_server(servers, uri) {
                return Some((found, uri));
            }
            let label = self.links.server(caller.id(), uri)?;
            Some((labelled(&label)?, uri))
        };
        let (server, uri) = route()?;
        let is_admitted = self.admits_offer(caller, &server, uri);
        is_admitted.then(|| Route {
            server,
            uri: uri.to_owned(),
        })
    }

    async fn find_resource(&self, caller: &Caller, uri: &str) -> Result<Route, BackendError> {
        let servers = self.naming_servers(caller);
        let mut route = self.route(caller, &servers, uri);
        if route.is_none() {
            // Perhaps its server has not been asked yet.
            self.read_resources(caller).await;
            route = self.route(caller, &servers, uri);
        }
        route.ok_or_else(|| BackendError::UnknownResource(uri.to_owned()))
    }

    pub(super) async fn read_resource(
        &self,
        request: ReadRequest,
        context: CallContext,
    ) -> Result<ReadOutcome, BackendError> {
        let route = self.find_resource(context.caller(), &request.uri).await?;
        let server = &route.server;
        let active = self.logs.enter(server, &context);
        let report = context.clone();
        let mut on_progress = move |progress| report.progress(progress);
        let options = options(&context, &mut on_progress, &active);
        let result = server.read(&route.uri, options).await;
        let mut result = result.map_err(|error| refused(&error, Some(&request.uri)))?;
        let mut contents = match result.get_mut("contents").map(Value::take) {
            Some(Value::Array(contents)) => contents,
            _ => Vec::new(),
        };
        for content in &mut contents {
            let Some(uri) = content.get("uri").and_then(Value::as_str) else {
                continue;
            };
            if uri == route.uri {
                // Under the URI that the client asked for.
                content["uri"] = request.uri.as_str().into();
            } else {
                let (caller, label) = (context.caller().id(), server.label().as_str());
                self.links.remember(caller, uri, label);
            }
        }
        let ttl = result.get("ttlMs").and_then(Value::as_u64).unwrap_or(0);
        Ok(ReadOutcome {
            contents,
            hints: CacheHints {
                ttl: Duration::from_millis(ttl),
                public: result["cacheScope"] == "public" && self.own_hints().public,
            },
            meta: result.get("_meta").and_then(Value::as_object).cloned(),
        })
    }

    /// Whether a resource can be subscribed to, by what is known.
    pub(super) fn can_watch(&self, caller: &Caller, uri: &str) -> bool {
        let servers = self.naming_servers(caller);
        let Some(route) = self.route(caller, &servers, uri) else {
            return false;
        };
        let connection = route.server.connected();
        connection.is_none_or(|it| it.identity().capabilities.subscribe)
    }

    pub(super) async fn watch_resource(
        &self,
        caller: &Caller,
        uri: &str,
    ) -> Result<WatchGuard, BackendError> {
        let route = self.find_resource(caller, uri).await?;
        let subscription = route.server.subscribe(&route.uri).await;
        let subscription = subscription.map_err(|error| refused(&error, Some(uri)))?;
        Ok(WatchGuard::new(subscription))
    }

    /// Remembers the links in content blocks of a server. One whose URI belongs to another server gets the
    /// URI that names its own.
    pub(super) fn note_links<'b>(
        &self,
        caller: &Caller,
        server: &Server,
        blocks: impl Iterator<Item = &'b mut Value>,
    ) {
        let label = server.label().as_str();
        for block in blocks {
            let is_link = block["type"] == "resource_link";
            let Some(uri) = uri_of(block) else {
                continue;
            };
            let raw = uri.as_str().unwrap_or_default().to_owned();
            self.links.remember(caller.id(), &raw, label);
            if is_link {
                *uri = placed_uri(&self.all_selected(), label, &raw).into();
            }
        }
    }

    pub(super) async fn complete_argument(
        &self,
        request: CompletionRequest,
        caller: &Caller,
    ) -> Result<Completion, BackendError> {
        let (server, of) = match &request.of {
            CompletionOf::Prompt(name) => {
                let prompt = self.find_prompt(caller, name).await?;
                (prompt.server, Completed::Prompt(prompt.definition.name))
            }
            CompletionOf::Resource(template) => self.find_template(caller, template).await?,
        };
        let known: BTreeMap<String, String> = request.known;
        let options = CallOptions::default();
        let completed = server.complete(&of, &request.argument, &request.value, known, options);
        let result = completed.await.map_err(|error| refused(&error, None))?;
        let completion = &result["completion"];
        let values = completion["values"].as_array();
        let values = values.map(Vec::as_slice).unwrap_or_default().iter();
        let values = values.filter_map(|value| value.as_str().map(str::to_owned));
        let total = completion["total"].as_u64();
        Ok(Completion {
            values: values.collect(),
            total: total.and_then(|total| u32::try_from(total).ok()),
            has_more: completion["hasMore"] == true,
        })
    }

    /// The server of a template, by its text here. A resource that is listed may be named as well.
    async fn find_template(
        &self,
        caller: &Caller,
        template: &str,
    ) -> Result<(Arc<Server>, Completed), BackendError> {
        let servers = self.naming_servers(caller);
        let find = || {
            let mut templates = Self::placed_templates(&servers).into_iter();
            let found = templates.find(|it| it.uri == template)?;
            self.admits_offer(caller, &found.server, &found.definition.uri)
                .then_some((found.server, Completed::Template(found.definition.uri)))
        };
        if let Some(found) = find() {
            return Ok(found);
        }
        let route = self.find_resource(caller, template).await?;
        Ok(find().unwrap_or((route.server, Completed::Template(route.uri))))
    }
}

/// The server that lists this URI, or has the best template for it.
fn listing_server(servers: &[Arc<Server>], uri: &str) -> Option<Arc<Server>> {
    let lists = |server: &&Arc<Server>| {
        let known = server.known_resources();
        let mut known = known.iter().flat_map(|known| &known.resources.items);
        known.any(|resource| resource.uri == uri)
    };
    if let Some(server) = servers.iter().find(lists) {
        return Some(Arc::clone(server));
    }
    let mut best: Option<(usize, &Arc<Server>)> = None;
    for server in servers {
        let known = server.known_resources();
        let templates = known.iter().flat_map(|known| &known.templates.items);
        for template in templates {
            let Some(template) = UriTemplate::parse(&template.uri) else {
                continue;
            };
            let bytes = template.literal_bytes();
            // The first server wins where two templates are equally exact.
            if best.is_none_or(|(most, _)| bytes > most) && template.matches(uri) {
                best = Some((bytes, server));
            }
        }
    }
    best.map(|(_, server)| Arc::clone(server))
}

/// The URI under which clients know a resource of a server, one of these.
pub(super) fn placed_uri(servers: &[Arc<Server>], label: &str, uri: &str) -> String {
    match listing_server(servers, uri) {
        Some(first) if first.label().as_str() != label => wrapped(label, uri),
        _ => uri.to_owned(),
    }
}

/// A URI that names its server.
fn wrapped(label: &str, uri: &str) -> String {
    format!("{SCHEME}{label}:{uri}")
}

/// The label and the server's own URI of a URI that names its server.
fn unwrapped(uri: &str) -> Option<(&str, &str)> {
    uri.strip_prefix(SCHEME)?.split_once(':')
}

fn listed_prompt(prompt: Prompt) -> ListedPrompt {
    let definition = prompt.definition;
    let arguments = definition.arguments.into_iter();
    ListedPrompt {
        name: prompt.name,
        title: definition.title,
        description: definition.description,
        arguments: arguments
            .map(|argument| PromptArgument {
                name: argument.name,
                title: argument.title,
                description: argument.description,
                required: argument.required,
            })
            .collect(),
        server: Some(prompt.server.label().as_str().to_owned()),
        icons: definition.icons,
        meta: definition.meta,
    }
}

fn listed_resource(resource: Resource) -> ListedResource {
    let definition = resource.definition;
    ListedResource {
        uri: resource.uri,
        name: definition.name,
        title: definition.title,
        description: definition.description,
        mime_type: definition.mime_type,
        server: Some(resource.server.label().as_str().to_owned()),
        size: definition.size,
        annotations: definition.annotations,
        icons: definition.icons,
        meta: definition.meta,
    }
}

/// What goes with a request of a client to a server.
fn options<'a>(
    context: &CallContext,
    on_progress: &'a mut (dyn FnMut(haft_core::ToolProgress) + Send),
    active: &ActiveRequest,
) -> CallOptions<'a> {
    CallOptions {
        cancel: context.cancel().clone(),
        on_progress: Some(on_progress),
        trace: client_trace(context),
        asker: Some(Arc::new(AskCaller::new(context.clone())) as Arc<dyn Asker>),
        log_level: context.log_level(),
        on_log: Some(active.on_log()),
        ..CallOptions::default()
    }
}

/// The failure of a server as a client sees it. `uri` is the resource that was asked for.
fn refused(error: &McpError, uri: Option<&str>) -> BackendError {
    let is_unknown = |code: i64| {
        code == RESOURCE_NOT_FOUND || (code == INVALID_PARAMS && error.era == Some(Era::Modern))
    };
    match (&*error.cause, uri) {
        (Cause::Cancelled, _) => BackendError::Cancelled,
        (Cause::Protocol { code, .. }, Some(uri)) if is_unknown(*code) => {
            BackendError::UnknownResource(uri.to_owned())
        }
        (Cause::Protocol { code, message }, _) => BackendError::Refused {
            code: i32::try_from(*code).unwrap_or(-32000),
            message: format!("MCP server `{}`: {message}", error.server),
        },
        (cause, _) => {
            let reason = error.for_log();
            tracing::warn!(server = %error.server, reason, "request failed");
            let text = format!("MCP server `{}`: {}", error.server, cause.for_callers());
            BackendError::Failed(text)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uri_that_names_its_server_is_read_back() {
        let uri = wrapped("files", "file:///a:b");
        assert_eq!(uri, "haft+files:file:///a:b");
        assert_eq!(unwrapped(&uri), Some(("files", "file:///a:b")));
        assert_eq!(unwrapped("file:///a"), None);
        assert_eq!(unwrapped("haft+files"), None);
    }
}
