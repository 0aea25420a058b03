"""MCP servers behind the Responses API, with approvals; and haft as an MCP server."""

import asyncio
import json
import socket
import subprocess
import sys
import time
from pathlib import Path

import openai
import pytest
from agents import Agent, HostedMCPTool, OpenAIResponsesModel, RunConfig, Runner
from agents.mcp import MCPServerStdio, MCPServerStreamableHttp

from conftest import CLIENT
from helpers import types
from served import Served, binary, clean_environment, config

QUIET = RunConfig(tracing_disabled=True)
NOTES_SERVER = Path(__file__).with_name("notes_server.py")
NOTES = {"type": "mcp", "server_label": "notes"}


class Notebook:
    """A server with two notebooks that have the same tools: one asks about every call, one about none."""

    def __init__(self, folder, double):
        self.folder = folder
        self.file = folder / "notes.txt"
        self.served = Served(folder, config(double) + self.servers() + "\n[gateway]\n")

    def servers(self):
        def server(label, more):
            return f"""
[mcp.{label}]
command = {json.dumps(sys.executable)}
args = [{json.dumps(str(NOTES_SERVER))}]
env = {{ NOTES = {json.dumps(str(self.file))} }}
{more}
"""

        return server("notes", 'approve = "always"') + server("diary", 'approve = "never"')

    @property
    def written(self):
        return self.file.read_text().splitlines() if self.file.exists() else []

    def connect(self):
        return openai.OpenAI(base_url=self.served.base_url, **CLIENT)


@pytest.fixture(scope="module")
def notebooks(double, tmp_path_factory):
    notebook = Notebook(tmp_path_factory.mktemp("notebook"), double)
    yield notebook
    assert notebook.served.stop() == 0


@pytest.fixture
def notebook(notebooks):
    notebooks.file.unlink(missing_ok=True)
    return notebooks


def stream(client, **body):
    """All events of a response, and the response itself."""
    with client.responses.create(model="double", stream=True, **body) as events:
        events = list(events)
    return events, events[-1].response


def item(response, kind):
    return next(it for it in response.output if it.type == kind)


def answer(request, approve, **more):
    return {"type": "mcp_approval_response", "approval_request_id": request.id, "approve": approve, **more}


def test_a_call_waits_for_approval_and_then_runs(notebook, backend):
    backend.call(("notes__add", {"text": "buy milk"}))
    with notebook.connect() as client:
        events, first = stream(client, input="Note: buy milk", tools=[NOTES])
        assert types(events)[2:6] == [
            "response.output_item.added",
            "response.mcp_list_tools.in_progress",
            "response.mcp_list_tools.completed",
            "response.output_item.done",
        ]
        listed = item(first, "mcp_list_tools")
        assert [tool.name for tool in listed.tools] == ["add", "count", "fail"]
        request = item(first, "mcp_approval_request")
        assert (request.server_label, request.name) == ("notes", "add")
        assert json.loads(request.arguments) == {"text": "buy milk"}
        assert not any(it.type == "mcp_call" for it in first.output)
        assert notebook.written == []

        # Approval outlasts the server.
        notebook.served.restart()
    with notebook.connect() as client:
        backend.say("Noted.")
        events, second = stream(
            client, previous_response_id=first.id, input=[answer(request, True)], tools=[NOTES]
        )
    assert [it for it in types(events) if "mcp" in it] == [
        "response.mcp_call.in_progress",
        "response.mcp_call_arguments.delta",
        "response.mcp_call_arguments.done",
        "response.mcp_call.completed",
    ]
    call = item(second, "mcp_call")
    assert (call.name, call.output, call.error) == ("add", "noted: buy milk", None)
    assert call.approval_request_id == request.id
    assert second.output_text == "Noted."
    assert notebook.written == ["buy milk"]
    assert backend.messages[-1]["content"] == "noted: buy milk"


def test_a_refusal_is_told_to_the_model_and_nothing_runs(notebook, backend):
    backend.call(("notes__add", {"text": "a secret"}))
    backend.say("Then not.")
    with notebook.connect() as client:
        _, first = stream(client, input="Note it", tools=[NOTES])
        request = item(first, "mcp_approval_request")
        refusal = answer(request, False, reason="not on paper")
        _, second = stream(client, previous_response_id=first.id, input=[refusal], tools=[NOTES])
    assert second.output_text == "Then not."
    assert notebook.written == []
    assert "not on paper" in backend.messages[-1]["content"]


def test_nothing_stored_works_too_and_an_edited_request_is_refused(notebook, backend):
    backend.call(("notes__add", {"text": "milk"}))
    with notebook.connect() as client:
        _, first = stream(client, input="Note: milk", tools=[NOTES], store=False)
        request = item(first, "mcp_approval_request")
        said = [{"role": "user", "content": "Note: milk"}, *(it.to_dict() for it in first.output)]
        edited = json.loads(json.dumps(said))
        edited[-1]["arguments"] = json.dumps({"text": "everything"})
        with pytest.raises(openai.BadRequestError) as refused:
            stream(client, input=[*edited, answer(request, True)], tools=[NOTES], store=False)
        assert refused.value.code == "approval_request_not_found"
        assert notebook.written == []
        backend.say("Noted.")
        stream(client, input=[*said, answer(request, True)], tools=[NOTES], store=False)
    assert notebook.written == ["milk"]


