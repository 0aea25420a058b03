"""Scripted models that speak Anthropic's Messages API and Google's Gemini API.

A script is a list of calls. Each request that offers tools and carries so many tool results is answered with the
call of that number, and with a final text after the last. What was asked is remembered, so that a test sees which
tools and which results really reached the model.
"""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

DONE = "All done."


class ScriptedModel:
    """A model on a port of its own; `steps` are pairs of a tool's name without prefix, and its arguments."""

    def __init__(self, dialect, steps):
        self.dialect, self.steps = dialect, steps
        self.requests, self.unknown = [], []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler(self))
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def stop(self):
        self._server.shutdown()
        self._server.server_close()

    @property
    def tools(self):
        """The names of the tools that the model could see."""
        assert self.requests, "no request offered the tools of the gateway"
        return self.dialect.tools(self.requests[0])

    @property
    def results(self):
        """The text of each tool result in the last request."""
        return self.dialect.results(self.requests[-1])

    def turn(self, body):
        """The next call, or None for the final text."""
        tools = self.dialect.tools(body)
        if not any(name.endswith(self.steps[0][0]) for name in tools):
            # A request beside the conversation, such as one for a title.
            return None
        self.requests.append(body)
        at = len(self.dialect.results(body))
        if at >= len(self.steps):
            return None
        name, arguments = self.steps[at]
        return next(tool for tool in tools if tool.endswith(name)), arguments


def text_of(content):
    if isinstance(content, str):
        return content
    return "".join(block.get("text", "") for block in content)


class Anthropic:
    """https://docs.anthropic.com/en/api/messages"""

    @staticmethod
    def is_generation(path):
        return path.startswith("/v1/messages") and "count_tokens" not in path

    @staticmethod
    def tools(body):
        return [tool["name"] for tool in body.get("tools", [])]

    @staticmethod
    def results(body):
        blocks = [
            block
            for message in body["messages"]
            if isinstance(message["content"], list)
            for block in message["content"]
        ]
        return [text_of(it["content"]) for it in blocks if it["type"] == "tool_result"]

    @staticmethod
    def content(call, number):
        if call is None:
            return {"type": "text", "text": DONE}
        return {"type": "tool_use", "id": f"toolu_{number}", "name": call[0], "input": call[1]}

    @classmethod
    def whole(cls, body, call, number):
        return {
            "id": f"msg_{number}",
            "type": "message",
            "role": "assistant",
            "model": body["model"],
            "content": [cls.content(call, number)],
            "stop_reason": "end_turn" if call is None else "tool_use",
            "stop_sequence": None,
            "usage": {"input_tokens": 10, "output_tokens": 5},
        }

    @classmethod
    def stream(cls, body, call, number):
        message = cls.whole(body, call, number)
        content, stop = message["content"][0], message["stop_reason"]
        if call is None:
            delta = {"type": "text_delta", "text": content["text"]}
            start = {**content, "text": ""}
        else:
            delta = {"type": "input_json_delta", "partial_json": json.dumps(content["input"])}
            start = {**content, "input": {}}
        events = [
            {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}},
            {"type": "content_block_start", "index": 0, "content_block": start},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {
                "type": "message_delta",
                "delta": {"stop_reason": stop, "stop_sequence": None},
                "usage": {"output_tokens": 5},
            },
            {"type": "message_stop"},
        ]
        return "".join(f"event: {it['type']}\ndata: {json.dumps(it)}\n\n" for it in events)


class Gemini:
    """https://ai.google.dev/api/generate-content"""

    @staticmethod
    def is_generation(path):
        return "enerateContent" in path

    @staticmethod
    def tools(body):
        groups = body.get("tools", [])
        return [it["name"] for group in groups for it in group.get("functionDeclarations", [])]

    @staticmethod
    def results(body):
        parts = [part for content in body["contents"] for part in content.get("parts", [])]
        answers = [part["functionResponse"] for part in parts if "functionResponse" in part]
        return [json.dumps(answer["response"]) for answer in answers]

    @staticmethod
    def whole(body, call, number):
        if call is None:
            part = {"text": DONE}
        else:
            part = {"functionCall": {"id": f"call_{number}", "name": call[0], "args": call[1]}}
        content = {"role": "model", "parts": [part]}
        usage = {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}
        candidate = {"index": 0, "content": content, "finishReason": "STOP"}
        return {"candidates": [candidate], "usageMetadata": usage}

    @classmethod
    def stream(cls, body, call, number):
        return f"data: {json.dumps(cls.whole(body, call, number))}\r\n\r\n"


def handler(model):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
            dialect = model.dialect
            if not dialect.is_generation(self.path):
                model.unknown.append(self.path)
                return self.answer(404, "application/json", "{}")
            call = model.turn(body)
            number = len(model.requests)
            if body.get("stream") or "streamGenerateContent" in self.path:
                self.answer(200, "text/event-stream", dialect.stream(body, call, number))
            else:
                self.answer(200, "application/json", json.dumps(dialect.whole(body, call, number)))

        def do_GET(self):
            model.unknown.append(self.path)
            self.answer(404, "application/json", "{}")

        do_HEAD = do_GET

        def answer(self, status, kind, text):
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(text.encode())))
            self.end_headers()
            self.wfile.write(text.encode())

    return Handler
