"""LlamaIndex with `OpenAIResponses`."""

import pytest

pytest.importorskip("llama_index.llms.openai")

from llama_index.core.llms import ChatMessage
from llama_index.core.prompts import PromptTemplate
from llama_index.core.tools import FunctionTool
from llama_index.llms.openai import OpenAIResponses
from pydantic import BaseModel

CLIENT = "LlamaIndex"


class City(BaseModel):
    """A city."""

    name: str
    population: int


def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"rain in {city}"


@pytest.fixture
def model(wire):
    # recipe: LlamaIndex
    # Without `context_window` LlamaIndex knows no models but OpenAI's; without `store` it drops the reasoning.
    model = OpenAIResponses(
        model="double", api_base=wire.base_url, api_key="test", context_window=100_000, store=True
    )
    # end
    model.max_retries = 0
    return model


def turns(model, is_streamed):
    """A tool turn as an agent makes it; the last answer."""
    tool = FunctionTool.from_defaults(get_weather)
    messages = [ChatMessage(role="user", content="Weather in Oslo?")]

    def ask():
        if is_streamed:
            return list(model.stream_chat_with_tools([tool], chat_history=list(messages)))[-1]
        return model.chat_with_tools([tool], chat_history=list(messages))

    first = ask()
    [call] = model.get_tool_calls_from_response(first)
    output = tool(**call.tool_kwargs).content
    answer = ChatMessage(role="tool", content=output, additional_kwargs={"tool_call_id": call.tool_id})
    messages += [first.message, answer]
    return ask().message.content


@pytest.mark.covers("plain")
def test_text_and_usage(model, backend):
    backend.say("Hello there.")
    answer = model.chat(
        [ChatMessage(role="system", content="Be brief."), ChatMessage(role="user", content="hi")]
    )
    assert answer.message.content == "Hello there."
    assert answer.raw.usage.input_tokens == 10
    assert [(it["role"], it["content"]) for it in backend.messages] == [
        ("system", "Be brief."),
        ("user", "hi"),
    ]


@pytest.mark.covers("streamed")
def test_streamed_text(model, backend):
    backend.say("One two three.", reasoning=["Count."])
    chunks = model.stream_chat([ChatMessage(role="user", content="count")])
    assert [chunk.delta for chunk in chunks if chunk.delta] == ["One ", "two ", "three."]
    assert backend.requests[0]["stream"] is True


@pytest.mark.covers("tools")
@pytest.mark.parametrize("is_streamed", [False, True])
def test_own_function_is_called_and_its_output_reaches_the_model(model, backend, is_streamed):
    backend.call(("call_a", "get_weather", {"city": "Oslo"}))
    backend.say("Rain.")
    assert turns(model, is_streamed) == "Rain."
    call, answer = backend.messages[-2:]
    assert call["tool_calls"][0]["id"] == "call_a"
    assert (answer["tool_call_id"], answer["content"]) == ("call_a", "rain in Oslo")


# Not streamed: `stream_chat_with_tools` of LlamaIndex leaves reasoning out of the next request, whatever `store` says.
@pytest.mark.covers("reasoning")
def test_reasoning_is_sent_back_between_tool_turns(model, backend):
    backend.call(("call_a", "get_weather", {"city": "Oslo"}), reasoning=["Look ", "it up."])
    backend.say("Rain.")
    turns(model, is_streamed=False)
    assert backend.messages[-2].get("reasoning_content") == "Look it up."


@pytest.mark.covers("structured output")
def test_structured_output_has_the_schema(model, backend):
    backend.say('{"name": "Oslo", "population": 717710}')
    result = model.structured_predict(City, PromptTemplate("Describe Oslo."))
    assert result == City(name="Oslo", population=717710)
    schema = backend.requests[0]["response_format"]["json_schema"]["schema"]
    assert set(schema["properties"]) == {"name", "population"}
