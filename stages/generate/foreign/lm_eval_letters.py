"""Options with letters: of multiple-choice tasks of lm-eval as they are asked here, and of those that list them."""

from __future__ import annotations

import json
import random
import re
from typing import Any

LONG_REPLY = 2048
"""Tokens that are asked for where options are lettered, so that a model may think first."""
LETTERED = "lettered:"
"""What the name of a multiple-choice task begins with where its options are lettered, and its answer is read."""
_CLOSING = "Which option answers or continues this best? End with a last line of the form\nAnswer: <letter>"
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_LETTER = re.compile(r"\s*\(?([A-Z])\)?\.?\s*")
_MARK = re.compile(r"(?:^|(?<=\s))\(?([A-Z])[.):]\)?", re.MULTILINE)
"""How prompts mark an option: ``A. drum``, ``(A) drum``, ``A) drum``."""
_LAST_CUE = re.compile(r"\n[^\n]{0,24}:\s*\Z")
"""Such as "Answer:" in the last line."""


def lettered_task(config: dict[str, Any]) -> Any:  # noqa: ANN401
    """A task that generates text, and asks for the letter of an option of a multiple-choice task."""
    from lm_eval.api.task import ConfigurableTask

    chosen = ConfigurableTask(config=config)
    fixed = len({_options_of(chosen, doc)[2] for doc in chosen.eval_docs}) == 1 < len(chosen.eval_docs)

    def options(doc: dict[str, Any]) -> tuple[str, list[str], int]:
        text, texts, right = _options_of(chosen, doc)
        order = list(range(len(texts)))
        if fixed and not _are_letters(texts):  # else who always takes the first one may be always right
            random.Random(json.dumps(doc, sort_keys=True, default=str)).shuffle(order)
        return text, [texts[index] for index in order], order.index(right) if right in order else -1

    def question(doc: dict[str, Any]) -> str:
        text, texts, _ = options(doc)
        if not _are_letters(texts):  # else they stand in the text
            lines = (f"{letter}) {each.strip()}" for letter, each in zip(_LETTERS, texts, strict=False))
            text = "\n".join([f"{_LAST_CUE.sub('', text)}\n", *lines]).strip()
        return f"{_LAST_CUE.sub('', text)}\n\n{_CLOSING}"

    class LetteredTask(ConfigurableTask):  # type: ignore[misc]  # lm-eval has no types
        def download(self, dataset_kwargs: object = None, **_: object) -> None:  # noqa: ARG002
            self.dataset = chosen.dataset

        def letters(self, doc: dict[str, Any]) -> dict[str, object]:
            """What a row says of the options; the letter is empty where none is right."""
            text, texts, right = options(doc)
            letter = _LETTERS[right] if 0 <= right < len(_LETTERS) else ""
            if _are_letters(texts):
                texts = _listed_options(text, letter or "A") or [f"({each})" for each in texts]
            return {"target": [letter], "letter": letter, "choices": texts}

    own = config.get("fewshot_config") or {}
    asked = {
        "output_type": "generate_until",
        "doc_to_text": question,
        "doc_to_target": lambda doc: f"Answer: {_LETTERS[options(doc)[2]]}",
        "generation_kwargs": {"until": [], "max_gen_toks": LONG_REPLY},
        "target_delimiter": "\n\n",
        "fewshot_config": {name: value for name, value in own.items() if not name.startswith("doc_to")},
        **dict.fromkeys(("doc_to_choice", "metric_list", "filter_list", "gen_prefix")),
    }
    return LetteredTask(config={**config, **asked})


def _are_letters(texts: list[str]) -> bool:
    return "".join(texts) == _LETTERS[: len(texts)]


def _options_of(task: Any, doc: dict[str, Any]) -> tuple[str, list[str], int]:  # noqa: ANN401
    """The question of a document, its options, and the place of the right one; -1 if there is none."""
    text, target = task.doc_to_text(doc), task.doc_to_target(doc)
    texts = list(map(str, task.doc_to_choice(doc)))
    if isinstance(text, int):  # the options are beginnings, and what follows them is always the same
        return "", [f"{each.strip()} {str(target).strip()}" for each in texts], text
    right = target[0] if isinstance(target, list) and target else target
    return text, texts, right if isinstance(right, int) else texts.index(right) if right in texts else -1


def add_letters(rows: list[dict[str, Any]]) -> None:
    """Note letters and options where all references are letters; the options' texts where all prompts list them."""
    matches = [_LETTER.fullmatch(row["target"][0]) for row in rows if len(row["target"]) == 1]
    letters = [match[1] for match in matches if match]
    used = "".join(sorted(set(letters)))
    if len(letters) < len(rows) or len(used) > len(_LETTERS) // 2:
        return
    listed = [_listed_options(row["prompt"], letter) for row, letter in zip(rows, letters, strict=True)]
    bare = [f"({letter})" for letter in used]
    if not all(listed) and not (len(used) > 1 and _LETTERS.startswith(used)):
        return
    for row, letter, options in zip(rows, letters, listed, strict=True):
        row |= {"letter": letter, "choices": options if all(listed) else bare}


def _listed_options(prompt: str, letter: str) -> list[str]:
    """The texts of the last options that a prompt lists with letters, among them a known one; else none."""
    marks = [*_MARK.finditer(prompt)]
    for first in reversed([index for index, mark in enumerate(marks) if mark[1] == "A"]):
        run = [
            mark
            for mark, letter_there in zip(marks[first:], _LETTERS, strict=False)
            if mark[1] == letter_there
        ]
        ends = [mark.start() for mark in run[1:]] + [prompt.find("\n", run[-1].end()) % (len(prompt) + 1)]
        texts = [prompt[mark.end() : end].strip() for mark, end in zip(run, ends, strict=True)]
        if len(run) > max(1, _LETTERS.index(letter)) and all(map(re.compile(r"\w").search, texts)):
            return texts
    return []
