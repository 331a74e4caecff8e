"""A task of lm-eval in a folder, as a user writes one."""

from __future__ import annotations

import json

from evalcube.stages.generate.foreign.lm_eval import LmEvalParams, task

QUESTIONS = [
    {"question": "Two and two?", "answer": "It is 4.\n#### 4"},
    {"question": "Three times four?", "answer": "#### 12"},
]
PLAIN = {
    "task": "mine",
    "dataset_path": "json",
    "dataset_kwargs": {"data_files": {"test": "mine.jsonl"}},
    "test_split": "test",
    "doc_to_text": "{{question}}",
    "doc_to_target": "{{answer}}",
    "generation_kwargs": {"until": ["\n\n"], "max_gen_toks": 20},
    "metric_list": [{"metric": "exact_match", "regexes_to_ignore": ["(?s).*#### "]}],
    "filter_list": [
        {
            "name": name,
            "filter": [{"function": "regex", "regex_pattern": pattern}, {"function": "take_first"}],
        }
        for name, pattern in (("strict", "#### ([0-9]+)"), ("loose", "([0-9]+)"))
    ],
}


def resolved(folder, name="mine", changes=None, **params):
    (folder / "mine.yaml").write_text(json.dumps(PLAIN | (changes or {})))  # JSON is YAML
    return task(name).resolve(LmEvalParams(include_path=".", **params))
