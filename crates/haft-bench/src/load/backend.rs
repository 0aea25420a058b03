//! The scripted model: it reads a request, finds out which of its answers is meant, and sends bytes that
//! were made before the first request came.

use std::cell::Cell;
use std::rc::Rc;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Result;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{LocalSet, spawn_local, yield_now};

use crate::script::{Answer, Script};
use crate::wire::Wire;

/// Answers until the process is stopped.
pub(crate) async fn serve() -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    crate::process::announce(listener.local_addr()?)?;
    let script = Rc::new(Script::new());
    // Whoever stores answers may have stored those of an earlier process.
    let since = SystemTime::now().duration_since(UNIX_EPOCH)?;
    let number = Rc::new(Cell::new(u64::try_from(since.as_micros())?));
    let accepting = async {
        loop {
            let (stream, _) = listener.accept().await?;
            let (script, number) = (Rc::clone(&script), Rc::clone(&number));
            spawn_local(async move {
                // Whoever breaks a connection off has his reasons.
                let _ = answer(stream, &script, &number).await;
            });
        }
    };
    LocalSet::new().run_until(accepting).await
}

async fn answer(stream: TcpStream, script: &Script, numbers: &Cell<u64>) -> Result<()> {
    let mut wire = Wire::new(stream)?;
    let mut buffer = Vec::new();
    loop {
        let Some(request) = wire.receive().await? else {
            return Ok(());
        };
        let number = numbers.replace(numbers.get() + 1);
        match script.answer(&request.line, &request.body) {
            Answer::Whole(whole) => wire.send(whole.fill(number, &mut buffer)).await?,
            Answer::Pieces(pieces) => {
                for piece in pieces {
                    wire.send(piece.fill(number, &mut buffer)).await?;
                    // Others are waiting too, and whoever reads may see it by itself.
                    yield_now().await;
                }
            }
            Answer::Stalled(begun) => {
                wire.send(begun.fill(number, &mut buffer)).await?;
                return wire.closed().await;
            }
        }
    }
}
