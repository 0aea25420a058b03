"""The Agents SDK: its runner drives tools, handoffs, sessions and sockets."""

import asyncio
import json

import openai
import pytest
from agents import (
    Agent,
    ModelSettings,
    OpenAIConversationsSession,
    OpenAIResponsesCompactionSession,
    OpenAIResponsesModel,
    OpenAIResponsesWSModel,
    RunConfig,
    Runner,
    SQLiteSession,
    function_tool,
)
from agents.exceptions import MaxTurnsExceeded
from pydantic import BaseModel

CLIENT = "openai-agents (Python)"

# Nothing is told to anybody else.
QUIET = RunConfig(tracing_disabled=True)


class Report(BaseModel):
    city: str
    degrees: int


def run(connect, work):
    """Runs `work(model)` with a model behind the server; `model(name)` makes more."""

    async def inner():
        async with connect() as client:
            return await asyncio.wait_for(work(client), 60)

    return asyncio.run(inner())


def weather_tool(log):
    @function_tool
    async def get_weather(city: str) -> str:
        """The weather in a city"""
        log.append(city)
        return f"fine in {city}"

    return get_weather


def agent(client, model="double", kind=OpenAIResponsesModel, **more):
    return Agent(name="guide", model=kind(model, client), **more)


def roles(backend):
    return [message["role"] for message in backend.messages]


@pytest.mark.covers("tools")
def test_the_runner_calls_one_tool_after_the_other(connect, backend):
    log = []
    backend.call(("call_a", "get_weather", {"city": "Oslo"}))
    backend.call(("call_b", "get_weather", {"city": "Rome"}))
    backend.say("Both are fine.")

    async def work(client):
        guide = agent(client, tools=[weather_tool(log)], instructions="Be brief.")
        return await Runner.run(guide, "Oslo, then Rome?", run_config=QUIET)

    result = run(connect, work)
    assert result.final_output == "Both are fine."
    assert log == ["Oslo", "Rome"]
    assert roles(backend)[1:] == ["user", "assistant", "tool", "assistant", "tool"]
    assert [it["content"] for it in backend.messages if it["role"] == "tool"] == [
        "fine in Oslo",
        "fine in Rome",
    ]
    assert result.context_wrapper.usage.requests == 3
    assert result.context_wrapper.usage.input_tokens == 30
    assert len(result.raw_responses) == 3


def test_the_runner_calls_tools_at_once(connect, backend):
    log = []
    backend.call(("get_weather", {"city": "Oslo"}), ("get_weather", {"city": "Rome"}))
    backend.say("Both are fine.")

    async def work(client):
        guide = agent(client, tools=[weather_tool(log)])
        return await Runner.run(guide, "Oslo and Rome?", run_config=QUIET)

    assert run(connect, work).final_output == "Both are fine."
    assert sorted(log) == ["Oslo", "Rome"]
    assert roles(backend) == ["user", "assistant", "tool", "tool"]


@pytest.mark.covers("streamed")
def test_the_runner_streams(connect, backend):
    log = []
    backend.call(("get_weather", {"city": "Oslo"}), ("get_weather", {"city": "Rome"}))
    backend.say("Both are fine.")

    async def work(client):
        guide = agent(client, tools=[weather_tool(log)])
        result = Runner.run_streamed(guide, "Oslo and Rome?", run_config=QUIET)
        deltas, steps = [], []
        async for event in result.stream_events():
            if event.type == "raw_response_event":
                if event.data.type == "response.output_text.delta":
                    deltas.append(event.data.delta)
            elif event.type == "run_item_stream_event":
                steps.append(event.name)
        return result, deltas, steps

    result, deltas, steps = run(connect, work)
    assert result.final_output == "Both are fine."
    assert deltas == ["Both ", "are ", "fine."]
    assert sorted(log) == ["Oslo", "Rome"]
    assert steps == [
        "tool_called",
        "tool_called",
        "tool_output",
        "tool_output",
        "message_output_created",
    ]


