"""The recording proxy and its checks: they must pass a stream on at once, and notice what is wrong with one."""

import json

import openai
import pytest
from backend import Gate, Reply
from wire import Exchange, check

KEY = "sk-secret"


def item(text):
    part = {"type": "output_text", "text": text, "annotations": []}
    return {"id": "msg_1", "type": "message", "role": "assistant", "content": [part]}


def response(status, output):
    return {"id": "resp_1", "object": "response", "status": status, "output": output}


def stream():
    """The events of a short stream that is right."""
    at = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    events = [
        {"type": "response.created", "response": response("in_progress", [])},
        {"type": "response.output_item.added", "output_index": 0, "item": item("")},
        {"type": "response.output_text.delta", **at, "delta": "One "},
        {"type": "response.output_text.delta", **at, "delta": "two."},
        {"type": "response.output_text.done", **at, "text": "One two."},
        {"type": "response.output_item.done", "output_index": 0, "item": item("One two.")},
        {"type": "response.completed", "response": response("completed", [item("One two.")])},
    ]
    return [{**event, "sequence_number": number} for number, event in enumerate(events)]


def exchange(body, content_type="text/event-stream"):
    headers = [("content-type", content_type)]
    return Exchange("POST", "/v1/responses", [], b"{}", 200, headers, body.encode())


def written(events):
    frames = [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events]
    return "".join(frames) + "data: [DONE]\n\n"


def test_valid_stream_is_accepted():
    check(exchange(written(stream())), KEY)


def without(index):
    def change(events):
        del events[index]
        for number, event in enumerate(events):
            event["sequence_number"] = number

    return change


DEFECTS = {
    "gap in the sequence numbers": lambda events: events.pop(2),
    "event of the specification only": lambda events: events[2].update(type="response.reasoning.delta"),
    "item without an end": without(5),
    "text without an end": without(4),
    "lost delta": without(3),
    "no terminal event": without(6),
    "other text in the item": lambda events: events[5].update(item=item("One.")),
    "other output": lambda events: events[6]["response"].update(output=[]),
    "status of the specification only": lambda events: events[6]["response"].update(status="requires_action"),
    "private member": lambda events: events[5]["item"].update(haft_unseen={}),
    "key": lambda events: events[0]["response"].update(metadata={"key": f"Bearer {KEY}"}),
}


@pytest.mark.parametrize("name", DEFECTS)
def test_defect_is_noticed(name):
    events = stream()
    DEFECTS[name](events)
    with pytest.raises(AssertionError):
        check(exchange(written(events)), KEY)


@pytest.mark.parametrize(
    "body",
    [
        written(stream()).replace("event: response.created", "event: response.in_progress"),
        written(stream()).removesuffix("data: [DONE]\n\n"),
        written(stream()).removesuffix("\n"),
    ],
)
def test_defect_of_the_frames_is_noticed(body):
    with pytest.raises(AssertionError):
        check(exchange(body), KEY)


def test_defect_of_a_body_is_noticed():
    check(exchange(json.dumps(response("completed", [])), "application/json"), KEY)
    for body in ["not JSON", json.dumps(response("requires_action", []))]:
        with pytest.raises(AssertionError):
            check(exchange(body, "application/json"), KEY)


def test_stream_is_passed_on_at_once(wire, backend):
    gate = Gate(after=2)
    backend.say("One two three.", gate=gate)
    with openai.OpenAI(base_url=wire.base_url, api_key="test", max_retries=0) as client:
        events = client.responses.create(model="double", input="count", stream=True)
        for event in events:
            if event.type == "response.output_text.delta":
                gate.open()
    assert gate.reached.is_set() and not gate.gone.is_set()
    [recorded] = wire.exchanges
    assert recorded.request_header("authorization") == "Bearer test"
    assert json.loads(recorded.request_body)["input"] == "count"


def test_failures_pass_the_checks(wire, backend):
    backend.say("One two three.", cut_after=3)
    backend.say("One two", finish="length")
    backend.add(Reply(refusal="No."))
    with openai.OpenAI(base_url=wire.base_url, api_key="test", max_retries=0) as client:
        ask = {"model": "double", "input": "count"}
        ends = [list(client.responses.create(**ask, stream=True))[-1].type for _ in range(3)]
        with pytest.raises(openai.BadRequestError):
            client.responses.create(**ask, previous_response_id="resp_unknown", tools="none")
    assert ends == ["response.failed", "response.incomplete", "response.completed"]
    assert wire.exchanges[3].status == 400
