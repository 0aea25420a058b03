//! A model in this process that calls a tool in every turn.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use haft::engine::Run;
use haft::{
    Binding, BoxFuture, Capabilities, Catalog, Item, LoopOptions, Model, ModelError, ModelRequest,
    ModelResponse, ModelStream, ToolDefinition, dynamic_tool,
};
use serde_json::json;

use crate::{cpu_time, median, microseconds, runtime};

/// Calls a tool so many times, then says so; notes the CPU time at each request.
struct Caller {
    turns: usize,
    requests: Arc<Mutex<Vec<Duration>>>,
}

impl Model for Caller {
    fn name(&self) -> &'static str {
        "caller"
    }

    fn provider(&self) -> &'static str {
        "bench"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    fn send(&self, _: ModelRequest) -> BoxFuture<'_, Result<ModelStream, ModelError>> {
        let mut requests = self.requests.lock().unwrap();
        requests.push(cpu_time());
        let turn = requests.len();
        let response = if turn > self.turns {
            ModelResponse::text("done")
        } else {
            let arguments = format!(r#"{{"city":"Oslo","days":{turn}}}"#);
            ModelResponse::of([Item::function_call("", "tool_0", arguments)])
        };
        Box::pin(async move { Ok(response.into_stream()) })
    }
}

fn binding(tools: usize) -> Binding {
    let catalog = Catalog::new();
    for n in 0..tools {
        let definition = ToolDefinition::builder(format!("tool_{n}"))
            .description("Get the weather for a city, for some days.")
            .parameters(json!({
                "type": "object",
                "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
                "required": ["city", "days"]
            }))
            .build()
            .unwrap();
        let tool = dynamic_tool(definition, |_, _| async { Ok("4 degrees, light rain") });
        catalog.register(tool).unwrap();
    }
    catalog.snapshot().bind().build().unwrap()
}

/// The CPU time of each turn of one run.
fn turns(turns: usize, binding: &Binding) -> Vec<Duration> {
    let requests = Arc::<Mutex<Vec<Duration>>>::default();
    let model = Caller {
        turns,
        requests: Arc::clone(&requests),
    };
    let options = LoopOptions {
        max_rounds: u32::MAX,
        ..LoopOptions::default()
    };
    let run = Run::new(model)
        .binding(binding.clone())
        .options(options)
        .user("What is the weather?");
    let outcome = runtime().block_on(async { run.await.unwrap() });
    assert!(outcome.is_completed(), "{:?}", outcome.end);
    let requests = requests.lock().unwrap();
    requests
        .windows(2)
        .map(|pair| pair[1].saturating_sub(pair[0]))
        .collect()
}

pub(crate) fn print(quick: bool) {
    println!(
        "in process, CPU per turn in µs (median of all turns; of the last ten over turns 5–14)"
    );
    println!(
        "{:>8} {:>8} {:>10} {:>10}",
        "turns", "tools", "median", "growth"
    );
    for tools in [1, 50, 500] {
        let binding = binding(tools);
        for count in [10, 100, 500] {
            let repeats = if quick { 1 } else { 2000 / count };
            let runs: Vec<_> = (0..repeats).map(|_| turns(count, &binding)).collect();
            let all = median(runs.concat());
            let at = |from: usize| {
                let some = runs.iter().flat_map(|run| run.iter().skip(from).take(10));
                microseconds(median(some.copied().collect()))
            };
            let growth = (count > 10).then(|| at(count - 10) / at(5));
            // One run alone is too noisy to judge by.
            assert!(
                quick || growth.is_none_or(|growth| growth <= 1.5),
                "a turn costs more the later it comes: {growth:?}"
            );
            let growth = growth.map_or_else(|| "–".into(), |growth| format!("{growth:.2}"));
            println!(
                "{count:>8} {tools:>8} {:>10.1} {growth:>10}",
                microseconds(all)
            );
        }
    }
}
