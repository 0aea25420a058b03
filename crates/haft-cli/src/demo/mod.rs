//! Calls without a model: calls as models write them, and what haft makes of each.

mod calls;
mod page;

use std::error::Error;

use haft::{
    CallIds, Catalog, HydrationResult, Hydrator, ToolCall, ToolContext, TrustPolicy, Verdict, tools,
};

use self::calls::{CALLS, Call};
use self::page::Page;
use crate::tools::{Notes, convert_temperature, delete_note, find_notes, write_note};

/// What became of one call.
enum Fate {
    /// It was refused; the model reads this.
    Refused(String),
    /// It waits for a person, because of this.
    Held(String),
    /// It ran; the model reads this.
    Ran(String),
    /// It ran and failed; the model reads this.
    Failed(String),
}

/// Takes every call through binding, hydration, gate and execution.
pub(crate) async fn run() -> Result<(), Box<dyn Error>> {
    let catalog = Catalog::new();
    catalog
        .register_all(tools![
            convert_temperature,
            find_notes,
            write_note,
            delete_note
        ])
        .into_result()?;
    let binding = catalog.snapshot().bind().build()?;
    let hydrator = Hydrator::new().with_audited_repair();
    let gate = TrustPolicy {
        approve_destructive: true,
        ..TrustPolicy::default()
    };
    let context = ToolContext::builder().state(Notes::default()).build();
    let mut ids = CallIds::default();

    let mut page = Page::open(&binding)?;
    for call in CALLS {
        let written = ToolCall::new(call.tool, call.arguments()).finished(call.finish);
        let mut result = hydrator.hydrate(&written, &binding, &mut ids);
        let fate = decide(&mut result, gate, &context).await;
        page.call(&call, &result, &fate)?;
    }
    Ok(page.close()?)
}

async fn decide(result: &mut HydrationResult, gate: TrustPolicy, context: &ToolContext) -> Fate {
    let Some(tool) = result.tool.take() else {
        return Fate::Refused(result.text_for_model().unwrap_or_default());
    };
    match gate.check(result, tool.definition()) {
        Verdict::NeedApproval(reason) | Verdict::Deny(reason) => Fate::Held(reason),
        Verdict::Allow(access) => {
            let call = &result.provenance;
            let context = context.for_call(&call.provider_tool_id, &call.call_id, access);
            execute(tool, &context).await
        }
    }
}

async fn execute(tool: Box<dyn haft::HydratedTool>, context: &ToolContext) -> Fate {
    match tool.run(context).await {
        Ok(output) => Fate::Ran(output.text_for_model()),
        Err(error) => Fate::Failed(format!("Tool '{}' failed: {error}", context.tool_name())),
    }
}

impl Call {
    fn arguments(&self) -> String {
        match self.repeat {
            1 => self.written.to_owned(),
            times => self.written.repeat(times),
        }
    }
}
