//! From all entries to pools: who stands in for whom.

use std::sync::Arc;

use super::{Adapter, ConfigError, Lookup, ModelConfig};
use crate::Backend;
use crate::http::Http;
use crate::pool::{BreakerSettings, Member, Pool};

/// Makes a pool of every entry: its own backend first, then those that stand in for it, and for
/// those. A backend has one breaker, in however many pools it is.
///
/// ```
/// use haft_models::http::Http;
/// use haft_models::{Adapter, ModelConfig, pools};
/// let mut near = ModelConfig::new("near", Adapter::Ollama);
/// near.failover = vec!["far".into()];
/// let far = ModelConfig::new("far", Adapter::Offline);
/// let pools = pools(&[near, far], &|_| None, &Http::default())?;
/// assert_eq!([pools[0].members().len(), pools[1].members().len()], [2, 1]);
/// # Ok::<(), haft_models::ConfigError>(())
/// ```
pub fn pools(
    configs: &[ModelConfig],
    variables: Lookup<'_>,
    http: &Http,
) -> Result<Vec<Pool>, ConfigError> {
    let members = configs.iter().map(|config| {
        let backend = Backend::from_config_with(config, variables, http)?;
        let mut member = Member::new(config.name.as_str(), backend).breaker(config.breaker());
        if let Some(health) = config.health {
            member = member.health(health);
        }
        Ok(Arc::new(member))
    });
    let members = members.collect::<Result<Vec<_>, ConfigError>>()?;
    let orders = (0..configs.len()).map(|at| order(configs, at));
    orders
        .map(|order| {
            let mut order = order?.into_iter().map(|at| Arc::clone(&members[at]));
            // An entry is always the first of its own order.
            let first = order.next();
            Ok(first.map(|first| Pool::new(first, order)))
        })
        .filter_map(Result::transpose)
        .collect()
}

/// An entry and all that stand in for it, each once, those of the first before the second.
fn order(configs: &[ModelConfig], start: usize) -> Result<Vec<usize>, ConfigError> {
    let mut order = Vec::new();
    visit(configs, start, &mut Vec::new(), &mut order)?;
    Ok(order)
}

fn visit(
    configs: &[ModelConfig],
    at: usize,
    way: &mut Vec<usize>,
    order: &mut Vec<usize>,
) -> Result<(), ConfigError> {
    let config = &configs[at];
    if !order.contains(&at) {
        order.push(at);
    }
    way.push(at);
    for name in &config.failover {
        let is_called = |it: &ModelConfig| it.name == *name || it.aliases.contains(name);
        let next = configs.iter().position(is_called).ok_or_else(|| {
            let reason = format!("there is no model `{}`", haft_core::cut(name));
            config.invalid("failover", reason)
        })?;
        if let Some(from) = way.iter().position(|it| *it == next) {
            let circle = way[from..].iter().chain([&next]);
            let circle: Vec<_> = circle
                .map(|at| format!("`{}`", configs[*at].name))
                .collect();
            let reason = match circle.as_slice() {
                [_, _] => String::from("a model cannot stand in for itself"),
                circle => format!("they stand in for each other: {}", circle.join(", then ")),
            };
            return Err(config.invalid("failover", reason));
        }
        visit(configs, next, way, order)?;
    }
    way.pop();
    Ok(())
}

impl ModelConfig {
    /// When the entry is left alone.
    fn breaker(&self) -> BreakerSettings {
        let has_network = !matches!(self.adapter, Adapter::Scripted | Adapter::Offline);
        match self.breaker {
            Some(settings) => settings,
            None if has_network => BreakerSettings::default(),
            None => BreakerSettings::off(),
        }
    }
}

#[cfg(test)]
#[path = "pools_tests.rs"]
mod tests;
