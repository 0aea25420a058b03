"""Function calls and their outputs: one after the other, at once, streamed, and under every choice."""

import json

import openai
import pytest

from helpers import TIME, WEATHER, calls, output, types, user

CLIENT = "openai (Python)"

OFFLINE = dict(model="offline", tools=[WEATHER, TIME])
DOUBLE = dict(model="double", tools=[WEATHER, TIME])


def roles(backend):
    return [message["role"] for message in backend.messages]


def test_one_call_and_its_output(client):
    first = client.responses.create(input="What is the weather in Oslo?", **OFFLINE)
    assert first.status == "completed"
    [call] = first.output
    assert (call.type, call.name, call.status) == ("function_call", "get_weather", "completed")
    assert call.id.startswith("fc_") and call.call_id
    assert json.loads(call.arguments) == {"city": "Oslo"}
    second = client.responses.create(
        input=[output(call, "5 °C, rain")], previous_response_id=first.id, **OFFLINE
    )
    assert "`get_weather`: 5 °C, rain" in second.output_text
    assert second.previous_response_id == first.id


def test_tools_are_offered_and_echoed_as_they_are(client, backend):
    backend.say("ok")
    response = client.responses.create(input="hi", **DOUBLE)
    offered = backend.requests[0]["tools"]
    assert [tool["function"]["name"] for tool in offered] == ["get_weather", "get_time"]
    assert offered[0]["function"]["parameters"] == WEATHER["parameters"]
    assert offered[0]["function"]["description"] == WEATHER["description"]
    assert [tool.to_dict() for tool in response.tools] == [WEATHER, TIME]


@pytest.mark.covers("tools")
def test_calls_one_after_the_other(client, backend):
    backend.call(("call_a", "get_weather", {"city": "Oslo"}))
    backend.call(("call_b", "get_time", {"city": "Oslo"}))
    backend.say("Rain at noon.")
    response = client.responses.create(input="Weather and time?", **DOUBLE)
    for result in ("rain", "noon"):
        [call] = calls(response)
        response = client.responses.create(
            input=[output(call, result)], previous_response_id=response.id, **DOUBLE
        )
    assert response.output_text == "Rain at noon."
    assert roles(backend) == ["user", "assistant", "tool", "assistant", "tool"]
    results = [it for it in backend.messages if it["role"] == "tool"]
    assert [(it["tool_call_id"], it["content"]) for it in results] == [
        ("call_a", "rain"),
        ("call_b", "noon"),
    ]


def test_calls_at_once_go_back_as_one_turn_in_their_order(client, backend):
    backend.call(
        ("call_a", "get_weather", {"city": "Oslo"}),
        ("call_b", "get_weather", {"city": "Rome"}),
        ("call_c", "get_time", {"city": "Rome"}),
    )
    backend.say("Done.")
    first = client.responses.create(input="Everything!", **DOUBLE)
    assert [(it.call_id, it.name) for it in calls(first)] == [
        ("call_a", "get_weather"),
        ("call_b", "get_weather"),
        ("call_c", "get_time"),
    ]
    # The outputs may come in any order.
    outputs = [output(call, f"of {call.call_id}") for call in reversed(calls(first))]
    second = client.responses.create(input=outputs, previous_response_id=first.id, **DOUBLE)
    assert second.output_text == "Done."
    assert roles(backend) == ["user", "assistant", "tool", "tool", "tool"]
    asked = backend.messages[1]["tool_calls"]
    assert [call["id"] for call in asked] == ["call_a", "call_b", "call_c"]
    arguments = [json.loads(call["function"]["arguments"]) for call in asked]
    assert arguments == [{"city": "Oslo"}, {"city": "Rome"}, {"city": "Rome"}]
    answered = {it["tool_call_id"]: it["content"] for it in backend.messages[2:]}
    assert answered == {id: f"of {id}" for id in ("call_a", "call_b", "call_c")}


def test_the_offline_model_calls_at_once_too(client):
    first = client.responses.create(input="Weather in Oslo and Rome, please", **OFFLINE)
    cities = [json.loads(call.arguments)["city"] for call in calls(first)]
    assert cities == ["Oslo", "Rome"]
    outputs = [output(call, f"fine in {city}") for call, city in zip(calls(first), cities)]
    second = client.responses.create(input=outputs, previous_response_id=first.id, **OFFLINE)
    assert "fine in Oslo" in second.output_text and "fine in Rome" in second.output_text


