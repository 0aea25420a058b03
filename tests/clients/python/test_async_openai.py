"""async-openai for Rust, run as a program (`tests/clients/rust`). Its events and statuses are closed enumerations, so
anything that OpenAI's API does not have ends the program with an error."""

import json

import pytest

from drivers import installed, run

CLIENT = "async-openai (Rust)"
PROGRAM = installed("rust", "debug", "async-openai-client")


@pytest.fixture
def task(wire, tmp_path):
    return lambda name: json.loads(run([PROGRAM, wire.base_url, name], tmp_path))


@pytest.mark.covers("plain")
def test_text_and_usage(task, backend):
    backend.say("Hello there.")
    assert task("plain") == {"text": "Hello there.", "status": "completed", "input_tokens": 10}
    assert [(it["role"], it["content"]) for it in backend.messages] == [
        ("system", "Be brief."),
        ("user", "hi"),
    ]


@pytest.mark.covers("streamed")
def test_reasoning_and_text_are_streamed_as_typed_events(task, backend):
    backend.say("One two three.", reasoning=["Let me ", "count."])
    streamed = task("streamed")
    assert streamed["text"] == "One two three."
    assert streamed["deltas"] == ["One ", "two ", "three."]
    assert backend.requests[0]["stream"] is True
    assert streamed["types"].count("response.reasoning_text.delta") == 2
    assert streamed["types"][-1] == "response.completed"


@pytest.mark.covers("tools")
@pytest.mark.parametrize("name", ["tools", "tools-streamed"])
def test_own_function_is_called_and_its_output_reaches_the_model(task, backend, name):
    backend.call(("call_a", "get_weather", {"city": "Oslo"}))
    backend.say("Rain.")
    assert task(name) == {"text": "Rain.", "asked": ["Oslo"], "statuses": ["completed"] * 2}
    [offered] = backend.requests[0]["tools"]
    assert offered["function"]["name"] == "get_weather"
    call, answer = backend.messages[-2:]
    assert json.loads(call["tool_calls"][0]["function"]["arguments"]) == {"city": "Oslo"}
    assert (answer["tool_call_id"], answer["content"]) == ("call_a", "rain in Oslo")


@pytest.mark.covers("reasoning")
@pytest.mark.parametrize("name", ["tools", "tools-streamed"])
def test_reasoning_is_sent_back_between_tool_turns(task, backend, name):
    backend.call(("call_a", "get_weather", {"city": "Oslo"}), reasoning=["Look ", "it up."])
    backend.say("Rain.")
    task(name)
    assert backend.messages[-2].get("reasoning_content") == "Look it up."


@pytest.mark.covers("structured output")
def test_structured_output_has_the_schema(task, backend):
    backend.say('{"name": "Oslo", "population": 717710}')
    assert task("structured") == {"name": "Oslo", "population": 717710}
    format = backend.requests[0]["response_format"]["json_schema"]
    assert set(format["schema"]["properties"]) == {"name", "population"}
    assert format["strict"] is True
