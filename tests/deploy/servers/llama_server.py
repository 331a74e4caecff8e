"""A `llama-server` for tests: its flags, and llama.cpp's own server from the wheel behind them.

The program itself is in no wheel. Here is what presets and tests give it; anything else is refused, as there.
"""

import argparse
import threading


def main():
    import xllamacpp

    parser = argparse.ArgumentParser(prog="llama-server")
    for name in ("--model", "--alias", "--host"):
        parser.add_argument(name, required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--ctx-size", type=int, default=0)
    parser.add_argument("--parallel", type=int, default=1)
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
    settings.cpuparams.n_threads = 1
    settings.cpuparams_batch.n_threads = 1
    server = xllamacpp.Server(settings)
    print(f"listening at {server.listening_address}", flush=True)  # noqa: T201
    threading.Event().wait()


if __name__ == "__main__":
    main()
