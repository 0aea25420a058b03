//! Figures as a person reads them.

use std::io::{self, Write as _};
use std::time::Duration;

use anyhow::Result;

use crate::case::Kind;
use crate::measure::Figures;

/// Prints one case: each server with what it adds to the bare backend, and that beside the proxy's.
pub(crate) fn print(kind: Kind, connections: usize, figures: &[Figures]) -> Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "\n{kind}, {connections} connections")?;
    writeln!(
        out,
        "{:>19} {:>10} {:>9} {:>9} {:>9} {:>9} {:>8} {:>7} | {:>6} {:>6} {:>6} {:>6}",
        "",
        "req/s",
        "p50 µs",
        "p99 µs",
        "+p50",
        "+p99",
        "CPU µs",
        "MB",
        "rate",
        "+p50",
        "+p99",
        "CPU"
    )?;
    let bare = figures.iter().find(|figures| figures.target.is_bare());
    let proxy = figures.iter().find(|figures| figures.target.is_proxy());
    for figures in figures {
        write!(
            out,
            "{:>19} {:>10.0} {:>9.0} {:>9.0} ",
            figures.target.name,
            figures.rate,
            microseconds(figures.median),
            microseconds(figures.slow),
        )?;
        let added = added(figures, bare);
        match added {
            Some((median, slow)) => write!(out, "{median:>9.0} {slow:>9.0} ")?,
            None => write!(out, "{:>9} {:>9} ", "", "")?,
        }
        let megabytes = figures.memory >> 20;
        let cost = microseconds(figures.cost);
        write!(out, "{cost:>8.1} {megabytes:>7} | ")?;
        if let (Some(proxy), Some((median, slow))) = (proxy, added)
            && let Some((least, least_slow)) = self::added(proxy, bare)
        {
            let rate = 100.0 * figures.rate / proxy.rate;
            let cost = cost / microseconds(proxy.cost);
            let (median, slow) = (median / least, slow / least_slow);
            write!(out, "{rate:>5.0}% {median:>6.2} {slow:>6.2} {cost:>6.2}")?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// The latencies that a server adds to the bare backend's, in microseconds.
fn added(figures: &Figures, bare: Option<&Figures>) -> Option<(f64, f64)> {
    let bare = bare.filter(|_| !figures.target.is_bare())?;
    Some((
        microseconds(figures.median) - microseconds(bare.median),
        microseconds(figures.slow) - microseconds(bare.slow),
    ))
}

fn microseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}
