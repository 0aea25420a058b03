"""LiteLLM with a base of its own, over Responses and over Chat Completions."""

import json

import pytest

litellm = pytest.importorskip("litellm")

from helpers import WEATHER
from pydantic import BaseModel

CLIENT = "LiteLLM"


class City(BaseModel):
    name: str
    population: int


@pytest.fixture
def options(wire):
    # recipe: LiteLLM
    # Without this entry LiteLLM asks for the whole answer and cuts it into pieces itself.
    known = {"litellm_provider": "openai", "mode": "chat", "supports_native_streaming": True}
    litellm.register_model({"openai/double": known})
    options = {"model": "openai/double", "api_base": wire.base_url, "api_key": "test"}
    # end
    return {**options, "num_retries": 0, "timeout": 30}


def texts(response):
    messages = [item for item in response.output if item.type == "message"]
    return [part.text for message in messages for part in message.content]


@pytest.mark.covers("plain")
def test_responses_give_text_and_usage(options, backend):
    backend.say("Hello there.")
    response = litellm.responses(input="hi", instructions="Be brief.", **options)
    assert texts(response) == ["Hello there."]
    assert response.usage.input_tokens == 10
    assert [it["role"] for it in backend.messages] == ["system", "user"]


@pytest.mark.covers("streamed")
def test_responses_are_streamed(options, backend):
    backend.say("One two three.", reasoning=["Count."])
    pieces = []
    for event in litellm.responses(input="count", stream=True, **options):
        if event.type == "response.output_text.delta":
            pieces.append(event.delta)
    assert pieces == ["One ", "two ", "three."]
    assert backend.requests[0]["stream"] is True


@pytest.mark.covers("tools")
def test_own_function_is_called_and_its_output_reaches_the_model(options, backend):
    backend.call(("call_a", "get_weather", {"city": "Oslo"}))
    backend.say("Rain.")
    first = litellm.responses(input="Weather in Oslo?", tools=[WEATHER], **options)
    [call] = [item for item in first.output if item.type == "function_call"]
    assert json.loads(call.arguments) == {"city": "Oslo"}
    answer = {"type": "function_call_output", "call_id": call.call_id, "output": "rain in Oslo"}
    second = litellm.responses(
        input=[answer], previous_response_id=first.id, tools=[WEATHER], **options
    )
    assert texts(second) == ["Rain."]
    assert (backend.messages[-1]["tool_call_id"], backend.messages[-1]["content"]) == (
        "call_a",
        "rain in Oslo",
    )


@pytest.mark.covers("reasoning")
def test_reasoning_is_sent_back_between_tool_turns(options, backend):
    backend.call(("call_a", "get_weather", {"city": "Oslo"}), reasoning=["Look ", "it up."])
    backend.say("Rain.")
    question = {"role": "user", "content": "Weather in Oslo?"}
    first = litellm.responses(input=[question], tools=[WEATHER], store=False, **options)
    items = [item.model_dump(exclude_none=True) for item in first.output]
    call = next(item for item in items if item["type"] == "function_call")
    answer = {"type": "function_call_output", "call_id": call["call_id"], "output": "rain"}
    litellm.responses(
        input=[question, *items, answer], tools=[WEATHER], store=False, **options
    )
    assert backend.messages[-2].get("reasoning_content") == "Look it up."


@pytest.mark.covers("structured output")
def test_structured_output_has_the_schema(options, backend):
    backend.say('{"name": "Oslo", "population": 717710}')
    response = litellm.responses(input="Describe Oslo.", text_format=City, **options)
    assert City.model_validate_json(texts(response)[0]) == City(name="Oslo", population=717710)
    schema = backend.requests[0]["response_format"]["json_schema"]["schema"]
    assert set(schema["properties"]) == {"name", "population"}


def test_chat_completions_give_text_and_run_a_tool(options, backend):
    function = {key: WEATHER[key] for key in ("name", "description", "parameters")}
    tools = [{"type": "function", "function": function}]
    backend.call(("call_a", "get_weather", {"city": "Oslo"}))
    backend.say("Rain.")
    messages = [{"role": "user", "content": "Weather in Oslo?"}]
    first = litellm.completion(messages=messages, tools=tools, **options).choices[0].message
    answer = {"role": "tool", "tool_call_id": first.tool_calls[0].id, "content": "rain in Oslo"}
    messages += [first.model_dump(exclude_none=True), answer]
    pieces = litellm.completion(messages=messages, tools=tools, stream=True, **options)
    assert "".join(it.choices[0].delta.content or "" for it in pieces) == "Rain."
    assert backend.messages[-1]["content"] == "rain in Oslo"
