"""A scripted model with the HTTP APIs of OpenAI, Anthropic and Gemini; no key, always the same answers.

python server.py [PORT]
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import chat
import embeddings
import gemini
import messages
import responses
from prompt import answer

APIS = {"/chat/completions": chat, "/responses": responses, "/messages": messages}
# Gemini's paths end with the method; the model before it is of no concern.
GEMINI_METHODS = (":generateContent", ":streamGenerateContent")
MODELS = ("scripted", "gpt-4o", "gpt-4o-mini")
MAX_BODY_BYTES = 64 * 1024 * 1024


class ModelRequestHandler(BaseHTTPRequestHandler):
    """One request; the prefix /v1 may be missing."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Return the list of models, or that the server is ready."""
        models = [{"id": name, "object": "model", "created": 0, "owned_by": "scripted"} for name in MODELS]
        self._send(200, {"object": "list", "data": models})

    def do_POST(self) -> None:
        """Answer a request."""
        path = self.path.partition("?")[0].removeprefix("/v1")
        length = int(self.headers.get("Content-Length") or 0)
        if length > MAX_BODY_BYTES:
            self._send(413, _error(f"the body may have {MAX_BODY_BYTES} bytes"))
            return
        try:
            body = json.loads(self.rfile.read(length))
            if path == "/embeddings":
                self._send(200, embeddings.whole(body))
                return
            api = gemini if path.endswith(GEMINI_METHODS) else APIS.get(path)
            if api is None:
                known = ", ".join([*(f"/v1{name}" for name in (*APIS, "/embeddings")), *GEMINI_METHODS])
                self._send(404, _error(f"{self.path} is not one of {known}"))
                return
            prompt = api.read(body)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            self._send(400, _error(f"the body is not a request of {self.path}: {error!r}"))
            return
        said = answer(prompt)
        if body.get("stream") or path.endswith(":streamGenerateContent"):
            self._stream(api.stream(body, prompt, said))
        else:
            self._send(200, api.whole(body, prompt, said))

    def _send(self, status: int, body: Any) -> None:
        raw = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def _stream(self, events: Any) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for kind, data in events:
            self.wfile.write((f"event: {kind}\n" if kind else "").encode() + f"data: {data}\n\n".encode())
        self.close_connection = True


def _error(message: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": "invalid_request_error", "code": None, "param": None}}


def serve(port: int, host: str = "0.0.0.0") -> ThreadingHTTPServer:
    """Return the server, bound to a port (0: a free one)."""
    return ThreadingHTTPServer((host, port), ModelRequestHandler)


if __name__ == "__main__":
    serve(int(sys.argv[1]) if len(sys.argv) > 1 else 8080).serve_forever()
