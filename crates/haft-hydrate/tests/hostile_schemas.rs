//! Schemas come from strangers: none of them may hang, overflow or reach out.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "helpers of tests fail like tests"
)]

use std::time::{Duration, Instant};

use haft_core::{ErrorCode, ToolCall, ToolDefinition, ValidatorFactory, dynamic_tool};
use haft_hydrate::{CallIds, Compile, Hydrator, JsonSchemaFactory, PreparedTool, ValidatorCache};
use serde_json::{Map, Value, json};

/// Far above what any of these takes, far below what an explosion would.
const HANG: Duration = Duration::from_mins(1);

fn verdict(schema: &Value, value: &Value) -> (bool, Vec<String>) {
    let started = Instant::now();
    let validator = JsonSchemaFactory.compile(schema).expect("compiles");
    let errors = validator.validate(value);
    assert_eq!(validator.is_valid(value), errors.is_empty());
    assert!(started.elapsed() < HANG, "took {:?}", started.elapsed());
    (
        errors.is_empty(),
        errors.into_iter().map(|error| error.message).collect(),
    )
}

fn nested(depth: usize, inner: Value) -> Value {
    (0..depth).fold(inner, |value, _| json!({"kind": 1, "child": value}))
}

fn recursive_union() -> Value {
    let branch = |kind: u8| {
        json!({
            "type": "object",
            "properties": {"child": {"$ref": "#/$defs/node"}, "kind": {"const": kind}},
            "required": ["kind"]
        })
    };
    json!({"$ref": "#/$defs/node", "$defs": {"node": {"anyOf": [branch(1), branch(2)]}}})
}

#[test]
fn a_recursive_union_is_judged_without_exploding() {
    assert!(verdict(&recursive_union(), &nested(100, json!({"kind": 2}))).0);
    assert!(!verdict(&recursive_union(), &nested(100, json!({"kind": 3}))).0);
}

#[test]
fn a_shallow_error_in_a_recursive_union_is_still_explained() {
    let (valid, errors) = verdict(&recursive_union(), &json!({"kind": 1, "child": {}}));
    assert!(!valid);
    assert!(!errors.is_empty());
}

#[test]
fn nesting_of_schemas_over_a_deep_value_does_not_overflow_a_small_stack() {
    let mut definitions = Map::new();
    for n in 0..20 {
        let next = format!("#/$defs/n{}", (n + 1) % 20);
        let part = if n == 19 {
            json!({"properties": {"child": {"$ref": next}}})
        } else {
            json!({"allOf": [{"$ref": next}]})
        };
        definitions.insert(format!("n{n}"), part);
    }
    let schema = json!({"$ref": "#/$defs/n0", "$defs": definitions});
    let judged = std::thread::Builder::new()
        .stack_size(1024 * 1024)
        .spawn(move || {
            let shallow = verdict(&schema, &nested(8, json!({}))).0;
            let deep = verdict(&schema, &nested(120, json!({}))).0;
            (shallow, deep)
        })
        .expect("a thread")
        .join()
        .expect("no overflow");
    assert_eq!(judged, (true, false));
}

#[test]
fn patterns_that_backtrack_do_not_hang() {
    for pattern in [
        "^(a+)+$",
        "(?=(a+)+b)a",
        "^(a|a)*$",
        r"(a*)*\1b",
        "^(?!(a+)+c).*d$",
    ] {
        let text = "a".repeat(100_000) + "!";
        assert!(
            !verdict(&json!({"pattern": pattern}), &json!(text)).0,
            "{pattern}"
        );
    }
    let word = json!({"pattern": "^(?=.*[0-9])[a-z0-9]+$"});
    assert!(verdict(&word, &json!("abc1")).0);
    assert!(!verdict(&word, &json!("abc")).0);
}

#[test]
fn a_pattern_that_grows_without_end_is_refused() {
    let started = Instant::now();
    let schema = json!({"pattern": "(?:(?:a{100}){100}){100}"});
    assert!(JsonSchemaFactory.compile(&schema).is_err());
    assert!(started.elapsed() < HANG);
}

#[test]
fn thousands_of_patterns_do_not_meet_thousands_of_members() {
    let patterns: Map<_, _> = (0..300)
        .map(|n| (format!("^(?=x)k{n}.*z"), json!({})))
        .collect();
    let members: Map<_, _> = (0..10_000).map(|n| (format!("xk{n}"), json!(1))).collect();
    let schema = json!({"patternProperties": patterns});
    let (valid, errors) = verdict(&schema, &Value::Object(members));
    assert!(!valid);
    assert!(errors[0].contains("too large"), "{errors:?}");
}

#[test]
fn half_a_million_wrong_items_give_a_short_answer() {
    let schema = json!({"type": "array", "items": {"type": "string"}});
    let (valid, errors) = verdict(&schema, &Value::Array(vec![json!(1); 500_000]));
    assert!(!valid);
    assert!(errors.len() <= 32);
}

#[test]
fn a_late_broken_schema_is_an_error_of_that_call_only() {
    let definition = ToolDefinition::builder("broken")
        .parameters(json!({"type": "object", "properties": {"a": {"type": "bogus"}}}))
        .build()
        .expect("builds: nothing is compiled yet");
    let tool = dynamic_tool(definition, |_, _| async { Ok(()) });
    let cache = ValidatorCache::default();
    assert!(PreparedTool::new(tool.clone(), &cache, Compile::Early).is_err());
    let late = [PreparedTool::new(tool, &cache, Compile::Late).expect("not compiled yet")];
    let result = Hydrator::new().hydrate(
        &ToolCall::new("broken", "{}"),
        &late[..],
        &mut CallIds::default(),
    );
    assert!(!result.success());
    assert_eq!(result.errors[0].detail, ErrorCode::BrokenSchema);
    assert_eq!(result.provenance.parsed, Some(json!({})));
}

