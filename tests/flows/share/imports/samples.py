"""Samples as logs have them, and collections of them."""

from evalcube.flows.share.imports.collect import Collection
from evalcube.flows.share.imports.samples import Answer, Question, Run, Sample, Scale


def sample(question="q", repeat=0, *, model="alfa", score=1, where="log, line 1", **fields):
    run = {name: fields.pop(name) for name in ("settings", "setup", "setup_name", "task") if name in fields}
    asked = {name: fields.pop(name) for name in ("prompt", "id", "options", "cluster") if name in fields}
    answer = Answer(repeat, fields.pop("text", f"answer to {question}"), score=score, **fields)
    prompt = asked.pop("prompt", question)
    return Sample(
        Run(**{"tool": "tool", "task": "task", "scorer": "match", "model": model, **run}),
        Question(question, prompt, "ref", **asked),
        answer,
        where,
    )


def collected(*samples, **options):
    collection = Collection(Scale(), **options)
    for one in samples:
        collection.add(one)
    return collection


def cell_params(found, task):
    """Params that need no file."""
    from evalcube.flows.share.imports.write import data_params

    return data_params(
        list(found.tasks)[task], "x.jsonl", "0" * 64, len(found.tasks[list(found.tasks)[task]].rows)
    )
