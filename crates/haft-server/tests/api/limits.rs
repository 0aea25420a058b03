//! What a key, a request and everybody together may ask for.

use std::num::NonZeroU32;
use std::time::Duration;

use haft_models::ScriptedModel;
use haft_models::testing::{Fault, Step, say};
use haft_server::access::KeyLimits;
use serde_json::{Value, json};

use crate::access::Keys;
use crate::raw::Raw;
use crate::support::{Answer, Served, Setup, client, function};
use crate::websocket::connect_with;

fn model(step: Step) -> ScriptedModel {
    ScriptedModel::new([step.forever()])
}

fn hanging() -> Setup {
    Setup::of(model(Step::default().fault(Fault::Hang)))
}

fn with_keys(mut setup: Setup, keys: &Keys) -> Setup {
    setup.data_dir = Some(keys.folder().to_owned());
    setup
}

fn limits(per_minute: u32, at_once: u32) -> KeyLimits {
    KeyLimits {
        requests_per_minute: NonZeroU32::new(per_minute),
        concurrent: NonZeroU32::new(at_once),
    }
}

/// Status, code and after how many seconds to try again.
pub(crate) fn told(answer: &Answer) -> (u16, &str, Option<&str>) {
    let (status, code, _) = answer.error();
    (status, code, answer.header("retry-after"))
}

fn rate(answer: &Answer) -> [Option<&str>; 3] {
    ["limit", "remaining", "reset"]
        .map(|what| answer.header(&format!("x-ratelimit-{what}-requests")))
}

#[tokio::test]
async fn a_key_that_asks_too_often_is_told_when_to_come_back() {
    let keys = Keys::new();
    let hurried = keys.add_with("hurried", "acme", limits(2, 0));
    let calm = keys.add("calm", "acme");
    let setup = Setup::of(model(say("hello")));
    let served = with_keys(setup, &keys).serve().await;
    let ask = |key: String| {
        let served = &served;
        async move {
            served
                .post_as(&key, "/responses", json!({"input": "go"}))
                .await
        }
    };
    let first = ask(hurried.clone()).await;
    let [limit, remaining, reset] = rate(&first);
    assert_eq!(
        (first.status, limit, remaining),
        (200, Some("2"), Some("1"))
    );
    let reset: f64 = reset.unwrap().strip_suffix('s').unwrap().parse().unwrap();
    assert!((20.0..=30.0).contains(&reset), "{reset}");
    // What is refused for another reason counts, too.
    let bad = served
        .post_as(&hurried, "/responses", json!({"input": 1}))
        .await;
    assert_eq!((bad.status, rate(&bad)[1]), (400, Some("0")));
    let refused = ask(hurried.clone()).await;
    let (status, code, wait) = told(&refused);
    assert_eq!((status, code), (429, "rate_limit_exceeded"));
    let error = &refused.body["error"];
    assert_eq!(error["type"], "too_many_requests");
    let wait: u64 = wait.unwrap().parse().unwrap();
    assert!((20..=30).contains(&wait), "{wait}");
    let message = error["message"].as_str().unwrap();
    let (_, spoken) = message.split_once("try again in ").unwrap();
    let spoken: f64 = spoken.strip_suffix('s').unwrap().parse().unwrap();
    assert!(
        (f64::from(u32::try_from(wait).unwrap()) - spoken) < 1.0,
        "{message}"
    );
    assert_eq!(rate(&refused)[..2], [Some("2"), Some("0")]);
    for path in [
        "/responses/compact",
        "/responses/input_tokens",
        "/chat/completions",
    ] {
        let refused = served.post_as(&hurried, path, json!({})).await;
        assert_eq!(refused.status, 429, "{path}");
    }
    // Looking does not count: who waits for a response must be able to see it.
    let id = first.body["id"].as_str().unwrap();
    for _ in 0..5 {
        let seen = served.get_as(&hurried, &format!("/responses/{id}")).await;
        assert_eq!((seen.status, rate(&seen)), (200, [None; 3]));
    }
    let other = ask(calm).await;
    assert_eq!((other.status, rate(&other)), (200, [None; 3]));
}

