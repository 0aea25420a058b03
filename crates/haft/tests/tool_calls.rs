//! What `#[haft::tool]` promises about calls.

#![deny(warnings)]

use std::fmt::Display;

use haft::{Run, Tool, ToolContext, ToolError, ToolOutput, Value, json};

/// Runs a call as a catalogue would: through the object, with JSON arguments.
async fn run<T: Tool>(arguments: Value) -> Result<ToolOutput, ToolError> {
    run_in::<T>(arguments, &ToolContext::default()).await
}

async fn run_in<T: Tool>(arguments: Value, context: &ToolContext) -> Result<ToolOutput, ToolError> {
    let object = T::into_object()?;
    object.instantiate(&arguments)?.run(context).await
}

#[tokio::test]
async fn a_call_has_typed_arguments_and_defaults() {
    /// Repeat a word.
    #[haft::tool]
    async fn repeat(word: String, #[tool(default = 2)] times: usize, end: Option<char>) -> String {
        let mut text = std::future::ready(word.repeat(times)).await;
        text.extend(end);
        text
    }
    let text = |arguments| async { run::<repeat>(arguments).await.unwrap().text_for_model() };
    assert_eq!(text(json!({"word": "ho"})).await, "hoho");
    assert_eq!(
        text(json!({"word": "ho", "times": 3, "end": "!"})).await,
        "hohoho!"
    );
    assert_eq!(text(json!({"word": "ho", "end": null})).await, "hoho");
}

#[tokio::test]
async fn the_function_stays_callable_with_its_own_parameters() {
    /// Add.
    #[haft::tool]
    fn add(mut a: i64, ctx: &ToolContext, b: i64) -> i64 {
        assert_eq!(ctx.call_id(), "");
        a += b;
        a
    }
    /// Add later.
    #[haft::tool]
    async fn add_later(a: i64, b: i64) -> i64 {
        std::future::ready(a + b).await
    }
    assert_eq!(add::call(1, &ToolContext::default(), 2), 3);
    assert_eq!(add_later::call(1, 2).await, 3);
}

#[tokio::test]
async fn state_reaches_a_function_through_the_context() {
    struct Greeting(&'static str);
    /// Greet.
    #[haft::tool]
    fn greet(name: String, ctx: &ToolContext) -> Result<String, ToolError> {
        Ok(format!("{} {name}", ctx.state::<Greeting>()?.0))
    }
    let context = ToolContext::builder().state(Greeting("hello")).build();
    let output = run_in::<greet>(json!({"name": "Ada"}), &context).await;
    assert_eq!(output.unwrap().text_for_model(), "hello Ada");
    let missing = run::<greet>(json!({"name": "Ada"})).await.unwrap_err();
    assert!(missing.message().contains("no state of type"));
}

#[tokio::test]
async fn a_struct_tool_runs_as_the_instance_of_its_arguments() {
    /// Multiply.
    #[haft::tool]
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Multiply {
        a: i64,
        b: i64,
    }
    impl Run for Multiply {
        type Output = i64;
        async fn run(self, _: &ToolContext) -> Result<i64, ToolError> {
            self.a
                .checked_mul(self.b)
                .ok_or_else(|| ToolError::new("too large"))
        }
    }
    let output = run::<Multiply>(json!({"a": 6, "b": 7})).await;
    assert_eq!(output.unwrap().as_value(), Some(&json!(42)));
    let error = run::<Multiply>(json!({"a": i64::MAX, "b": 2}))
        .await
        .unwrap_err();
    assert_eq!(error.message(), "too large");
}

#[tokio::test]
async fn a_unit_struct_runs_without_arguments() {
    /// Ping.
    #[haft::tool]
    struct Ping;
    impl Run for Ping {
        type Output = &'static str;
        async fn run(self, _: &ToolContext) -> Result<&'static str, ToolError> {
            Ok("pong")
        }
    }
    assert_eq!(
        run::<Ping>(json!({})).await.unwrap().text_for_model(),
        "pong"
    );
}

#[tokio::test]
async fn a_function_may_return_a_value_or_nothing_or_an_output() {
    #[derive(serde::Serialize)]
    struct Point {
        x: i8,
    }
    /// Value.
    #[haft::tool]
    fn value() -> Point {
        Point { x: 1 }
    }
    /// Nothing.
    #[haft::tool]
    fn nothing() {}
    /// Output.
    #[haft::tool]
    fn output() -> ToolOutput {
        ToolOutput::value(json!(7)).with_message("seven:")
    }
    /// An opaque value.
    #[haft::tool]
    fn opaque() -> impl serde::Serialize {
        [1, 2]
    }
    /// An option.
    #[haft::tool]
    fn option() -> Option<u8> {
        None
    }
    assert_eq!(
        run::<value>(json!({})).await.unwrap().as_value(),
        Some(&json!({"x": 1}))
    );
    assert_eq!(run::<nothing>(json!({})).await, Ok(ToolOutput::empty()));
    assert_eq!(run::<output>(json!({})).await, Ok(output::call()));
    assert_eq!(
        run::<opaque>(json!({})).await.unwrap().text_for_model(),
        "[1,2]"
    );
    assert_eq!(
        run::<option>(json!({})).await.unwrap().text_for_model(),
        "null"
    );
}

