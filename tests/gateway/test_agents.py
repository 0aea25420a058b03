"""Coding agents with a scripted model: Claude Code, Codex and Gemini CLI."""

import json

import pytest
from conftest import LISTED, STEPS, installed
from drivers import lines, run
from models import DONE, Anthropic, Gemini, ScriptedModel

PROMPT = "Write a note: milk."


@pytest.fixture
def home(tmp_path):
    folder = tmp_path / "home"
    (folder / "work").mkdir(parents=True)
    return folder


@pytest.fixture
def model(request, gateway):
    model = ScriptedModel(request.param, STEPS[gateway.mode])
    yield model
    model.stop()


def check(gateway, tools, results):
    """The model saw the tools of this mode and no others of the gateway, and the results of its calls."""
    listed = [name for name in tools if any(name.endswith(it) for it in sum(LISTED.values(), []))]
    assert len(listed) == len(LISTED[gateway.mode]), tools
    for name in LISTED[gateway.mode]:
        assert any(tool.endswith(name) for tool in listed), (name, tools)
    assert len(results) == len(STEPS[gateway.mode]), results
    if gateway.mode == "facade":
        assert "notes__add" in results[0]
    assert "noted: milk" in results[-1]
    assert gateway.written() == ["milk"]


@pytest.mark.parametrize("model", [Anthropic], indirect=True)
def test_claude_code(gateway, model, home):
    program = ["node", installed("@anthropic-ai", "claude-code", "cli-wrapper.cjs")]
    allowed = ["--allowedTools", "mcp__haft", "--output-format", "json"]
    environment = {
        "HOME": str(home),
        "ANTHROPIC_BASE_URL": model.url,
        "ANTHROPIC_API_KEY": "test",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "MCP_TIMEOUT": "60000",
        # It would send the first request before the servers are connected.
        "MCP_CONNECTION_NONBLOCKING": "false",
        # Its own search would hide the tools; what is tested here is that it gets them.
        "ENABLE_TOOL_SEARCH": "false",
    }
    gateway.install("claude", environment)
    printed = run([*program, "-p", PROMPT, *allowed], home / "work", environment)
    assert json.loads(printed)["result"] == DONE
    check(gateway, model.tools, model.results)
    assert all(name.startswith("mcp__haft__") for name in model.tools if "note" in name)


@pytest.mark.parametrize("model", [Gemini], indirect=True)
def test_gemini_cli(gateway, model, home):
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
        "general": {"enableAutoUpdate": False},
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
    }
    (home / ".gemini").mkdir()
    (home / ".gemini" / "settings.json").write_text(json.dumps(settings))
    program = ["node", installed("@google", "gemini-cli", "bundle", "gemini.js")]
    environment = {
        "HOME": str(home),
        "GOOGLE_GEMINI_BASE_URL": model.url,
        "GEMINI_API_KEY": "test",
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
    }
    gateway.install("gemini", environment)
    # Without a terminal, calls that ask for a confirmation are denied.
    arguments = ["-m", "gemini-2.5-flash", "--approval-mode", "yolo", "-o", "json", "-p", PROMPT]
    printed = run([*program, *arguments], home / "work", environment)
    assert json.loads(printed[printed.index("{") :])["response"] == DONE
    check(gateway, model.tools, model.results)


def test_codex(gateway, backend, home):
    (home / "config.toml").write_text(f"""
model = "double"
model_provider = "haft"
web_search = "disabled"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false
analytics.enabled = false

[model_providers.haft]
name = "haft"
base_url = "{gateway.model_url}"
wire_api = "responses"
supports_websockets = false
request_max_retries = 0
stream_max_retries = 0
""")
    environment = {"CODEX_HOME": str(home), "HOME": str(home)}
    gateway.install("codex", environment)
    for name, arguments in STEPS[gateway.mode]:
        backend.call((f"mcp__haft__{name}", arguments))
    backend.say(DONE)
    program = [installed(".bin", "codex"), "exec", "--skip-git-repo-check", "--json"]
    events = lines(run([*program, PROMPT], home / "work", environment))
    items = [event["item"] for event in events if event["type"] == "item.completed"]
    assert [it["text"] for it in items if it["type"] == "agent_message"] == [DONE]
    tools = [tool["function"]["name"] for tool in backend.requests[0]["tools"]]
    results = [it["content"] for it in backend.messages if it["role"] == "tool"]
    check(gateway, tools, results)
