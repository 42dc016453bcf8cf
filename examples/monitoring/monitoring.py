"""Serve the metrics of an engine at /metrics, for Prometheus."""

from __future__ import annotations

import re
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.request import urlopen

import muntin
from muntin.metrics import CONTENT_TYPE, prometheus_text

SECOND = 1_000_000
SHOWN = re.compile(r"muntin_(stream_rows|stream_late_rows|query_results)_total.*")


def serve(engine: muntin.Engine, port: int) -> ThreadingHTTPServer:
    """Answer /metrics on this machine in a thread; port 0 takes any free one."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path != "/metrics":
                self.send_error(404)
                return
            body = prometheus_text(engine).encode()
            self.send_response(200)
            self.send_header("Content-Type", CONTENT_TYPE)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def declared() -> muntin.Engine:
    """Return an engine with two streams and two queries."""
    engine = muntin.Engine(clock=None)
    engine.execute("""
        CREATE STREAM Orders (id INT, ts TIMESTAMP) WITH (slack = '1 second');
        CREATE STREAM Payments (id INT, ts TIMESTAMP) WITH (slack = '1 second');
        CREATE QUERY paid AS
          SELECT O.id FROM Orders O, Payments P WHERE O.id = P.id WINDOW 10 SECONDS;
        CREATE QUERY unpaid AS
          SELECT O.id FROM Orders O ANTI JOIN Payments P ON O.id = P.id WINDOW 10 SECONDS
          EMIT INSERTS;
    """)
    return engine


def push(engine: muntin.Engine, now: int) -> None:
    """Push an order of this second, and the payment of the one three seconds ago."""
    engine.push("Orders", [(now, now * SECOND)])
    if now % 4:
        engine.push("Payments", [(now - 3, now * SECOND)])


def main() -> None:
    """Push for a minute of event time and scrape once; with a port, serve until interrupted."""
    engine = declared()
    for now in range(60):
        push(engine, now)
    engine.push("Payments", [(1, 1 * SECOND)])  # late
    server = serve(engine, int(sys.argv[1]) if len(sys.argv) > 1 else 0)
    url = f"http://127.0.0.1:{server.server_port}/metrics"
    with urlopen(url) as answer:
        lines = answer.read().decode().splitlines()
    print("\n".join(line for line in lines if SHOWN.fullmatch(line)))
    while len(sys.argv) > 1:
        now += 1
        push(engine, now)
        time.sleep(1)
    server.shutdown()
    server.server_close()


if __name__ == "__main__":
    main()
