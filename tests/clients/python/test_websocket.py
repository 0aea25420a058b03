"""`client.responses.connect()`: turns over one WebSocket."""

import asyncio

import openai
import pytest

from backend import PATIENCE, Gate
from helpers import WEATHER, calls, output, plain, types

ENDS = {"response.completed", "response.failed", "response.incomplete", "error"}


def turn(connection, **create):
    """The events of one turn."""
    connection.response.create(**create)
    return events(connection)


def events(connection):
    seen = []
    while not seen or seen[-1].type not in ENDS:
        seen.append(connection.recv())
    return seen


def test_a_turn_has_the_events_of_a_stream(client, backend):
    backend.say("one two")
    backend.say("one two")
    with client.responses.connect() as connection:
        seen = turn(connection, model="double", input="Count.")
    streamed = list(client.responses.create(model="double", input="Count.", stream=True))
    assert types(seen) == types(streamed)
    assert [event.sequence_number for event in seen] == list(range(len(seen)))
    final = seen[-1].response
    assert final.output_text == "one two"
    assert plain(client.responses.retrieve(final.id)) == plain(final)


def test_words_come_while_the_model_still_speaks(client, backend):
    gate = Gate(after=2)
    backend.say("first second", gate=gate)
    with client.responses.connect() as connection:
        connection.response.create(model="double", input="hi")
        event = connection.recv()
        while event.type != "response.output_text.delta":
            event = connection.recv()
        assert event.delta == "first "
        gate.open()
        assert events(connection)[-1].response.output_text == "first second"


def test_what_is_not_stored_can_be_continued_on_its_own_socket_only(client, backend):
    backend.say("one")
    backend.say("two")
    with client.responses.connect() as connection:
        first = turn(connection, model="double", input="a", store=False)[-1].response
        turn(connection, model="double", input="b", store=False, previous_response_id=first.id)
        said = [message["content"] for message in backend.messages]
        assert said == ["a", "one", "b"]
    with client.responses.connect() as connection:
        [error] = turn(connection, model="double", input="c", previous_response_id=first.id)
        assert error.error.code == "previous_response_not_found"
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(first.id)


def test_a_stored_response_can_be_continued_on_any_socket(client, backend):
    for text in ("one", "two", "three"):
        backend.say(text)
    with client.responses.connect() as connection:
        first = turn(connection, model="double", input="a")[-1].response
    with client.responses.connect() as connection:
        turn(connection, model="double", input="b", previous_response_id=first.id)
    client.responses.create(model="double", input="c", previous_response_id=first.id)
    assert [message["content"] for message in backend.messages] == ["a", "one", "c"]


def test_functions_go_round_on_one_socket(client, backend):
    backend.call(("call_a", "get_weather", {"city": "Oslo"}), ("call_b", "get_weather", {"city": "Rome"}))
    backend.say("Fine.")
    tools = {"model": "double", "tools": [WEATHER], "store": False}
    with client.responses.connect() as connection:
        first = turn(connection, input="Oslo and Rome?", **tools)[-1].response
        outputs = [output(call, "fine") for call in calls(first)]
        second = turn(connection, input=outputs, previous_response_id=first.id, **tools)
    assert second[-1].response.output_text == "Fine."
    roles = [message["role"] for message in backend.messages]
    assert roles == ["user", "assistant", "tool", "tool"]


def test_turns_wait_for_each_other(client, backend):
    gate = Gate(after=0)
    backend.say("one", gate=gate)
    backend.say("two")
    with client.responses.connect() as connection:
        connection.response.create(model="double", input="a")
        connection.response.create(model="double", input="b")
        assert gate.reached.wait(PATIENCE)
        assert len(backend.requests) == 1
        gate.open()
        first, second = events(connection), events(connection)
    assert first[-1].response.output_text == "one"
    assert second[-1].response.output_text == "two"
    assert {event.response.id for event in second if hasattr(event, "response")} == {
        second[0].response.id
    }


