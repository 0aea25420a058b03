//! Where a provider has nothing of its own: what is loaded comes behind everything else.

use haft_models::CapabilityOverrides;
use haft_models::testing::{Protocol, ScriptedServer};

use crate::sent::{self, Sent, goes_on};
use crate::world;

#[tokio::test]
async fn a_request_repeats_the_one_before_and_the_list_only_grows_at_its_end() {
    for protocol in Protocol::ALL {
        let server = ScriptedServer::start(world::searching()).await.unwrap();
        let model = world::adapter(protocol, &server, CapabilityOverrides::default());
        let ran = world::drive(world::run(model)).await;
        server.assert_finished();
        assert!(
            ran.calls().iter().all(|(_, succeeded)| *succeeded),
            "{:?}",
            ran.calls()
        );

        let requests: Vec<_> = sent::all(&server).into_iter().map(Sent::unmarked).collect();
        assert_eq!(requests.len(), 7, "{protocol:?}");
        sent::assert_grows(&requests);
        let mut grown = 0;
        for pair in requests.windows(2) {
            assert!(goes_on(&pair[1].tools, &pair[0].tools), "{protocol:?}");
            grown += usize::from(pair[1].tools != pair[0].tools);
        }
        // A section and two searches; the turns between them leave the list alone.
        assert_eq!(grown, 3, "{protocol:?}");
        assert_eq!(ran.injected().len(), 3);
        assert!(!requests[0].tools.contains("convert_currency"));
        assert!(requests[6].tools.contains("convert_currency"));
    }
}

#[tokio::test]
async fn anthropic_is_told_to_cache_to_the_end_of_each_part() {
    let server = ScriptedServer::start(world::searching()).await.unwrap();
    let model = world::adapter(Protocol::Messages, &server, CapabilityOverrides::default());
    world::drive(world::run(model)).await;
    for request in sent::all(&server) {
        // Four marks are allowed.
        for part in [&request.tools, &request.instructions, &request.conversation] {
            assert_eq!(part.matches(sent::MARK).count(), 1, "{part}");
        }
        assert!(request.tools.ends_with(&format!("{}}}]", sent::MARK)));
        assert!(
            request
                .conversation
                .ends_with(&format!("{}}}]}}]", sent::MARK))
        );
    }
}