#[tokio::test]
async fn keys_without_limits_of_their_own_have_the_servers() {
    let keys = Keys::new();
    let own = keys.add_with("own", "acme", limits(9, 0));
    let plain = keys.add("plain", "acme");
    let setup = Setup::of(model(say("hello")));
    let setup = setup.options(|options| options.limits.keys = limits(3, 0));
    let served = with_keys(setup, &keys).serve().await;
    for (key, limit) in [(&own, "9"), (&plain, "3")] {
        let answer = served
            .post_as(key, "/responses", json!({"input": "go"}))
            .await;
        assert_eq!(rate(&answer)[0], Some(limit));
    }
    // Where no key is needed, everybody is one.
    let setup = Setup::of(model(say("hello")));
    let setup = setup.options(|options| options.limits.keys = limits(1, 0));
    let served = setup.serve().await;
    served.create(json!({"input": "go"})).await;
    let refused = served.post("/responses", json!({"input": "go"})).await;
    assert_eq!(refused.status, 429);
}

#[tokio::test]
async fn a_key_that_asks_for_too_much_at_once_is_refused_and_others_are_not() {
    let keys = Keys::new();
    let narrow = keys.add_with("narrow", "acme", limits(0, 1));
    let wide = keys.add("wide", "acme");
    let served = with_keys(hanging(), &keys).serve().await;
    let background = json!({"input": "go", "background": true});
    let running = served
        .post_as(&narrow, "/responses", background.clone())
        .await;
    let running = running.ok();
    let refused = served
        .post_as(&narrow, "/responses", json!({"input": "go"}))
        .await;
    assert_eq!(told(&refused), (429, "rate_limit_exceeded", Some("1")));
    let message = refused.body["error"]["message"].as_str().unwrap();
    assert!(message.ends_with("try again in 1s"), "{message}");
    let chat = json!({"messages": [{"role": "user", "content": "go"}]});
    let refused = served.post_as(&narrow, "/chat/completions", chat).await;
    assert_eq!(refused.status, 429);
    let compact = json!({"model": "default", "input": "go"});
    let refused = served.post_as(&narrow, "/responses/compact", compact).await;
    assert_eq!(refused.status, 429);
    served
        .post_as(&wide, "/responses", background.clone())
        .await
        .ok();
    let id = running["id"].as_str().unwrap();
    let cancel = format!("/responses/{id}/cancel");
    served.post_as(&narrow, &cancel, json!({})).await.ok();
    served.post_as(&narrow, "/responses", background).await.ok();
}

#[tokio::test]
async fn who_finds_everything_busy_waits_for_his_turn() {
    let script = [say("slow").delay_ms(400), say("quick").forever()];
    let setup = Setup::of(ScriptedModel::new(script)).options(|options| options.max_runs = 1);
    let served = setup.serve().await;
    let create = |served: &Served| {
        let request = served.posting("/responses", &json!({"input": "go"}));
        tokio::spawn(async move { request.send().await.unwrap().status().as_u16() })
    };
    let all: Vec<_> = (0..5).map(|_| create(&served)).collect();
    for one in all {
        assert_eq!(one.await.unwrap(), 200);
    }
}

/// A server that is busy with one run that never ends.
async fn busy(setup: Setup, max_waiting: usize, max_wait: Duration) -> (Served, String) {
    let setup = setup.options(|options| {
        options.max_runs = 1;
        options.limits.max_waiting = Some(max_waiting);
        options.limits.max_wait = max_wait;
    });
    let served = setup.serve().await;
    let running = served
        .create(json!({"input": "go", "background": true}))
        .await;
    let id = running["id"].as_str().unwrap().to_owned();
    (served, id)
}

const LONG: Duration = Duration::from_mins(1);

