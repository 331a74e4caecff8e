"""Ask the tasks of a folder by lm-eval itself, and print what it scores each reply; a program of its own."""

import json
import sys

import lm_eval
from lm_eval.tasks import TaskManager


def main(folder: str, url: str, names: list[str]) -> None:
    """Print samples by task: list of (doc id, filter, reply, prompt, scores by metric)."""
    chat = url.endswith("/chat/completions")
    found = lm_eval.simple_evaluate(
        model="local-chat-completions" if chat else "local-completions",
        model_args={"base_url": url, "model": "m", "tokenizer_backend": None, "tokenized_requests": False},
        tasks=names,
        task_manager=TaskManager(include_path=folder, include_defaults=False),
        apply_chat_template=chat,
        fewshot_as_multiturn=False,
        bootstrap_iters=0,
    )
    samples = {
        name: [
            (
                one["doc_id"],
                one["filter"],
                one["resps"][0][0],
                {key: float(one[key]) for key in one["metrics"]},
            )
            for one in listed
        ]
        for name, listed in found["samples"].items()
    }
    json.dump(samples, sys.stdout)


main(sys.argv[1], sys.argv[2], sys.argv[3:])