@pytest.mark.parametrize(
    ("create", "status", "code", "param"),
    [
        (dict(model="gone", input="hi"), 404, "model_not_found", "model"),
        (
            dict(model="offline", input="hi", previous_response_id="resp_nowhere"),
            400,
            "previous_response_not_found",
            "previous_response_id",
        ),
        (dict(model="offline", input="hi", background=True), 400, "unsupported_parameter", "background"),
        (dict(model="offline", input=5), 400, "invalid_type", "input"),
    ],
    ids=["model", "previous", "background", "type"],
)
def test_after_an_error_the_next_turn_works(client, create, status, code, param):
    with client.responses.connect() as connection:
        [error] = turn(connection, **create)
        assert (error.type, error.status) == ("error", status)
        assert (error.error.code, error.error.param) == (code, param)
        assert error.error.message
        assert turn(connection, model="offline", input="hi")[-1].type == "response.completed"


def test_a_failure_of_the_model_is_one_message(client, backend):
    backend.fail(429, "slow down", code="rate_limit_exceeded")
    for cut_after in (1, 2, 3):
        backend.say("some words", cut_after=cut_after)
    with client.responses.connect() as connection:
        [error] = turn(connection, model="double", input="a")
        assert (error.type, error.status) == ("error", 429)
        assert error.error.code == "rate_limit_exceeded"
        for _ in range(3):
            late = turn(connection, model="double", input="b")
            assert late[-1].type == "response.failed"
            assert late[-1].response.error.code


def test_a_failed_continuation_forgets_what_is_not_stored(client, backend):
    backend.say("one")
    backend.fail(500, "out of order")
    with client.responses.connect() as connection:
        first = turn(connection, model="double", input="a", store=False)[-1].response
        again = dict(model="double", input="b", store=False, previous_response_id=first.id)
        assert turn(connection, **again)[-1].error.code == "model_error"
        assert turn(connection, **again)[-1].error.code == "previous_response_not_found"


def test_a_warm_up_calls_no_model_and_can_be_continued(client, backend):
    with client.responses.connect() as connection:
        warm = turn(connection, model="double", input="context", generate=False, store=False)
        assert types(warm) == ["response.created", "response.in_progress", "response.completed"]
        assert warm[-1].response.output == [] and backend.requests == []
        backend.say("yes")
        turn(
            connection,
            model="double",
            input="question",
            store=False,
            previous_response_id=warm[-1].response.id,
        )
    assert [message["content"] for message in backend.messages] == ["context", "question"]


def test_steering_is_refused_by_name(client):
    with client.responses.connect() as connection:
        done = turn(connection, model="offline", input="hi")[-1].response
        connection.response.steer(input="left", previous_response_id=done.id)
        refused = connection.recv()
        assert refused.type == "response.steer.failed"
        assert refused.error.code == "steering_not_supported"


def test_a_stream_id_is_on_every_event(client):
    with client.responses.connect() as connection:
        seen = turn(connection, model="offline", input="hi", stream_id="lane-1")
    assert {event.stream_id for event in seen} == {"lane-1"}


def test_handlers_get_the_events(client, backend):
    backend.say("one two")
    deltas = []
    with client.responses.connect() as connection:
        connection.on("response.output_text.delta", lambda event: deltas.append(event.delta))
        connection.on("response.completed", lambda _: connection.close())
        connection.response.create(model="double", input="Count.")
        connection.dispatch_events()
    assert deltas == ["one ", "two"]


def test_a_socket_that_is_closed_stops_the_model(client, backend):
    gate = Gate(after=2)
    backend.say("first second", gate=gate)
    with client.responses.connect() as connection:
        connection.response.create(model="double", input="hi")
        assert gate.reached.wait(PATIENCE)
    assert gate.gone.wait(PATIENCE)


def test_asynchronous_sockets_run_beside_each_other(connect):
    async def one(client, number):
        async with client.responses.connect() as connection:
            texts = []
            previous = None
            for turn in range(3):
                await connection.response.create(
                    model="offline",
                    input=f"What is the weather in City{number}x{turn}?",
                    tools=[WEATHER],
                    tool_choice="required",
                    store=False,
                )
                async for event in connection:
                    if event.type == "response.function_call_arguments.done":
                        texts.append(event.arguments)
                    if event.type in ENDS:
                        assert event.type == "response.completed", event
                        assert event.response.id != previous
                        previous = event.response.id
                        break
            return texts

    async def run():
        async with connect() as client:
            return await asyncio.gather(*[one(client, number) for number in range(8)])

    for number, texts in enumerate(asyncio.run(run())):
        assert texts == [f'{{"city":"City{number}x{turn}"}}' for turn in range(3)]
