"""A web server of files in this process, which remembers what it was asked for."""

import functools
import http.server
import threading
from contextlib import contextmanager


@contextmanager
def serving(folder):
    """Yields the server's address, and the list of the paths that were asked for."""
    asked = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            asked.append((self.command, self.path))

    handler = functools.partial(Handler, directory=str(folder))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
