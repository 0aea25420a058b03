"""`@openai/agents` for Node, run as a program (`tests/clients/node/agents.mjs`)."""

import json

import pytest

from drivers import SOURCES, installed, run

CLIENT = "@openai/agents"
PACKAGE = installed("agents", "node_modules", "@openai", "agents", "package.json")


@pytest.fixture
def task(wire, tmp_path):
    def start(name):
        program = ["node", str(SOURCES / "node" / "agents.mjs"), wire.base_url, name]
        environment = {"CLIENTS_PACKAGES": installed("agents")}
        return json.loads(run(program, tmp_path, environment))

    return start


@pytest.mark.covers("plain")
def test_text(task, backend):
    backend.say("Hello there.")
    assert task("plain") == "Hello there."
    assert [(it["role"], it["content"]) for it in backend.messages] == [
        ("system", "Be brief."),
        ("user", "hi"),
    ]


@pytest.mark.covers("streamed")
def test_streamed_text(task, backend):
    backend.say("One two three.", reasoning=["Count."])
    assert task("streamed") == ["One ", "two ", "three."]


@pytest.mark.covers("tools")
def test_own_function_is_called_and_its_output_reaches_the_model(task, backend):
    backend.call(("call_a", "get_weather", {"city": "Oslo"}))
    backend.say("Rain.")
    assert task("tools") == {"text": "Rain.", "asked": ["Oslo"]}
    call, answer = backend.messages[-2:]
    assert call["tool_calls"][0]["id"] == "call_a"
    assert (answer["tool_call_id"], answer["content"]) == ("call_a", "rain in Oslo")


@pytest.mark.covers("reasoning")
def test_reasoning_is_sent_back_between_tool_turns(task, backend):
    backend.call(("call_a", "get_weather", {"city": "Oslo"}), reasoning=["Look ", "it up."])
    backend.say("Rain.")
    task("tools")
    assert backend.messages[-2].get("reasoning_content") == "Look it up."


@pytest.mark.covers("structured output")
def test_structured_output_has_the_schema(task, backend):
    backend.say('{"name": "Oslo", "population": 717710}')
    assert task("structured") == {"name": "Oslo", "population": 717710}
    schema = backend.requests[0]["response_format"]["json_schema"]["schema"]
    assert set(schema["properties"]) == {"name", "population"}
