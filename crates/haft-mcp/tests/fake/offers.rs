//! Prompts, resources, completion and logging of the fake server, by `offers` among its arguments.

use serde_json::{Value, json};

use super::brain::{Brain, Sink};
use super::words::{answer, refuse, say, text};

/// What it offers beside tools, and what clients want of it.
#[derive(Default)]
pub struct Offers {
    added: usize,
    subscribed: Vec<String>,
    level: Option<String>,
}

const LEVELS: [&str; 4] = ["debug", "info", "warning", "error"];

impl Brain {
    pub fn offered_capabilities() -> Value {
        json!({
            "tools": {"listChanged": true},
            "prompts": {"listChanged": true},
            "resources": {"listChanged": true, "subscribe": true},
            "completions": {},
            "logging": {},
        })
    }

    /// Tools that make it change what it offers.
    pub fn offer_tools(&self) -> &'static [&'static str] {
        if self.has("offers") {
            &["link", "touch", "grow", "log"]
        } else {
            &[]
        }
    }

    /// Answers a request about prompts, resources or logs; whether it was one.
    pub fn offer(&self, method: &str, id: &Value, params: &Value, sink: &Sink) -> bool {
        if !self.has("offers") {
            return false;
        }
        match method {
            "prompts/list" => {
                let mut prompts = vec![json!({
                    "name": "greet", "title": "Greeting", "description": "Says\u{200b} hello.",
                    "arguments": [{"name": "who", "required": true}],
                })];
                if self.has("malformed-offers") {
                    prompts.extend([
                        json!(7),
                        json!({"title": "nameless"}),
                        json!({"name": ["x"]}),
                    ]);
                }
                let added =
                    (0..self.offers().added).map(|it| json!({"name": format!("added_{it}")}));
                prompts.extend(added);
                self.list_offer(id, "prompts", &prompts, sink);
            }
            "prompts/get" => self.get_prompt(id, params, sink),
            "resources/list" => {
                let name = self.said("name").unwrap_or("fake");
                let mut resources = vec![
                    json!({"uri": format!("fake://{name}/one"), "name": "One", "mimeType": "text/plain", "size": 3}),
                    json!({"uri": "fake://shared", "name": "Shared"}),
                ];
                if self.has("malformed-offers") {
                    resources.extend([json!(null), json!({"name": "no uri"}), json!({"uri": 3})]);
                }
                let added = 0..self.offers().added;
                resources
                    .extend(added.map(|it| json!({"uri": format!("fake://{name}/added/{it}")})));
                self.list_offer(id, "resources", &resources, sink);
            }
            "resources/templates/list" => {
                let name = self.said("name").unwrap_or("fake");
                let template =
                    json!({"uriTemplate": format!("fake://{name}/item/{{id}}"), "name": "Item"});
                self.list_offer(id, "resourceTemplates", &[template], sink);
            }
            "resources/read" => self.read(id, params, sink),
            "resources/subscribe" => {
                let uri = params["uri"].as_str().unwrap().to_owned();
                self.offers().subscribed.push(uri);
                answer(sink, id, &json!({}));
            }
            "resources/unsubscribe" => {
                let uri = params["uri"].as_str().unwrap();
                self.offers().subscribed.retain(|it| it != uri);
                answer(sink, id, &json!({}));
            }
            "completion/complete" => {
                let value = params["argument"]["value"].as_str().unwrap();
                let words = ["paris", "park", "rome"]
                    .iter()
                    .filter(|it| it.starts_with(value));
                let mut values: Vec<String> = words.map(|it| (*it).to_owned()).collect();
                values.push(params["ref"].to_string());
                values.push(params["context"].to_string());
                answer(
                    sink,
                    id,
                    &json!({"completion": {"values": values, "total": 5, "hasMore": true}}),
                );
            }
            "logging/setLevel" => {
                self.offers().level = params["level"].as_str().map(str::to_owned);
                answer(sink, id, &json!({}));
            }
            _ => return false,
        }
        true
    }

    fn list_offer(&self, id: &Value, member: &str, items: &[Value], sink: &Sink) {
        if self.has("silent-offers") {
            return;
        }
        answer(
            sink,
            id,
            &json!({"resultType": "complete", member: items, "ttlMs": 60_000, "cacheScope": "public"}),
        );
    }

    fn get_prompt(&self, id: &Value, params: &Value, sink: &Sink) {
        if params["name"] != "greet" {
            return refuse(sink, id, -32602, "unknown prompt");
        }
        let who = params["arguments"]["who"].as_str().unwrap_or("nobody");
        if who == "ask" && self.has("modern") && params["inputResponses"].is_null() {
            let form = super::asking::form();
            let asked = json!({"q": {"method": "elicitation/create", "params": form}});
            let result = json!({"resultType": "input_required", "inputRequests": asked, "requestState": "s"});
            return answer(sink, id, &result);
        }
        let who = match &params["inputResponses"]["q"]["content"]["name"] {
            Value::String(name) => name,
            _ => who,
        };
        let content = json!({"type": "text", "text": format!("Hello, {who}!")});
        let result = json!({"description": "A greeting", "messages": [{"role": "user", "content": content}]});
        answer(sink, id, &result);
    }

    fn read(&self, id: &Value, params: &Value, sink: &Sink) {
        let uri = params["uri"].as_str().unwrap();
        let name = self.said("name").unwrap_or("fake");
        let is_known = uri == "fake://shared"
            || uri == "fake://linked"
            || uri.starts_with(&format!("fake://{name}/"));
        if !is_known {
            let code = if self.has("modern") { -32602 } else { -32002 };
            return refuse(sink, id, code, "no such resource");
        }
        let text =
            json!({"uri": uri, "mimeType": "text/plain", "text": format!("{name} has {uri}")});
        let mut contents = vec![text];
        if self.has("malformed-offers") {
            contents.push(json!({"uri": uri, "hologram": 1}));
        }
        answer(
            sink,
            id,
            &json!({"contents": contents, "_meta": {"from": name}}),
        );
    }

    /// Calls one of [`offer_tools`](Self::offer_tools); whether it was one.
    pub fn call_offer(&self, id: &Value, params: &Value, sink: &Sink) -> bool {
        if !self.has("offers") {
            return false;
        }
        let arguments = &params["arguments"];
        match params["name"].as_str().unwrap_or_default() {
            "link" => {
                let uri = arguments["uri"].as_str().unwrap_or("fake://linked");
                let link = json!({"type": "resource_link", "uri": uri, "name": "Linked"});
                answer(sink, id, &json!({"content": [link]}));
            }
            "touch" => {
                let uri = &arguments["uri"];
                self.notify_offer("resources/updated", Some(uri), sink);
                text(sink, id, "touched");
            }
            "grow" => {
                self.offers().added += 1;
                self.notify_offer("prompts/list_changed", None, sink);
                self.notify_offer("resources/list_changed", None, sink);
                text(sink, id, "grown");
            }
            "log" => {
                let level = arguments["level"].as_str().unwrap();
                let meta = params["_meta"]["io.modelcontextprotocol/logLevel"].as_str();
                let least = if self.has("modern") {
                    meta.map(str::to_owned)
                } else {
                    Some(self.offers().level.clone().unwrap_or_else(|| "info".into()))
                };
                let rank = |name: &str| LEVELS.iter().position(|it| *it == name).unwrap();
                if least.is_some_and(|least| rank(level) >= rank(&least)) {
                    let message =
                        json!({"level": level, "logger": "core", "data": arguments["data"]});
                    say(
                        sink,
                        &json!({"jsonrpc": "2.0", "method": "notifications/message", "params": message}),
                    );
                }
                text(sink, id, "logged");
            }
            _ => return false,
        }
        true
    }

    fn notify_offer(&self, method: &str, uri: Option<&Value>, sink: &Sink) {
        let method = format!("notifications/{method}");
        if !self.has("modern") {
            let is_wanted = uri.is_none_or(|uri| {
                let subscribed = &self.offers().subscribed;
                subscribed.iter().any(|it| *uri == it.as_str())
            });
            if is_wanted {
                let params = uri.map_or_else(|| json!({}), |uri| json!({"uri": uri}));
                say(
                    sink,
                    &json!({"jsonrpc": "2.0", "method": method, "params": params}),
                );
            }
            return;
        }
        for (id, filter) in self.listeners() {
            let wanted = filter["resourceSubscriptions"].as_array();
            let is_wanted = uri.is_none_or(|uri| wanted.is_some_and(|it| it.contains(uri)));
            if is_wanted {
                let mut params = json!({"_meta": {"io.modelcontextprotocol/subscriptionId": id}});
                if let Some(uri) = uri {
                    params["uri"] = uri.clone();
                }
                say(
                    sink,
                    &json!({"jsonrpc": "2.0", "method": method, "params": params}),
                );
            }
        }
    }
}
