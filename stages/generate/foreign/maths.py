"""Read mathematical answers: our reader finds the answer, and math-verify compares it in the bounded process."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.util import find_spec
from typing import cast

from evalcube.stages.generate.answers.passages import normalised, passages
from evalcube.stages.generate.dataset.kinds import read_text
from evalcube.stages.generate.dataset.params import Comparison
from evalcube.stages.generate.errors import TaskError
from evalcube.stages.generate.foreign.bounded import Failure, ask

_VERBATIM = Comparison(exact=frozenset({"case", "whitespace", "punctuation", "articles", "unicode"}))
_FEW_WORDS = 3
"""Words of a reply that is nothing but an answer."""
_MOST_TEXT = 100_000
"""Characters at the end of a reply that are read."""
_ROWS = re.compile(
    r"(\\\\|\\begin\{\w{1,20}\*?\}(?:\{[lcr|]{1,20}\})?|[&{])[ \t]{0,40}\n[ \t]{0,40}"
    r"|\n[ \t]{0,40}(?=\\end\{|\})"
)
"""Where the rows of a matrix end, which would else be the end of the answer's line."""


def require_math() -> None:
    """Raise a `TaskError` where math-verify is not installed."""
    if find_spec("math_verify") is None:
        raise TaskError(
            "match math needs math-verify: pip install 'evalcube[math]'", field="match", value="math"
        )


def read_math(text: str, accepted: Sequence[str]) -> str | None:
    r"""The accepted answer that a reply gives; else what it gives; None if that is nothing, or nothing that ends.

    The answer stands where our reader finds it: after the last mark of an answer, in ``\boxed{}`` for one. A reply
    without any mark is left to math-verify's own rules, which take its last formula or number.
    """
    text = _ROWS.sub(lambda found: f"{found[1] or ''} ", text[-_MOST_TEXT:])
    marked = next(passages(normalised(text)), None) is not None
    short = len(text.split()) <= _FEW_WORDS
    line = read_text(text, _VERBATIM) if marked or short else None
    if line is None and marked:
        return None  # it has marks, and takes back what it says there
    said = ask("math", {"line": line, "text": "" if line else text, "accepted": list(accepted)})
    return None if isinstance(said, Failure) else cast("dict[str, str | None]", said)["read"]
