"""An MCP server on the official SDK: `notes_server.py` on standard input and output, `notes_server.py PORT` at
an address. It keeps notes in a file, so that a test sees what really happened."""

import os
import sys
from pathlib import Path

from mcp.server import MCPServer

server = MCPServer("notes")
NOTES = Path(os.environ["NOTES"])


@server.tool()
def add(text: str) -> str:
    """Writes a note down."""
    with NOTES.open("a") as notes:
        notes.write(text + "\n")
    return f"noted: {text}"


@server.tool()
def count() -> int:
    """How many notes there are."""
    return len(NOTES.read_text().splitlines()) if NOTES.exists() else 0


@server.tool()
def fail() -> str:
    """Always fails."""
    raise ValueError("the notebook is full")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run(transport="streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
    else:
        server.run()
