"""Rows of a sweep's table of trials."""

import json
import math

from evalcube.flows.read.trials.read import trials
from evalcube.stages.reply.forms import Record
from evalcube.storage.cache.cache import open_cache


def rows(folder, **options):
    return list(trials(folder / "cube.zarr", **options).rows())


def hostile(folder, tmp_path, texts):
    """A cache in which replies say these texts, in turns."""
    cache = open_cache(tmp_path / "hostile")
    for number, row in enumerate(rows(folder, columns=["digest"])):
        message = {"content": texts[number % len(texts)]}
        body = json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]}).encode()
        cache.put(row["digest"], Record(200, math.nan, body).encode())
    cache.close()
    return tmp_path / "hostile"
