"""`haft serve` as a process, with a configuration of the test's own."""

import os
import subprocess
import threading
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
LISTENING = "listening on "
PATIENCE = 30


class Served:
    """A running server. It keeps its data in a folder, so it can be stopped and started again."""

    def __init__(self, folder, config, environment=None):
        self.folder = Path(folder)
        self.environment = environment or {}
        (self.folder / "haft.toml").write_text(config)
        self.start()

    def start(self):
        arguments = ["serve", "--config", "haft.toml", "--listen", "127.0.0.1:0"]
        self.log = open(self.folder / "log", "ab")
        self.process = subprocess.Popen(
            [binary(), *arguments, "--data-dir", "data"],
            cwd=self.folder,
            env={**clean_environment(), **self.environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
        )
        self.url = self._address()

    def _address(self):
        # A server that never says anything must not hang the tests.
        alarm = threading.Timer(PATIENCE, self.process.kill)
        alarm.start()
        try:
            for line in self.process.stdout:
                if line.startswith(LISTENING):
                    # Whatever else it says must not fill the pipe.
                    rest = threading.Thread(target=self.process.stdout.read, daemon=True)
                    rest.start()
                    return line.removeprefix(LISTENING).strip()
        finally:
            alarm.cancel()
        raise RuntimeError("haft serve did not start: " + (self.folder / "log").read_text())

    @property
    def base_url(self):
        return f"{self.url}/v1"

    def stop(self):
        """Asks it to stop; its exit code."""
        self.process.terminate()
        try:
            return self.process.wait(PATIENCE)
        finally:
            self.process.kill()
            self.log.close()

    def restart(self):
        assert self.stop() == 0
        self.start()


def binary():
    given = os.environ.get("HAFT")
    return str(Path(given).resolve() if given else ROOT / "target" / "debug" / "haft")


def clean_environment():
    """Nothing that would say anything about models or keys."""

    def is_neutral(name):
        return not name.startswith("HAFT") and not name.endswith("_API_KEY")

    return {name: value for name, value in os.environ.items() if is_neutral(name)}


def config(backend, server=""):
    """A configuration with the offline model and the double."""
    return f"""
[server]
default_model = "offline"
{server}

# A failure is told at once; what is retried is a matter of other tests.
[loop.retry]
attempts = 1

[[model]]
name = "offline"
adapter = "offline"

[[model]]
name = "double"
adapter = "openai-chat"
model = "double-1"
# Some helpers take names of this form only.
aliases = ["gpt-double"]
base_url = "{backend.base_url}"
capabilities = {{ image_input = true }}
# The double fails on purpose, again and again.
breaker = {{ enabled = false }}
chat = {{ server = "openai" }}

[[model]]
name = "nobody"
adapter = "openai-chat"
breaker = {{ enabled = false }}
base_url = "http://127.0.0.1:1/v1"
"""
