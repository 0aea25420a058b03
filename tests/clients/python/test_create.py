"""`responses.create` and what can be asked about a response afterwards."""

import json

import openai
import pytest

from helpers import NOTICE, WEATHER, plain, user

CLIENT = "openai (Python)"


def test_a_text_is_answered_with_a_whole_response_object(client):
    response = client.responses.create(model="offline", input="Say hello.")
    assert response.id.startswith("resp_")
    assert response.object == "response"
    assert response.status == "completed"
    assert response.model == "offline"
    assert response.error is None
    assert response.incomplete_details is None
    assert response.output_text.endswith(NOTICE)
    [message] = response.output
    assert (message.type, message.role, message.status) == ("message", "assistant", "completed")
    assert message.id.startswith("msg_")
    assert response.usage.input_tokens > 0
    usage = response.usage
    assert usage.total_tokens == usage.input_tokens + usage.output_tokens
    assert usage.input_tokens_details.cached_tokens == 0
    assert usage.output_tokens_details.reasoning_tokens == 0
    assert response.completed_at >= response.created_at
    assert (response.temperature, response.top_p) == (1, 1)
    assert response.tools == [] and response.tool_choice == "auto"
    assert response.parallel_tool_calls is True and response.background is False
    assert response.text.format.type == "text"


@pytest.mark.covers("plain")
def test_text_and_instructions_reach_the_model_word_for_word(client, backend):
    text = "  Grüße — “quoted”, \\n, \u2028, 🦀 and </s>\n\ttabs "
    backend.say("It is done.")
    response = client.responses.create(model="double", input=text, instructions="Be brief. ✓")
    assert response.output_text == "It is done."
    assert response.instructions == "Be brief. ✓"
    [request] = backend.requests
    assert request["model"] == "double-1"
    system, message = request["messages"]
    assert system["role"] in ("system", "developer") and system["content"] == "Be brief. ✓"
    assert message == {"role": "user", "content": text}
    assert (response.usage.input_tokens, response.usage.output_tokens) == (10, 5)


def test_messages_of_all_roles_reach_the_model_in_their_places(client, backend):
    backend.say("Yes.")
    client.responses.create(
        model="double",
        input=[
            {"role": "developer", "content": "one"},
            {"role": "user", "content": [{"type": "input_text", "text": "two"}]},
            {"role": "assistant", "content": "three"},
            {"role": "system", "content": "four"},
            {"type": "message", "role": "user", "content": "five"},
        ],
    )
    said = [(message["role"], text_of(message)) for message in backend.messages]
    assert [text for _, text in said] == ["one", "two", "three", "four", "five"]
    assert [role for role, _ in said][1:3] == ["user", "assistant"]
    assert {said[0][0], said[3][0]} <= {"system", "developer"}


def text_of(message):
    content = message["content"]
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def test_an_image_reaches_the_model(client, backend):
    url = "data:image/png;base64,iVBORw0KGgo="
    backend.say("A dot.")
    parts = [
        {"type": "input_text", "text": "What is it?"},
        {"type": "input_image", "image_url": url, "detail": "low"},
    ]
    client.responses.create(model="double", input=[{"role": "user", "content": parts}])
    text, image = backend.messages[0]["content"]
    assert text == {"type": "text", "text": "What is it?"}
    assert image["image_url"]["url"] == url


def test_what_a_request_sets_is_sent_on_and_echoed(client, backend):
    backend.say("ok")
    response = client.responses.create(
        model="double",
        input="hi",
        temperature=0,
        top_p=0.5,
        max_output_tokens=99,
        reasoning={"effort": "low"},
        metadata={"ticket": "7"},
        user="somebody",
        safety_identifier="s-1",
        truncation="auto",
    )
    [request] = backend.requests
    assert (request["temperature"], request["top_p"]) == (0, 0.5)
    assert 99 in (request.get("max_tokens"), request.get("max_completion_tokens"))
    assert request["reasoning_effort"] == "low"
    assert (response.temperature, response.top_p) == (0, 0.5)
    assert response.max_output_tokens == 99
    assert response.reasoning.effort == "low"
    assert response.metadata == {"ticket": "7"}
    assert response.safety_identifier == "s-1"
    assert response.truncation == "auto"