def test_two_servers_with_the_same_tools_and_one_that_fails(notebook, backend):
    backend.call(("diary__add", {"text": "dear diary"}), ("diary__fail", {}))
    backend.say("One of two.")
    with notebook.connect() as client:
        tools = [NOTES, {"type": "mcp", "server_label": "diary"}]
        response = client.responses.create(model="double", input="Write", tools=tools)
    calls = [it for it in response.output if it.type == "mcp_call"]
    assert [(it.server_label, it.name, it.status) for it in calls] == [
        ("diary", "add", "completed"),
        ("diary", "fail", "failed"),
    ]
    assert "Error executing tool fail" in json.dumps(calls[1].to_dict()["error"])
    assert notebook.written == ["dear diary"]


def test_a_server_of_the_request_is_reached_only_where_the_operator_allows_it(serve, backend):
    tool = {"type": "mcp", "server_label": "inner", "server_url": "http://127.0.0.1:1/mcp"}
    with openai.OpenAI(base_url=serve().base_url, **CLIENT) as client:
        with pytest.raises(openai.BadRequestError) as refused:
            client.responses.create(model="double", input="Hi", tools=[tool])
        assert refused.value.code == "mcp_server_not_allowed"


def test_a_server_of_the_request_is_used_with_its_own_token(serve, backend, tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {**clean_environment(), "NOTES": str(tmp_path / "notes.txt")}
    process = subprocess.Popen([sys.executable, NOTES_SERVER, str(port)], env=environment, stderr=subprocess.DEVNULL)
    try:
        for _ in range(200):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        served = serve(f'mcp_hosts = ["http://127.0.0.1:{port}"]')
        backend.call(("mine__count", {}))
        backend.say("None.")
        tool = {
            "type": "mcp",
            "server_label": "mine",
            "server_url": f"http://127.0.0.1:{port}/mcp",
            "authorization": "token-of-the-caller",
            "require_approval": "never",
        }
        with openai.OpenAI(base_url=served.base_url, **CLIENT) as client:
            response = client.responses.create(model="double", input="How many?", tools=[tool])
        assert item(response, "mcp_call").output == "0"
        assert "token-of-the-caller" not in json.dumps(response.to_dict())
        assert "token-of-the-caller" not in (served.folder / "log").read_text()
    finally:
        # It would wait for haft, which keeps its connection.
        process.kill()
        process.wait(10)


def test_the_agents_sdk_approves_and_streams(notebook, backend):
    backend.call(("notes__add", {"text": "from an agent"}))
    backend.say("Noted.")
    asked = []

    def approve(request):
        asked.append((request.data.name, json.loads(request.data.arguments)))
        return {"approve": True}

    async def work():
        async with openai.AsyncOpenAI(base_url=notebook.served.base_url, **CLIENT) as client:
            config = {**NOTES, "require_approval": "always"}
            tool = HostedMCPTool(tool_config=config, on_approval_request=approve)
            agent = Agent(name="clerk", model=OpenAIResponsesModel("double", client), tools=[tool])
            result = Runner.run_streamed(agent, "Note something", run_config=QUIET)
            kinds = [event.item.type async for event in result.stream_events() if event.type == "run_item_stream_event"]
            return result.final_output, kinds

    final, kinds = asyncio.run(asyncio.wait_for(work(), 60))
    assert final == "Noted."
    assert asked == [("add", {"text": "from an agent"})]
    assert "mcp_approval_request_item" in kinds and "mcp_approval_response_item" in kinds
    assert notebook.written == ["from an agent"]


def through_the_gateway(server):
    async def work():
        async with server:
            tools = {tool.name for tool in await server.list_tools()}
            result = await server.call_tool("diary__add", {"text": "through the gateway"})
            failed = await server.call_tool("diary__fail", {})
            return tools, result, failed

    return asyncio.run(asyncio.wait_for(work(), 60))


def check_gateway(notebook, seen):
    tools, result, failed = seen
    assert {"notes__add", "diary__add", "diary__count", "clock"} <= tools
    assert result.content[0].text == "noted: through the gateway"
    assert failed.is_error
    assert notebook.written == ["through the gateway"]


def test_haft_is_an_mcp_server_on_standard_input_and_output(notebook):
    arguments = ["mcp", "serve", "--config", str(notebook.folder / "haft.toml"), "--data-dir"]
    params = {
        "command": binary(),
        "args": [*arguments, str(notebook.folder / "gateway-data")],
        "env": clean_environment(),
    }
    server = MCPServerStdio(params=params, client_session_timeout_seconds=30)
    check_gateway(notebook, through_the_gateway(server))


def test_haft_is_an_mcp_server_over_http(notebook):
    url = f"{notebook.served.url}/mcp"
    server = MCPServerStreamableHttp(params={"url": url}, client_session_timeout_seconds=30)
    check_gateway(notebook, through_the_gateway(server))
