"""Writes what Inspect's own package reads from the logs of this folder: python expect.py > expected.json."""

import json
import pathlib
import sys

from inspect_ai.log import read_eval_log

found = {}
for path in sorted(pathlib.Path(__file__).parent.glob("*-*.*")):
    log = read_eval_log(str(path))
    found[path.name] = [
        {
            "model": log.eval.model,
            "task": log.eval.task,
            "id": str(sample.id),
            "epoch": sample.epoch,
            "completion": sample.output.completion,
            "stop": sample.output.stop_reason if sample.output.choices else None,
            "tokens": sample.output.usage.output_tokens if sample.output.usage else None,
            "scores": {name: score.value for name, score in (sample.scores or {}).items()},
            "error": sample.error is not None,
        }
        for sample in log.samples or []
    ]
sys.stdout.write(json.dumps(found, indent=0))
