"""Importing 100,000 samples: of a JSONL file by a mapping, and of a log of Inspect with its events."""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

from evalcube.flows.share.imports.logs import import_logs

MAP = {
    "prompt": "q",
    "response": "out",
    "correct": "ok",
    "id": "id",
    "model": "m",
    "tokens": "tok",
    "latency": "lat",
}
EVENTS = 6000
"""Bytes of events in a sample of Inspect, which are read and not used."""


def jsonl(folder: Path, samples: int) -> Path:
    """A file of two models' answers, 800 bytes each."""
    path = folder / "rows.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for number in range(samples):
            model, row = divmod(number, samples // 2)
            said = {"q": f"Question {row}: " + "what is it? " * 20, "out": "because " * 60 + str(row % 7)}
            rest = {"ok": (row * 7 + model) % 3 == 0, "m": f"m{model}", "id": row, "tok": 120, "lat": 0.5}
            file.write(json.dumps(said | rest) + "\n")
    return path


def inspect(folder: Path, samples: int) -> Path:
    """A log of Inspect, two epochs, packed as its earlier versions do."""
    path = folder / "log.eval"
    header = {"version": 2, "status": "success", "eval": {"model": "m", "task": "t"}, "plan": {"steps": []}}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as log:
        log.writestr("header.json", json.dumps(header))
        for number in range(samples):
            row, epoch = divmod(number, 2)
            message = {"role": "assistant", "content": "because " * 60 + str(row % 7)}
            sample = {
                "id": row,
                "epoch": epoch + 1,
                "input": f"Question {row}: " + "what is it? " * 20,
                "target": str(row % 7),
                "output": {
                    "choices": [{"message": message, "stop_reason": "stop"}],
                    "usage": {"output_tokens": 120},
                },
                "scores": {"match": {"value": "C" if row % 3 else "I", "answer": str(row % 7)}},
                "events": ["x" * 50] * (EVENTS // 54),
            }
            log.writestr(f"samples/{row}_epoch_{epoch + 1}.json", json.dumps(sample))
    return path


def measure(make: Callable[[Path, int], Path], samples: int, fields: Mapping[str, str] | None = None) -> str:
    """Seconds of the clock and of one core that an import takes."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = make(folder, samples)
        clock, busy = time.perf_counter(), time.process_time()
        import_logs([path], folder / "cube.zarr", cache=folder / "cache", map=fields or "")
        clock, busy = time.perf_counter() - clock, time.process_time() - busy
        size = path.stat().st_size / 1e6
    return f"{make.__name__}: {samples:,} samples ({size:.0f} MB) in {clock:.1f} s, {busy:.1f} s CPU"


def main() -> None:
    """Measure both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=100_000)
    samples = parser.parse_args().samples
    print(measure(jsonl, samples, MAP))
    print(measure(inspect, samples))
    print(f"most memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


if __name__ == "__main__":
    main()
