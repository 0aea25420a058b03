"""Codex (`codex exec`) with haft as its model provider, over HTTP."""

import json

import pytest

from drivers import installed, lines, run

CLIENT = "Codex"
PROGRAM = installed("agents", "node_modules", ".bin", "codex")

# recipe: Codex
CONFIG = """
model = "double"
model_provider = "haft"
web_search = "disabled"

[model_providers.haft]
name = "haft"
base_url = "@BASE_URL@"
wire_api = "responses"
supports_websockets = false
"""
# end

# What only a test needs: no retries, no questions, no network.
TEST_ONLY = """
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false
analytics.enabled = false
"""
NO_RETRIES = """
request_max_retries = 0
stream_max_retries = 0
"""


@pytest.fixture
def codex(wire, tmp_path):
    home, work = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    work.mkdir()
    config = TEST_ONLY + CONFIG.replace("@BASE_URL@", wire.base_url) + NO_RETRIES
    (home / "config.toml").write_text(config)

    def start(*arguments):
        program = [PROGRAM, "exec", "--skip-git-repo-check", "--json", "-C", str(work)]
        environment = {"CODEX_HOME": str(home), "HOME": str(home)}
        return lines(run([*program, *arguments], work, environment))

    start.work = work
    return start


def texts(events):
    items = [event["item"] for event in events if event["type"] == "item.completed"]
    return [item["text"] for item in items if item["type"] == "agent_message"]


# Codex always streams.
@pytest.mark.covers("streamed")
def test_text_and_usage(codex, backend):
    backend.say("Hello there.")
    events = codex("hi")
    assert texts(events) == ["Hello there."]
    assert events[-1]["usage"]["input_tokens"] == 10
    assert backend.messages[-1] == {"role": "user", "content": "hi"}
    names = [tool["function"]["name"] for tool in backend.requests[0]["tools"]]
    # None of its tools is hidden behind a search.
    assert "exec_command" in names and "search_tools" not in names


@pytest.mark.covers("tools")
def test_a_command_is_executed_and_its_output_reaches_the_model(codex, backend):
    command = {"cmd": "echo made by codex > made.txt; cat made.txt"}
    backend.call(("call_a", "exec_command", command))
    backend.say("Done.")
    assert texts(codex("Make a file.")) == ["Done."]
    assert (codex.work / "made.txt").read_text() == "made by codex\n"
    call, answer = backend.messages[-2:]
    assert json.loads(call["tool_calls"][0]["function"]["arguments"]) == command
    assert (answer["role"], answer["tool_call_id"]) == ("tool", "call_a")
    assert "exited with code 0" in answer["content"] and "made by codex" in answer["content"]


@pytest.mark.covers("reasoning")
def test_reasoning_is_sent_back_between_tool_turns(codex, backend):
    backend.call(("call_a", "exec_command", {"cmd": "true"}), reasoning=["Run ", "it."])
    backend.say("Done.")
    codex("Run it.")
    assert backend.messages[-2].get("reasoning_content") == "Run it."


@pytest.mark.covers("structured output")
def test_structured_output_has_the_schema(codex, backend):
    schema = {
        "type": "object",
        "properties": {"name": {"type": "string"}},
        "required": ["name"],
        "additionalProperties": False,
    }
    (codex.work / "schema.json").write_text(json.dumps(schema))
    backend.say('{"name": "Oslo"}')
    events = codex("--output-schema", "schema.json", "Which city?")
    assert texts(events) == ['{"name": "Oslo"}']
    assert backend.requests[0]["response_format"]["json_schema"]["schema"] == schema
