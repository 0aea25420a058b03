//! What holds for every schema and every call, with repair on.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use haft_core::{FinishReason, ValidatorFactory};
use haft_hydrate::{
    AuditedRepairer, CheckedArguments, Contract, JsonSchemaFactory, Root, check_arguments,
};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

fn check(schema: &Value, text: &str) -> CheckedArguments {
    let contract = Contract {
        schema,
        validator: &*JsonSchemaFactory.compile(schema).unwrap(),
        factory: &JsonSchemaFactory,
        tool: "the_tool",
        root: Root::Object,
    };
    check_arguments(
        &text.into(),
        FinishReason::Normal,
        &contract,
        Some(&AuditedRepairer),
    )
}

/// A schema of one property and a value that it admits.
fn typed_value() -> impl Strategy<Value = (Value, Value)> {
    let word = "[a-zA-Zäöü '\"\\\\{}\\[\\],:\n]{0,12}";
    prop_oneof![
        word.prop_map(|text| (json!({"type": "string"}), json!(text))),
        any::<i64>().prop_map(|n| (json!({"type": "integer"}), json!(n))),
        any::<bool>().prop_map(|b| (json!({"type": "boolean"}), json!(b))),
        (-1e9..1e9).prop_map(|n: f64| (json!({"type": "number"}), json!(n))),
        prop::collection::vec(word, 0..4).prop_map(|list| {
            (
                json!({"type": "array", "items": {"type": "string"}}),
                json!(list),
            )
        }),
        Just((json!({"enum": ["Red", "green"]}), json!("green"))),
    ]
}

/// An object schema, arguments that it admits, and which of them are required.
fn call() -> impl Strategy<Value = (Value, Map<String, Value>, Vec<String>)> {
    let member = ("[a-z_]{1,8}", typed_value(), any::<bool>());
    prop::collection::vec(member, 1..6).prop_map(|members| {
        let mut properties = Map::new();
        let mut arguments = Map::new();
        let mut required = Vec::new();
        for (name, (schema, value), is_required) in members {
            if properties.insert(name.clone(), schema).is_none() && is_required {
                required.push(name.clone());
            }
            arguments.insert(name, value);
        }
        let schema = json!({
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false
        });
        (schema, arguments, required)
    })
}

proptest! {
    #[test]
    fn a_valid_call_is_accepted_untouched((schema, arguments, _) in call()) {
        let value = Value::Object(arguments);
        for text in [value.to_string(), format!("{value:#}")] {
            let checked = check(&schema, &text);
            prop_assert_eq!(checked.validated.as_ref(), Some(&value));
            prop_assert!(checked.repair.is_none());
        }
    }

    #[test]
    fn without_a_required_member_nothing_is_accepted(
        (schema, arguments, required) in call(),
        damage in 0..4_usize,
    ) {
        for name in required {
            let mut less = arguments.clone();
            less.remove(&name);
            let value = Value::Object(less);
            let text = [
                value.to_string(),
                format!("Sure: {value}"),
                json!({"arguments": value}).to_string(),
                json!([value]).to_string(),
            ][damage].clone();
            prop_assert!(check(&schema, &text).validated.is_none(), "{text}");
        }
    }

    #[test]
    fn what_is_accepted_is_valid_and_accepted_again_untouched(
        (schema, arguments, _) in call(),
        cut in any::<prop::sample::Index>(),
        noise in "[{}\\[\\]\"',:a1 \n]{0,3}",
    ) {
        let mut text = Value::Object(arguments).to_string();
        let boundaries: Vec<_> = (0..=text.len()).filter(|at| text.is_char_boundary(*at)).collect();
        text.insert_str(*cut.get(&boundaries), &noise);
        let checked = check(&schema, &text);
        if let Some(value) = checked.validated {
            prop_assert!(JsonSchemaFactory.compile(&schema).unwrap().is_valid(&value));
            let again = check(&schema, &value.to_string());
            prop_assert_eq!(again.validated, Some(value));
            prop_assert!(again.repair.is_none());
        }
    }
}
