"""A proxy in front of an S3 server that delays, refuses or drops requests."""

from __future__ import annotations

import http.client
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

_HOP = {"connection", "transfer-encoding", "keep-alive", "expect", "content-length"}


@dataclass
class Trouble:
    """What happens to requests: each entry concerns one of the next ones, in order.

    ``"busy"`` answers 503, ``"drop"`` closes the connection, a number delays by that many seconds.
    """

    next: list[str | float] = field(default_factory=list)
    requests: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self) -> str | float | None:
        with self.lock:
            self.requests += 1
            return self.next.pop(0) if self.next else None


class Proxy(ThreadingHTTPServer):
    """Passes requests on to another server on this machine."""

    daemon_threads = True

    def __init__(self, target: str, trouble: Trouble) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.target = urlsplit(target).netloc
        self.trouble = trouble
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Proxy

    def _pass_on(self) -> None:
        body = self._body()
        trouble = self.server.trouble.take()
        if trouble == "drop":
            self.close_connection = True
            return
        if trouble == "busy":
            self.send_response(503)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        if trouble is not None:
            time.sleep(float(trouble))
        server = http.client.HTTPConnection(self.server.target, timeout=60)
        try:
            headers = {name: one for name, one in self.headers.items() if name.lower() not in _HOP}
            headers["Content-Length"] = str(len(body))
            server.request(self.command, self.path, body, headers)
            answer = server.getresponse()
            content = answer.read()
        finally:
            server.close()
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in _HOP:
                self.send_header(name, value)
        size = answer.getheader("Content-Length") if self.command == "HEAD" else str(len(content))
        self.send_header("Content-Length", size or "0")
        self.end_headers()
        self.wfile.write(content)

    def _body(self) -> bytes:
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        chunks = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            chunks.append(self.rfile.read(size))
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass  # trailers
        return b"".join(chunks)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _pass_on  # noqa: N815 (http.server's names)

    def log_message(self, *_: object) -> None:
        """Write nothing."""
