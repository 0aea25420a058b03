//! Methods of models, agents and their builders (§8), and `run` of pipelines.

use std::sync::Arc;

use super::Context;
use super::methods::argument;
use crate::load::{CallSite, Method};
use crate::value::{Builder, RefKind, Reference, Value};
use crate::vm::{Effect, Fault, ModelCall, Outcome, Reply};

pub(super) fn call(
    context: &mut Context<'_>,
    target: &Arc<Reference>,
    builder: Option<&Arc<Builder>>,
    site: &CallSite,
    method: Method,
    arguments: &[Value],
) -> Outcome<Option<Reply>> {
    if matches!(method, Method::Execute | Method::ExecuteWithSchema) {
        if method == Method::ExecuteWithSchema && site.schema.is_none() {
            return Err(Fault::type_error(
                "execute_with_schema needs a schema: `execute_with_schema<S>(prompt)`",
            ));
        }
        let prompt = argument(arguments, 0, &site.name)?;
        let prompt = context.meter().shown(prompt)?;
        let call = ModelCall {
            model: target.name.clone(),
            method: site.name.clone(),
            prompt: prompt.into(),
            schema: site
                .schema
                .clone()
                .filter(|_| method == Method::ExecuteWithSchema),
            builder: builder.cloned(),
        };
        return Ok(Some(Reply::Effect(match target.kind {
            RefKind::Agent => Effect::Agent(call),
            _ => Effect::Model(call),
        })));
    }
    let mut changed = match builder {
        Some(builder) => Builder::clone(builder),
        None => Builder::new(target.clone()),
    };
    // All of it is copied.
    context.meter().work(changed.tools.len())?;
    context.meter().charge(96 + 8 * changed.tools.len())?;
    match method {
        Method::WithMemory => {
            let memory = match argument(arguments, 0, "with_memory")? {
                Value::Ref(memory) if memory.kind == RefKind::Memory => memory.name.clone(),
                other => return Err(super::wrong("with_memory", "a memory", other)),
            };
            let append = arguments.get(1).is_none_or(Value::is_truthy);
            changed.memory = Some((memory, append));
        }
        Method::WithTools => {
            let tools = super::array_of("with_tools", argument(arguments, 0, "with_tools")?)?;
            for tool in tools {
                match tool {
                    Value::Ref(tool) if matches!(tool.kind, RefKind::Tool | RefKind::Mcp) => {
                        changed.tools.push(tool.clone());
                    }
                    other => {
                        return Err(Fault::type_error(format!(
                            "with_tools expects tools or MCP servers, got {}",
                            other.type_name()
                        )));
                    }
                }
            }
        }
        Method::WithoutTools => changed.without_tools = true,
        Method::WithContext if target.kind == RefKind::Agent => {
            let value = argument(arguments, 0, "with_context")?;
            // Whoever sends it has no meter.
            context.meter().extent(value)?;
            changed.context = Some(value.clone());
        }
        _ => return Ok(None),
    }
    Ok(Some(Value::Builder(Arc::new(changed)).into()))
}

pub(super) fn run_pipeline(
    context: &mut Context<'_>,
    name: &Arc<str>,
    method: Method,
    arguments: &mut [Value],
) -> Option<Reply> {
    (method == Method::Run).then(|| {
        let input = arguments.first_mut().map(Value::take).unwrap_or_default();
        let program = context.machine.program.clone();
        Reply::Pipeline(crate::vm::PipelineRun::new(program, name.clone(), input))
    })
}
