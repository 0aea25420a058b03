"""A reverse proxy in front of `haft serve` that records every exchange, and the checks that each of them must pass.

The clients that matter most go through it, so that a test sees the bytes on the wire and not only what the client
made of them. Bodies are passed on as they arrive; only the transfer encoding of HTTP/1.1 is the proxy's own.
"""

import json
import re
import sys
import threading
import typing
import uuid
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

TIMEOUT = 60
HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "upgrade", "te", "trailer"}
DIALECT = "haft-dialect"

STATUSES = {"completed", "failed", "in_progress", "cancelled", "queued", "incomplete"}
TERMINAL = {"response.completed", "response.failed", "response.incomplete"}
DONE = (None, "[DONE]")
# Members that haft uses internally.
PRIVATE = re.compile(r"^(wire_\w+|_?haft_.*)$")

# The member of the `done` event that the deltas add up to.
DELTAS = {
    "response.output_text": "text",
    "response.refusal": "refusal",
    "response.reasoning": "text",
    "response.reasoning_text": "text",
    "response.reasoning_summary_text": "text",
    "response.function_call_arguments": "arguments",
    "response.mcp_call_arguments": "arguments",
    "response.custom_tool_call_input": "input",
    "response.code_interpreter_call_code": "code",
}


@dataclass
class Exchange:
    """One request and its response. `is_aborted`: the client disconnected before the end."""

    method: str
    path: str
    request_headers: list
    request_body: bytes
    status: int = 0
    response_headers: list = field(default_factory=list)
    response_body: bytes = b""
    is_aborted: bool = False

    def request_header(self, name):
        return header(self.request_headers, name)

    @property
    def is_stream(self):
        return header(self.response_headers, "content-type").startswith("text/event-stream")

    def __str__(self):
        body = self.response_body.decode(errors="backslashreplace")
        return f"{self.method} {self.path} -> {self.status}\n{self.request_body.decode()}\n\n{body}"


def header(headers, name):
    return next((value for key, value in headers if key.lower() == name), "")


