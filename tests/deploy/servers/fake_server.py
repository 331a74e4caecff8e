"""A tiny model server of its own process, for tests: answers at once, and ends or hangs when it is told to.

python fake_server.py --port P [--engine vllm] [--load SECONDS] [--die-after N --once FILE] [--hang-after N]
"""

import argparse
import hashlib
import json
import os
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def parse(arguments=None):
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--load", type=float, default=0.0, help="seconds until it is healthy")
    parser.add_argument("--delay", type=float, default=0.0, help="seconds that an answer takes")
    parser.add_argument("--die-after", type=int, default=-1, help="requests before it kills itself")
    parser.add_argument("--hang-after", type=int, default=-1, help="requests before it answers nothing more")
    parser.add_argument(
        "--once", default="", help="file that is made when it dies or hangs; never where it is there"
    )
    parser.add_argument("--count", default="", help="file that gets a line for each question")
    parser.add_argument("--fingerprint", default="fp_fake")
    parser.add_argument("--engine", default="vllm")
    parser.add_argument("--version", default="1.2.3")
    parser.add_argument("--say", default="")
    return parser.parse_args(arguments)


OPTIONS = parse(None if __name__ == "__main__" else ["--port", "0"])  # tests collect every module
LOCK = threading.Lock()
STATE = {"asked": 0, "hung": False, "began": time.monotonic()}


def strikes():
    """Whether this request is the one at which something happens."""
    with LOCK:
        STATE["asked"] += 1
        if OPTIONS.count:
            with open(OPTIONS.count, "a", encoding="utf-8") as file:  # noqa: PTH123
                file.write(f"{os.getpid()}\n")
        for name in ("die_after", "hang_after"):
            if 0 <= getattr(OPTIONS, name) < STATE["asked"]:
                if OPTIONS.once:
                    try:
                        os.close(os.open(OPTIONS.once, os.O_CREAT | os.O_EXCL))
                    except FileExistsError:
                        return ""
                return name
    return ""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def reply(self, document, status=200):
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if STATE["hung"]:
            time.sleep(60)
        loading = time.monotonic() - STATE["began"] < OPTIONS.load
        if self.path == "/health":
            self.reply({"status": "loading" if loading else "ok"}, 503 if loading else 200)
        elif self.path == "/v1/models":
            self.reply({"object": "list", "data": [{"id": "m", "owned_by": OPTIONS.engine}]})
        elif self.path == "/version":
            self.reply({"version": OPTIONS.version})
        else:
            self.reply({"error": {"message": "no such path"}}, 404)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        strike = strikes()
        if strike == "die_after":
            sys.stderr.write("out of memory: \x1b[31mGPU\x1b[0m is gone\n")
            sys.stderr.flush()
            os._exit(9)
        if strike == "hang_after":
            STATE["hung"] = True
        if STATE["hung"]:
            time.sleep(60)
        time.sleep(OPTIONS.delay)
        digit = hashlib.sha256(body).digest()[0] % 10
        message = {"role": "assistant", "content": f"Answer: {digit}"}
        self.reply(
            {
                "model": "m",
                "system_fingerprint": OPTIONS.fingerprint,
                "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 5, "completion_tokens": 3},
            }
        )


class Server(ThreadingHTTPServer):
    request_queue_size = 256
    daemon_threads = True

    def handle_error(self, *_):
        pass  # whoever was killed in the midst of a request says nothing of interest


if __name__ == "__main__":
    sys.stdout.write(f"fake server {OPTIONS.say}\n")
    sys.stdout.flush()
    Server(("127.0.0.1", OPTIONS.port), Handler).serve_forever()
