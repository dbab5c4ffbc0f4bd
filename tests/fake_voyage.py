"""A stand-in for Voyage AI's API, on this machine."""

from __future__ import annotations

import base64
import json
import math
import threading
import zlib
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np

KEY = "pa-secret-0123456789"
TOO_MANY_TOKENS = (
    "Request to model '{}' failed. The max allowed tokens per submitted batch is {}. Your batch has {} tokens after "
    "truncation. Please lower the number of tokens in the batch."
)
Reply = Callable[["Handler"], None]


class FakeVoyage(ThreadingHTTPServer):
    """Answers as the API does, save for the replies that a test has put first.

    Attributes:
        bodies: of the requests, in the order they came.
        replies: what the next requests get instead.
        most_tokens: of one request; a byte is a token here.
        change: the last touch on the vectors of an answer.
    """

    daemon_threads = True
    request_queue_size = 64

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.bodies: list[dict[str, Any]] = []
        self.replies: list[Reply] = []
        self.most_tokens = 320_000
        self.change: Callable[[list[list[float]]], list[list[float]]] = lambda vectors: vectors
        self.gave_up = threading.Event()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    @property
    def sizes(self) -> list[int]:
        return [len(body["input"]) for body in self.bodies]

    def handle_error(self, *_: Any) -> None:
        """A client that hangs up is part of the game."""


class Handler(BaseHTTPRequestHandler):
    server: FakeVoyage

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.bodies.append(body)
        if self.headers["Authorization"] != f"Bearer {KEY}":
            self.answer(401, {"detail": f"Provided API key is invalid: {self.headers['Authorization']}"})
        elif self.server.replies:
            self.server.replies.pop(0)(self)
        else:
            fault = self.fault_of(body)
            self.answer(400, {"detail": fault}) if fault else self.answer(200, self.embedded(body))

    def fault_of(self, body: dict[str, Any]) -> str:
        texts = body["input"]
        tokens = sum(len(text.encode()) for text in texts)
        if self.path != "/v1/embeddings" or body["truncation"] is not True or body["encoding_format"] != "base64":
            return "this stand-in knows no such request"
        if not texts or not all(texts):
            return "Input cannot contain empty strings or empty lists"
        if len(texts) > 1000:
            return f"The batch size limit is 1000. Your batch size is {len(texts)}."
        if len(texts) > 1 and tokens > self.server.most_tokens:  # one text is truncated
            return TOO_MANY_TOKENS.format(body["model"], self.server.most_tokens, tokens)
        return ""

    def embedded(self, body: dict[str, Any]) -> dict[str, Any]:
        size = body["output_dimension"] or 1024
        vectors = self.server.change([vector_of(text, size) for text in body["input"]])
        data = [
            {"embedding": base64.b64encode(np.array(vector, np.float32).tobytes()).decode(), "index": index}
            for index, vector in enumerate(vectors)
        ]
        return {"object": "list", "data": data, "model": body["model"], "usage": {"total_tokens": 1}}

    def answer(self, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
        """Send an answer: text as a page, anything else as JSON; ``headers`` may replace the date."""
        content = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        self.send_response_only(status)
        for name, value in {"Date": self.date_time_string(), **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Type", "text/html" if isinstance(body, str) else "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        """Tests print nothing."""


def vector_of(text: str, size: int = 1024) -> list[float]:
    """A vector of length 1 that tells texts apart, exact in single precision."""
    mark = zlib.crc32(text.encode()) % 4096 / 8192
    return [float(np.float32(math.sqrt(1 - mark * mark))), mark, *[0.0] * (size - 2)]