#[tokio::test]
async fn who_waits_too_long_is_told_that_the_server_is_overloaded() {
    let (served, _) = busy(hanging(), 4, Duration::from_millis(50)).await;
    for body in [
        json!({"input": "go"}),
        json!({"input": "go", "stream": true}),
    ] {
        let refused = served.post("/responses", body).await;
        assert_eq!(told(&refused), (503, "server_is_overloaded", Some("1")));
    }
    let mut socket = connect_with(&served, &[]).await.unwrap();
    socket.create(json!({"input": "go"})).await;
    assert_eq!(
        socket.refused().await,
        (503, "server_is_overloaded".into(), None)
    );
}

#[tokio::test]
async fn a_line_that_is_full_refuses_at_once_and_who_goes_away_leaves_it() {
    let (served, running) = busy(hanging(), 1, LONG).await;
    let body = json!({"input": "go", "background": true});
    for is_socket in [false, true] {
        let waiting = if is_socket {
            let mut socket = connect_with(&served, &[]).await.unwrap();
            socket.create(json!({"input": "go"})).await;
            Waiting::Socket(Box::new(socket))
        } else {
            Waiting::Http(Box::new(Raw::post(&served, &body).await))
        };
        is_full(&served).await;
        drop(waiting);
        // There is room for another one to wait, and it gets its turn.
        let mut next = Raw::post(&served, &body).await;
        is_full(&served).await;
        if is_socket {
            let cancel = format!("/responses/{running}/cancel");
            served.post(&cancel, json!({})).await.ok();
            assert!(next.head().await[0].contains(" 200 "));
        }
    }
}

