"""What every test of the real clients starts from: one server, one double behind it, one client."""

import json
import os

import openai
import pytest

from backend import Backend
from served import Served, config
from wire import Recorder

# The environment of the machine must not redirect the clients.
CLIENT = {"api_key": "test", "max_retries": 0, "timeout": 30}


@pytest.fixture(scope="session")
def double():
    backend = Backend()
    yield backend
    backend.stop()


@pytest.fixture(scope="session")
def served(double, tmp_path_factory):
    server = Served(tmp_path_factory.mktemp("haft"), config(double))
    yield server
    server.stop()


@pytest.fixture
def serve(double, tmp_path):
    """Starts a server of the test's own."""
    started = []

    def start(server="", environment=None):
        folder = tmp_path / str(len(started))
        folder.mkdir()
        started.append(Served(folder, config(double, server), environment))
        return started[-1]

    yield start
    for server in started:
        server.stop()


@pytest.fixture
def backend(double):
    """The double, with an empty script; in the end the script must be used up."""
    double.reset()
    yield double
    double.verify()


@pytest.fixture(scope="session")
def recorder(served):
    """The proxy in front of the server; it outlives a test, because some runs are shared by several."""
    proxy = Recorder(served.url)
    yield proxy
    proxy.stop()


@pytest.fixture
def wire(recorder, backend):
    """The server behind a proxy: in the end every recorded exchange is checked."""
    with recorder.checked(backend):
        yield recorder


@pytest.fixture
def client(served):
    with openai.OpenAI(base_url=served.base_url, **CLIENT) as client:
        yield client


@pytest.fixture
def connect(served):
    """An asynchronous client, made inside the test's own event loop."""
    return lambda **more: openai.AsyncOpenAI(base_url=served.base_url, **{**CLIENT, **more})


# What the table in docs/clients.md is made from.


def pytest_configure(config):
    config.addinivalue_line("markers", "covers(feature): a cell of the table in docs/clients.md")
    config.client_results = []


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    is_passed = outcome.get_result().passed
    # The wire is checked after the test.
    if call.when == "call" or (call.when == "teardown" and not is_passed):
        for marker in item.iter_markers("covers"):
            result = {"client": item.module.CLIENT, "feature": marker.args[0], "ok": is_passed}
            item.config.client_results.append(result)


def pytest_sessionfinish(session):
    path = os.environ.get("CLIENTS_RESULTS")
    if path and session.config.client_results:
        with open(path, "a") as file:
            for result in session.config.client_results:
                file.write(json.dumps(result) + "\n")
