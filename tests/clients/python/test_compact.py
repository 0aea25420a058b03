"""`client.responses.compact`: a long history as one sealed item."""

import openai
import pytest

from conftest import CLIENT
from helpers import WEATHER, calls, output, user

HISTORY = [
    user("My name is Ada."),
    {"role": "assistant", "content": "Hello Ada."},
    user("The sky is green."),
    {"role": "assistant", "content": "Noted: green."},
]


def test_user_messages_stay_and_one_sealed_item_comes_last(client, backend):
    backend.say("Ada says that the sky is green.")
    compacted = client.responses.compact(model="double", input=HISTORY)
    assert compacted.object == "response.compaction"
    assert compacted.id.startswith("resp_")
    *messages, sealed = compacted.output
    assert [message.role for message in messages] == ["user", "user"]
    kept = [message.content[0].text for message in messages]
    assert kept == ["My name is Ada.", "The sky is green."]
    assert sealed.type == "compaction" and sealed.id.startswith("cmp_")
    assert "green" not in sealed.encrypted_content
    usage = compacted.usage
    assert usage.total_tokens == usage.input_tokens + usage.output_tokens > 0


def test_a_compacted_window_begins_a_new_chain(client, backend):
    backend.say("SUMMARY-7: Ada says that the sky is green.")
    compacted = client.responses.compact(model="double", input=HISTORY)
    backend.say("Green.")
    response = client.responses.create(
        model="double", input=[*compacted.output, user("Which colour?")]
    )
    assert response.output_text == "Green."
    sent = str(backend.messages)
    assert "SUMMARY-7" in sent and "My name is Ada." in sent
    assert "Noted: green." not in sent
    assert backend.messages[-1]["content"] == "Which colour?"
    # The chain that follows keeps it.
    backend.say("Still green.")
    client.responses.create(model="double", input="Sure?", previous_response_id=response.id)
    assert "SUMMARY-7" in str(backend.messages)


def test_a_stored_chain_can_be_compacted(client, backend):
    backend.say("Hello Ada.")
    first = client.responses.create(model="double", input="My name is Ada.")
    backend.say("SUMMARY")
    compacted = client.responses.compact(model="double", previous_response_id=first.id)
    assert compacted.output[0].content[0].text == "My name is Ada."
    assert "Hello Ada." in str(backend.messages)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(compacted.id)


def test_an_open_call_stays_outside(client, backend):
    backend.call(("call_a", "get_weather", {"city": "Oslo"}))
    first = client.responses.create(model="double", input="Weather in Oslo?", tools=[WEATHER])
    backend.say("SUMMARY")
    compacted = client.responses.compact(model="double", previous_response_id=first.id)
    backend.say("Rain.")
    items = [*compacted.output]
    if not any(item.type == "function_call" for item in items):
        items += calls(first)
    response = client.responses.create(
        model="double", input=[*items, output(calls(first)[0], "rain")], tools=[WEATHER]
    )
    assert response.output_text == "Rain."
    roles = [message["role"] for message in backend.messages]
    at = roles.index("tool")
    assert roles[at - 1] == "assistant" and roles.count("tool") == 1
    assert backend.messages[at - 1]["tool_calls"][0]["id"] == "call_a"
    assert backend.messages[at]["content"] == "rain"


def test_a_forged_item_is_refused(client, backend):
    backend.say("SUMMARY")
    *_, sealed = client.responses.compact(model="double", input=HISTORY).output
    text = sealed.encrypted_content
    middle = len(text) // 2
    forged = text[:middle] + ("A" if text[middle] != "A" else "B") + text[middle + 1 :]
    for content in (forged, "nonsense"):
        item = {"type": "compaction", "encrypted_content": content}
        with pytest.raises(openai.BadRequestError) as caught:
            client.responses.create(model="double", input=[item, user("hi")])
        assert caught.value.code == "invalid_encrypted_content"


def test_a_sealed_item_survives_a_restart(serve, backend):
    server = serve()
    backend.say("SUMMARY-7")
    with openai.OpenAI(base_url=server.base_url, **CLIENT) as client:
        compacted = client.responses.compact(model="double", input=HISTORY)
    server.restart()
    backend.say("Green.")
    with openai.OpenAI(base_url=server.base_url, **CLIENT) as client:
        client.responses.create(model="double", input=[*compacted.output, user("Colour?")])
    assert "SUMMARY-7" in str(backend.messages)


def test_something_must_be_given(client):
    with pytest.raises(openai.BadRequestError) as caught:
        client.responses.compact(model="offline")
    assert caught.value.code == "missing_required_parameter"
    with pytest.raises(openai.BadRequestError) as caught:
        client.responses.compact(model=None, input="hi")
    assert (caught.value.code, caught.value.param) == ("missing_required_parameter", "model")


def test_a_context_over_its_threshold_is_compacted_by_itself(client, backend):
    backend.say("SUMMARY-7")
    backend.say("Green.")
    long = [user("My name is Ada. " * 400), {"role": "assistant", "content": "Hello. " * 400}]
    response = client.responses.create(
        model="double",
        input=[*long, user("Colour?")],
        context_management=[{"type": "compaction", "compact_threshold": 1000}],
    )
    assert [item.type for item in response.output] == ["compaction", "message"]
    assert response.output_text == "Green."
    assert "SUMMARY-7" in str(backend.messages)
    backend.say("Yes.")
    client.responses.create(model="double", input="Sure?", previous_response_id=response.id)
    sent = str(backend.messages)
    assert "SUMMARY-7" in sent and "Hello. Hello." not in sent
