"""An MCP server without an SDK, on standard input and output, whose tool schemas break the rules of MCP in ways seen in
the field. `echo` is an ordinary tool."""

import json
import sys

ODD_SCHEMAS = [
    {"type": ["object", "null"]},
    {"type": "object", "properties": []},
    {"type": "object", "properties": {"a": {"type": "int"}}},
    {"type": "object", "properties": {"a": {"description": None}}, "required": True},
    {"type": "object", "properties": {"a": {"$ref": "#/$defs/missing"}}},
    {"type": "object", "properties": {"a": {"type": "string", "pattern": "[^]"}}},
    {"type": "string"},
    {"$schema": "urn:unknown", "type": "object"},
    None,
    "object",
]
ECHO_SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


def tools():
    odd = [{"name": f"odd_{index}", "inputSchema": schema} for index, schema in enumerate(ODD_SCHEMAS)]
    return [*odd, {"name": "echo", "description": "Returns the text.", "inputSchema": ECHO_SCHEMA}]


def answer(method, params):
    if method == "initialize":
        capabilities = {"tools": {}}
        information = {"name": "odd", "version": "1"}
        return {"protocolVersion": "2025-06-18", "capabilities": capabilities, "serverInfo": information}
    if method == "tools/list":
        return {"tools": tools()}
    if method == "tools/call":
        return {"content": [{"type": "text", "text": params["arguments"].get("text", "")}]}
    return None


for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    result = answer(message.get("method"), message.get("params", {}))
    error = {"code": -32601, "message": "method not found"}
    outcome = {"error": error} if result is None else {"result": result}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **outcome}), flush=True)
