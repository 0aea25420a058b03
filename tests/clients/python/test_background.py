"""Runs in the background: polled, followed, resumed, cancelled."""

import openai
import pytest

from backend import PATIENCE, Gate
from conftest import CLIENT
from helpers import ended, plain, types


def test_a_background_run_is_queued_and_then_done(client, backend):
    gate = Gate(after=0)
    backend.say("at last", gate=gate)
    created = client.responses.create(model="double", input="hi", background=True)
    assert created.status == "queued"
    assert created.background is True and created.output == []
    assert gate.reached.wait(PATIENCE)
    assert client.responses.retrieve(created.id).status == "in_progress"
    with pytest.raises(openai.ConflictError) as caught:
        client.responses.create(model="double", input="more", previous_response_id=created.id)
    assert caught.value.code == "previous_response_in_progress"
    gate.open()
    done = ended(client, created.id)
    assert (done.status, done.output_text) == ("completed", "at last")


def test_a_broken_stream_is_resumed_with_exactly_what_is_missing(client, backend):
    gate = Gate(after=4)
    backend.say("one two three four five", gate=gate)
    stream = client.responses.create(model="double", input="Count.", background=True, stream=True)
    seen = []
    for event in stream:
        seen.append(event)
        if event.type == "response.output_text.delta" and event.delta == "two ":
            break
    stream.close()
    assert types(seen)[:3] == ["response.created", "response.queued", "response.in_progress"]
    id, last = seen[0].response.id, seen[-1].sequence_number
    resumed = client.responses.retrieve(id, stream=True, starting_after=last)
    first = next(resumed)
    assert first.sequence_number == last + 1 and first.delta == "three "
    # The connection was broken, the run was not.
    assert not gate.gone.is_set()
    gate.open()
    rest = [first, *resumed]
    numbers = [event.sequence_number for event in seen + rest]
    assert numbers == list(range(len(numbers)))
    assert rest[-1].type == "response.completed"
    assert rest[-1].response.output_text == "one two three four five"

    # Once more from the beginning, after the end: the same events.
    again = list(client.responses.retrieve(id, stream=True))
    assert [plain(event) for event in again] == [plain(event) for event in seen + rest]
    later = list(client.responses.retrieve(id, stream=True, starting_after=last))
    assert [plain(event) for event in later] == [plain(event) for event in rest]


def test_the_stream_helper_resumes_by_id(client, backend):
    backend.say("one two three")
    with client.responses.stream(model="double", input="Count.", background=True) as stream:
        whole = list(stream)
    id = whole[0].response.id
    with client.responses.stream(response_id=id, starting_after=4) as stream:
        rest = list(stream)
        final = stream.get_final_response()
    assert [event.sequence_number for event in rest] == list(range(5, len(whole)))
    assert types(rest) == types(whole)[5:]
    assert final.output_text == "one two three"
    assert plain(final) == plain(client.responses.retrieve(id))


def test_a_run_goes_on_when_its_client_has_gone(client, backend):
    gate = Gate(after=2)
    backend.say("first second", gate=gate)
    stream = client.responses.create(model="double", input="hi", background=True, stream=True)
    id = next(stream).response.id
    assert gate.reached.wait(PATIENCE)
    stream.close()
    gate.open()
    assert ended(client, id).output_text == "first second"


def test_cancelling_stops_the_model_and_stays(client, backend):
    gate = Gate(after=2)
    backend.say("first second", gate=gate)
    created = client.responses.create(model="double", input="hi", background=True)
    assert gate.reached.wait(PATIENCE)
    cancelled = client.responses.cancel(created.id)
    assert gate.gone.wait(PATIENCE)
    assert cancelled.status == "cancelled"
    assert plain(client.responses.retrieve(created.id)) == plain(cancelled)
    assert plain(client.responses.cancel(created.id)) == plain(cancelled)


def test_a_stream_of_a_cancelled_run_ends_with_a_failure(client, backend):
    gate = Gate(after=2)
    backend.say("first second", gate=gate)
    stream = client.responses.create(model="double", input="hi", background=True, stream=True)
    id = next(stream).response.id
    assert gate.reached.wait(PATIENCE)
    client.responses.cancel(id)
    last = list(stream)[-1]
    assert last.type == "response.failed"
    assert last.response.status == "cancelled"
    assert last.response.error.code == "response_cancelled"
    assert gate.gone.wait(PATIENCE)


def test_cancelling_what_is_done_changes_nothing(client):
    created = client.responses.create(model="offline", input="hi", background=True)
    done = ended(client, created.id)
    assert plain(client.responses.cancel(created.id)) == plain(done)


def test_only_background_runs_can_be_cancelled(client):
    created = client.responses.create(model="offline", input="hi")
    with pytest.raises(openai.BadRequestError):
        client.responses.cancel(created.id)
    with pytest.raises(openai.NotFoundError) as caught:
        client.responses.cancel("resp_nowhere")
    assert caught.value.code == "response_not_found"


def test_only_streamed_background_runs_can_be_replayed(client):
    created = client.responses.create(model="offline", input="hi", background=True)
    ended(client, created.id)
    with pytest.raises(openai.BadRequestError) as caught:
        client.responses.retrieve(created.id, stream=True)
    assert caught.value.code == "unsupported_parameter"


def test_a_background_run_must_be_stored(client):
    with pytest.raises(openai.BadRequestError) as caught:
        client.responses.create(model="offline", input="hi", background=True, store=False)
    assert caught.value.param in ("background", "store")


def test_a_failure_in_the_background_is_told_with_its_code(client, backend):
    backend.fail(429, "slow down", code="rate_limit_exceeded")
    created = client.responses.create(model="double", input="hi", background=True)
    failed = ended(client, created.id)
    assert failed.status == "failed"
    assert failed.error.code == "rate_limit_exceeded"


def test_a_run_that_a_crash_cut_off_goes_on(serve, backend):
    server = serve()
    gate = Gate(after=2)
    backend.say("first second", gate=gate)
    with openai.OpenAI(base_url=server.base_url, **CLIENT) as client:
        created = client.responses.create(model="double", input="hi", background=True)
    assert gate.reached.wait(PATIENCE)
    server.process.kill()
    server.process.wait()
    backend.say("the whole answer")
    server.start()
    with openai.OpenAI(base_url=server.base_url, **CLIENT) as client:
        done = ended(client, created.id)
    assert done.status == "completed"
    assert done.output_text.endswith("the whole answer")
