//! Figures: every server gets its turn in every round, so that whatever else the machine does hits all
//! alike.

use std::time::Duration;

use anyhow::{Context as _, Result};

use crate::case::Kind;
use crate::generator::Load;
use crate::process::{memory, processor_time};
use crate::target::Target;

/// Who is measured, and for how long.
pub(crate) struct Plan {
    pub(crate) targets: Vec<Target>,
    pub(crate) rounds: usize,
    pub(crate) turn: Duration,
}

/// What one server does in one case.
pub(crate) struct Figures {
    pub(crate) target: Target,
    /// Requests per second, the median of the rounds.
    pub(crate) rate: f64,
    pub(crate) median: Duration,
    /// Of a hundred answers one takes longer.
    pub(crate) slow: Duration,
    /// Processor time of the server per request, the median of the rounds.
    pub(crate) cost: Duration,
    /// What it holds afterwards, in bytes.
    pub(crate) memory: u64,
}

#[derive(Default)]
struct Collected {
    rates: Vec<f64>,
    costs: Vec<Duration>,
    latencies: Vec<Duration>,
}

impl Plan {
    /// Measures everybody who takes part.
    pub(crate) async fn measure(&self, kind: Kind, connections: usize) -> Result<Vec<Figures>> {
        let targets = self.targets.iter();
        let targets = targets.filter(|target| target.takes_part(kind, connections));
        let mut measured = Vec::new();
        for target in targets {
            let load = Load::open(target, kind, connections).await;
            let mut load = load.with_context(|| target.name.clone())?;
            // Warm before it counts.
            load.turn(self.turn / 4).await?;
            measured.push((target, load, Collected::default()));
        }
        for _ in 0..self.rounds {
            for (target, load, collected) in &mut measured {
                let process = target.server.process;
                let before = processor_time(process)?;
                let turn = load.turn(self.turn).await;
                let turn = turn.with_context(|| target.name.clone())?;
                let spent = processor_time(process)?.saturating_sub(before);
                let count = u32::try_from(turn.latencies.len())?.max(1);
                collected
                    .rates
                    .push(f64::from(count) / turn.took.as_secs_f64());
                collected.costs.push(spent / count);
                collected.latencies.extend(turn.latencies);
            }
        }
        let figures = measured.into_iter();
        figures
            .map(|(target, _, collected)| collected.figures(target))
            .collect()
    }
}

impl Collected {
    fn figures(mut self, target: &Target) -> Result<Figures> {
        self.rates.sort_by(f64::total_cmp);
        self.costs.sort_unstable();
        self.latencies.sort_unstable();
        Ok(Figures {
            target: target.clone(),
            rate: at(&self.rates, 50).context("nothing was measured")?,
            cost: at(&self.costs, 50).context("nothing was measured")?,
            median: at(&self.latencies, 50).context("nothing was measured")?,
            slow: at(&self.latencies, 99).context("nothing was measured")?,
            memory: memory(target.server.process)?,
        })
    }
}

/// The value that so many of a hundred do not exceed.
fn at<T: Copy>(sorted: &[T], hundredth: usize) -> Option<T> {
    let last = sorted.len().checked_sub(1)?;
    sorted.get(last * hundredth / 100).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_occurred() {
        let values: Vec<u32> = (0..=100).collect();
        assert_eq!(at(&values, 50), Some(50));
        assert_eq!(at(&values, 99), Some(99));
        assert_eq!(at(&[7], 99), Some(7));
        assert_eq!(at::<u32>(&[], 50), None);
    }
}
