"""The gateway in front of a real MCP server, reached in every way that a client can reach it."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

CLIENTS = Path(__file__).resolve().parents[1] / "clients" / "python"
sys.path.insert(0, str(CLIENTS))

from backend import Backend  # noqa: E402
from drivers import run  # noqa: E402
from served import Served, binary, config  # noqa: E402

WAYS = ["stdio", "http"]
MODES = ["passthrough", "facade"]

# What each mode lists, by the names before a client adds its prefix.
LISTED = {
    "passthrough": ["notes__add", "notes__count", "notes__fail"],
    "facade": ["search_tools", "describe_tool", "call_tool"],
}

# The calls that write one note, in each mode.
STEPS = {
    "passthrough": [("notes__add", {"text": "milk"})],
    "facade": [
        ("search_tools", {"query": "write a note down"}),
        ("call_tool", {"name": "notes__add", "arguments": {"text": "milk"}}),
    ],
}


@dataclass
class Gateway:
    """How a client reaches the gateway: by an address, or by a program that it starts."""

    mode: str
    folder: Path
    notes: Path
    url: str | None = None
    model_url: str | None = None

    @property
    def program(self):
        return [binary(), "mcp", "serve", "--config", str(self.folder / "haft.toml")]

    def install(self, client, environment):
        """Adds the gateway to a client's settings with `haft mcp install`, as a user does."""
        address = ["--http", self.url] if self.url else []
        arguments = [client, *address, "--config", str(self.folder / "haft.toml")]
        run([binary(), "mcp", "install", *arguments], self.folder, environment)

    def written(self):
        return self.notes.read_text().splitlines() if self.notes.exists() else []


@pytest.fixture(scope="session")
def double():
    backend = Backend()
    yield backend
    backend.stop()


@pytest.fixture
def backend(double):
    double.reset()
    yield double
    double.verify()


@pytest.fixture(params=WAYS)
def way(request):
    return request.param


# Ordinary tools, and a server whose schemas break the rules of MCP: it must not cost the clients the list.
SERVERS = """
[mcp.notes]
command = "{python}"
args = ["{clients}/notes_server.py"]
env = {{ NOTES = "{notes}" }}

[mcp.odd]
command = "{python}"
args = ["{here}/odd_server.py"]
"""


@pytest.fixture(params=MODES)
def gateway(request, way, double, tmp_path):
    mode, notes = request.param, tmp_path / "notes"
    here = Path(__file__).parent
    servers = SERVERS.format(python=sys.executable, clients=CLIENTS, notes=notes, here=here)
    # For the gateways that clients start; the server gets a folder of its own on its command line.
    data_dir = f'data_dir = "{tmp_path}/gateway-data"'
    text = f'{config(double, data_dir)}\n[gateway]\nmode = "{mode}"\n{servers}'
    (tmp_path / "haft.toml").write_text(text)
    # The lists are known, as after the first use: agents that run one prompt do not wait for a server that starts.
    data = "data" if way == "http" else "gateway-data"
    arguments = ["mcp", "test", "--config", "haft.toml", "--data-dir", data]
    subprocess.run([binary(), *arguments], cwd=tmp_path, check=True, capture_output=True, timeout=60)
    served = Served(tmp_path, text)
    url = f"{served.url}/mcp" if way == "http" else None
    yield Gateway(mode, tmp_path, notes, url, served.base_url)
    assert served.stop() == 0


def installed(*parts):
    """A file of an installed client, below the folder that `scripts/gateway-clients` fills."""
    return str(Path(os.environ["GATEWAY_CLIENTS_FOLDER"], "npm", "node_modules", *parts))
