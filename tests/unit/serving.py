"""A small HTTP server in a thread, for tests that ask one over the network."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Quiet(BaseHTTPRequestHandler):
    """Answers requests, and writes no log of them."""

    def log_message(self, *_: object) -> None:
        """Nothing."""


@contextmanager
def serving(
    handler: type[Quiet], server: type[ThreadingHTTPServer] = ThreadingHTTPServer
) -> Iterator[str]:
    """Serves on a free port until the end of the block; gives its address."""
    listening = server(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=listening.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.server_port}"
    finally:
        listening.shutdown()
        thread.join()
        listening.server_close()
