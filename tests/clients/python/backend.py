"""A Chat Completions server that answers by script and remembers what it was asked.

`haft` talks to it as to any provider (`adapter = "openai-chat"`), so tests see what really reached
the model, and decide what it says, when, and how it fails. Nothing here goes by time: an answer can be
held at a `Gate` until the test lets it go on.
"""

import json
import select
import socket
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# No wait in a test is longer than this.
PATIENCE = 30


class Gate:
    """Holds an answer back after some of its events."""

    def __init__(self, after):
        self.after = after
        self.reached = threading.Event()
        self.gone = threading.Event()
        self._open = threading.Event()

    def open(self):
        self._open.set()

    def wait(self, connection):
        """Waits to be opened; whether the caller is still there."""
        self.reached.set()
        for _ in range(PATIENCE * 100):
            if self._open.wait(0.01):
                return True
            readable, _, _ = select.select([connection], [], [], 0)
            if readable and hung_up(connection):
                self.gone.set()
                return False
        return False


def hung_up(connection):
    try:
        return connection.recv(1, socket.MSG_PEEK) == b""
    except OSError:
        return True


@dataclass
class Reply:
    """One answer of the model."""

    pieces: list = field(default_factory=list)
    reasoning: list = field(default_factory=list)
    refusal: str | None = None
    calls: list = field(default_factory=list)
    finish: str = "stop"
    usage: tuple = (10, 5)
    status: int = 200
    headers: dict = field(default_factory=dict)
    error: dict | None = None
    gate: Gate | None = None
    # The connection breaks after so many events.
    cut_after: int | None = None

    @property
    def text(self):
        return "".join(self.pieces)


class Backend:
    """The script, and what came in."""

    def __init__(self):
        self._lock = threading.Lock()
        self._calls = 0
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler(self))
        self._server.daemon_threads = True
        self.reset()
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def base_url(self):
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def reset(self):
        with self._lock:
            self.replies = []
            self.asides = []
            self.requests = []
            self.headers = []
            self.problems = []

    def stop(self):
        self._server.shutdown()
        self._server.server_close()

    # The script.

    def add(self, reply):
        with self._lock:
            self.replies.append(reply)
        return reply

    def say(self, text, **more):
        """Says a text, streamed word by word."""
        return self.add(Reply(pieces=words(text), **more))

    def call(self, *calls, **more):
        """Calls functions, all in one turn: `(name, arguments)`, or with an id of its own before."""
        numbered = []
        for call in calls:
            if len(call) == 2:
                self._calls += 1
                call = (f"call_{self._calls}", *call)
            numbered.append(call)
        return self.add(Reply(calls=numbered, finish="tool_calls", **more))

    def fail(self, status, message, code=None, headers=None, **more):
        error = {"message": message, "type": more.pop("type", "error"), "code": code, "param": None}
        return self.add(Reply(status=status, error=error, headers=headers or {}, **more))

    def aside(self, is_meant, text):
        """Answers requests that a client makes beside the conversation, such as one for a title, however
        often it makes them. They are not part of the script and not remembered."""
        with self._lock:
            self.asides.append((is_meant, Reply(pieces=words(text))))

    # What came in.

    @property
    def messages(self):
        """The messages of the last request."""
        return self.requests[-1]["messages"]

    def take(self, headers, body):
        with self._lock:
            for is_meant, reply in self.asides:
                if is_meant(body):
                    return reply
            self.requests.append(body)
            self.headers.append(headers)
            if self.replies:
                return self.replies.pop(0)
            self.problems.append(f"a request that the script does not foresee: {body}")
        error = {"message": "not in the script", "type": "error", "code": "unscripted"}
        return Reply(status=400, error=error)

    def verify(self):
        """Everything went as the script says."""
        assert not self.problems, self.problems
        assert not self.replies, f"never asked for: {self.replies}"


def words(text):
    """A text in pieces of one word each, the blanks behind it."""
    pieces = []
    for word in text.split(" "):
        pieces.append(word + " ")
    pieces[-1] = pieces[-1][:-1]
    return [piece for piece in pieces if piece]


def handler(backend):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            reply = backend.take(dict(self.headers), body)
            try:
                if self.path != "/v1/chat/completions":
                    self.whole(404, {"error": {"message": self.path, "code": "not_found"}}, {})
                elif reply.status != 200:
                    self.whole(reply.status, {"error": reply.error}, reply.headers)
                elif body.get("stream"):
                    self.stream(reply, body)
                else:
                    if reply.gate and not reply.gate.wait(self.connection):
                        return
                    self.whole(200, completion(reply, body), reply.headers)
            except OSError:
                if reply.gate:
                    reply.gate.gone.set()

        def whole(self, status, body, headers):
            body = json.dumps(body).encode()
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def stream(self, reply, body):
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("connection", "close")
            self.end_headers()
            self.close_connection = True
            for number, event in enumerate(events(reply, body)):
                if reply.gate and reply.gate.after == number:
                    if not reply.gate.wait(self.connection):
                        return
                if reply.cut_after == number:
                    self.connection.shutdown(socket.SHUT_RDWR)
                    return
                self.wfile.write(f"data: {json.dumps(event)}\n\n".encode())
                self.wfile.flush()
            self.wfile.write(b"data: [DONE]\n\n")

    return Handler


def tool_calls(reply):
    return [
        {
            "index": index,
            "id": id,
            "type": "function",
            "function": {"name": name, "arguments": written(arguments)},
        }
        for index, (id, name, arguments) in enumerate(reply.calls)
    ]


def written(arguments):
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


def usage(reply):
    taken, given = reply.usage
    return {"prompt_tokens": taken, "completion_tokens": given, "total_tokens": taken + given}


def completion(reply, body):
    message = {"role": "assistant", "content": reply.text or None}
    if reply.reasoning:
        message["reasoning_content"] = "".join(reply.reasoning)
    if reply.refusal:
        message["refusal"] = reply.refusal
    if reply.calls:
        message["tool_calls"] = tool_calls(reply)
    choice = {"index": 0, "message": message, "finish_reason": reply.finish}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": body["model"],
        "choices": [choice],
        "usage": usage(reply),
    }


def events(reply, body):
    """The chunks of a streamed answer; arguments come in two halves."""

    def chunk(delta, finish=None):
        return {
            "id": "chatcmpl-1",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": body["model"],
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
        }

    yield chunk({"role": "assistant", "content": ""})
    for piece in reply.reasoning:
        yield chunk({"reasoning_content": piece})
    for piece in reply.pieces:
        yield chunk({"content": piece})
    if reply.refusal:
        yield chunk({"refusal": reply.refusal})
    for call in tool_calls(reply):
        arguments = call["function"]["arguments"]
        half = len(arguments) // 2
        call["function"]["arguments"] = arguments[:half]
        yield chunk({"tool_calls": [call]})
        rest = {"index": call["index"], "function": {"arguments": arguments[half:]}}
        yield chunk({"tool_calls": [rest]})
    yield chunk({}, reply.finish)
    yield {**chunk({}), "choices": [], "usage": usage(reply)}
