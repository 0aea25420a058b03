//! Load: so many connections, each sends a request as soon as it has the answer to the one before.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow};
use tokio::net::TcpStream;
use tokio::task::LocalSet;
use tokio::time::timeout;

use crate::case::{Kind, bodies, request};
use crate::check::Check;
use crate::target::Target;
use crate::wire::Wire;

/// No answer takes so long.
const MAX_WAIT: Duration = Duration::from_mins(1);

/// Connections to one server that are kept open between its turns.
pub(crate) struct Load {
    requests: std::rc::Rc<Vec<(Vec<u8>, Check)>>,
    wires: Vec<Wire>,
}

/// What came of one turn.
pub(crate) struct Turn {
    /// How long each answer took.
    pub(crate) latencies: Vec<Duration>,
    pub(crate) took: Duration,
}

impl Load {
    /// Opens the connections and has the first answer on each read with care.
    pub(crate) async fn open(target: &Target, kind: Kind, connections: usize) -> Result<Self> {
        let bodies = bodies(kind, target.loops, target.model, target.store);
        let requests = bodies.iter().map(request);
        let requests: Vec<_> = requests.zip(Check::of(kind, target.loops)).collect();
        let mut wires = Vec::new();
        for _ in 0..connections {
            let stream = TcpStream::connect(target.server.address).await;
            let stream = stream.with_context(|| format!("`{}` does not answer", target.name))?;
            let mut wire = Wire::new(stream)?;
            exchange(&mut wire, &requests, Check::read).await?;
            wires.push(wire);
        }
        Ok(Self {
            requests: requests.into(),
            wires,
        })
    }

    /// Keeps all connections busy for a while.
    pub(crate) async fn turn(&mut self, length: Duration) -> Result<Turn> {
        let start = Instant::now();
        let end = start + length;
        let local = LocalSet::new();
        let tasks: Vec<_> = self
            .wires
            .drain(..)
            .map(|mut wire| {
                let requests = std::rc::Rc::clone(&self.requests);
                local.spawn_local(async move {
                    let mut latencies = Vec::new();
                    let mut before = Instant::now();
                    while before < end {
                        exchange(&mut wire, &requests, Check::glance).await?;
                        let after = Instant::now();
                        latencies.push(after - before);
                        before = after;
                    }
                    Ok::<_, anyhow::Error>((wire, latencies))
                })
            })
            .collect();
        let all = async {
            let mut latencies = Vec::new();
            for task in tasks {
                let (wire, more) = task.await.map_err(|error| anyhow!(error))??;
                self.wires.push(wire);
                latencies.extend(more);
            }
            Ok::<_, anyhow::Error>(latencies)
        };
        let latencies = timeout(length + MAX_WAIT, local.run_until(all))
            .await
            .context("an answer does not come")??;
        Ok(Turn {
            latencies,
            took: start.elapsed(),
        })
    }
}

/// Sends all requests of a case, one after the other.
async fn exchange(
    wire: &mut Wire,
    requests: &[(Vec<u8>, Check)],
    look: fn(&Check, &crate::wire::Message) -> Result<()>,
) -> Result<()> {
    for (request, check) in requests {
        wire.send(request).await?;
        let answer = wire.receive().await?;
        look(check, answer.context("the server hung up")?)?;
    }
    Ok(())
}
