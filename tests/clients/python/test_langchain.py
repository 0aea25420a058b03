"""LangChain with `ChatOpenAI` over the Responses API."""

import pytest

pytest.importorskip("langchain_openai")

from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic import BaseModel

CLIENT = "LangChain"


class City(BaseModel):
    """A city."""

    name: str
    population: int


@tool
def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"rain in {city}"


@pytest.fixture
def model(wire):
    # recipe: LangChain
    model = ChatOpenAI(
        model="double", base_url=wire.base_url, api_key="test", use_responses_api=True
    )
    # end
    return model.model_copy(update={"max_retries": 0})


def turns(model, backend):
    """A tool turn as an agent makes it; the last answer."""
    bound = model.bind_tools([get_weather])
    messages = [HumanMessage("Weather in Oslo?")]
    first = bound.invoke(messages)
    [call] = first.tool_calls
    answer = ToolMessage(get_weather.invoke(call["args"]), tool_call_id=call["id"])
    return bound.invoke([*messages, first, answer])


@pytest.mark.covers("plain")
def test_text_and_usage(model, backend):
    backend.say("Hello there.")
    answer = model.invoke([("system", "Be brief."), ("human", "hi")])
    assert answer.text == "Hello there."
    assert answer.usage_metadata["input_tokens"] == 10
    assert [(it["role"], it["content"]) for it in backend.messages] == [
        ("system", "Be brief."),
        ("user", "hi"),
    ]


@pytest.mark.covers("streamed")
def test_streamed_text(model, backend):
    backend.say("One two three.")
    pieces = [chunk.text for chunk in model.stream("count")]
    assert [piece for piece in pieces if piece] == ["One ", "two ", "three."]


@pytest.mark.covers("tools")
def test_own_function_is_called_and_its_output_reaches_the_model(model, backend):
    backend.call(("call_a", "get_weather", {"city": "Oslo"}))
    backend.say("Rain.")
    assert turns(model, backend).text == "Rain."
    call, answer = backend.messages[-2:]
    assert call["tool_calls"][0]["id"] == "call_a"
    assert (answer["tool_call_id"], answer["content"]) == ("call_a", "rain in Oslo")


@pytest.mark.covers("reasoning")
def test_reasoning_is_sent_back_between_tool_turns(model, backend):
    backend.call(("call_a", "get_weather", {"city": "Oslo"}), reasoning=["Look ", "it up."])
    backend.say("Rain.")
    turns(model, backend)
    assert backend.messages[-2].get("reasoning_content") == "Look it up."


@pytest.mark.covers("structured output")
def test_structured_output_has_the_schema(model, backend):
    backend.say('{"name": "Oslo", "population": 717710}')
    result = model.with_structured_output(City, method="json_schema").invoke("Describe Oslo.")
    assert result == City(name="Oslo", population=717710)
    schema = backend.requests[0]["response_format"]["json_schema"]["schema"]
    assert set(schema["properties"]) == {"name", "population"}
