"""Clients that are programs of their own: where they are installed, and how they are run."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from served import ROOT, clean_environment

INSTALLED = Path(os.environ.get("CLIENTS_FOLDER", ROOT / "target" / "clients"))
SOURCES = ROOT / "tests" / "clients"

# Nothing but this machine is reached: every other address has a proxy that is not there.
OFFLINE = {
    "HTTP_PROXY": "http://127.0.0.1:1",
    "HTTPS_PROXY": "http://127.0.0.1:1",
    "NO_PROXY": "127.0.0.1,localhost",
    "no_proxy": "127.0.0.1,localhost",
}


def installed(*parts):
    """A file of an installed client. Without it the tests of that client are left out, unless
    `scripts/clients` runs them by name."""
    path = INSTALLED.joinpath(*parts)
    if not path.exists() and not os.environ.get("CLIENTS_REQUIRED"):
        pytest.skip(f"not installed: {path}", allow_module_level=True)
    return str(path)


def run(arguments, cwd, environment=None, patience=180):
    """Runs a client; what it printed."""
    ran = subprocess.run(
        arguments,
        cwd=cwd,
        env={**clean_environment(), **OFFLINE, "PWD": str(cwd), **(environment or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=patience,
    )
    assert ran.returncode == 0, f"exit code {ran.returncode}\n{ran.stdout}\n{ran.stderr}"
    return ran.stdout


def lines(printed):
    return [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
