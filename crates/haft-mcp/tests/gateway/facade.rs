//! Three tools in front of many.

use std::sync::Arc;

use haft_hydrate::JsonSchemaFactory;
use haft_mcp::gateway::{Gateway, ListedTool, Mode, Search};
use rmcp::model::CallToolResult;
use serde_json::{Value, json};

use crate::client::{Connection, ERAS, Era, Person, call, connect, text};
use crate::toolbox::{Toolbox, object, tool};

/// 116 tools of two servers, one of them always listed.
fn many() -> Toolbox {
    let filler = (0..112).map(|n| {
        let name = format!("shop__order_{n}");
        ListedTool::new(name, object(json!({"type": "object"})))
            .described(format!(
                "Orders the ware with the number {n} from the shop."
            ))
            .of_server("shop", format!("order_{n}"))
    });
    let own = ["echo", "fail", "needs"].map(tool);
    let always = tool("who").always_listed();
    Toolbox::new(own.into_iter().chain(filler).chain([always]))
}

async fn names(client: &Connection) -> Vec<String> {
    let tools = client.list_all_tools().await.unwrap();
    tools
        .into_iter()
        .map(|tool| tool.name.into_owned())
        .collect()
}

async fn found(client: &Connection, arguments: Value) -> Vec<String> {
    let result = call(client, "search_tools", arguments).await;
    let found = &result.structured_content.unwrap()["tools"];
    let found = found.as_array().unwrap().iter();
    found
        .map(|it| it["name"].as_str().unwrap().to_owned())
        .collect()
}

const LISTED: [&str; 4] = ["search_tools", "describe_tool", "call_tool", "box__who"];

#[tokio::test]
async fn many_tools_hide_behind_three_and_searching_lists_none_of_them() {
    let gateway = Gateway::builder(many()).build().unwrap();
    for era in ERAS {
        let client = connect(&gateway, "a", Person::helpful(era).0).await;
        assert_eq!(names(&client).await, LISTED);
        assert_eq!(
            found(&client, json!({"query": "BOX ECHO"})).await[0],
            "box__echo"
        );
        call(&client, "describe_tool", json!({"names": ["box__echo"]})).await;
        call(&client, "call_tool", json!({"name": "box__echo"})).await;
        assert_eq!(names(&client).await, LISTED, "{era:?}");
    }
}

#[tokio::test]
async fn few_tools_are_listed_unless_the_facade_is_wanted() {
    let few = || Toolbox::of(&["echo", "fail"]);
    let auto = Gateway::builder(few()).build().unwrap();
    let client = connect(&auto, "a", Person::helpful(Era::Modern).0).await;
    assert_eq!(names(&client).await, ["box__echo", "box__fail"]);
    let facade = Gateway::builder(few()).mode(Mode::Facade).build().unwrap();
    let client = connect(&facade, "a", Person::helpful(Era::Modern).0).await;
    assert_eq!(names(&client).await, LISTED[..3]);
    let all = Gateway::builder(many())
        .mode(Mode::Passthrough)
        .build()
        .unwrap();
    let client = connect(&all, "a", Person::helpful(Era::Modern).0).await;
    assert_eq!(names(&client).await.len(), 116);
}

