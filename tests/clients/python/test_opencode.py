"""opencode (`opencode run`) with haft as a provider of its own."""

import json

import pytest

from drivers import installed, lines, run

CLIENT = "opencode"
PROGRAM = installed("agents", "node_modules", ".bin", "opencode")

# recipe: opencode
CONFIG = {
    "model": "haft/double",
    "enabled_providers": ["haft"],
    "provider": {
        "haft": {
            "npm": "@ai-sdk/openai",
            "name": "haft",
            "options": {"baseURL": "@BASE_URL@", "apiKey": "test"},
            "models": {
                "double": {
                    "tool_call": True,
                    "reasoning": True,
                    "limit": {"context": 200000, "output": 8000},
                }
            },
        }
    },
}
# end

TEST_ONLY = {"autoupdate": False, "share": "disabled", "permission": {"bash": "allow"}}


COMMAND = {"command": "echo made by opencode > made.txt; cat made.txt", "description": "x"}


@pytest.fixture(scope="module")
def run_of_opencode(recorder, double, tmp_path_factory):
    """One run for all tests, because opencode takes long to start: its events, its folder and the messages
    that reached the model last."""
    home, work = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("work")
    config = json.dumps({**CONFIG, **TEST_ONLY}).replace("@BASE_URL@", recorder.base_url)
    (work / "opencode.json").write_text(config)
    folders = ("CONFIG", "DATA", "CACHE", "STATE")
    environment = {
        "HOME": str(home),
        "OPENCODE_CONFIG": str(work / "opencode.json"),
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        **{f"XDG_{name}_HOME": str(home / name.lower()) for name in folders},
    }
    double.reset()
    double.aside(lambda body: "title generator" in str(body["messages"][0]), "A title")
    double.call(("call_a", "bash", COMMAND), reasoning=["Run ", "it."])
    double.say("Done now.")
    program = [PROGRAM, "run", "-m", "haft/double", "--format", "json", "Make a file."]
    with recorder.checked(double):
        events = lines(run(program, work, environment))
    double.verify()
    return events, work, double.messages


# opencode always streams.
@pytest.mark.covers("streamed")
def test_text_arrives(run_of_opencode):
    events, _, _ = run_of_opencode
    assert [it["part"]["text"] for it in events if it["type"] == "text"] == ["Done now."]


@pytest.mark.covers("tools")
def test_a_command_is_executed_and_its_output_reaches_the_model(run_of_opencode):
    _, work, messages = run_of_opencode
    assert (work / "made.txt").read_text() == "made by opencode\n"
    call, answer = messages[-2:]
    assert json.loads(call["tool_calls"][0]["function"]["arguments"]) == COMMAND
    assert (answer["tool_call_id"], answer["content"]) == ("call_a", "made by opencode\n")


@pytest.mark.covers("reasoning")
def test_reasoning_is_sent_back_between_tool_turns(run_of_opencode):
    _, _, messages = run_of_opencode
    assert messages[-2].get("reasoning_content") == "Run it."
