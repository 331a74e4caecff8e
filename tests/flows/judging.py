"""Sweeps with assertions, a rubric and judges, for tests: capitals of countries, answered by simulated models."""

import json

LAYERS = ("fact", "behavior", "judge", "judge_readings")
LANDS = {
    "France": "Paris",
    "Italy": "Rome",
    "Germany": "Berlin",
    "Spain": "Madrid",
    "Portugal": "Lisbon",
    "Austria": "Vienna",
    "Czechia": "Prague",
    "Poland": "Warsaw",
    "Greece": "Athens",
    "Ireland": "Dublin",
    "Norway": "Oslo",
    "Finland": "Helsinki",
    "Switzerland": "Bern",
    "Belgium": "Brussels",
    "Hungary": "Budapest",
    "Bulgaria": "Sofia",
    "Latvia": "Riga",
    "Estonia": "Tallinn",
    "Lithuania": "Vilnius",
    "Romania": "Bucharest",
    "Canada": "Ottawa",
    "Peru": "Lima",
    "Ecuador": "Quito",
    "Japan": "Tokyo",
}


def write_rows(path, change=lambda row: row):
    """A data set with an assertion of each layer and a rubric in each row."""
    rows = [
        {
            "id": land.lower(),
            "prompt": f"What is the capital of {land}?",
            "answer": city,
            "assertions": [
                {"type": "contains", "value": city},
                {"type": "max_length", "value": 170},
            ],
            "rubric": f"Names {city}.",
        }
        for land, city in LANDS.items()
    ]
    path.write_text("".join(json.dumps(change(row)) + "\n" for row in rows))
    return path


def judged_config(folder, endpoint, judge_endpoint=None, **changes):
    """A config of two variants, and two judges that are not measured themselves."""
    judging = f"sim:{judge_endpoint or endpoint}"
    rows = folder / "rows.jsonl"
    if not rows.exists():
        write_rows(rows)
    config = {
        "name": "capitals",
        "trials": len(LANDS),
        "cube": str(folder / "cube.zarr"),
        "cache": str(folder / "cache"),
        "models": [
            {
                "name": name,
                "endpoint": f"sim:{endpoint}",
                "simulate": {"ability": ability, "slope": 1, "tokens": tokens},
                "limits": {"connections": 8, "retries": 1},
            }
            for name, ability, tokens in (("before", -1, 36), ("after", 3, 20))
        ]
        + [
            {
                "name": "grader",
                "endpoint": judging,
                "simulate": {"ability": 2},
                "measured": False,
                "limits": {"connections": 1, "retries": 1},
            }
        ],
        "samplers": {"greedy": {"temperature": 0, "max_tokens": 200}},
        "judges": [
            {"model": "grader", "name": "strict", "repeats": 2},
            {"model": "grader", "name": "loose", "sampler": {"temperature": 0.7, "max_tokens": 400}},
        ],
        "tasks": {
            "dataset": {
                "params": {"file": str(rows), "id": "id", "assertions": "assertions", "rubric": "rubric"}
            }
        },
    }
    return {**config, **changes}
