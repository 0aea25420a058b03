"""Small words that many tests share."""

import time

import openai

WEATHER = {
    "type": "function",
    "name": "get_weather",
    "description": "The weather in a city",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": False,
    },
    "strict": True,
}
TIME = {
    "type": "function",
    "name": "get_time",
    "description": "The time in a city",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": False,
    },
    "strict": True,
}

NOTICE = "[offline model: rules, not a language model]"
TERMINAL = {"completed", "failed", "incomplete", "cancelled"}


def user(text):
    return {"role": "user", "content": text}


def calls(response):
    return [item for item in response.output if item.type == "function_call"]


def output(call, text):
    return {"type": "function_call_output", "call_id": call.call_id, "output": text}


def types(events):
    return [event.type for event in events]


def plain(model):
    """What came over the wire: unset fields left out, helper fields of the SDK, too."""
    return without_parsed(model.to_dict(mode="json"))


def without_parsed(value):
    if isinstance(value, dict):
        added = {"parsed", "parsed_arguments"}
        return {key: without_parsed(it) for key, it in value.items() if key not in added}
    if isinstance(value, list):
        return [without_parsed(it) for it in value]
    return value


def ended(client, id, patience=30, may_be_unwritten=False):
    """A response, once it has ended. One that nobody waits for is written down when it does."""
    end = time.monotonic() + patience
    status = "unwritten"
    while time.monotonic() < end:
        try:
            response = client.responses.retrieve(id)
        except openai.NotFoundError:
            if not may_be_unwritten:
                raise
        else:
            status = response.status
            if status in TERMINAL:
                return response
        time.sleep(0.02)
    raise AssertionError(f"`{id}` is still {status}")
