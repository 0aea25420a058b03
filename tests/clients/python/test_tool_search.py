"""Tools that wait until they are searched for: by the request's `tool_search`, by themselves where there are
too many, and those that come by an item."""

import openai
import pytest

from conftest import CLIENT
from helpers import TIME, WEATHER, calls, output, plain, types, user
from served import ROOT, Served

MUSIC = {
    "type": "function",
    "name": "play_music",
    "description": "Plays a song",
    "parameters": {"type": "object", "properties": {"song": {"type": "string"}}},
    "strict": False,
    "defer_loading": True,
}
LATER = {**WEATHER, "defer_loading": True}
SEARCH = {"type": "tool_search"}
TOOLS = [TIME, LATER, MUSIC, SEARCH]
CRM = {
    "type": "namespace",
    "name": "crm",
    "description": "Customers and their orders.",
    "tools": [
        {**MUSIC, "name": "list_orders", "description": "Lists the orders of a customer"},
        {**MUSIC, "name": "close_account", "description": "Closes an account"},
    ],
}

FOR_WEATHER = {"query": "weather in a city", "limit": 1}


def offered(backend, at):
    return [tool["function"]["name"] for tool in backend.requests[at]["tools"]]


def found(response):
    return [item for item in response.output if item.type == "tool_search_output"]


def test_a_search_and_what_it_found_are_typed_items(client, backend):
    backend.call(("call_s", "search_tools", FOR_WEATHER))
    backend.call(("call_a", "get_weather", {"city": "Oslo"}))
    backend.say("Rain.")
    first = client.responses.create(model="double", input="Weather in Oslo?", tools=TOOLS)
    search, result, call = first.output
    assert isinstance(search, openai.types.responses.ResponseToolSearchCall)
    assert isinstance(result, openai.types.responses.ResponseToolSearchOutputItem)
    assert (search.execution, search.call_id, search.status) == ("server", None, "completed")
    assert search.arguments == FOR_WEATHER
    assert (result.execution, result.call_id, result.status) == ("server", None, "completed")
    [tool] = result.tools
    assert tool.to_dict() == LATER
    assert (call.type, call.name) == ("function_call", "get_weather")
    assert offered(backend, 0) == ["get_time", "search_tools"]
    assert offered(backend, 1) == ["get_time", "search_tools", "get_weather"]
    # What stood in the first request stands in the next, in its place.
    assert backend.requests[1]["tools"][:2] == backend.requests[0]["tools"]
    assert backend.messages[-1]["content"] == "get_weather: The weather in a city"
    described = backend.requests[0]["tools"][1]["function"]["description"]
    assert "- get_weather: The weather in a city" in described
    assert "- play_music: Plays a song" in described
    assert "properties" not in described

    second = client.responses.create(
        model="double", input=[output(call, "rain")], previous_response_id=first.id, tools=TOOLS
    )
    assert second.output_text == "Rain."
    assert offered(backend, 2) == offered(backend, 1)
    assert backend.requests[2]["messages"][:3] == backend.requests[1]["messages"]


def test_the_same_streamed(client, backend):
    backend.call(("call_s", "search_tools", FOR_WEATHER))
    backend.call(("call_a", "get_weather", {"city": "Oslo"}))
    with client.responses.stream(model="double", input="Weather?", tools=TOOLS) as stream:
        events = list(stream)
        response = stream.get_final_response()
    assert types(events)[:6] == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.output_item.done",
        "response.output_item.added",
        "response.output_item.done",
    ]
    done = [event for event in events if event.type == "response.output_item.done"]
    assert [plain(event.item) for event in done] == [plain(item) for item in response.output]
    assert [item.type for item in response.output] == [
        "tool_search_call",
        "tool_search_output",
        "function_call",
    ]
    assert plain(client.responses.retrieve(response.id))["output"] == plain(response)["output"]


def test_items_that_are_sent_back_keep_tools_loaded(client, backend):
    backend.call(("call_s", "search_tools", FOR_WEATHER))
    backend.call(("call_a", "get_weather", {"city": "Oslo"}))
    backend.say("Rain.")
    told = dict(model="double", tools=TOOLS, store=False)
    first = client.responses.create(input=[user("Weather?")], **told)
    [call] = calls(first)
    history = [user("Weather?"), *first.output, output(call, "rain")]
    second = client.responses.create(input=history, **told)
    assert second.output_text == "Rain."
    assert offered(backend, 2) == ["get_time", "search_tools", "get_weather"]
    roles = [message["role"] for message in backend.messages]
    assert roles == ["user", "assistant", "tool", "assistant", "tool"]


