"""The golden file of scorio: matrices, calls with their results, calls that fail."""

import gzip
import json
from collections import defaultdict
from pathlib import Path

import numpy as np

GOLDEN = json.loads(
    gzip.decompress((Path(__file__).parents[4] / "data" / "scorio.json.gz").read_bytes()).decode()
)


def _by_function(items):
    groups = defaultdict(list)
    for item in items:
        groups[item["fn"]].append(item)
    return groups


CASES, ERRORS = _by_function(GOLDEN["cases"]), _by_function(GOLDEN["errors"])


def matrix(name):
    entry = GOLDEN["matrices"][name]
    rows = np.array([[int(digit) for digit in row] for row in entry["rows"]])
    return rows[0] if entry.get("1d") else rows


def arguments(case):
    return case["args"] | ({"R0": matrix(case["R0"])} if "R0" in case else {})
