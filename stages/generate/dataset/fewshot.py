"""Examples that stand before a question: other rows of a file, with their answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from evalcube.stages.generate.base import Trial
from evalcube.stages.generate.dataset.books import RowView
from evalcube.stages.generate.dataset.hub.address import Address, is_hub
from evalcube.stages.generate.dataset.params import DatasetParams
from evalcube.stages.generate.dataset.rows import Item, draw_digest, lookup, plain
from evalcube.stages.generate.dataset.tables import Row
from evalcube.stages.generate.errors import TaskError
from evalcube.stages.generate.stream import Stream

MOST_TEXT = 2_000_000
"""Characters of all examples of one question."""

Ask = Callable[[DatasetParams, Item, Stream], Trial]
"""Makes the trial of a row."""


@dataclass(frozen=True)
class Example:
    """A row with what is right to reply to it."""

    prompt: str
    """With what is said of the answer's form, if it is a turn of its own."""
    reply: str


def content(item: Item) -> str:
    """What rows have in common that ask the same, whatever their case, spaces and order of options."""
    return json.dumps(
        [" ".join(item.whole_question.casefold().split()), sorted(map(str.casefold, item.options))]
    )


def source_named(params: DatasetParams) -> DatasetParams:
    """The params with the file that the examples are from named by itself, where it is not the questions' own."""
    shots = params.fewshot
    if shots is None:
        return params
    source = shots.source
    file, where = source.file, source.where
    if source.split and not file and is_hub(params.file):
        address = Address.parse(params.file)
        if address.path:
            raise TaskError(
                f"fewshot.from.split cannot be told from {params.file}; name the other file as fewshot.from.file",
                field="fewshot",
                value=source.split,
            )
        file = str(replace(address, split=source.split))
    elif source.split:
        where = (*where, ("split", (source.split,)))
    named = source.model_copy(update={"file": file, "where": where, "split": ""})
    return params.model_copy(update={"fewshot": shots.model_copy(update={"source": named})})


class Examples:
    """The examples of a point: of each group one more than a question needs, as it may be one of them itself.

    Parameters
    ----------
    params
        Of the point, resolved.
    view
        The rows that `DatasetParams.of_examples` selects.
    ask
        Makes the trial of a row, without examples.
    """

    def __init__(self, params: DatasetParams, view: RowView, ask: Ask) -> None:
        assert params.fewshot is not None  # noqa: S101 - whoever calls has asked
        self._params, self._shots = params, params.fewshot
        self._groups: dict[str, dict[str, Example]] = {}
        key = f"fewshot\n{self._shots.seed}\n".encode()
        asking = view.reader.params
        if self._shots.form == "text":
            asking = asking.model_copy(update={"instruction": ""})
        for position in view.order(key):
            group = self._groups.setdefault(self._group(view.row(position)), {})
            if len(group) <= self._shots.n:
                item = view.item(position)
                stream = Stream(int.from_bytes(draw_digest(key, item.whole_question, item.options), "big"))
                group.setdefault(content(item), self._example(view, position, ask(asking, item, stream)))
            elif not self._shots.by:
                break

        sizes = (
            sum(len(example.prompt) + len(example.reply) for example in group.values())
            for group in self._groups.values()
        )
        if max(sizes, default=0) > MOST_TEXT:
            raise self._problem(f"makes more than {MOST_TEXT:,} characters of examples; ask for fewer")

    def check(self, view: RowView) -> None:
        """Make sure that all questions have their examples; raises as `of`."""
        enough = {name for name, group in self._groups.items() if len(group) > self._shots.n}
        if not self._shots.by and enough:
            return
        for position in range(len(view.rows)):
            row = view.row(position)
            if self._group(row) not in enough:
                self.of(row, view.item(position))

    def _group(self, row: Row) -> str:
        return (plain(lookup(row, self._shots.by)) or "") if self._shots.by else ""

    def _example(self, view: RowView, position: int, trial: Trial) -> Example:
        p, own = self._params, self._shots.reply
        index = view.rows[position]
        if own:
            reply = view.source.read_row(index, lambda row: view.reader.fill(row, own, "fewshot"))
        else:
            reply = trial.answer if trial.options else view.source.read_row(index, view.reader.answers)[0]
            reply = f"\\boxed{{{reply}}}" if p.match == "math" else reply
            if p.instruction == "auto" and p.match in ("auto", "number"):
                reply = f"Answer: {reply}"
        return Example(trial.prompt, reply)

    def of(self, row: Row, item: Item) -> Sequence[Example]:
        """The examples of a question, which is never among them."""
        same, group = content(item), self._group(row)
        candidates = (example for key, example in self._groups.get(group, {}).items() if key != same)
        examples = list(islice(candidates, self._shots.n))
        if len(examples) < self._shots.n:
            where = f" where {self._shots.by} is {group!r}" if self._shots.by else ""
            raise self._problem(
                f"asks for {self._shots.n} examples, and there are {len(examples)} other questions{where}; ask for "
                "fewer, or take them from another file or split"
            )
        return examples

    def _problem(self, flaw: str) -> TaskError:
        return TaskError(f"fewshot {flaw}", field="fewshot", value=self._shots.n)

    def before(self, row: Row, item: Item, trial: Trial) -> Trial:
        """A question's trial with its examples before it."""
        examples = self.of(row, item)
        if self._shots.stop:
            trial = replace(trial, extras={**trial.extras, "sampler": {"stop": list(self._shots.stop)}})
        if self._shots.form == "text":
            blocks = [f"{example.prompt}\n\n{example.reply}" for example in examples]
            return replace(trial, prompt="\n\n".join([*blocks, trial.prompt]))
        turns: list[Mapping[str, str]] = []
        for example in examples:
            turns += [
                {"role": "user", "content": example.prompt},
                {"role": "assistant", "content": example.reply},
            ]
        return replace(trial, extras={**trial.extras, "turns": [*turns, *trial.turns]})