def test_at_most_one_call_where_calls_at_once_are_forbidden(client, backend):
    first = client.responses.create(
        input="Weather in Oslo and Rome, please", parallel_tool_calls=False, **OFFLINE
    )
    assert len(calls(first)) == 1 and first.parallel_tool_calls is False
    backend.call(("get_time", {"city": "Oslo"}))
    client.responses.create(input="Time?", parallel_tool_calls=False, **DOUBLE)
    assert backend.requests[0]["parallel_tool_calls"] is False


def test_streamed_calls_stay_apart(client, backend):
    backend.call(
        ("call_a", "get_weather", {"city": "Oslo"}),
        ("call_b", "get_weather", {"city": "Rome"}),
    )
    backend.say("Both fine.")
    with client.responses.stream(input="Oslo and Rome?", **DOUBLE) as stream:
        events = list(stream)
        first = stream.get_final_response()
    one = [
        "response.output_item.added",
        "response.function_call_arguments.delta",
        "response.function_call_arguments.delta",
        "response.function_call_arguments.done",
        "response.output_item.done",
    ]
    frame = ["response.created", "response.in_progress"]
    assert types(events) == [*frame, *one, *one, "response.completed"]
    written = {0: "", 1: ""}
    for event in events:
        if event.type == "response.function_call_arguments.delta":
            written[event.output_index] += event.delta
            assert event.snapshot == written[event.output_index]
    assert [json.loads(text) for text in written.values()] == [{"city": "Oslo"}, {"city": "Rome"}]
    assert [call.arguments for call in calls(first)] == list(written.values())
    outputs = [output(call, "fine") for call in calls(first)]
    with client.responses.stream(
        input=outputs, previous_response_id=first.id, **DOUBLE
    ) as stream:
        assert stream.get_final_response().output_text == "Both fine."
    assert roles(backend) == ["user", "assistant", "tool", "tool"]


def test_a_client_that_keeps_the_history_itself(client, backend):
    backend.call(("call_a", "get_weather", {"city": "Oslo"}), reasoning=["Let me see."])
    backend.say("Rain.")
    history = [user("Weather in Oslo?")]
    first = client.responses.create(input=history, store=False, **DOUBLE)
    history += first.output
    history += [output(call, "rain") for call in calls(first)]
    second = client.responses.create(input=history, store=False, **DOUBLE)
    assert second.output_text == "Rain."
    assert roles(backend) == ["user", "assistant", "tool"]
    assert backend.messages[1]["tool_calls"][0]["function"]["name"] == "get_weather"


def test_an_output_of_parts_reaches_the_model(client, backend):
    backend.call(("call_a", "get_weather", {"city": "Oslo"}))
    backend.say("I see.")
    first = client.responses.create(input="Weather in Oslo?", **DOUBLE)
    parts = [{"type": "input_text", "text": "rain"}, {"type": "input_text", "text": "and wind"}]
    client.responses.create(
        input=[output(calls(first)[0], parts)], previous_response_id=first.id, **DOUBLE
    )
    sent = json.dumps(backend.messages)
    assert "rain" in sent and "and wind" in sent


@pytest.mark.parametrize(
    ("choice", "names"),
    [
        ("none", []),
        ("required", ["get_weather"]),
        ({"type": "function", "name": "get_time"}, ["get_time"]),
        (
            {
                "type": "allowed_tools",
                "mode": "required",
                "tools": [{"type": "function", "name": "get_time"}],
            },
            ["get_time"],
        ),
    ],
    ids=["none", "required", "forced", "allowed"],
)
def test_a_choice_is_kept_and_echoed(client, choice, names):
    response = client.responses.create(
        input="What is the weather in Oslo?", tool_choice=choice, **OFFLINE
    )
    assert [call.name for call in calls(response)] == names
    echoed = response.tool_choice
    assert (echoed if isinstance(echoed, str) else echoed.to_dict()) == choice


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("mode", ["auto", "required"])
def test_a_call_outside_of_the_allowed_tools_never_appears(client, backend, stream, mode):
    backend.call(("call_a", "get_weather", {"city": "Oslo"}))
    backend.call(("call_b", "get_time", {"city": "Oslo"}))
    choice = {
        "type": "allowed_tools",
        "mode": mode,
        "tools": [{"type": "function", "name": "get_time"}],
    }
    request = dict(input="Time?", tool_choice=choice, **DOUBLE)
    if stream:
        *events, last = client.responses.create(stream=True, **request)
        response = last.response
        assert all("get_weather" not in str(event) for event in events if hasattr(event, "item"))
    else:
        response = client.responses.create(**request)
    assert [(call.call_id, call.name) for call in response.output] == [("call_b", "get_time")]
    # The model is told; what it may see does not change.
    first, second = backend.requests
    assert first["tools"] == second["tools"] and len(first["tools"]) == 2
    assert "get_time" in second["messages"][-1]["content"]