def test_a_token_limit_makes_a_response_incomplete(client, backend):
    backend.say("Once upon a", finish="length")
    response = client.responses.create(model="double", input="A story", max_output_tokens=16)
    assert response.status == "incomplete"
    assert response.incomplete_details.reason == "max_output_tokens"
    assert response.output_text == "Once upon a"
    assert response.output[-1].status == "incomplete"


def test_a_stored_response_is_retrieved_as_it_was_created(client):
    created = client.responses.create(
        model="offline", input="Weather in Oslo?", tools=[WEATHER], metadata={"a": "b"}
    )
    assert plain(client.responses.retrieve(created.id)) == plain(created)


def test_a_response_that_is_not_stored_is_not_found(client):
    created = client.responses.create(model="offline", input="hi", store=False)
    assert created.store is False
    with pytest.raises(openai.NotFoundError) as caught:
        client.responses.retrieve(created.id)
    assert caught.value.code == "response_not_found"


def test_a_deleted_response_is_gone(client):
    created = client.responses.create(model="offline", input="hi")
    assert client.responses.delete(created.id) is None
    with pytest.raises(openai.NotFoundError) as caught:
        client.responses.retrieve(created.id)
    assert caught.value.code == "response_not_found"
    with pytest.raises(openai.NotFoundError):
        client.responses.delete(created.id)


def test_input_items_come_in_pages_in_both_orders(client):
    texts = [f"number {number}" for number in range(7)]
    created = client.responses.create(model="offline", input=[user(text) for text in texts])
    page = client.responses.input_items.list(created.id, limit=3, order="asc")
    assert [item.content[0].text for item in page.data] == texts[:3]
    assert page.has_more is True
    second = page.get_next_page()
    assert [item.content[0].text for item in second.data] == texts[3:6]
    # Going through a page goes through all pages that follow.
    listed = [item.content[0].text for item in page]
    assert listed == texts
    newest = client.responses.input_items.list(created.id, limit=2)
    assert [item.content[0].text for item in newest.data] == texts[:-3:-1]
    items = list(client.responses.input_items.list(created.id, limit=2))
    assert [item.content[0].text for item in items] == texts[::-1]
    assert all(item.id.startswith("msg_") and item.status == "completed" for item in items)
    after = client.responses.input_items.list(created.id, order="asc", after=items[1].id)
    assert [item.content[0].text for item in after.data] == texts[-1:]


def test_input_items_hold_what_a_response_inherited(client):
    first = client.responses.create(model="offline", input="one")
    second = client.responses.create(model="offline", input="two", previous_response_id=first.id)
    items = client.responses.input_items.list(second.id, order="asc").data
    assert [item.content[0].text for item in items] == ["one", first.output_text, "two"]
    assert items[1].id == first.output[0].id


def test_input_tokens_are_counted_without_asking_the_model(client, backend):
    count = client.responses.input_tokens.count(model="double", input="a few words")
    assert count.object == "response.input_tokens"
    assert count.input_tokens > 0
    more = client.responses.input_tokens.count(
        model="double", input="a few words " * 100, instructions="Be brief.", tools=[WEATHER]
    )
    assert more.input_tokens > count.input_tokens + 100
    assert backend.requests == []


def test_the_raw_answer_has_a_request_id_and_the_same_object(client):
    raw = client.responses.with_raw_response.create(
        model="offline", input="hi", extra_headers={"x-request-id": "req-7"}
    )
    assert raw.headers["content-type"] == "application/json"
    assert raw.headers["x-request-id"] == "req-7"
    response = raw.parse()
    assert response._request_id == "req-7"
    assert json.loads(raw.text)["id"] == response.id
    other = client.responses.create(model="offline", input="hi")
    assert other._request_id not in (None, "req-7")


def test_an_answer_can_be_read_as_it_comes(client):
    create = client.responses.with_streaming_response.create
    with create(model="offline", input="hi") as answer:
        body = json.loads("".join(answer.iter_text()))
    assert body["object"] == "response" and body["status"] == "completed"
    # All fields of the specification are there, whatever a client makes of them.
    assert body["previous_response_id"] is None and body["metadata"] == {}


def test_models_are_listed_and_found(client):
    names = [model.id for model in client.models.list()]
    assert names == ["offline", "double", "gpt-double", "nobody"]
    model = client.models.retrieve("double")
    assert (model.id, model.object) == ("double", "model")
    with pytest.raises(openai.NotFoundError) as caught:
        client.models.retrieve("gone")
    assert caught.value.code == "model_not_found"
