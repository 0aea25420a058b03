//! Models that break off: whoever was told of a beginning is told of the end.

use haft_models::ScriptedModel;
use haft_models::scripted::{Fault, Pieces, Script, say};
use serde_json::json;

use crate::support::{Setup, kinds};

/// How often each is tried: what is wrong here would be wrong only now and then.
const TRIES: usize = 20;

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_breaks_off_anywhere_ends_with_its_failure() {
    for events in 1..6 {
        let step = say("some words that never end").pieces(Pieces::Each(5));
        let step = step.fault(Fault::CutAfterEvents(events)).forever();
        let model = ScriptedModel::new(Script::from([step]));
        let mut setup = Setup::of(model);
        setup.options.loop_options.retry.attempts = 1;
        let served = setup.serve().await;
        for _ in 0..TRIES {
            let told = served.stream(json!({"input": "hi"})).await;
            let kinds = kinds(&told);
            assert_eq!(kinds[..2], ["response.created", "response.in_progress"]);
            let end = &kinds[kinds.len() - 2..];
            assert_eq!(end, ["error", "response.failed"], "after {events} events");
            let failed = &told[told.len() - 1]["response"];
            assert_eq!(failed["status"], "failed");
            let id = failed["id"].as_str().unwrap();
            let stored = served.get(&format!("/responses/{id}")).await.ok();
            assert_eq!(stored["error"], failed["error"]);
        }
    }
}
