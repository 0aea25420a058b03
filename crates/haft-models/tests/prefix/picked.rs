//! What is picked changes the list where it stands, which is what picking costs.

use haft_models::CapabilityOverrides;
use haft_models::testing::{Protocol, ScriptedServer, call, say};
use serde_json::json;

use crate::sent::{self, Sent, goes_on};
use crate::world;

#[tokio::test]
async fn a_pick_changes_the_list_in_place_and_nothing_else() {
    for protocol in Protocol::ALL {
        let server = ScriptedServer::start([
            call("pick_tools", json!({"tools": ["ping"]})),
            call("ping", json!({"text": "first"})),
            say("done"),
        ])
        .await
        .unwrap();
        let model = world::adapter(protocol, &server, CapabilityOverrides::default());
        let run = haft_engine::Run::new(model).tools(world::tools());
        let run = run.defer(haft_core::Defer::Never).brief_until_picked();
        world::drive(run.user("go")).await;
        server.assert_finished();
        let requests: Vec<_> = sent::all(&server).into_iter().map(Sent::unmarked).collect();
        sent::assert_grows(&requests);
        assert!(
            !goes_on(&requests[1].tools, &requests[0].tools),
            "{protocol:?}"
        );
        assert_eq!(requests[2].tools, requests[1].tools, "{protocol:?}");
    }
}

/// Tools that the provider holds back are not to be picked: it shows them in full when it shows them.
#[tokio::test]
async fn what_the_provider_holds_back_is_not_shown_in_brief() {
    for overrides in [
        CapabilityOverrides {
            native_deferred_loading: Some(true),
            ..CapabilityOverrides::default()
        },
        CapabilityOverrides {
            tool_references: Some(true),
            ..CapabilityOverrides::default()
        },
    ] {
        let server = ScriptedServer::start([say("done")]).await.unwrap();
        let model = world::adapter(Protocol::Messages, &server, overrides);
        let run = haft_engine::Run::new(model).tools(world::tools());
        world::drive(run.brief_until_picked().user("go")).await;
        server.assert_finished();
        let request = sent::all(&server).pop().unwrap();
        let tools: Vec<serde_json::Value> = serde_json::from_str(&request.tools).unwrap();
        let held = tools.iter().filter(|tool| tool["defer_loading"] == true);
        let whole = held.filter(|tool| tool["input_schema"]["properties"].get("text").is_some());
        assert_eq!(whole.count(), 12);
        let named = |name: &str| tools.iter().find(|tool| tool["name"] == name).unwrap();
        assert!(
            named("ping")["input_schema"]["properties"]
                .get("text")
                .is_none()
        );
        let names = &named("pick_tools")["input_schema"]["properties"]["tools"]["items"]["enum"];
        assert_eq!(*names, json!(["ping"]));
    }
}