def test_the_offline_model_drives_the_runner_too(connect):
    log = []

    async def work(client):
        guide = agent(client, "offline", tools=[weather_tool(log)])
        return await Runner.run(guide, "The weather in Oslo and Rome, please", run_config=QUIET)

    result = run(connect, work)
    assert log == ["Oslo", "Rome"]
    assert "`get_weather`: fine in Oslo" in result.final_output
    assert "`get_weather`: fine in Rome" in result.final_output


def test_an_agent_hands_over_to_another(connect, backend):
    backend.call(("transfer_to_poet", {}))
    backend.say("Roses are red.")

    async def work(client):
        poet = Agent(name="poet", instructions="Rhyme.", model=OpenAIResponsesModel("double", client))
        guide = agent(client, handoffs=[poet], instructions="Hand over.")
        return await Runner.run(guide, "A poem, please", run_config=QUIET)

    result = run(connect, work)
    assert result.final_output == "Roses are red."
    assert result.last_agent.name == "poet"
    first, second = backend.requests
    assert [tool["function"]["name"] for tool in first["tools"]] == ["transfer_to_poet"]
    assert first["messages"][0]["content"] == "Hand over."
    assert second["messages"][0]["content"] == "Rhyme."
    assert roles(backend)[1:] == ["user", "assistant", "tool"]


@pytest.mark.covers("structured output")
def test_an_agent_answers_in_its_output_type(connect, backend):
    backend.call(("get_weather", {"city": "Oslo"}))
    backend.say('{"city": "Oslo", "degrees": 5}')

    async def work(client):
        guide = agent(client, tools=[weather_tool([])], output_type=Report)
        return await Runner.run(guide, "Weather in Oslo?", run_config=QUIET)

    assert run(connect, work).final_output == Report(city="Oslo", degrees=5)
    wanted = backend.requests[0]["response_format"]["json_schema"]
    assert set(wanted["schema"]["properties"]) == {"city", "degrees"}


def test_runs_are_chained_by_their_last_response(connect, backend):
    backend.say("Hello Ada.")
    backend.say("Ada.")

    async def work(client):
        guide = agent(client)
        first = await Runner.run(guide, "I am Ada.", run_config=QUIET)
        return first, await Runner.run(
            guide, "Who am I?", previous_response_id=first.last_response_id, run_config=QUIET
        )

    first, second = run(connect, work)
    assert second.final_output == "Ada."
    assert first.last_response_id.startswith("resp_")
    said = [message["content"] for message in backend.messages]
    assert said == ["I am Ada.", "Hello Ada.", "Who am I?"]


def test_turns_of_one_run_are_chained_by_themselves(connect, backend):
    log = []
    backend.call(("call_a", "get_weather", {"city": "Oslo"}))
    backend.say("Fine.")

    async def work(client):
        guide = agent(client, tools=[weather_tool(log)])
        return await Runner.run(
            guide, "Oslo?", auto_previous_response_id=True, run_config=QUIET
        )

    assert run(connect, work).final_output == "Fine."
    assert roles(backend) == ["user", "assistant", "tool"]


def test_runs_go_on_in_a_conversation(connect, backend):
    backend.call(("call_a", "get_weather", {"city": "Oslo"}))
    backend.say("Fine.")
    backend.say("Oslo.")

    async def work(client):
        guide = agent(client, tools=[weather_tool([])])
        conversation = await client.conversations.create()
        for question in ("Weather in Oslo?", "Which city?"):
            result = await Runner.run(
                guide, question, conversation_id=conversation.id, run_config=QUIET
            )
        items = [it async for it in client.conversations.items.list(conversation.id, order="asc")]
        return result, items

    result, items = run(connect, work)
    assert result.final_output == "Oslo."
    kinds = ["message", "function_call", "function_call_output", "message", "message", "message"]
    assert [item.type for item in items] == kinds
    assert roles(backend) == ["user", "assistant", "tool", "assistant", "user"]


