//! Closed unless opened: repaired, unvalidated and destructive calls are gated by policy.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "helpers of tests fail like tests"
)]

use haft_core::{
    Access, Annotations, CallSource, ErrorCode, HydrationError, HydrationResult, Namespace,
    NoSchemaMode, OnRepaired, Policy, PolicyCall, Provenance, RawArguments, RepairEvent,
    RepairKind, RepairRecord, SessionState, Stage, ToolDefinition, ToolKind, ToolName, Trust,
    TrustPolicy, TrustRules, Verdict,
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

fn result(repairs: &[RepairKind], unvalidated: bool) -> HydrationResult {
    let event = |kind: &RepairKind| RepairEvent {
        kind: *kind,
        path: String::new(),
        offset: None,
        before: String::new(),
        after: String::new(),
    };
    let provenance = Provenance {
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
    };
    HydrationResult {
        tool: None,
        errors: Vec::new(),
        provenance,
    }
}

fn needs_approval(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::NeedApproval(_))
}

#[test]
fn a_call_validated_as_written_runs() {
    let verdict = TrustPolicy::default().check(
        &result(&[], false),
        &tool(Annotations::default(), ToolKind::Internal),
    );
    assert_eq!(verdict, Verdict::Allow(Access::Full));
}

#[test]
fn a_repaired_call_needs_approval_unless_lossless_and_read_only() {
    let policy = TrustPolicy::default();
    let lossless = result(&[RepairKind::TrailingComma], false);
    let coerced = result(
        &[RepairKind::TrailingComma, RepairKind::ParsedLiteral],
        false,
    );
    let reader_here = tool(reader(), ToolKind::Internal);
    let writer = tool(Annotations::default(), ToolKind::Internal);
    assert_eq!(
        policy.check(&lossless, &reader_here),
        Verdict::Allow(Access::Full)
    );
    assert!(needs_approval(&policy.check(&coerced, &reader_here)));
    assert!(needs_approval(&policy.check(&lossless, &writer)));
}

#[test]
fn the_hint_of_an_mcp_server_does_not_open_the_gate() {
    let lossless = result(&[RepairKind::TrailingComma], false);
    let foreign = tool(reader(), ToolKind::Mcp);
    assert!(needs_approval(
        &TrustPolicy::default().check(&lossless, &foreign)
    ));
    let trusting = TrustPolicy {
        trust_mcp_hints: true,
        ..TrustPolicy::default()
    };
    assert_eq!(
        trusting.check(&lossless, &foreign),
        Verdict::Allow(Access::Full)
    );
}

#[test]
fn the_operator_may_allow_or_deny_repaired_calls() {
    let coerced = result(&[RepairKind::ParsedLiteral], false);
    let writer = tool(Annotations::default(), ToolKind::Internal);
    let with = |on_repaired| TrustPolicy {
        on_repaired,
        ..TrustPolicy::default()
    };
    assert_eq!(
        with(OnRepaired::Allow).check(&coerced, &writer),
        Verdict::Allow(Access::Full)
    );
    assert!(matches!(
        with(OnRepaired::Deny).check(&coerced, &writer),
        Verdict::Deny(_)
    ));
}

#[test]
fn the_operator_may_decide_about_repaired_calls_of_one_tool() {
    let coerced = result(&[RepairKind::ParsedLiteral], false);
    let verdict = |word: &str| {
        let mut annotations = Annotations::default();
        let word = word.into();
        annotations.extra.insert("x-on-repaired".into(), word);
        TrustPolicy::default().check(&coerced, &tool(annotations, ToolKind::Mcp))
    };
    assert_eq!(verdict("allow"), Verdict::Allow(Access::Full));
    assert!(matches!(verdict("deny"), Verdict::Deny(_)));
    // What is no decision is none.
    assert!(needs_approval(&verdict("whatever")));
}

