"""pydantic-ai with `OpenAIResponsesModel`."""

import asyncio

import pytest

pydantic_ai = pytest.importorskip("pydantic_ai")

from pydantic import BaseModel
from pydantic_ai import Agent, NativeOutput
from pydantic_ai.models.openai import OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

CLIENT = "pydantic-ai"


class City(BaseModel):
    name: str
    population: int


@pytest.fixture
def agent(wire):
    # recipe: pydantic-ai
    provider = OpenAIProvider(base_url=wire.base_url, api_key="test")
    model = OpenAIResponsesModel("double", provider=provider)
    # end
    return lambda **more: Agent(model, retries=0, **more)


@pytest.mark.covers("plain")
def test_text_and_usage(agent, backend):
    backend.say("Hello there.")
    result = agent(instructions="Be brief.").run_sync("hi")
    assert result.output == "Hello there."
    usage = result.usage
    assert (usage.input_tokens, usage.output_tokens) == (10, 5)
    assert [(it["role"], it["content"]) for it in backend.messages] == [
        ("system", "Be brief."),
        ("user", "hi"),
    ]


@pytest.mark.covers("streamed")
def test_streamed_text(agent, backend):
    backend.say("One two three.")

    async def stream():
        async with agent().run_stream("count") as result:
            return [piece async for piece in result.stream_text(delta=True, debounce_by=None)]

    assert asyncio.run(stream()) == ["One ", "two ", "three."]
    assert backend.requests[0]["stream"] is True


@pytest.mark.covers("tools")
def test_own_function_is_called_and_its_output_reaches_the_model(agent, backend):
    backend.call(("call_a", "get_weather", {"city": "Oslo"}))
    backend.say("Rain.")
    asked = []

    def get_weather(city: str) -> str:
        """The weather in a city."""
        asked.append(city)
        return f"rain in {city}"

    result = agent(tools=[get_weather]).run_sync("Weather in Oslo?")
    assert (result.output, asked) == ("Rain.", ["Oslo"])
    [offered] = backend.requests[0]["tools"]
    assert offered["function"]["name"] == "get_weather"
    call, answer = backend.messages[-2:]
    assert call["tool_calls"][0]["id"] == "call_a"
    assert (answer["role"], answer["tool_call_id"]) == ("tool", "call_a")
    assert answer["content"] == "rain in Oslo"


@pytest.mark.covers("reasoning")
def test_reasoning_is_sent_back_between_tool_turns(agent, backend):
    backend.call(("call_a", "get_weather", {"city": "Oslo"}), reasoning=["Look ", "it up."])
    backend.say("Rain.")
    agent(tools=[get_weather]).run_sync("Weather in Oslo?")
    assert backend.messages[-2].get("reasoning_content") == "Look it up."


@pytest.mark.covers("structured output")
def test_structured_output_has_the_schema(agent, backend):
    backend.say('{"name": "Oslo", "population": 717710}')
    result = agent(output_type=NativeOutput(City)).run_sync("Describe Oslo.")
    assert result.output == City(name="Oslo", population=717710)
    schema = backend.requests[0]["response_format"]["json_schema"]["schema"]
    assert set(schema["properties"]) == {"name", "population"}


def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"rain in {city}"
