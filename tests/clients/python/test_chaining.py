"""`previous_response_id`: what a response inherits, what not, and for how long."""

import openai
import pytest

from conftest import CLIENT
from helpers import WEATHER, calls, output


def contents(backend):
    return [(message["role"], message["content"]) for message in backend.messages]


def test_a_chain_is_the_context_in_order(client, backend):
    previous = None
    for number in range(3):
        backend.say(f"answer {number}")
        response = client.responses.create(
            model="double", input=f"question {number}", previous_response_id=previous
        )
        assert response.previous_response_id == previous
        previous = response.id
    assert contents(backend) == [
        ("user", "question 0"),
        ("assistant", "answer 0"),
        ("user", "question 1"),
        ("assistant", "answer 1"),
        ("user", "question 2"),
    ]


def test_instructions_tools_and_sampling_are_not_inherited(client, backend):
    backend.say("one")
    backend.say("two")
    first = client.responses.create(
        model="double", input="a", instructions="Be brief.", tools=[WEATHER], temperature=0
    )
    second = client.responses.create(model="double", input="b", previous_response_id=first.id)
    assert contents(backend) == [("user", "a"), ("assistant", "one"), ("user", "b")]
    assert "tools" not in backend.requests[1] and "temperature" not in backend.requests[1]
    assert second.instructions is None and second.tools == [] and second.temperature == 1


def test_a_chain_may_branch(client, backend):
    backend.say("root")
    root = client.responses.create(model="double", input="start")
    for name in ("left", "right"):
        backend.say("leaf")
        client.responses.create(model="double", input=name, previous_response_id=root.id)
        assert contents(backend) == [("user", "start"), ("assistant", "root"), ("user", name)]


def test_thoughts_calls_and_outputs_keep_their_order(client, backend):
    backend.call(("call_a", "get_weather", {"city": "Oslo"}), reasoning=["Hm."], pieces=["One moment."])
    backend.say("Rain.")
    backend.say("Still rain.")
    tools = {"model": "double", "tools": [WEATHER]}
    first = client.responses.create(input="Weather?", **tools)
    assert [item.type for item in first.output] == ["reasoning", "message", "function_call"]
    second = client.responses.create(
        input=[output(calls(first)[0], "rain")], previous_response_id=first.id, **tools
    )
    third = client.responses.create(input="Sure?", previous_response_id=second.id, **tools)
    assert third.output_text == "Still rain."
    assert [message["role"] for message in backend.messages] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
    ]
    assert backend.messages[1]["content"] == "One moment."
    assert backend.messages[1]["tool_calls"][0]["id"] == "call_a"
    listed = client.responses.input_items.list(third.id, order="asc", limit=100).data
    assert [item.type for item in listed] == [
        "message",
        "reasoning",
        "message",
        "function_call",
        "function_call_output",
        "message",
        "message",
    ]


def test_an_item_can_be_referred_to_by_its_id(client, backend):
    backend.say("stored")
    backend.say("found")
    first = client.responses.create(model="double", input="one")
    reference = {"type": "item_reference", "id": first.output[0].id}
    client.responses.create(
        model="double", input=[reference, {"role": "user", "content": "two"}]
    )
    assert contents(backend) == [("assistant", "stored"), ("user", "two")]


def test_what_continued_from_a_deleted_response_keeps_working(client, backend):
    for text in ("one", "two", "three"):
        backend.say(text)
    first = client.responses.create(model="double", input="a")
    second = client.responses.create(model="double", input="b", previous_response_id=first.id)
    client.responses.delete(first.id)
    client.responses.create(model="double", input="c", previous_response_id=second.id)
    assert [text for _, text in contents(backend)] == ["a", "one", "b", "two", "c"]
    with pytest.raises(openai.BadRequestError) as caught:
        client.responses.create(model="double", input="d", previous_response_id=first.id)
    assert caught.value.code == "previous_response_not_found"


def test_a_chain_survives_a_restart(serve, backend):
    server = serve()
    backend.say("one")
    backend.say("two")
    with openai.OpenAI(base_url=server.base_url, **CLIENT) as client:
        first = client.responses.create(model="double", input="a")
    server.restart()
    with openai.OpenAI(base_url=server.base_url, **CLIENT) as client:
        assert client.responses.retrieve(first.id).output_text == "one"
        client.responses.create(model="double", input="b", previous_response_id=first.id)
    assert contents(backend) == [("user", "a"), ("assistant", "one"), ("user", "b")]


@pytest.mark.parametrize("id", ["resp_nowhere", "nonsense"])
def test_an_unknown_response_cannot_be_continued(client, id):
    with pytest.raises(openai.BadRequestError) as caught:
        client.responses.create(model="offline", input="hi", previous_response_id=id)
    assert caught.value.code == "previous_response_not_found"
    assert caught.value.param == "previous_response_id"


def test_a_response_that_is_not_stored_cannot_be_continued(client):
    first = client.responses.create(model="offline", input="hi", store=False)
    with pytest.raises(openai.BadRequestError) as caught:
        client.responses.create(model="offline", input="hi", previous_response_id=first.id)
    assert caught.value.code == "previous_response_not_found"
