use super::*;

fn read(status: u16, body: &str) -> (ModelErrorKind, String, Option<String>) {
    let error = of_body(status, body.as_bytes());
    assert_eq!(error.status, Some(status));
    (error.kind, error.message, error.code)
}

#[test]
fn the_providers_words_are_found_in_every_shape() {
    for body in [
        r#"{"error":{"message":"no luck","type":"odd"}}"#,
        r#"{"error":"no luck"}"#,
        r#"{"message":"no luck"}"#,
        r#"{"detail":"no luck"}"#,
        r#"{"detail":[{"loc":["body"],"msg":"no luck"}]}"#,
        r#"{"object":"error","message":"no luck","code":400}"#,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"no luck"}}"#,
        r#"[{"error":{"code":400,"message":"no luck","status":"INVALID_ARGUMENT"}}]"#,
        r#""no luck""#,
        "no\n  luck\n",
        "<!DOCTYPE html><html><head><style>p { color: red }</style></head><body>\n<p>no</p> <b>luck</b></body>",
    ] {
        let (kind, message, _) = read(400, body);
        assert_eq!(
            (kind, message.as_str()),
            (ModelErrorKind::InvalidRequest, "no luck"),
            "{body}"
        );
    }
    assert_eq!(read(400, "").1, "it gives no reason");
}

#[test]
fn the_status_gives_the_kind() {
    for (status, kind) in [
        (400, ModelErrorKind::InvalidRequest),
        (401, ModelErrorKind::Unauthorized),
        (402, ModelErrorKind::QuotaExhausted),
        (403, ModelErrorKind::Unauthorized),
        (404, ModelErrorKind::NotFound),
        (408, ModelErrorKind::Timeout),
        (413, ModelErrorKind::ContextLength),
        (422, ModelErrorKind::InvalidRequest),
        (429, ModelErrorKind::RateLimit),
        (500, ModelErrorKind::ServerError),
        (503, ModelErrorKind::ServerError),
        (504, ModelErrorKind::Timeout),
        (529, ModelErrorKind::ServerError),
    ] {
        assert_eq!(read(status, "{}").0, kind, "{status}");
    }
}

#[test]
fn codes_and_words_say_more_than_the_status() {
    for (status, body, kind) in [
        (
            400,
            r#"{"error":{"message":"x","type":"invalid_request_error","code":"context_length_exceeded"}}"#,
            ModelErrorKind::ContextLength,
        ),
        (
            400,
            r#"{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error"}}"#,
            ModelErrorKind::ContextLength,
        ),
        (
            400,
            r#"{"object":"error","message":"This model's maximum context length is 4096 tokens.","type":"BadRequestError","code":400}"#,
            ModelErrorKind::ContextLength,
        ),
        (
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}"#,
            ModelErrorKind::ContextLength,
        ),
        (
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the API."}}"#,
            ModelErrorKind::QuotaExhausted,
        ),
        (
            429,
            r#"{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}"#,
            ModelErrorKind::QuotaExhausted,
        ),
        (
            400,
            r#"{"error":{"message":"filtered","code":"content_filter"}}"#,
            ModelErrorKind::PromptRefused,
        ),
        (
            400,
            r#"{"error":{"message":"no such model","code":"model_not_found"}}"#,
            ModelErrorKind::NotFound,
        ),
        (
            500,
            r#"{"error":"the maximum context length could not be read"}"#,
            ModelErrorKind::ServerError,
        ),
    ] {
        assert_eq!(read(status, body).0, kind, "{body}");
    }
}

#[test]
fn an_error_in_a_stream_has_the_status_that_it_names() {
    let error = in_stream(&serde_json::json!({"error": {"message": "slow down", "code": 429}}));
    assert_eq!(
        (error.kind, error.status),
        (ModelErrorKind::RateLimit, Some(429))
    );
    let error = in_stream(&serde_json::json!({"type": "error",
        "error": {"type": "overloaded_error", "message": "Overloaded"}}));
    assert_eq!(
        (error.kind, error.status),
        (ModelErrorKind::ServerError, None)
    );
    let error = in_stream(&serde_json::json!({"error": "model runner has stopped"}));
    assert_eq!(error.kind, ModelErrorKind::ServerError);
}

#[test]
fn a_key_goes_before_the_text_is_cut() {
    let redactor = Redactor::new(["sk-hunter2-hunter2".into()]);
    let long = format!("{}sk-hunter2-hunter2", "x".repeat(MAX_SHOWN_CHARS - 5));
    let error = finished(of_body(401, long.as_bytes()), &redactor);
    assert!(!error.message.contains("sk-h"), "{}", error.message);
    assert!(error.message.chars().count() <= MAX_SHOWN_CHARS + 1);
}
