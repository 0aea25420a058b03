"""A small server on FastMCP: `toy.py stdio`, `toy.py http PORT`, `toy.py sse PORT`."""

import asyncio
import sys

from fastmcp import Context, FastMCP

server = FastMCP("toy")


@server.tool
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@server.tool
async def slow(seconds: float, context: Context) -> str:
    """Takes a while and says how far it is."""
    for step in range(int(seconds * 10)):
        await asyncio.sleep(0.1)
        await context.report_progress(step + 1, seconds * 10)
    return "done"


if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        server.run(show_banner=False)
    else:
        server.run(transport=sys.argv[1], host="127.0.0.1", port=int(sys.argv[2]), show_banner=False)
