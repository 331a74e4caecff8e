"""Mathematical answers, found by our reader and compared by math-verify."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from evalcube.stages.generate.errors import TaskError
from evalcube.stages.generate.foreign import maths
from evalcube.stages.generate.foreign.maths import read_math
from tests.stages.generate.dataset.support import cell, write_jsonl


@pytest.mark.cluster
@pytest.mark.parametrize(
    ("reply", "reference"),
    [
        (r"so \boxed{\frac12}", "0.5"),
        (r"Answer: 1/2", r"\frac{1}{2}"),
        (r"**Answer:** $\boxed{\frac{3}{4}}$", "0.75"),
        (r"Answer: 1 \frac{1}{2}", "1.5"),
        (r"First I tried \boxed{3}, but wait. So \boxed{4}.", "4"),
        (r"Answer: (1, 2]", "(1,2]"),
        (r"Answer: $x\in[1,2)$", "[1,2)"),
        (r"Answer: \{1,2\}", r"\{2,1\}"),
        (r"Answer: 2 and -1", "2,-1"),
        (r"Answer: 1 - \sqrt{19}, 1+\sqrt{19}", r"1 \pm \sqrt{19}"),
        (
            "\\[\\boxed{\\begin{pmatrix} 1 & 2 \\\\\n3 & 4\n\\end{pmatrix}}\\]",
            r"\begin{pmatrix}1&2\\3&4\end{pmatrix}",
        ),
        (r"\boxed{5\text{ cm}}", "5"),
        (r"Answer: 90^\circ", "90"),
        (r"Answer: \$1,234", "1234"),
        (r"Answer: x^2+2x+1", "(x+1)^2"),
        (r"Answer: 5", "x=5"),
        ("Answer: approximately $5.0$", "5"),
        ("Answer: The area equals $4\\pi$ square units.", r"4\pi"),
        ("Answer: $4\\pi$ (about 12.57)", r"4\pi"),
        ("Answer: $a$, not $b$", "a"),
        (r"Answer: $e^{i\pi}$", r"e^{i\pi}"),
        ("Answer: 2√3", r"2\sqrt{3}"),
        ("Answer: (−∞, 3) ∪ (4, 5]", r"(-\infty,3)\cup(4,5]"),
        ("Answer: x² + 10⁻³", r"x^2+0.001"),
        ("Answer: 7½°", "7.5"),
        (r"Answer: Evelyn", r"\text{Evelyn}"),
        (r"So the length is $2\sqrt{3}$ and we are done.", r"\sqrt{12}"),
        (
            r"Hence the length is $2\sqrt{3}$, as the question asks for the longer one of both sides.",
            r"\sqrt{12}",
        ),
        (
            r"<del>Answer: 4</del> So it is $2\sqrt{3}$, as the question asks for the longer one.",
            r"\sqrt{12}",
        ),
        ("So the answ\u200ber: 7\nThe longest of all 8 sides.", "7"),
    ],
)
def test_read_math__takes_what_means_the_same(reply, reference):
    assert read_math(reply, ["100", reference]) == reference


@pytest.mark.cluster
@pytest.mark.parametrize(
    ("reply", "reference", "read"),
    [
        ("Answer: 9.42", r"3\pi", "9.42"),
        (r"Answer: \dfrac{1}{3}", "0.333", r"\dfrac{1}{3}"),
        ("Answer: [1,2]", "(1,2]", "[1,2]"),
        ("Answer: 2, 3", "2", "2, 3"),
        ("I do not know.", "7", None),
        ("The answer isn't $7$.", "7", None),
        ("答案不是 $7$。", "7", None),
        ("Answer: $7$ is wrong", "7", None),
        ("Answer: more than $7$", "7", "more than  7"),
        ("Answer: half of $7$", "7", "half of  7"),
        ("Answer: √3", "3", "√3"),
        ("", "7", None),
        ("Answer: 9^{9^{9^{9}}}", "7", None),
    ],
)
def test_read_math__says_what_else_there_is(reply, reference, read):
    assert read_math(reply, [reference]) == read


@pytest.mark.cluster
def test_dataset__grades_by_math_verify(tmp_path):
    source = cell(
        write_jsonl(tmp_path / "a.jsonl", [{"prompt": "1 + 1/2?", "answer": r"\frac{3}{2}"}]), match="math"
    )
    trial = source.trial(0)

    read = [source.parse(reply, trial) for reply in (r"\boxed{1.5}", r"\boxed{2}", "No idea.")]

    assert trial.prompt.endswith(r"\boxed{}.")
    assert read == [r"\frac{3}{2}", "2", None]
    assert [source.grade(answer, trial) for answer in read[:2]] == [True, False]


def test_dataset__says_how_to_get_math_verify(tmp_path, monkeypatch):
    monkeypatch.setattr(maths, "find_spec", lambda name: None if name == "math_verify" else find_spec(name))

    with pytest.raises(TaskError, match=r"pip install 'evalcube\[math\]'") as refused:
        cell(write_jsonl(tmp_path / "a.jsonl", [{"prompt": "1?", "answer": "1"}]), match="math")

    assert refused.value.field == "match"


@pytest.mark.cluster
@pytest.mark.parametrize(
    "gold",
    [
        "2^{10}",
        "(x-2)(x+3)",
        "3\\sqrt{2}",
        "\\{1, 2, 3\\}",
        "\\frac{\\pi}{4}",
        "|x - 2|",
        "(0, 1) \\cup (2, 3)",
        "e^{2x}",
    ],
)
def test_read_math__hands_on_what_stands_there(gold):
    frames = (
        "Answer: $%s$",
        "**Answer: $%s$**",
        "Answer: \\(%s\\)",
        "Answer:\n$$\n%s\n$$",
        "Answer: %s",
        "The answer is $%s$.",
    )

    assert [read_math(frame % gold, [gold]) for frame in frames] == [gold] * len(frames)


@pytest.mark.cluster
@pytest.mark.parametrize(("said", "reference"), [("52_8", "52"), ("0.0000001", "0.0000002")])
def test_read_math__tells_apart_what_math_verify_takes_for_the_same(said, reference):
    assert read_math(f"Answer: ${said}$", [reference]) != reference
