"""Times calls of one tool: at its server, through haft's gateway and through mcp-proxy, and adds up their memory.

The client is as lean as Python allows (lines over pipes, requests over kept connections), so that what is compared
is what stands between it and the tool. `scripts/gateway-bench` runs this.
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

HAFT, FAKE, HTTP_SERVER, MCP_PROXY = (str(Path(os.environ[it]).resolve()) for it in
                                      ("HAFT", "FAKE", "HTTP_SERVER", "MCP_PROXY"))
CALLS = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
WARM_UP, AT_ONCE, SERVERS = 100, 8, 11

# What the gateway may add to the median of a direct call, in terms of that median.
TARGETS = {"passthrough": 2.2, "facade": 3.0}
MEMORY_TARGET = 80.0

INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "bench", "version": "1"},
}


def message(method, params=None, number=None):
    body = {"jsonrpc": "2.0", "method": method}
    if number is not None:
        body["id"] = number
    if params is not None:
        body["params"] = params
    return json.dumps(body, separators=(",", ":")).encode()


def checked(answer):
    assert "result" in answer and not answer["result"].get("isError"), answer
    return answer["result"]


class Pipe:
    """A server that this process starts and speaks to in lines."""

    def __init__(self, *program, environment=None):
        env = {**os.environ, **(environment or {})}
        self.process = subprocess.Popen(
            program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env
        )
        self.number = 0
        self.request("initialize", INITIALIZE)
        self.send(message("notifications/initialized"))

    def send(self, line):
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def begin(self, method, params):
        self.number += 1
        self.send(message(method, params, self.number))

    def answer(self):
        while True:
            answer = json.loads(self.process.stdout.readline())
            # Anything else is a notification.
            if "id" in answer and "method" not in answer:
                return checked(answer)

    def request(self, method, params=None):
        self.begin(method, params)
        return self.answer()

    def rate(self, call, count):
        started, under_way = time.perf_counter(), 0
        for _ in range(count):
            if under_way == AT_ONCE:
                self.answer()
                under_way -= 1
            self.begin("tools/call", call)
            under_way += 1
        for _ in range(under_way):
            self.answer()
        return count / (time.perf_counter() - started)

    def close(self):
        self.process.stdin.close()
        self.process.wait(20)


class Http:
    """A session at an address."""

    def __init__(self, url, session=None):
        self.url = urlsplit(url)
        self.connection = HTTPConnection(self.url.hostname, self.url.port)
        self.connection.connect()
        self.connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.headers = {
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
        }
        self.number = 0
        if session:
            self.headers.update(session)
        else:
            self.request("initialize", INITIALIZE)
            self.headers["mcp-protocol-version"] = INITIALIZE["protocolVersion"]
            self.post(message("notifications/initialized"))

    def post(self, body):
        self.connection.request("POST", self.url.path, body, self.headers)
        response = self.connection.getresponse()
        if session := response.getheader("mcp-session-id"):
            self.headers["mcp-session-id"] = session
        return response.read()

    def request(self, method, params=None):
        self.number += 1
        text = self.post(message(method, params, self.number))
        if text.startswith(b"{"):
            return checked(json.loads(text))
        data = [line[5:] for line in text.splitlines() if line.startswith(b"data:")]
        answers = [json.loads(it) for it in data if it.strip()]
        return checked(next(it for it in answers if "id" in it))

    def rate(self, call, count):
        session = {key: it for key, it in self.headers.items() if key.startswith("mcp-")}

        def work(client):
            for _ in range(count // AT_ONCE):
                client.request("tools/call", call)

        clients = [Http(self.url.geturl(), session) for _ in range(AT_ONCE)]
        for at, client in enumerate(clients):
            client.number = (at + 1) * 1_000_000
        threads = [threading.Thread(target=work, args=(it,)) for it in clients]
        started = time.perf_counter()
        for it in threads:
            it.start()
        for it in threads:
            it.join()
        return count // AT_ONCE * AT_ONCE / (time.perf_counter() - started)

    def close(self):
        self.connection.close()


def until(condition, what):
    for _ in range(400):
        try:
            if condition():
                return
        except (OSError, AssertionError, StopIteration):
            pass
        time.sleep(0.05)
    raise RuntimeError(f"timed out waiting for {what}")


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def answers(port):
    def connect():
        socket.create_connection(("127.0.0.1", port), 1).close()
        return True

    until(connect, f"port {port}")


def call_of(mode, name, arguments):
    if mode == "facade":
        return {"name": "call_tool", "arguments": {"name": name, "arguments": arguments}}
    return {"name": name, "arguments": arguments}


def measure(client, call):
    """The median and the 99th percentile in microseconds, and calls per second with eight in flight."""
    # The first call starts the server, where nothing did before.
    until(lambda: client.request("tools/call", call) is not None, "the first call")
    for _ in range(WARM_UP):
        client.request("tools/call", call)
    times = []
    for _ in range(CALLS):
        started = time.perf_counter()
        client.request("tools/call", call)
        times.append(time.perf_counter() - started)
    times.sort()
    rate = client.rate(call, CALLS)
    client.close()
    return times[CALLS // 2] * 1e6, times[CALLS * 99 // 100] * 1e6, rate


def configuration(folder, mode, http_server):
    path = Path(folder, f"{mode}.toml")
    path.write_text(f"""
[[model]]
name = "none"
adapter = "offline"

[mcp.local]
command = "{FAKE}"
args = ["legacy"]

[mcp.remote]
url = "{http_server}"