#[tokio::test]
async fn a_search_says_name_server_and_one_sentence() {
    let gateway = Gateway::builder(many()).build().unwrap();
    let client = connect(&gateway, "a", Person::helpful(Era::Modern).0).await;
    let search = async |arguments: Value| call(&client, "search_tools", arguments).await;

    let brief = search(json!({"query": "echo", "limit": 1})).await;
    assert_eq!(
        text(&brief),
        "box__echo (box): Does echo. And nothing else."
    );
    let expected = json!({
        "tools": [{"name": "box__echo", "server": "box", "summary": "Does echo. And nothing else."}],
        "total": 116
    });
    assert_eq!(brief.structured_content, Some(expected));
    let names = search(json!({"query": "order ware", "limit": 2, "detail": "names"})).await;
    let more = "More tools fit than these 2: say more exactly what is needed, or raise `limit` (at most 25).";
    assert_eq!(
        text(&names),
        format!("shop__order_0\nshop__order_1\n{more}")
    );
    assert_eq!(names.structured_content.unwrap()["has_more"], true);
    let full = search(json!({"query": "echo", "limit": 1, "detail": "full"})).await;
    assert!(
        text(&full).contains(r#""text":{"type":"string"}"#),
        "{}",
        text(&full)
    );

    // Eight without a word, never more than twenty-five.
    assert_eq!(found(&client, json!({"query": "shop"})).await.len(), 8);
    assert_eq!(
        found(&client, json!({"query": "shop", "limit": 25}))
            .await
            .len(),
        25
    );
    for limit in [0_u64, 26, 1_000_000_000_000] {
        let refused = search(json!({"query": "shop", "limit": limit})).await;
        assert_eq!(refused.is_error, Some(true));
        let told = format!("`limit` is {limit}: ask for 1 to 25 tools");
        assert_eq!(text(&refused), told);
    }
    let refused = search(json!({"query": "shop ".repeat(600_000)})).await;
    assert_eq!(refused.is_error, Some(true));
    let told = "`query` is longer than 1000 characters: say in a few words what the tool should do";
    assert_eq!(text(&refused), told);
    // Only of one server, and the servers are named when there is none.
    let of_box = found(&client, json!({"query": "echo order", "server": "box"})).await;
    assert_eq!(of_box, ["box__echo"]);
    let none = search(json!({"query": "echo", "server": "bax"})).await;
    assert_eq!(none.is_error, Some(true));
    assert_eq!(
        text(&none),
        "no tools of server `bax`; the servers are: box, shop"
    );
    let nothing = search(json!({"query": "weather"})).await;
    assert_eq!(nothing.is_error, None);
    assert_eq!(
        text(&nothing),
        "nothing among 116 tools fits; say it in other words. The servers are: box, shop"
    );
}

#[tokio::test]
async fn every_name_is_found_first_in_every_spelling() {
    let toolbox = many();
    let gateway = Gateway::builder(toolbox).build().unwrap();
    let client = connect(&gateway, "a", Person::helpful(Era::Modern).0).await;
    let mut names = vec!["box__echo".to_owned(), "box__who".to_owned()];
    names.extend((0..112).map(|n| format!("shop__order_{n}")));
    for name in names {
        let spelled = format!(
            "please call {} for me",
            name.to_uppercase().replace('_', "-")
        );
        assert_eq!(found(&client, json!({"query": spelled})).await[0], name);
    }
}

#[tokio::test]
async fn a_description_is_plain_text_with_the_schemas() {
    let gateway = Gateway::builder(many()).build().unwrap();
    let client = connect(&gateway, "a", Person::helpful(Era::Legacy).0).await;
    let describe = async |names: Value| -> CallToolResult {
        call(&client, "describe_tool", json!({"names": names})).await
    };
    let result = describe(json!(["box__echo", "box__ecko"])).await;
    assert_eq!(result.is_error, None);
    assert_eq!(result.structured_content, None);
    assert_eq!(
        text(&result),
        "# box__echo\n\
         Server: box\n\
         Does echo. And nothing else.\n\
         Input schema: {\"type\":\"object\",\"properties\":{\"text\":{\"type\":\"string\"}}}\n\n\
         unknown tool `box__ecko`; did you mean `box__echo`? `search_tools` finds tools by what they do"
    );
    assert_eq!(
        describe(json!(["nothing_like_it"])).await.is_error,
        Some(true)
    );
    let too_many: Vec<String> = (0..11).map(|n| format!("shop__order_{n}")).collect();
    for bad in [json!([]), json!(too_many), json!("box__echo")] {
        let result = describe(bad).await;
        assert_eq!(result.is_error, Some(true));
        assert!(text(&result).starts_with("invalid arguments for `describe_tool`:"));
    }
}

#[tokio::test]
async fn a_call_through_the_facade_is_a_call() {
    let toolbox = many();
    let gateway = Gateway::builder(toolbox.clone()).build().unwrap();
    for era in ERAS {
        let client = connect(&gateway, "a", Person::helpful(era).0).await;
        let arguments = json!({"name": "box__echo", "arguments": {"text": "x"}});
        let result = call(&client, "call_tool", arguments).await;
        assert_eq!(result.structured_content, Some(json!({"text": "x"})));
        assert_eq!(result.meta.unwrap().0, object(json!({"from": "echo"})));
        let result = call(&client, "call_tool", json!({"name": "box__fail"})).await;
        assert_eq!(result.is_error, Some(true));
        assert_eq!(text(&result), "It did not work.");
        // Questions find their way too.
        let result = call(&client, "call_tool", json!({"name": "box__needs"})).await;
        assert_eq!(text(&result), "Hello, \"Ada\"!", "{era:?}");
        // What is always listed is called as it is, and so is everything else.
        assert_eq!(text(&call(&client, "box__who", json!({})).await), "a");
        assert_eq!(text(&call(&client, "box__echo", json!({})).await), "{}");
    }
}

#[tokio::test]
async fn a_bad_call_through_the_facade_is_told_to_the_model_and_goes_nowhere() {
    let toolbox = many();
    let gateway = Gateway::builder(toolbox.clone())
        .validator(Arc::new(JsonSchemaFactory))
        .build()
        .unwrap();
    for era in ERAS {
        let client = connect(&gateway, "a", Person::helpful(era).0).await;
        let bad = [
            (
                json!({"name": "box__ecko"}),
                "unknown tool `box__ecko`; did you mean `box__echo`?",
            ),
            (json!({"name": "call_tool"}), "unknown tool `call_tool`;"),
            (
                json!({"name": "box__echo", "arguments": {"text": 3}}),
                "invalid arguments for `box__echo`:\n- `/text`: ",
            ),
            (
                json!({"name": "box__echo", "arguments": "{\"text\": 3}"}),
                "invalid arguments for `box__echo`:\n- `/text`: ",
            ),
            (
                json!({"name": "box__echo", "arguments": "[]"}),
                "invalid arguments for `call_tool`: `arguments` is a string that holds no JSON object",
            ),
            (
                json!({"name": "box__echo", "arguments": [1]}),
                "invalid arguments for `call_tool`: `arguments` must be an object",
            ),
            (
                json!({}),
                "invalid arguments for `call_tool`: missing field `name`",
            ),
        ];
        for (arguments, said) in bad {
            let result = call(&client, "call_tool", arguments.clone()).await;
            assert_eq!(result.is_error, Some(true), "{arguments}");
            assert!(
                text(&result).starts_with(said),
                "{arguments}: {}",
                text(&result)
            );
        }
    }
    assert_eq!(toolbox.calls(), []);
}

#[tokio::test]
async fn arguments_of_a_call_may_be_a_string_that_holds_an_object() {
    let toolbox = many();
    let gateway = Gateway::builder(toolbox.clone()).build().unwrap();
    let client = connect(&gateway, "a", Person::helpful(Era::Modern).0).await;
    for arguments in [json!("{\"text\": \"a\"}"), json!({"text": "a"})] {
        let arguments = json!({"name": "box__echo", "arguments": arguments});
        call(&client, "call_tool", arguments).await;
    }
    for arguments in [
        json!({"name": "box__echo"}),
        json!({"name": "box__echo", "arguments": null}),
    ] {
        call(&client, "call_tool", arguments).await;
    }
    let expected = [
        json!({"text": "a"}),
        json!({"text": "a"}),
        json!({}),
        json!({}),
    ];
    let calls: Vec<_> = toolbox.calls().into_iter().map(|(_, with)| with).collect();
    assert_eq!(calls, expected);
}

#[tokio::test]
async fn names_of_the_facade_are_not_taken_by_tools_behind_it() {
    let clash = ListedTool::new("call_tool", object(json!({"type": "object"}))).always_listed();
    let toolbox = Toolbox::new([tool("echo"), tool("who").always_listed(), clash]);
    let gateway = Gateway::builder(toolbox)
        .mode(Mode::Facade)
        .build()
        .unwrap();
    let client = connect(&gateway, "a", Person::helpful(Era::Modern).0).await;
    assert_eq!(names(&client).await, LISTED);
}

/// Finds the last tool, whatever is asked, and one that does not exist.
struct Last;

impl Search for Last {
    fn search(&self, _: &str, tools: &[Arc<ListedTool>], _: usize) -> Vec<usize> {
        vec![tools.len(), tools.len() - 1]
    }
}

#[tokio::test]
async fn another_search_can_be_plugged_in_and_its_slips_harm_nobody() {
    let gateway = Gateway::builder(many()).search(Last).build().unwrap();
    let client = connect(&gateway, "a", Person::helpful(Era::Modern).0).await;
    assert_eq!(found(&client, json!({"query": "echo"})).await, ["box__who"]);
}