enum Waiting {
    Http(#[allow(dead_code, reason = "dropped")] Box<Raw>),
    Socket(#[allow(dead_code, reason = "dropped")] Box<crate::websocket::Socket>),
}

/// Waits until the line is full: one more is refused at once.
async fn is_full(served: &Served) {
    for _ in 0..200 {
        let request = served.posting("/responses", &json!({"input": "probe"}));
        let asked = tokio::time::timeout(Duration::from_millis(500), request.send()).await;
        match asked {
            Ok(refused) => {
                assert_eq!(refused.unwrap().status().as_u16(), 503);
                return;
            }
            // This one waits itself: it is dropped, and looks again.
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
    panic!("the line is never full");
}

#[tokio::test]
async fn one_tenant_cannot_fill_the_line_for_another() {
    let keys = Keys::new();
    let greedy = keys.add("greedy", "greedy");
    let modest = keys.add("modest", "modest");
    let setup = with_keys(hanging(), &keys).options(|options| {
        options.max_runs = 1;
        options.limits.max_waiting = Some(3);
        options.limits.max_wait = LONG;
    });
    let served = setup.serve().await;
    let background = json!({"input": "go", "background": true});
    let running = served
        .post_as(&greedy, "/responses", background.clone())
        .await;
    let running = running.ok();
    let ask = |key: &str| {
        let request = served.posting("/responses", &background).bearer_auth(key);
        tokio::spawn(async move {
            let answer = request.send().await.unwrap();
            let status = answer.status().as_u16();
            let body: Value = serde_json::from_str(&answer.text().await.unwrap()).unwrap();
            (status, body)
        })
    };
    let waiting: Vec<_> = (0..4).map(|_| ask(&greedy)).collect();
    // One of four is refused: the line is full, of one tenant alone.
    let refused = |all: &[tokio::task::JoinHandle<(u16, Value)>]| {
        all.iter().filter(|one| one.is_finished()).count()
    };
    until(|| refused(&waiting) == 1).await;
    let others = [ask(&modest)];
    until(|| refused(&waiting) == 2).await;
    assert_eq!(refused(&others), 0, "he waits");
    let cancel = format!("/responses/{}/cancel", running["id"].as_str().unwrap());
    served.post_as(&greedy, &cancel, json!({})).await.ok();
    let [other] = others;
    let (status, body) = other.await.unwrap();
    assert_eq!((status, &body["status"]), (200, &json!("queued")));
    assert_eq!(refused(&waiting), 2, "whoever had no turn yet goes first");
    for one in waiting {
        if one.is_finished() {
            let (status, body) = one.await.unwrap();
            assert_eq!(status, 503);
            assert_eq!(body["error"]["code"], "server_is_overloaded");
        } else {
            one.abort();
        }
    }
}

async fn until(is_so: impl Fn() -> bool) {
    for _ in 0..500 {
        if is_so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("it never comes to that");
}

#[tokio::test]
async fn turns_of_a_websocket_count() {
    let keys = Keys::new();
    let key = keys.add_with("one", "acme", limits(2, 0));
    let served = with_keys(Setup::of(model(say("hello"))), &keys)
        .serve()
        .await;
    let bearer = format!("Bearer {key}");
    let mut socket = connect_with(&served, &[("authorization", &bearer)])
        .await
        .unwrap();
    for _ in 0..2 {
        let response = socket.response(json!({"input": "go"})).await;
        assert_eq!(response["status"], "completed");
    }
    socket.create(json!({"input": "go"})).await;
    let turn = socket.turn().await;
    assert_eq!(
        (&turn[0]["status"], &turn[0]["error"]["code"]),
        (&json!(429), &json!("rate_limit_exceeded"))
    );
    let wait = turn[0]["headers"]["Retry-After"].as_str().unwrap();
    assert!((20..=30).contains(&wait.parse::<u64>().unwrap()), "{wait}");
}

#[tokio::test]
async fn headers_are_bounded_in_number_and_size() {
    let served = Setup::of(model(say("hello"))).serve().await;
    let get = || served.request("GET", "/models");
    let many = (0..70).fold(get(), |request, at| request.header(format!("x-{at}"), "1"));
    let answer = served.send(many).await;
    assert_eq!(answer.error(), (431, "request_headers_too_large", None));
    let long = get().header("x-long", "x".repeat(66_000));
    let answer = served.send(long).await;
    assert_eq!(answer.error(), (431, "request_headers_too_large", None));
    let fine = get().header("x-long", "x".repeat(60_000));
    assert_eq!(served.send(fine).await.status, 200);
    // Far more is not even read to its end.
    let far_more = (0..20).fold(get(), |request, at| {
        request.header(format!("x-{at}"), "x".repeat(60_000))
    });
    let answer = far_more.send().await;
    assert!(answer.is_err() || answer.unwrap().status().as_u16() == 431);
    let path = format!("/models/{}", "x".repeat(60_000));
    let long = served
        .request("GET", &path)
        .header("x-long", "x".repeat(6_000));
    assert_eq!(served.send(long).await.error().0, 431, "the path counts");
}

#[tokio::test]
async fn a_body_that_is_nested_too_deeply_is_told_so() {
    let served = Setup::of(model(say("hello"))).serve().await;
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    for (path, field) in [
        ("/responses", "client_metadata"),
        ("/chat/completions", "messages"),
        ("/conversations", "items"),
    ] {
        let send = |depth| {
            let body = format!(r#"{{"input": "x", "{field}": {}}}"#, nested(depth));
            let request = served.request("POST", path);
            let request = request.header("content-type", "application/json");
            served.send(request.body(body))
        };
        let answer = send(127).await;
        assert_eq!(answer.error(), (400, "invalid_json", None), "{path}");
        let message = answer.body["error"]["message"].as_str().unwrap();
        assert!(message.contains("nested more than 127 levels"), "{message}");
        let answer = send(126).await;
        let message = answer.body["error"]["message"].as_str();
        assert!(
            !message.unwrap_or_default().contains("nested"),
            "{message:?}"
        );
    }
}

#[tokio::test]
async fn items_and_tools_are_bounded_in_number() {
    let setup = Setup::of(model(say("hello"))).options(|options| {
        options.limits.max_input_items = 3;
        options.limits.max_tools = 3;
    });
    let served = setup.serve().await;
    let items = |count: usize| vec![json!({"role": "user", "content": "x"}); count];
    let tools =
        |count: usize| -> Vec<Value> { (0..count).map(|at| function(&format!("f{at}"))).collect() };
    let chat_tools = |count: usize| -> Vec<Value> {
        let tools = tools(count).into_iter();
        tools
            .map(|tool| json!({"type": "function", "function": tool}))
            .collect()
    };
    let brought = |count: usize| json!({"type": "additional_tools", "role": "developer", "tools": tools(count)});
    let space = |count: usize| json!({"type": "namespace", "name": "n", "description": "d", "tools": tools(count)});
    served
        .create(json!({"input": items(3), "tools": tools(3)}))
        .await;
    for (path, body, param) in [
        ("/responses", json!({"input": items(4)}), "input"),
        (
            "/responses",
            json!({"input": "x", "tools": tools(4)}),
            "tools",
        ),
        (
            "/responses",
            json!({"input": "x", "tools": [space(3)]}),
            "tools",
        ),
        (
            "/responses",
            json!({"input": [brought(2), brought(2)]}),
            "input[1].tools",
        ),
        (
            "/responses",
            json!({"input": [brought(2)], "tools": tools(2)}),
            "input[0].tools",
        ),
        (
            "/responses/input_tokens",
            json!({"input": items(4)}),
            "input",
        ),
        (
            "/responses/compact",
            json!({"model": "default", "input": items(4)}),
            "input",
        ),
        (
            "/chat/completions",
            json!({"messages": items(4)}),
            "messages",
        ),
        (
            "/chat/completions",
            json!({"messages": items(1), "tools": chat_tools(4)}),
            "tools",
        ),
    ] {
        let answer = served.post(path, body).await;
        assert_eq!(
            answer.error(),
            (400, "invalid_value", Some(param)),
            "{path}"
        );
        let message = answer.body["error"]["message"].as_str().unwrap();
        assert!(message.contains("at most 3"), "{message}");
    }
    let mut socket = connect_with(&served, &[]).await.unwrap();
    socket.create(json!({"input": items(4)})).await;
    assert_eq!(
        socket.refused().await,
        (400, "invalid_value".into(), Some("input".into()))
    );
}

async fn as_host(served: &Served, host: &str) -> Answer {
    let request = served.request("GET", "/models");
    served.send(request.header("host", host)).await
}

#[tokio::test]
async fn a_server_for_its_own_machine_answers_to_no_other_name() {
    let served = Setup::of(model(say("hello"))).serve().await;
    for host in [
        "localhost",
        "localhost:1",
        "127.0.0.1:80",
        "[::1]",
        "[::1]:4141",
    ] {
        assert_eq!(as_host(&served, host).await.status, 200, "{host}");
    }
    for host in [
        "evil.example",
        "evil.example:80",
        "127.0.0.1.evil.example",
        "10.0.0.1",
    ] {
        let answer = as_host(&served, host).await;
        assert_eq!(answer.error(), (403, "permission_denied", None), "{host}");
    }
    // In HTTP/2 the name stands elsewhere.
    let address = served.base.strip_prefix("http://").unwrap();
    let address = address.strip_suffix("/v1").unwrap().parse().unwrap();
    client();
    let led_astray = reqwest::Client::builder()
        .no_proxy()
        .http2_prior_knowledge()
        .resolve("evil.example", address)
        .build()
        .unwrap();
    let url = format!("http://evil.example:{}/v1/models", address.port());
    let answer = led_astray.get(url).send().await.unwrap();
    assert_eq!(answer.version(), reqwest::Version::HTTP_2);
    assert_eq!(answer.status().as_u16(), 403);
    // Who has a key says so on purpose.
    let keys = Keys::new();
    let key = keys.add("one", "acme");
    let served = with_keys(Setup::of(model(say("hello"))), &keys)
        .serve()
        .await;
    let request = served.request("GET", "/models").bearer_auth(&key);
    assert_eq!(
        served
            .send(request.header("host", "ai.example"))
            .await
            .status,
        200
    );
    let setup = Setup::of(model(say("hello")));
    let served = setup
        .options(|options| options.allow_anonymous = true)
        .serve()
        .await;
    assert_eq!(as_host(&served, "ai.example").await.status, 200);
}