def test_a_forced_function_reaches_the_model_in_its_own_words(client, backend):
    backend.call(("get_time", {"city": "Oslo"}))
    choice = {"type": "function", "name": "get_time"}
    client.responses.create(input="Time?", tool_choice=choice, **DOUBLE)
    wanted = {"type": "function", "function": {"name": "get_time"}}
    assert backend.requests[0]["tool_choice"] == wanted


def test_a_call_without_arguments_has_an_empty_object(client, backend):
    backend.call(("ping", ""))
    tool = {"type": "function", "name": "ping", "parameters": None, "strict": False}
    response = client.responses.create(model="double", input="ping", tools=[tool])
    assert calls(response)[0].arguments == "{}"


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(
    "arguments",
    [' { "city" :\n"Oslo" } ', '{"town": "Oslo"}', '{"city": 5}', '{"city": "Os', "Oslo"],
    ids=["odd", "unknown", "type", "cut", "no-json"],
)
def test_arguments_are_handed_over_as_the_model_wrote_them(client, backend, stream, arguments):
    backend.call(("call_a", "get_weather", arguments))
    backend.say("I see.")
    if stream:
        *_, last = client.responses.create(input="Weather?", stream=True, **DOUBLE)
        first = last.response
    else:
        first = client.responses.create(input="Weather?", **DOUBLE)
    [call] = first.output
    assert (call.type, call.call_id, call.arguments) == ("function_call", "call_a", arguments)
    # What is wrong with them is for the client to say.
    told = [output(call, "no such city")]
    second = client.responses.create(input=told, previous_response_id=first.id, **DOUBLE)
    assert second.output_text == "I see."
    assert roles(backend) == ["user", "assistant", "tool"]
    assert backend.messages[-1]["content"] == "no such city"


def test_a_custom_tool_takes_text(client, backend):
    backend.call(("call_a", "shout", {"input": "hello"}))
    backend.say("HELLO")
    tool = {"type": "custom", "name": "shout", "description": "Says it loudly"}
    first = client.responses.create(model="double", input="Shout hello", tools=[tool])
    [call] = first.output
    assert (call.type, call.name, call.input) == ("custom_tool_call", "shout", "hello")
    second = client.responses.create(
        model="double",
        input=[{"type": "custom_tool_call_output", "call_id": call.call_id, "output": "HELLO"}],
        previous_response_id=first.id,
        tools=[tool],
    )
    assert second.output_text == "HELLO"


@pytest.mark.parametrize(
    ("input", "code"),
    [
        ([{"type": "function_call_output", "call_id": "call_x", "output": "1"}], "tool_call_not_found"),
        ("never mind", "missing_tool_output"),
    ],
)
def test_outputs_must_fit_the_calls(client, input, code):
    first = client.responses.create(input="What is the weather in Oslo?", **OFFLINE)
    with pytest.raises(openai.BadRequestError) as caught:
        client.responses.create(input=input, previous_response_id=first.id, **OFFLINE)
    assert caught.value.code == code


def test_an_output_given_twice_is_refused(client):
    first = client.responses.create(input="What is the weather in Oslo?", **OFFLINE)
    twice = [output(calls(first)[0], "1"), output(calls(first)[0], "2")]
    with pytest.raises(openai.BadRequestError) as caught:
        client.responses.create(input=twice, previous_response_id=first.id, **OFFLINE)
    assert caught.value.code == "duplicate_tool_output"