#[tokio::test]
async fn a_result_is_recognised_by_its_type_and_not_by_its_name() {
    type Fallible<T> = Result<T, std::num::ParseIntError>;
    type Outcome = Result<(), String>;
    /// Parse.
    #[haft::tool]
    fn parse(text: String) -> Fallible<i64> {
        text.parse()
    }
    /// Check.
    #[haft::tool]
    fn check(good: bool) -> Outcome {
        if good { Ok(()) } else { Err("not good".into()) }
    }
    /// Report.
    #[haft::tool]
    async fn report(good: bool) -> Result<ToolOutput, &'static str> {
        std::future::ready(good.then(|| ToolOutput::text("fine")).ok_or("not fine")).await
    }
    assert_eq!(
        run::<parse>(json!({"text": "7"})).await.unwrap().as_value(),
        Some(&json!(7))
    );
    assert_eq!(
        run::<parse>(json!({"text": "x"}))
            .await
            .unwrap_err()
            .message(),
        "invalid digit found in string"
    );
    assert_eq!(
        run::<check>(json!({"good": true})).await,
        Ok(ToolOutput::empty())
    );
    assert_eq!(
        run::<check>(json!({"good": false}))
            .await
            .unwrap_err()
            .message(),
        "not good"
    );
    assert_eq!(
        run::<report>(json!({"good": true})).await,
        Ok(ToolOutput::text("fine"))
    );
    assert_eq!(
        run::<report>(json!({"good": false}))
            .await
            .unwrap_err()
            .message(),
        "not fine"
    );
}

#[tokio::test]
async fn an_error_is_shown_with_its_causes() {
    struct Chain;
    impl Display for Chain {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str(if f.alternate() {
                "above: below"
            } else {
                "above"
            })
        }
    }
    /// Fail.
    #[haft::tool]
    fn fail() -> Result<u8, Chain> {
        Err(Chain)
    }
    assert_eq!(
        run::<fail>(json!({})).await.unwrap_err().message(),
        "above: below"
    );
}

#[tokio::test]
async fn a_result_may_borrow_from_the_context() {
    /// Whose.
    #[haft::tool]
    fn whose(ctx: &ToolContext) -> Result<&str, ToolError> {
        Ok(ctx.state::<String>()?)
    }
    let context = ToolContext::builder().state(String::from("Ada")).build();
    let output = run_in::<whose>(json!({}), &context).await.unwrap();
    assert_eq!(output.text_for_model(), "Ada");
}

#[tokio::test]
async fn a_type_may_say_itself_what_comes_out() {
    struct Picture;
    impl haft::IntoToolOutput for Picture {
        fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
            Ok(ToolOutput::text("a picture"))
        }
    }
    /// Draw.
    #[haft::tool]
    fn draw(inked: bool) -> Result<Picture, String> {
        inked.then_some(Picture).ok_or("no ink".into())
    }
    assert_eq!(
        run::<draw>(json!({"inked": true})).await,
        Ok(ToolOutput::text("a picture"))
    );
}

#[tokio::test]
async fn a_tool_without_schema_gets_the_arguments_as_they_are() {
    /// Echo.
    #[haft::tool(no_schema = "read-only", read_only)]
    fn echo(ctx: &ToolContext, anything: haft::Value) -> Value {
        let _ = ctx;
        anything
    }
    let arguments = json!({"a": [1, {"b": null}]});
    assert_eq!(
        run::<echo>(arguments.clone()).await.unwrap().as_value(),
        Some(&arguments)
    );
}

#[tokio::test]
async fn arguments_that_do_not_fit_the_type_name_the_place() {
    /// Sum.
    #[haft::tool]
    fn sum(numbers: Vec<i64>) -> i64 {
        numbers.iter().sum()
    }
    let object = sum::into_object().unwrap();
    let error = object
        .instantiate(&json!({"numbers": [1, "two"]}))
        .unwrap_err();
    assert_eq!(error.path, "numbers[1]");
}

#[tokio::test]
async fn the_call_can_be_sent_to_another_thread() {
    fn assert_send<T: Send>(value: T) -> T {
        value
    }
    /// Wait.
    #[haft::tool]
    async fn wait(text: String, ctx: &ToolContext) -> Result<String, Box<dyn std::error::Error>> {
        std::future::ready(()).await;
        let _ = ctx;
        Ok(text)
    }
    let output = assert_send(run::<wait>(json!({"text": "sent"}))).await;
    assert_eq!(output.unwrap().text_for_model(), "sent");
}
