//! What the system knows about a process.

use std::fs;
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, Result};

/// Says where this process listens, as `haft serve` does.
pub(crate) fn announce(address: SocketAddr) -> Result<()> {
    writeln!(io::stdout(), "listening on http://{address}")?;
    Ok(())
}

/// The processor time that a process has used with all its threads, in the kernel and outside.
pub(crate) fn processor_time(process: u32) -> Result<Duration> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat"))
        .with_context(|| format!("the process {process} does not run any more"))?;
    // The name may hold anything; what follows its parenthesis are numbers.
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let mut fields = fields.split_whitespace().skip(11);
    let mut ticks = || -> Result<u64> {
        let field = fields.next().context("a field of `stat` is missing")?;
        Ok(field.parse()?)
    };
    let ticks = ticks()? + ticks()?;
    let per_second = rustix::param::clock_ticks_per_second();
    Ok(Duration::from_millis(ticks * 1000 / per_second))
}

/// The memory that a process holds, in bytes.
pub(crate) fn memory(process: u32) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))
        .with_context(|| format!("the process {process} does not run any more"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.context("`VmRSS` is missing")?;
    let kilobytes = kilobytes.trim().trim_end_matches("kB").trim();
    Ok(kilobytes.parse::<u64>()? * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_costs_time_and_memory() {
        let process = std::process::id();
        let before = processor_time(process).unwrap();
        let mut sum = 0_u64;
        while processor_time(process).unwrap() < before + Duration::from_millis(30) {
            sum = std::hint::black_box(sum + 1);
        }
        assert!(memory(process).unwrap() > 100 * 1024);
        assert!(processor_time(u32::MAX).is_err());
    }
}