def test_what_was_found_is_callable_in_the_chain_without_being_declared(client, backend):
    backend.call(("call_s", "search_tools", FOR_WEATHER))
    backend.say("I know how.")
    backend.call(("call_a", "get_weather", {"city": "Oslo"}))
    first = client.responses.create(model="double", input="Can you?", tools=TOOLS)
    second = client.responses.create(model="double", input="Do!", previous_response_id=first.id)
    assert [call.name for call in calls(second)] == ["get_weather"]
    assert offered(backend, 2) == ["get_weather"]


def test_tools_of_a_namespace_are_found_in_it(client, backend):
    backend.call(("call_s", "search_tools", {"query": "list orders", "limit": 1}))
    backend.call(("call_a", "crm__list_orders", {}))
    response = client.responses.create(model="double", input="Orders?", tools=[CRM, SEARCH])
    [result] = found(response)
    [namespace] = result.tools
    assert (namespace.type, namespace.name) == ("namespace", "crm")
    assert [tool.name for tool in namespace.tools] == ["list_orders"]
    [call] = calls(response)
    assert (call.name, call.namespace) == ("list_orders", "crm")
    described = backend.requests[0]["tools"][0]["function"]["description"]
    assert "- crm: Customers and their orders." in described and "list_orders" not in described


def test_nothing_found(client, backend):
    backend.call(("call_s", "search_tools", {"query": "qqqq zzzz"}))
    backend.say("There is none.")
    response = client.responses.create(model="double", input="Fly!", tools=TOOLS)
    assert found(response)[0].tools == []
    assert backend.messages[-1]["content"] == "No tool found."
    assert response.output_text == "There is none."


def test_a_tool_that_waits_cannot_be_demanded(client, backend):
    with pytest.raises(openai.BadRequestError) as refused:
        client.responses.create(
            model="double",
            input="Weather?",
            tools=TOOLS,
            tool_choice={"type": "function", "name": "get_weather"},
        )
    assert (refused.value.code, refused.value.param) == ("tool_not_found", "tool_choice")


def test_a_search_runs_in_the_background(client, backend):
    from helpers import ended

    backend.call(("call_s", "search_tools", FOR_WEATHER))
    backend.say("I know how.")
    response = client.responses.create(
        model="double", input="Can you?", tools=TOOLS, background=True
    )
    response = ended(client, response.id)
    kinds = [item.type for item in response.output]
    assert kinds == ["tool_search_call", "tool_search_output", "message"]


def test_additional_tools_are_callable_from_their_place_on(client, backend):
    backend.call(("call_a", "get_weather", {"city": "Oslo"}))
    backend.say("Rain.")
    brought = {"type": "additional_tools", "role": "developer", "tools": [LATER]}
    first = client.responses.create(
        model="double", input=[brought, user("Weather?")], tools=[TIME]
    )
    [call] = calls(first)
    assert offered(backend, 0) == ["get_time", "get_weather"]
    assert [tool.name for tool in first.tools] == ["get_time"]
    second = client.responses.create(
        model="double", input=[output(call, "rain")], previous_response_id=first.id, tools=[TIME]
    )
    assert second.output_text == "Rain."
    assert offered(backend, 1) == ["get_time", "get_weather"]


def sixty():
    others = [{**MUSIC, "name": f"tool_{at}", "description": f"Tool number {at}"} for at in range(59)]
    return [{**{k: v for k, v in tool.items() if k != "defer_loading"}} for tool in others] + [WEATHER]


def test_sixty_functions_of_the_client_are_offered_without_a_search(serve, backend):
    served = serve("\n[loop]\ndefer_above = 50\n")
    with openai.OpenAI(base_url=served.base_url, **CLIENT) as client:
        backend.call(("call_a", "get_weather", {"city": "Oslo"}))
        tools = sixty()
        response = client.responses.create(model="double", input="Weather?", tools=tools)
    [call] = response.output
    assert (call.type, call.name) == ("function_call", "get_weather")
    assert offered(backend, 0) == [tool["name"] for tool in tools]


def test_sixty_functions_are_all_shown_where_the_operator_says_so(serve, backend):
    served = serve('\n[loop]\ndefer = "never"\ndefer_above = 50\n')
    with openai.OpenAI(base_url=served.base_url, **CLIENT) as client:
        backend.say("ok")
        client.responses.create(model="double", input="hi", tools=sixty())
    assert len(offered(backend, 0)) == 60


def test_the_example_of_the_guide_runs_as_it_stands(tmp_path, capsys):
    guide = (ROOT / "docs" / "guide-serve.md").read_text()
    [example] = [block.split("```")[0] for block in guide.split("```python\n")[1:]]
    offline = '[[model]]\nname = "default"\nadapter = "offline"\n'
    server = Served(tmp_path, offline)
    try:
        here = "http://127.0.0.1:4141/v1"
        assert here in example
        exec(compile(example.replace(here, server.base_url), "guide-serve.md", "exec"), {})
    finally:
        server.stop()
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == ["tool_search_call", "tool_search_output", "function_call"]
    assert "4 °C and snow" in "\n".join(lines[3:])
