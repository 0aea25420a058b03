use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Told;
use prost::Message as _;

use super::context::SpanContext;
use super::protobuf;
use super::span::{Attributes, Span, SpanKind};

#[test]
fn what_is_written_is_what_the_protocol_reads() {
    let mut resource = Attributes::default();
    resource.text("service.name", "haft");
    let mut attributes = Attributes::default();
    attributes.text("text", "päß");
    attributes.count("count", u64::MAX);
    attributes.number("number", -0.5);
    attributes.texts("texts", vec!["a".into(), String::new()]);
    attributes.text("long", "x".repeat(100_000));
    let root = SpanContext::root();
    let span = Span {
        context: root.child(),
        parent: Some(root.span_id),
        name: "chat model".into(),
        kind: SpanKind::Client,
        start: 1_700_000_000.25,
        end: 1_700_000_001.5,
        attributes,
        is_error: true,
    };
    let first = Span {
        context: root,
        parent: None,
        is_error: false,
        attributes: Attributes::default(),
        ..span.clone()
    };
    let body = protobuf::export(&resource, &[span.clone(), first]);
    let read = ExportTraceServiceRequest::decode(&*body).unwrap();
    assert_eq!(
        read.encode_to_vec(),
        body,
        "nothing is unknown, nothing twice"
    );
    let told = &read.resource_spans[0];
    let name = &told.resource.as_ref().unwrap().attributes[0];
    assert_eq!(name.key, "service.name");
    let scope = &told.scope_spans[0];
    assert_eq!(scope.scope.as_ref().unwrap().name, "haft");
    let (one, other) = (&scope.spans[0], &scope.spans[1]);
    assert_eq!(one.trace_id, root.trace_id);
    assert_eq!(one.span_id, span.context.span_id);
    assert_eq!(one.parent_span_id, root.span_id);
    assert!(other.parent_span_id.is_empty());
    assert_eq!((one.name.as_str(), one.kind), ("chat model", 3));
    assert_eq!(one.start_time_unix_nano, 1_700_000_000_250_000_000);
    assert_eq!(one.end_time_unix_nano, 1_700_000_001_500_000_000);
    assert_eq!(one.status.as_ref().unwrap().code, 2);
    assert!(other.status.is_none());
    assert_eq!(one.flags, 1);
    let value = |at: usize| one.attributes[at].value.clone().unwrap().value.unwrap();
    assert_eq!(value(0), Told::StringValue("päß".into()));
    assert_eq!(value(1), Told::IntValue(i64::MAX));
    assert_eq!(value(2), Told::DoubleValue(-0.5));
    let Told::ArrayValue(texts) = value(3) else {
        panic!("{:?}", value(3));
    };
    assert_eq!(texts.values.len(), 2);
    assert!(matches!(value(4), Told::StringValue(text) if text.len() == 100_000));
}