#[test]
fn remote_references_are_refused_without_being_fetched() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.set_nonblocking(true).expect("non-blocking");
    let address = listener.local_addr().expect("an address");
    for reference in [
        format!("http://{address}/schema.json"),
        "file:///etc/hostname".into(),
    ] {
        assert!(
            JsonSchemaFactory
                .compile(&json!({"$ref": reference}))
                .is_err()
        );
    }
    assert!(listener.accept().is_err(), "somebody connected");
}

/// `links` definitions, each made by `link` from its number and the reference to the next; the last
/// one descends into `child` and starts over.
fn chain(links: usize, link: impl Fn(usize) -> (String, Value)) -> Value {
    let mut definitions = Map::new();
    for n in 0..links {
        let (_, definition) = link(n);
        definitions.insert(format!("d{n}"), definition);
    }
    let (first, _) = link(links);
    json!({"$ref": first, "$defs": definitions, "definitions": definitions})
}

/// Makes the definition of one number among so many.
type Link = fn(usize, usize) -> Value;

/// Every way in which a schema can refer to another in the same document.
fn ways_to_refer() -> Vec<(&'static str, Link)> {
    fn next(n: usize, links: usize) -> usize {
        (n + 1) % links
    }
    vec![
        (
            "pointer",
            |n, links| json!({"allOf": [{"$ref": format!("#/$defs/d{}", next(n, links))}]}),
        ),
        ("dependencies", |n, links| {
            let next = format!("#/definitions/d{}", next(n, links));
            json!({"dependencies": {"child": {"$ref": next}, "kind": {"$ref": next}}})
        }),
        (
            "resource",
            |n, links| json!({"$id": format!("urn:d{n}"), "$ref": format!("urn:d{}", next(n, links))}),
        ),
        (
            "dynamic anchor",
            |n, links| json!({"$dynamicAnchor": format!("a{n}"), "$dynamicRef": format!("#a{}", next(n, links))}),
        ),
        (
            "plain-name id",
            |n, links| json!({"$id": format!("#p{n}"), "allOf": [{"$ref": format!("#p{}", next(n, links))}]}),
        ),
    ]
}

#[test]
fn no_way_of_referring_overflows_the_stack_or_hangs() {
    for (way, link) in ways_to_refer() {
        for links in [30, 1_000] {
            let schema = chain(links, |n| {
                let last = json!({"properties": {"child": {"$ref": "#"}}});
                match n {
                    n if n == links => ("#/$defs/d0".into(), json!({})),
                    n if n + 1 == links => (String::new(), last),
                    n => (String::new(), link(n, links)),
                }
            });
            let judged = std::thread::Builder::new()
                .stack_size(2 * 1024 * 1024)
                .spawn(move || {
                    JsonSchemaFactory
                        .compile(&schema)
                        .map(|validator| validator.validate(&nested(120, json!({}))).len())
                })
                .expect("a thread")
                .join();
            assert!(judged.is_ok(), "{way}, {links}");
        }
    }
}

#[test]
fn doubling_is_refused_however_it_refers() {
    for (way, link) in ways_to_refer() {
        let schema = chain(40, |n| {
            let doubled = |single: Value| json!({"allOf": [single, single]});
            match n {
                40 => ("#/$defs/d0".into(), json!({})),
                39 => (String::new(), json!({"type": "object"})),
                n => (String::new(), doubled(link(n, 40))),
            }
        });
        let started = Instant::now();
        if let Ok(validator) = JsonSchemaFactory.compile(&schema) {
            validator.validate(&json!({"child": 1, "kind": 1}));
        }
        assert!(started.elapsed() < HANG, "{way}");
    }
}

#[test]
fn a_long_enum_does_not_meet_a_long_list() {
    let options: Vec<_> = (0..20_000).map(|n| json!({"v": n})).collect();
    let schema = json!({"type": "array", "items": {"enum": options}});
    let (valid, errors) = verdict(&schema, &Value::Array(vec![json!({"v": 19_999}); 50_000]));
    assert!(!valid);
    assert!(errors[0].contains("too large"), "{errors:?}");
    let (valid, _) = verdict(&schema, &json!([{"v": 7}]));
    assert!(valid);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_slow_validation_does_not_block_the_runtime() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU8, Ordering};

    const WAITING: u8 = 0;
    const VALIDATING: u8 = 1;
    const DONE: u8 = 2;
    let phase = Arc::new(AtomicU8::new(WAITING));
    let validation = tokio::spawn({
        let phase = Arc::clone(&phase);
        async move {
            let schema =
                json!({"type": "array", "items": {"pattern": "^(?:[a-z]{1,40}[0-9]?){1,20}$"}});
            let value = json!(vec!["abcdefghij".repeat(20); 40]);
            let validator = JsonSchemaFactory.compile(&schema).expect("compiles");
            phase.store(VALIDATING, Ordering::SeqCst);
            let errors = validator.validate(&value);
            phase.store(DONE, Ordering::SeqCst);
            errors
        }
    });
    // On the only worker of the runtime: it can see the validation under way only if that moved off the worker.
    let observer = tokio::spawn(async move {
        loop {
            match phase.load(Ordering::SeqCst) {
                VALIDATING => return true,
                DONE => return false,
                _ => tokio::task::yield_now().await,
            }
        }
    });
    validation.await.expect("the validation ends");
    assert!(observer.await.expect("the observer ends"));
}
