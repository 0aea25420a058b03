//! Closed unless opened: repaired, unvalidated and destructive calls are gated by policy.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "helpers of tests fail like tests"
)]

use haft_core::{
    Access, Annotations, NoSchemaMode, OnRepaired, Provenance, RawArguments, RepairEvent,
    RepairKind, RepairRecord, Stage, ToolDefinition, ToolKind, TrustPolicy, Verdict,
};
use serde_json::json;

fn tool(annotations: Annotations, kind: ToolKind) -> std::sync::Arc<ToolDefinition> {
    ToolDefinition::builder("t")
        .parameters(json!({"type": "object"}))
        .annotations(annotations)
        .kind(kind)
        .build()
        .unwrap()
}

fn reader() -> Annotations {
    Annotations {
        read_only: true,
        ..Annotations::default()
    }
}

fn record(repairs: &[RepairKind], unvalidated: bool) -> Provenance {
    let event = |kind: &RepairKind| RepairEvent {
        kind: *kind,
        path: String::new(),
        offset: None,
        before: String::new(),
        after: String::new(),
    };
    Provenance {
        provider_tool_id: "t".into(),
        call_id: "call_1".into(),
        tool_name: None,
        definition_fingerprint: None,
        original_raw_args: RawArguments::Text("{}".into()),
        parsed: None,
        validated: None,
        validator: None,
        repaired: !repairs.is_empty(),
        repair: (!repairs.is_empty()).then(|| RepairRecord {
            by: "test".into(),
            stage: Stage::Parse,
            before: String::new(),
            after: None,
            ok: true,
            refusal: None,
            events: repairs.iter().map(event).collect(),
        }),
        unvalidated,
        no_schema_mode: None,
        source: None,
        at: String::new(),
    }
}

fn needs_approval(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::NeedApproval(_))
}

#[test]
fn a_call_validated_as_written_runs() {
    let verdict = TrustPolicy::default().check(
        &tool(Annotations::default(), ToolKind::Internal),
        &record(&[], false),
    );
    assert_eq!(verdict, Verdict::Allow(Access::Full));
}

#[test]
fn a_repaired_call_needs_approval_unless_lossless_and_read_only() {
    let policy = TrustPolicy::default();
    let lossless = record(&[RepairKind::TrailingComma], false);
    let coerced = record(
        &[RepairKind::TrailingComma, RepairKind::ParsedLiteral],
        false,
    );
    let reader_here = tool(reader(), ToolKind::Internal);
    let writer = tool(Annotations::default(), ToolKind::Internal);
    assert_eq!(
        policy.check(&reader_here, &lossless),
        Verdict::Allow(Access::Full)
    );
    assert!(needs_approval(&policy.check(&reader_here, &coerced)));
    assert!(needs_approval(&policy.check(&writer, &lossless)));
}

#[test]
fn the_hint_of_an_mcp_server_does_not_open_the_gate() {
    let lossless = record(&[RepairKind::TrailingComma], false);
    let foreign = tool(reader(), ToolKind::Mcp);
    assert!(needs_approval(
        &TrustPolicy::default().check(&foreign, &lossless)
    ));
    let trusting = TrustPolicy {
        trust_mcp_hints: true,
        ..TrustPolicy::default()
    };
    assert_eq!(
        trusting.check(&foreign, &lossless),
        Verdict::Allow(Access::Full)
    );
}

#[test]
fn the_operator_may_allow_or_deny_repaired_calls() {
    let coerced = record(&[RepairKind::ParsedLiteral], false);
    let writer = tool(Annotations::default(), ToolKind::Internal);
    let with = |on_repaired| TrustPolicy {
        on_repaired,
        ..TrustPolicy::default()
    };
    assert_eq!(
        with(OnRepaired::Allow).check(&writer, &coerced),
        Verdict::Allow(Access::Full)
    );
    assert!(matches!(
        with(OnRepaired::Deny).check(&writer, &coerced),
        Verdict::Deny(_)
    ));
}

#[test]
fn a_destructive_tool_asks_when_told_to() {
    let destructive = tool(
        Annotations {
            destructive: true,
            ..Annotations::default()
        },
        ToolKind::Internal,
    );
    let plain = record(&[], false);
    assert_eq!(
        TrustPolicy::default().check(&destructive, &plain),
        Verdict::Allow(Access::Full)
    );
    let careful = TrustPolicy {
        approve_destructive: true,
        ..TrustPolicy::default()
    };
    assert!(needs_approval(&careful.check(&destructive, &plain)));
}

#[test]
fn a_tool_without_schema_runs_only_as_its_mode_says() {
    let schemaless = |mode, annotations| {
        ToolDefinition::builder("t")
            .no_schema(mode)
            .annotations(annotations)
            .build()
            .unwrap()
    };
    let unvalidated = record(&[], true);
    let policy = TrustPolicy::default();
    let open = TrustPolicy {
        allow_unvalidated: true,
        ..TrustPolicy::default()
    };
    let check = |policy: TrustPolicy, mode, annotations| {
        policy.check(&schemaless(mode, annotations), &unvalidated)
    };
    assert_eq!(
        check(policy, NoSchemaMode::ReadOnly, reader()),
        Verdict::Allow(Access::ReadOnly)
    );
    assert!(needs_approval(&check(
        policy,
        NoSchemaMode::ReadOnly,
        Annotations::default()
    )));
    assert!(needs_approval(&check(
        open,
        NoSchemaMode::HumanApproval,
        reader()
    )));
    assert!(needs_approval(&check(policy, NoSchemaMode::Full, reader())));
    assert_eq!(
        check(open, NoSchemaMode::Full, reader()),
        Verdict::Allow(Access::Full)
    );
}