class Proxy(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        # A client may close an idle connection at any time.
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class Recorder:
    """The proxy. `checked` is the only way in: what was recorded in it is checked when it ends."""

    def __init__(self, url):
        self.upstream = urlsplit(url).netloc
        # Sent to haft in place of a client's own key, so that no other text can be mistaken for it.
        self.key = f"sk-{uuid.uuid4().hex}"
        self.exchanges = []
        self.problems = []
        self._active = 0
        self._idle = threading.Condition()
        self._server = Proxy(("127.0.0.1", 0), handler(self))
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def base_url(self):
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def stop(self):
        self._server.shutdown()
        self._server.server_close()

    @contextmanager
    def checked(self, double):
        """Records until the block ends, then checks every exchange and what reached the model."""
        self.exchanges.clear()
        self.problems.clear()
        yield self
        with self._idle:
            assert self._idle.wait_for(lambda: self._active == 0, TIMEOUT), "a request is in flight"
        assert not self.problems, self.problems
        assert self.exchanges, "the client sent nothing through the proxy"
        for exchange in self.exchanges:
            check(exchange, self.key)
        for request, headers in zip(double.requests, double.headers):
            assert not private_members(request), request
            assert self.key not in json.dumps([request, headers]), "the client's key reached the model"

    @contextmanager
    def _in_flight(self):
        with self._idle:
            self._active += 1
        try:
            yield
        finally:
            with self._idle:
                self._active -= 1
                self._idle.notify_all()


def handler(recorder):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def forward(self):
            with recorder._in_flight():
                exchange = Exchange(self.command, self.path, self.headers.items(), self.body())
                recorder.exchanges.append(exchange)
                upstream = HTTPConnection(recorder.upstream, timeout=TIMEOUT)
                try:
                    self.exchange(exchange, upstream)
                except OSError as error:
                    recorder.problems.append(f"{exchange.method} {exchange.path}: {error!r}")
                    self.close_connection = True
                finally:
                    upstream.close()

        do_GET = do_POST = do_DELETE = do_PUT = do_PATCH = do_HEAD = do_OPTIONS = forward

        def body(self):
            if "chunked" in self.headers.get("transfer-encoding", "").lower():
                chunks = []
                while size := int(self.rfile.readline().split(b";")[0], 16):
                    chunks.append(self.rfile.read(size))
                    self.rfile.readline()
                while self.rfile.readline().strip():
                    pass
                return b"".join(chunks)
            return self.rfile.read(int(self.headers.get("content-length", 0)))

        def exchange(self, exchange, upstream):
            upstream.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in exchange.request_headers:
                if name.lower() in HOP_BY_HOP or name.lower() == "content-length":
                    continue
                if name.lower() == "authorization":
                    value = f"Bearer {recorder.key}"
                upstream.putheader(name, value)
            upstream.putheader("content-length", str(len(exchange.request_body)))
            upstream.endheaders(exchange.request_body)
            response = upstream.getresponse()
            exchange.status, exchange.response_headers = response.status, response.getheaders()
            sized = response.getheader("content-length") is not None or not has_body(self.command, response.status)
            try:
                self.send_response_only(response.status, response.reason)
                for name, value in exchange.response_headers:
                    if name.lower() not in HOP_BY_HOP:
                        self.send_header(name, value)
                if not sized:
                    self.send_header("transfer-encoding", "chunked")
                self.end_headers()
                while piece := response.read1(65536):
                    exchange.response_body += piece
                    self.wfile.write(piece if sized else b"%x\r\n%s\r\n" % (len(piece), piece))
                    self.wfile.flush()
                if not sized:
                    self.wfile.write(b"0\r\n\r\n")
            except (BrokenPipeError, ConnectionResetError):
                exchange.is_aborted = True
                self.close_connection = True

    return Handler


def has_body(method, status):
    return method != "HEAD" and status not in (204, 304)


# The checks.


def check(exchange, key):
    """Fails unless the exchange is what OpenAI's API would send."""
    try:
        check_exchange(exchange, key)
    except (AssertionError, KeyError, ValueError) as error:
        raise AssertionError(f"{error!r} in the exchange\n{exchange}") from error


def check_exchange(exchange, key):
    assert key.encode() not in exchange.response_body, "the key was echoed"
    assert key not in str(exchange.response_headers), "the key was echoed in a header"
    if exchange.request_body:
        check_members(json.loads(exchange.request_body))
    if exchange.is_stream:
        assert exchange.status == 200, exchange.status
        frames = frames_of(exchange.response_body, exchange.is_aborted)
        if urlsplit(exchange.path).path.endswith("/chat/completions"):
            check_chunks(frames, exchange.is_aborted)
        else:
            is_specification = exchange.request_header(DIALECT) == "open-responses"
            check_events(frames, exchange.is_aborted, is_specification)
    elif exchange.response_body and not exchange.is_aborted:
        check_body(exchange)


def check_body(exchange):
    content_type = header(exchange.response_headers, "content-type")
    assert content_type.split(";")[0] == "application/json", content_type
    body = json.loads(exchange.response_body)
    check_members(body)
    if exchange.status >= 400:
        assert isinstance(body["error"]["message"], str), body
    elif body.get("object") == "response":
        assert body["status"] in STATUSES, body["status"]


def frames_of(body, is_aborted):
    """The frames of a stream as `(event, data)`. Comments, such as those that keep a connection alive, are left out."""
    text = body.decode()
    if is_aborted:
        text = text[: text.rfind("\n\n") + 2]
    assert not text or text.endswith("\n\n"), f"truncated frame: {text[-200:]!r}"
    frames = []
    for block in text.split("\n\n"):
        lines = [line for line in block.split("\n") if line and not line.startswith(":")]
        if lines:
            fields = [tuple(line.split(": ", 1)) for line in lines]
            assert {name for name, *_ in fields} <= {"event", "data", "id", "retry"}, block
            event = next((value for name, value in fields if name == "event"), None)
            data = "\n".join(value for name, value in fields if name == "data")
            frames.append((event, data))
    return frames


def check_chunks(frames, is_aborted):
    """The stream of a chat completion."""
    assert all(event is None for event, _ in frames), "a chunk has no event name"
    if not is_aborted:
        assert frames[-1][1] == "[DONE]", frames[-1]
    for _, data in frames:
        if data != "[DONE]":
            chunk = json.loads(data)
            check_members(chunk)
            assert "error" in chunk or chunk["object"] == "chat.completion.chunk", chunk


def check_events(frames, is_aborted, is_specification):
    """The stream of a response."""
    if not is_aborted:
        assert frames[-1] == DONE, frames[-1]
    frames = [frame for index, frame in enumerate(frames) if frame != DONE or index != len(frames) - 1]
    events = []
    for number, (name, data) in enumerate(frames):
        event = json.loads(data)
        assert name == event["type"], f"event: {name}, type: {event['type']}"
        assert event["sequence_number"] == number, f"frame {number} has {event['sequence_number']}"
        assert is_specification or name in openai_events(), f"unknown event {name}"
        check_members(event)
        if "response" in event:
            assert event["response"]["status"] in STATUSES, event["response"]["status"]
        events.append(event)
    if not is_aborted:
        assert events[0]["type"] == "response.created", events[0]["type"]
        assert events[-1]["type"] in TERMINAL, events[-1]["type"]
    assert not any(event["type"] in TERMINAL for event in events[:-1]), "events follow the terminal event"
    assert len({event["response"]["id"] for event in events if "response" in event}) <= 1
    is_ended = bool(events) and events[-1]["type"] == "response.completed"
    check_deltas(events, is_ended)
    check_items(events, is_ended)


def check_deltas(events, is_ended):
    """The deltas of each text add up to the text of its `done`."""
    texts, done = {}, set()
    for event in events:
        stem, _, kind = event["type"].rpartition(".")
        if stem not in DELTAS:
            continue
        index = event.get("content_index", event.get("summary_index"))
        text = (stem, event["item_id"], event["output_index"], index)
        assert text not in done, f"{event['type']} after the end of {text}"
        if kind == "delta":
            texts[text] = texts.get(text, "") + event["delta"]
        elif kind == "done":
            assert texts.get(text, "") == event[DELTAS[stem]], f"{texts.get(text)!r} and {event}"
            done.add(text)
    if is_ended:
        assert set(texts) <= done, f"without an end: {set(texts) - done}"


def check_items(events, is_ended):
    """Each item that is added is done, with the texts that were streamed; together they are the output."""
    added, done, final_texts = {}, {}, {}
    for event in events:
        kind = event["type"]
        if kind == "response.output_item.added":
            assert event["output_index"] not in added, f"added twice: {event}"
            added[event["output_index"]] = event["item"]
        elif kind == "response.output_item.done":
            first = added[event["output_index"]]
            assert (first["id"], first["type"]) == (event["item"]["id"], event["item"]["type"]), event
            assert event["output_index"] not in done, f"done twice: {event}"
            done[event["output_index"]] = event["item"]
            for stem, index, text in final_texts.pop(event["output_index"], []):
                check_item_text(event["item"], stem, index, text)
        elif "item_id" in event:
            index = event["output_index"]
            assert added[index]["id"] == event["item_id"], f"wrong item: {event}"
            assert index not in done, f"event after the end of its item: {event}"
            stem, _, end = kind.rpartition(".")
            if stem in DELTAS and end == "done":
                part = event.get("content_index", event.get("summary_index"))
                final_texts.setdefault(index, []).append((stem, part, event[DELTAS[stem]]))
    assert list(added) == sorted(added), f"order of the items: {list(added)}"
    if is_ended:
        assert set(added) == set(done), f"never done: {set(added) - set(done)}"
    if events and "response" in events[-1] and events[-1]["type"] in TERMINAL:
        output = events[-1]["response"]["output"]
        assert output == [done[index] for index in sorted(done)], "the output is not the items that were done"


def check_item_text(item, stem, index, text):
    member = DELTAS[stem]
    if stem == "response.reasoning_summary_text":
        found = item["summary"][index]["text"]
    elif member in ("text", "refusal"):
        found = item["content"][index][member]
    else:
        found = item[member]
    assert found == text, f"streamed {text!r}, in the item {found!r}"


def check_members(value):
    found = set(private_members(value))
    assert not found, f"private members: {found}"


def private_members(value):
    if isinstance(value, dict):
        own = [key for key in value if PRIVATE.match(key)]
        return own + [it for member in value.values() for it in private_members(member)]
    if isinstance(value, list):
        return [it for member in value for it in private_members(member)]
    return []


_events = set()


def openai_events():
    """The names of the events that OpenAI's own SDK knows."""
    if not _events:
        from openai.types.responses import ResponseStreamEvent

        union = typing.get_args(ResponseStreamEvent)[0]
        for event in typing.get_args(union):
            _events.update(typing.get_args(event.model_fields["type"].annotation))
    return _events
