"""`client.chat.completions`: passed on to the model, nothing added, nothing stored."""

import json

import openai
import pytest
from pydantic import BaseModel

from helpers import NOTICE, WEATHER

TOOL = {
    "type": "function",
    "function": {key: WEATHER[key] for key in ("name", "description", "parameters", "strict")},
}


class City(BaseModel):
    name: str


def ask(text):
    return [{"role": "user", "content": text}]


def test_a_body_reaches_the_model_as_it_is(client, backend):
    backend.say("Fine.")
    completion = client.chat.completions.create(
        model="double",
        messages=[{"role": "developer", "content": "Be brief."}, *ask("How are you?")],
        temperature=0,
        seed=7,
        extra_body={"top_k": 40},
    )
    assert completion.choices[0].message.content == "Fine."
    assert completion.choices[0].finish_reason == "stop"
    assert (completion.usage.prompt_tokens, completion.usage.completion_tokens) == (10, 5)
    [request] = backend.requests
    assert request["model"] == "double-1"
    assert (request["temperature"], request["seed"], request["top_k"]) == (0, 7, 40)
    assert [message["content"] for message in request["messages"]] == ["Be brief.", "How are you?"]


def test_words_are_streamed(client, backend):
    backend.say("one two three")
    stream = client.chat.completions.create(
        model="double", messages=ask("Count."), stream=True, stream_options={"include_usage": True}
    )
    chunks = list(stream)
    deltas = [chunk.choices[0].delta.content for chunk in chunks if chunk.choices]
    assert [delta for delta in deltas if delta] == ["one ", "two ", "three"]
    assert chunks[-1].usage.total_tokens == 15


def test_calls_go_round_with_both_kinds_of_model(client, backend):
    backend.call(("call_a", "get_weather", {"city": "Oslo"}))
    backend.say("Rain.")
    for model in ("double", "offline"):
        messages = ask("What is the weather in Oslo?")
        first = client.chat.completions.create(model=model, messages=messages, tools=[TOOL])
        [call] = first.choices[0].message.tool_calls
        assert first.choices[0].finish_reason == "tool_calls"
        assert call.function.name == "get_weather"
        assert json.loads(call.function.arguments) == {"city": "Oslo"}
        messages.append(first.choices[0].message)
        messages.append({"role": "tool", "tool_call_id": call.id, "content": "rain"})
        second = client.chat.completions.create(model=model, messages=messages, tools=[TOOL])
        assert "rain" in second.choices[0].message.content.lower()
    assert [it["role"] for it in backend.messages] == ["user", "assistant", "tool"]


def test_streamed_calls_are_put_together(client):
    with client.chat.completions.stream(
        model="offline", messages=ask("Weather in Oslo and Rome, please"), tools=[TOOL]
    ) as stream:
        completion = stream.get_final_completion()
    calls = completion.choices[0].message.tool_calls
    cities = [json.loads(call.function.arguments)["city"] for call in calls]
    assert cities == ["Oslo", "Rome"]


def test_an_answer_is_parsed(client, backend):
    backend.say('{"name": "Oslo"}')
    completion = client.chat.completions.parse(
        model="double", messages=ask("A city?"), response_format=City
    )
    assert completion.choices[0].message.parsed == City(name="Oslo")


def test_the_offline_model_answers_here_too(client):
    completion = client.chat.completions.create(model="offline", messages=ask("Hello"))
    assert completion.choices[0].message.content.endswith(NOTICE)
    assert completion.model == "offline"


def test_errors_have_their_class(client, backend):
    with pytest.raises(openai.NotFoundError) as caught:
        client.chat.completions.create(model="gone", messages=ask("hi"))
    assert caught.value.code == "model_not_found"
    backend.fail(429, "slow down", code="rate_limit_exceeded")
    with pytest.raises(openai.RateLimitError):
        client.chat.completions.create(model="double", messages=ask("hi"))
