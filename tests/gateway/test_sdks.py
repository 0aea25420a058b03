"""The official clients for Python and TypeScript."""

import asyncio
import json

import pytest
from conftest import LISTED, STEPS, installed
from drivers import SOURCES, run
from mcp import Client, StdioServerParameters


def check(gateway, names, texts):
    assert [name for name in names if name in LISTED[gateway.mode]] == LISTED[gateway.mode]
    if gateway.mode == "facade":
        assert names == LISTED["facade"]
        assert "notes__add" in texts[0]
    else:
        # A broken schema costs at most its own tool. These clients refuse a whole list with one illegal schema.
        assert "odd__echo" in names
    assert texts[-1] == "noted: milk"
    assert gateway.written() == ["milk"]


# With the handshake of the older revisions, and without.
@pytest.mark.parametrize("era", ["legacy", "auto"])
def test_python(gateway, era):
    program, *arguments = gateway.program
    target = gateway.url or StdioServerParameters(command=program, args=arguments)

    async def use():
        async with Client(target, mode=era) as client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            texts = []
            for name, arguments in STEPS[gateway.mode]:
                result = await client.call_tool(name, arguments)
                assert not result.is_error, result
                texts.append("".join(block.text for block in result.content))
            return names, texts

    check(gateway, *asyncio.run(asyncio.wait_for(use(), 60)))


def test_typescript(gateway):
    target = {"url": gateway.url, "program": gateway.program, "steps": STEPS[gateway.mode]}
    script = str(SOURCES.parent / "gateway" / "typescript.mjs")
    sdk = installed("@modelcontextprotocol", "sdk", "dist", "esm")
    printed = run(["node", script, sdk, json.dumps(target)], gateway.folder)
    answer = json.loads(printed)
    check(gateway, answer["names"], answer["texts"])
