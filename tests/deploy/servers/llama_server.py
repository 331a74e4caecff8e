"""A `llama-server` for tests: its flags, and llama.cpp's own server from the wheel behind them.

The program itself is in no wheel. Here is what presets and tests give it; anything else is refused, as there.
"""

import argparse
import threading

import xllamacpp

parser = argparse.ArgumentParser(prog="llama-server")
parser.add_argument("--model", required=True)
parser.add_argument("--alias", required=True)
parser.add_argument("--host", required=True)
parser.add_argument("--port", type=int, required=True)
parser.add_argument("--ctx-size", type=int, default=0)
parser.add_argument("--parallel", type=int, default=1)
parser.add_argument("--threads", type=int, default=1)
options = parser.parse_args()

settings = xllamacpp.CommonParams()
settings.model.path = options.model
settings.model_alias = {options.alias}
settings.hostnames = [options.host]
settings.port = options.port
settings.offline = True
settings.ui = False
settings.n_ctx = options.ctx_size
settings.n_parallel = options.parallel
settings.cpuparams.n_threads = options.threads
settings.cpuparams_batch.n_threads = options.threads
server = xllamacpp.Server(settings)
print(f"listening at {server.listening_address}", flush=True)  # noqa: T201
threading.Event().wait()