def test_a_session_keeps_its_items_in_a_conversation(connect, backend):
    backend.call(("call_a", "get_weather", {"city": "Oslo"}))
    backend.say("Fine.")
    backend.say("Oslo.")

    async def work(client):
        guide = agent(client, tools=[weather_tool([])])
        session = OpenAIConversationsSession(openai_client=client)
        await Runner.run(guide, "Weather in Oslo?", session=session, run_config=QUIET)
        result = await Runner.run(guide, "Which city?", session=session, run_config=QUIET)
        items = await session.get_items()
        last = await session.pop_item()
        left = await session.get_items()
        await session.clear_session()
        return result, items, last, left

    result, items, last, left = run(connect, work)
    assert result.final_output == "Oslo."
    assert len(items) == 6 and len(left) == 5
    assert last["content"][0]["text"] == "Oslo."
    assert roles(backend) == ["user", "assistant", "tool", "assistant", "user"]


def test_a_session_is_compacted(connect, backend):
    backend.say("Hello Ada.")
    backend.say("SUMMARY-7")
    backend.say("Ada.")

    async def work(client):
        guide = agent(client)
        session = OpenAIResponsesCompactionSession(
            session_id="s",
            underlying_session=SQLiteSession("s"),
            client=client,
            model="gpt-double",
            should_trigger_compaction=lambda _: False,
        )
        await Runner.run(guide, "I am Ada.", session=session, run_config=QUIET)
        await session.run_compaction({"force": True, "compaction_mode": "input"})
        items = await session.get_items()
        result = await Runner.run(guide, "Who am I?", session=session, run_config=QUIET)
        return items, result

    items, result = run(connect, work)
    assert items[-1]["type"] == "compaction"
    assert result.final_output == "Ada."
    sent = str(backend.messages)
    assert "SUMMARY-7" in sent and "Hello Ada." not in sent


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_the_runner_works_over_a_websocket(connect, backend, streamed):
    log = []
    backend.call(("get_weather", {"city": "Oslo"}), ("get_weather", {"city": "Rome"}))
    backend.say("Both are fine.")

    async def work(client):
        model = OpenAIResponsesWSModel("double", client)
        guide = Agent(name="guide", model=model, tools=[weather_tool(log)])
        settings = dict(run_config=QUIET, auto_previous_response_id=True)
        try:
            if not streamed:
                return (await Runner.run(guide, "Oslo and Rome?", **settings)).final_output
            result = Runner.run_streamed(guide, "Oslo and Rome?", **settings)
            async for _ in result.stream_events():
                pass
            return result.final_output
        finally:
            await model.close()

    assert run(connect, work) == "Both are fine."
    assert sorted(log) == ["Oslo", "Rome"]
    assert roles(backend) == ["user", "assistant", "tool", "tool"]


def test_a_forced_tool_is_called(connect):
    log = []

    async def work(client):
        guide = agent(
            client,
            "offline",
            tools=[weather_tool(log)],
            model_settings=ModelSettings(tool_choice="get_weather"),
        )
        return await Runner.run(guide, "How is it in Oslo?", run_config=QUIET)

    assert "fine in Oslo" in run(connect, work).final_output
    assert log == ["Oslo"]


def test_a_tool_that_fails_is_told_to_the_model(connect, backend):
    backend.call(("broken", {}))
    backend.say("It is broken.")

    @function_tool
    def broken() -> str:
        """Never works"""
        raise ValueError("no luck")

    async def work(client):
        return await Runner.run(agent(client, tools=[broken]), "Try it.", run_config=QUIET)

    result = run(connect, work)
    assert result.final_output == "It is broken."
    # What the SDK makes of the exception is what the model reads.
    [told] = [item["output"] for item in result.to_input_list() if item.get("output")]
    assert "error" in told
    assert backend.messages[-1]["content"] == told


def test_errors_come_through(connect, backend):
    backend.fail(429, "slow down", code="rate_limit_exceeded")
    backend.call(("get_weather", {"city": "Oslo"}))

    async def limited(client):
        return await Runner.run(agent(client), "hi", run_config=QUIET)

    with pytest.raises(openai.RateLimitError) as caught:
        run(connect, limited)
    assert caught.value.code == "rate_limit_exceeded"

    async def endless(client):
        guide = agent(client, tools=[weather_tool([])])
        return await Runner.run(guide, "Oslo?", max_turns=1, run_config=QUIET)

    with pytest.raises(MaxTurnsExceeded):
        run(connect, endless)
    assert json.loads(json.dumps(backend.requests[-1]))["messages"][-1]["content"] == "Oslo?"
