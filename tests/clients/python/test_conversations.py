"""`client.conversations`: what they hold, and responses that go on in them."""

import openai
import pytest

from backend import PATIENCE, Gate
from conftest import CLIENT
from helpers import WEATHER, calls, ended, output, user


def texts(items):
    return [item.content[0].text for item in items]


def test_a_conversation_is_made_changed_and_deleted(client):
    made = client.conversations.create(metadata={"topic": "demo"})
    assert made.id.startswith("conv_") and made.object == "conversation"
    assert made.metadata == {"topic": "demo"}
    assert client.conversations.retrieve(made.id) == made
    changed = client.conversations.update(made.id, metadata={"topic": "other"})
    assert (changed.id, changed.metadata) == (made.id, {"topic": "other"})
    assert changed.created_at == made.created_at
    deleted = client.conversations.delete(made.id)
    assert (deleted.id, deleted.deleted) == (made.id, True)
    assert deleted.object == "conversation.deleted"
    with pytest.raises(openai.NotFoundError) as caught:
        client.conversations.retrieve(made.id)
    assert caught.value.code == "conversation_not_found"


def test_items_are_added_listed_read_and_taken_away(client):
    conversation = client.conversations.create(items=[user("one"), user("two")])
    added = client.conversations.items.create(
        conversation.id, items=[{"type": "message", "role": "assistant", "content": "three"}]
    )
    assert texts(added.data) == ["three"]
    listed = client.conversations.items.list(conversation.id, order="asc")
    assert texts(listed.data) == ["one", "two", "three"]
    pages = client.conversations.items.list(conversation.id, limit=2)
    assert texts(pages.data) == ["three", "two"] and pages.has_more
    assert texts(pages) == ["three", "two", "one"]
    second = listed.data[1]
    found = client.conversations.items.retrieve(second.id, conversation_id=conversation.id)
    assert found == second
    left = client.conversations.items.delete(second.id, conversation_id=conversation.id)
    assert left.id == conversation.id
    assert texts(client.conversations.items.list(conversation.id, order="asc")) == ["one", "three"]
    with pytest.raises(openai.NotFoundError) as caught:
        client.conversations.items.retrieve(second.id, conversation_id=conversation.id)
    assert caught.value.code == "item_not_found"


def test_responses_go_on_in_a_conversation(client, backend):
    conversation = client.conversations.create(items=[user("I am Ada.")])
    backend.say("Hello Ada.")
    first = client.responses.create(
        model="double", input="Hello.", conversation=conversation.id
    )
    assert first.conversation.id == conversation.id
    backend.say("Ada.")
    client.responses.create(
        model="double", input="Who am I?", conversation={"id": conversation.id}
    )
    said = [(message["role"], message["content"]) for message in backend.messages]
    assert said == [
        ("user", "I am Ada."),
        ("user", "Hello."),
        ("assistant", "Hello Ada."),
        ("user", "Who am I?"),
    ]
    listed = client.conversations.items.list(conversation.id, order="asc")
    assert texts(listed) == [*[text for _, text in said], "Ada."]


def test_a_function_call_goes_on_in_a_conversation(client):
    conversation = client.conversations.create()
    tools = {"model": "offline", "tools": [WEATHER], "conversation": conversation.id}
    first = client.responses.create(input="What is the weather in Oslo?", **tools)
    with client.responses.stream(input=[output(calls(first)[0], "rain")], **tools) as stream:
        second = stream.get_final_response()
    assert "`get_weather`: rain" in second.output_text
    listed = client.conversations.items.list(conversation.id, order="asc")
    assert [item.type for item in listed] == [
        "message",
        "function_call",
        "function_call_output",
        "message",
    ]


def test_one_run_at_a_time_in_a_conversation(client, backend):
    conversation = client.conversations.create()
    gate = Gate(after=0)
    backend.say("one", gate=gate)
    running = client.responses.create(
        model="double", input="a", conversation=conversation.id, background=True
    )
    assert gate.reached.wait(PATIENCE)
    with pytest.raises(openai.ConflictError) as caught:
        client.responses.create(model="double", input="b", conversation=conversation.id)
    assert caught.value.code == "conversation_locked"
    gate.open()
    assert ended(client, running.id).status == "completed"
    backend.say("two")
    client.responses.create(model="double", input="b", conversation=conversation.id)
    assert [message["content"] for message in backend.messages] == ["a", "one", "b"]


def test_a_failed_response_leaves_a_conversation_as_it_was(client, backend):
    conversation = client.conversations.create(items=[user("one")])
    backend.fail(500, "out of order")
    with pytest.raises(openai.InternalServerError):
        client.responses.create(model="double", input="two", conversation=conversation.id)
    assert texts(client.conversations.items.list(conversation.id)) == ["one"]


def test_a_conversation_survives_a_restart_and_its_responses_survive_it(serve, backend):
    server = serve()
    backend.say("Hello.")
    with openai.OpenAI(base_url=server.base_url, **CLIENT) as client:
        conversation = client.conversations.create(metadata={"a": "b"})
        response = client.responses.create(
            model="double", input="Hi.", conversation=conversation.id
        )
    server.restart()
    with openai.OpenAI(base_url=server.base_url, **CLIENT) as client:
        assert client.conversations.retrieve(conversation.id) == conversation
        listed = client.conversations.items.list(conversation.id, order="asc")
        assert texts(listed) == ["Hi.", "Hello."]
        client.conversations.delete(conversation.id)
        assert client.responses.retrieve(response.id).output_text == "Hello."


def test_a_conversation_and_a_previous_response_exclude_each_other(client):
    conversation = client.conversations.create()
    first = client.responses.create(model="offline", input="hi")
    with pytest.raises(openai.BadRequestError):
        client.responses.create(
            model="offline",
            input="hi",
            conversation=conversation.id,
            previous_response_id=first.id,
        )
    with pytest.raises(openai.NotFoundError) as caught:
        client.responses.create(model="offline", input="hi", conversation="conv_nowhere")
    assert caught.value.code == "conversation_not_found"