[gateway]
mode = "{mode}"
""")
    return str(path)


def memory(process, count):
    """RSS and PSS in MB of a process and of its children that are haft's own supervisors, and their number."""
    children = Path(f"/proc/{process}/task").glob("*/children")
    own = [process]
    for child in {pid for it in children for pid in it.read_text().split()}:
        if b"supervise" in Path(f"/proc/{child}/cmdline").read_bytes():
            own.append(child)
    totals = {"Rss": 0, "Pss": 0}
    for pid in own:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            name, _, rest = line.partition(":")
            if name in totals:
                totals[name] += int(rest.split()[0])
    assert len(own) == count, f"{len(own)} processes in place of {count}"
    return totals["Rss"] / 1000, totals["Pss"] / 1000


def haft_memory(folder):
    servers = [f'[mcp.s{at}]\ncommand = "{FAKE}"\nargs = ["legacy"]\n' for at in range(SERVERS)]
    path = Path(folder, "eleven.toml")
    path.write_text("\n".join(servers))
    client = Pipe(HAFT, "mcp", "serve", "--mode", "passthrough", "--config", str(path),
                  "--data-dir", str(Path(folder, "eleven")))
    for at in range(SERVERS):
        call = {"name": f"s{at}__echo", "arguments": {}}
        until(lambda: client.request("tools/call", call) is not None, f"server {at}")
    time.sleep(1)
    used = memory(client.process.pid, 1 + SERVERS)
    client.close()
    return used


def proxy_memory():
    port = free_port()
    named = [it for at in range(SERVERS) for it in ("--named-server", f"s{at}", f"{FAKE} legacy")]
    proxy = start_proxy(port, *named)
    for at in range(SERVERS):
        client = Http(f"http://127.0.0.1:{port}/servers/s{at}/mcp")
        client.request("tools/call", {"name": "echo", "arguments": {}})
        client.close()
    used = memory(proxy.pid, 1)
    stop(proxy)
    return used


def start_proxy(port, *more):
    program = [MCP_PROXY, "--port", str(port), "--log-level", "ERROR", *more]
    started = subprocess.Popen(program, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    answers(port)
    return started


def stop(process):
    process.terminate()
    process.wait(20)


def main():
    echo, simple = {"text": "hello"}, {}
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        port = free_port()
        http_server = subprocess.Popen([HTTP_SERVER], env={**os.environ, "PORT": str(port)},
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        answers(port)
        url = f"http://127.0.0.1:{port}/mcp"
        direct = measure(Pipe(FAKE, "legacy"), call_of("direct", "echo", echo))
        rows.append(("stdio", "direct", direct, None))
        direct_http = measure(Http(url), call_of("direct", "test_simple_text", simple))
        rows.append(("HTTP", "direct", direct_http, None))
        for mode in TARGETS:
            path = configuration(folder, mode, url)
            data = str(Path(folder, mode))
            client = Pipe(HAFT, "mcp", "serve", "--config", path, "--data-dir", data)
            figures = measure(client, call_of(mode, "local__echo", echo))
            rows.append(("stdio", f"haft, {mode}", figures, (direct, TARGETS[mode])))
            port = free_port()
            served = subprocess.Popen(
                [HAFT, "serve", "--config", path, "--data-dir", data + "-http",
                 "--listen", f"127.0.0.1:{port}"],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            answers(port)
            gateway = f"http://127.0.0.1:{port}/mcp"
            figures = measure(Http(gateway), call_of(mode, "remote__test_simple_text", simple))
            rows.append(("HTTP", f"haft, {mode}", figures, (direct_http, TARGETS[mode])))
            figures = measure(Http(gateway), call_of(mode, "local__echo", echo))
            rows.append(("HTTP to stdio", f"haft, {mode}", figures, None))
            stop(served)
        port = free_port()
        proxy = start_proxy(port, FAKE, "legacy")
        figures = measure(Http(f"http://127.0.0.1:{port}/mcp"), call_of("direct", "echo", echo))
        rows.append(("HTTP to stdio", "mcp-proxy", figures, None))
        stop(proxy)
        stop(http_server)
        used = [("haft", haft_memory(folder)), ("mcp-proxy", proxy_memory())]

    print("| transport | through | p50 µs | p99 µs | calls/s | added to p50 µs | added / direct | target |")
    print("|---|---|---|---|---|---|---|---|")
    missed = []
    for transport, through, (p50, p99, rate), compared in rows:
        added = ratio = target = ""
        if compared:
            (base, _, _), limit = compared
            added, ratio = f"{p50 - base:.0f}", f"{(p50 - base) / base:.2f}"
            target = f"≤ {limit:g}"
            if (p50 - base) / base > limit:
                missed.append(f"{transport}, {through}: {ratio} × direct added, target {limit:g}")
        row = [transport, through, f"{p50:.0f}", f"{p99:.0f}", f"{rate:.0f}", added, ratio, target]
        print("| " + " | ".join(row) + " |")
    print(f"\n| memory with {SERVERS} stdio servers, without the servers' own | RSS MB | PSS MB |")
    print("|---|---|---|")
    for name, (rss, pss) in used:
        print(f"| {name} | {rss:.1f} | {pss:.1f} |")
        if name == "haft":
            for kind, value in (("RSS", rss), ("PSS", pss)):
                if value > MEMORY_TARGET:
                    missed.append(f"memory: {value:.1f} MB {kind}, target {MEMORY_TARGET:g}")
    print("\nmissed: " + ("; ".join(missed) or "nothing"))


main()
