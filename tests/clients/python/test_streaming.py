"""Streams: events in order, as they come, to the end or to the failure."""

import asyncio
import json

import openai
import pytest

from backend import PATIENCE, Gate, Reply
from helpers import ended, plain, types

CLIENT = "openai (Python)"

MESSAGE = [
    "response.created",
    "response.in_progress",
    "response.output_item.added",
    "response.content_part.added",
    "response.output_text.delta",
    "response.output_text.delta",
    "response.output_text.delta",
    "response.output_text.done",
    "response.content_part.done",
    "response.output_item.done",
    "response.completed",
]


def test_the_events_of_a_message_come_in_order(client, backend):
    backend.say("one two three")
    events = list(client.responses.create(model="double", input="Count.", stream=True))
    assert types(events) == MESSAGE
    assert [event.sequence_number for event in events] == list(range(len(MESSAGE)))
    deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert deltas == ["one ", "two ", "three"]
    done = events[MESSAGE.index("response.output_text.done")]
    assert done.text == "one two three"
    assert events[0].response.status == "in_progress" and events[0].response.output == []
    final = events[-1].response
    assert final.output_text == "one two three"
    assert plain(events[-2].item) == plain(final.output[0])
    assert backend.requests[0]["stream"] is True


@pytest.mark.covers("streamed")
def test_the_stream_helper_ends_with_what_is_stored(client, backend):
    backend.say("one two three")
    snapshots = []
    with client.responses.stream(model="double", input="Count.") as stream:
        for event in stream:
            if event.type == "response.output_text.delta":
                snapshots.append(event.snapshot)
        final = stream.get_final_response()
    assert snapshots == ["one ", "one two ", "one two three"]
    assert final.status == "completed" and final.output_text == "one two three"
    assert plain(client.responses.retrieve(final.id)) == plain(final)


def test_the_asynchronous_stream_helper_does_the_same(connect, backend):
    backend.say("one two three")

    async def run():
        async with connect() as client:
            async with client.responses.stream(model="double", input="Count.") as stream:
                seen = [event.type async for event in stream]
                final = await stream.get_final_response()
            return seen, final, await client.responses.retrieve(final.id)

    seen, final, stored = asyncio.run(run())
    assert seen == MESSAGE
    assert plain(final) == plain(stored)


def test_words_come_while_the_model_still_speaks(client, backend):
    gate = Gate(after=2)
    backend.say("first second", gate=gate)
    stream = client.responses.create(model="double", input="hi", stream=True)
    event = next(event for event in stream if event.type == "response.output_text.delta")
    assert event.delta == "first "
    assert not gate.gone.is_set()
    gate.open()
    rest = list(stream)
    assert rest[0].delta == "second"
    assert rest[-1].response.output_text == "first second"


def test_frames_are_as_the_specification_says(client, backend):
    backend.say("ok")
    create = client.responses.with_streaming_response.create
    with create(model="double", input="hi", stream=True) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        text = "".join(answer.iter_text())
    assert "\r" not in text
    *frames, done, end = text.split("\n\n")
    assert (done, end) == ("data: [DONE]", "")
    for frame in frames:
        event, data = frame.split("\n")
        assert json.loads(data.removeprefix("data: "))["type"] == event.removeprefix("event: ")


def test_raw_thoughts_come_under_the_name_that_the_sdk_knows(client, backend):
    backend.say("Yes.", reasoning=["Hm, ", "well."])
    with client.responses.stream(model="double", input="Is it?") as stream:
        events = list(stream)
        final = stream.get_final_response()
    deltas = [event.delta for event in events if event.type == "response.reasoning_text.delta"]
    assert deltas == ["Hm, ", "well."]
    thought, message = final.output
    assert (thought.type, thought.content[0].text) == ("reasoning", "Hm, well.")
    assert message.content[0].text == "Yes."


def test_a_refusal_is_a_part_of_its_own(client, backend):
    backend.add(Reply(refusal="I will not."))
    with client.responses.stream(model="double", input="Do it.") as stream:
        events = list(stream)
        final = stream.get_final_response()
    assert "response.refusal.done" in types(events)
    [part] = final.output[0].content
    assert (part.type, part.refusal) == ("refusal", "I will not.")


def test_a_token_limit_ends_a_stream_with_its_own_event(client, backend):
    backend.say("Once upon", finish="length")
    events = list(client.responses.create(model="double", input="A story", stream=True))
    assert types(events)[-2:] == ["response.output_item.done", "response.incomplete"]
    assert events[-2].item.status == "incomplete"
    final = events[-1].response
    assert final.incomplete_details.reason == "max_output_tokens"
    assert final.output_text == "Once upon"


@pytest.mark.parametrize("cut_after", [1, 2, 3, 4])
def test_a_break_in_mid_stream_tells_the_error_and_then_the_failure(client, backend, cut_after):
    backend.say("some words that never end", cut_after=cut_after)
    events = list(client.responses.create(model="double", input="hi", stream=True))
    *_, error, failed = events
    assert (error.type, failed.type) == ("error", "response.failed")
    deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert deltas == ["some ", "words ", "that "][: cut_after - 1]
    assert error.code and error.message
    assert failed.response.status == "failed"
    assert failed.response.error.code == error.code
    assert failed.response.output == []
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert client.responses.retrieve(failed.response.id).status == "failed"


def test_a_failure_before_the_first_word_is_an_exception(client, backend):
    backend.fail(500, "out of order")
    with pytest.raises(openai.InternalServerError) as caught:
        client.responses.create(model="double", input="hi", stream=True)
    assert caught.value.code == "model_error"


def test_a_client_that_goes_away_stops_the_model(client, backend):
    gate = Gate(after=2)
    backend.say("first second", gate=gate)
    stream = client.responses.create(model="double", input="hi", stream=True)
    id = next(stream).response.id
    assert gate.reached.wait(PATIENCE)
    stream.close()
    assert gate.gone.wait(PATIENCE)
    # The run of a client that went away counts as cancelled.
    assert ended(client, id, may_be_unwritten=True).status == "cancelled"


def test_a_streamed_response_can_be_continued_at_once(client, backend):
    for number in range(20):
        backend.reset()
        backend.say(f"answer {number}")
        backend.say("again")
        for event in client.responses.create(model="double", input="hi", stream=True):
            if event.type == "response.completed":
                next_one = client.responses.create(
                    model="double", input="more", previous_response_id=event.response.id
                )
        assert next_one.output_text == "again"
        assert [message["content"] for message in backend.messages] == [
            "hi",
            f"answer {number}",
            "more",
        ]