#[test]
fn the_hint_of_a_server_that_the_operator_trusts_counts() {
    let lossless = result(&[RepairKind::TrailingComma], false);
    let mut trusted = reader();
    trusted.extra.insert("x-mcp-trusted".into(), true.into());
    assert_eq!(
        TrustPolicy::default().check(&lossless, &tool(trusted, ToolKind::Mcp)),
        Verdict::Allow(Access::Full)
    );
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
    let plain = result(&[], false);
    assert_eq!(
        TrustPolicy::default().check(&plain, &destructive),
        Verdict::Allow(Access::Full)
    );
    let careful = TrustPolicy {
        approve_destructive: true,
        ..TrustPolicy::default()
    };
    assert!(needs_approval(&careful.check(&plain, &destructive)));
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
    let unvalidated = result(&[], true);
    let policy = TrustPolicy::default();
    let open = TrustPolicy {
        allow_unvalidated: true,
        ..TrustPolicy::default()
    };
    let check = |policy: TrustPolicy, mode, annotations| {
        policy.check(&unvalidated, &schemaless(mode, annotations))
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

#[test]
fn a_refused_call_never_runs() {
    let mut refused = result(&[], false);
    refused.errors.push(HydrationError {
        stage: Stage::Parse,
        message: "the arguments were cut off".into(),
        detail: ErrorCode::Truncated,
    });
    assert_eq!(refused.trust(), Trust::Rejected);
    let open = TrustPolicy {
        on_repaired: OnRepaired::Allow,
        allow_unvalidated: true,
        ..TrustPolicy::default()
    };
    let verdict = open.check(&refused, &tool(reader(), ToolKind::Internal));
    assert!(matches!(verdict, Verdict::Deny(_)));
}

#[test]
fn a_tool_that_asks_for_approval_gets_it_asked_and_only_the_own_shell_can_be_let_through() {
    let asking = |shell: bool, kind| {
        let mut annotations = Annotations::default();
        annotations
            .extra
            .insert("x-needs-approval".into(), json!(true));
        if shell {
            annotations.extra.insert("x-shell".into(), json!(true));
        }
        tool(annotations, kind)
    };
    let plain = result(&[], false);
    let open = TrustPolicy {
        allow_shell_unasked: true,
        ..TrustPolicy::default()
    };
    let shell = asking(true, ToolKind::Internal);
    assert!(needs_approval(
        &TrustPolicy::default().check(&plain, &shell)
    ));
    assert_eq!(open.check(&plain, &shell), Verdict::Allow(Access::Full));
    for other in [
        asking(false, ToolKind::Internal),
        asking(true, ToolKind::Mcp),
    ] {
        assert!(needs_approval(&open.check(&plain, &other)));
    }
}

#[test]
fn rules_for_a_tool_go_before_those_for_its_namespace() {
    let rules = TrustRules::default()
        .namespace(Namespace::new("files").unwrap(), OnRepaired::Allow)
        .tool(ToolName::new("files__delete").unwrap(), OnRepaired::Deny);
    let coerced = result(&[RepairKind::ParsedLiteral], false);
    let verdict = |name: &str| {
        let definition = ToolDefinition::builder(name)
            .parameters(json!({"type": "object"}))
            .build()
            .unwrap();
        let call = PolicyCall {
            hydration: &coerced,
            definition: &definition,
        };
        Policy::check(&rules, &call, &SessionState::default())
    };
    assert_eq!(verdict("files__write"), Verdict::Allow(Access::Full));
    assert!(matches!(verdict("files__delete"), Verdict::Deny(_)));
    assert!(needs_approval(&verdict("mail__send")));
    assert!(needs_approval(&verdict("files")));
}

#[test]
fn the_strictest_of_two_verdicts_wins_and_reasons_are_kept() {
    let (full, reading) = (
        Verdict::Allow(Access::Full),
        Verdict::Allow(Access::ReadOnly),
    );
    let (ask, deny) = (Verdict::NeedApproval("a".into()), Verdict::Deny("d".into()));
    let ladder = [full, reading, ask.clone(), deny.clone()];
    for (at, weaker) in ladder.iter().enumerate() {
        for stricter in &ladder[at..] {
            assert_eq!(weaker.clone().strictest(stricter.clone()), *stricter);
            assert_eq!(stricter.clone().strictest(weaker.clone()), *stricter);
        }
    }
    let other = Verdict::NeedApproval("b".into());
    let both = Verdict::NeedApproval("a; b".into());
    assert_eq!(ask.strictest(other), both);
    assert_eq!(deny.clone().strictest(Verdict::Deny("e".into())), deny);
}

#[test]
fn recovered_call_of_a_tool_that_changes_something_is_judged_like_a_repaired_one() {
    let mut recovered = result(&[], false);
    recovered.provenance.source = Some(CallSource {
        recovered: true,
        ..CallSource::default()
    });
    let verdict =
        |annotations, kind, policy: TrustPolicy| policy.check(&recovered, &tool(annotations, kind));
    let usual = TrustPolicy::default();
    let idempotent = Annotations {
        idempotent: true,
        destructive: false,
        ..Annotations::default()
    };
    let destructive = Annotations {
        destructive: true,
        ..idempotent.clone()
    };
    for harmless in [reader(), idempotent.clone()] {
        let own = verdict(harmless.clone(), ToolKind::Internal, usual);
        assert_eq!(own, Verdict::Allow(Access::Full));
        let foreign = verdict(harmless, ToolKind::Mcp, usual);
        assert!(
            needs_approval(&foreign),
            "the server's own hints do not count"
        );
    }
    for changing in [Annotations::default(), destructive] {
        assert!(needs_approval(&verdict(
            changing.clone(),
            ToolKind::Internal,
            usual
        )));
        for (on_repaired, is_denied) in [(OnRepaired::Allow, false), (OnRepaired::Deny, true)] {
            let policy = TrustPolicy {
                on_repaired,
                ..usual
            };
            let verdict = verdict(changing.clone(), ToolKind::Internal, policy);
            assert_eq!(
                matches!(verdict, Verdict::Deny(_)),
                is_denied,
                "{verdict:?}"
            );
        }
    }
}
