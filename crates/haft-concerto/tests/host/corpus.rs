//! Every program of the corpus does on the engine what it does offline: with the mock provider both are
//! the same.

use std::sync::Arc;

use haft_concerto::host::{Host, Setup};

use crate::case::{Case, compare, programs};
use crate::kit::Printed;

#[tokio::test]
async fn every_program_of_the_corpus_prints_what_is_written_beside_it() {
    let mut got = Vec::new();
    for path in programs().1 {
        let case = Case::read(&path, "engine");
        if case.switches.test {
            continue;
        }
        let printed = Printed::default();
        let mut error = String::new();
        if let Some(program) = &case.program {
            let setup = Setup {
                mock: true,
                permissions: case.switches.permissions.clone(),
                limits: case.switches.limits,
                ..Setup::default()
            };
            let host = Host::new(Arc::clone(program), setup);
            let ended = host.run(Box::new(printed.clone())).await;
            error = ended.err().map(|it| it.text).unwrap_or_default();
        }
        let ended = case.ended(&printed.text(), &error);
        got.push((path, ended));
    }
    compare(got);
}
