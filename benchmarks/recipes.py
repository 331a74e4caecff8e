"""Who agrees with what replies say: evalcube's recipes, and the scorers of lm-eval and Inspect for the same sets.

python benchmarks/recipes.py CASES.json            ours and lm-eval's, into the file beside the cases
python benchmarks/recipes.py CASES.json --inspect  Inspect's, by a Python that has inspect_evals, and the table

Replies are to our prompts, whose forms others do not ask for: so the table says what a scorer makes of replies of all
styles, and nothing of the numbers that a tool gets with its own prompts.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

THEIRS = {
    "gsm8k": ("gsm8k/gsm8k.yaml", "strict-match", "flexible-extract"),
    "aime24": ("aime/aime24.yaml", "none"),
    "aime25": ("aime/aime25.yaml", "none"),
    "math500": ("hendrycks_math/hendrycks_math500.yaml", "none"),
    "mmlu-pro": ("mmlu_pro/mmlu_pro_law.yaml", "custom-extract"),
    "gpqa-diamond": ("gpqa/cot_zeroshot/gpqa_diamond_cot_zeroshot.yaml", "flexible-extract"),
}
"""Definition in lm-eval, and filters; MuSR is asked by likelihoods there."""


def ours() -> list[dict[str, Any]]:
    """All cases, with what our recipes and lm-eval's scorers make of them."""
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from evalcube.flows.plan.build import build_plan
    from tests.flows.config.recipe_replies import RECIPES, cases, rows
    from tests.flows.run.test_recipe_replies import sweep

    found = []
    for name in RECIPES:
        with tempfile.TemporaryDirectory() as folder:
            cell = build_plan(sweep(name, Path(folder), "sim:")).tasks[0].cells[0].cell
            docs = rows(name)
            for case in cases(name, cell):
                answer = cell.parse(case.reply, case.trial)
                doc = next(row for row in docs if _is_of(row, case.trial.prompt))
                options = case.trial.extras.get("choices")
                by = {"evalcube": answer is not None and cell.grade(answer, case.trial)}
                by |= _by_lm_eval(name, doc, case.reply, case.trial.answer, options)
                fields = {"recipe": name, "reply": case.reply, "status": case.status, "right": case.right}
                found.append({**fields, "choices": options, "by": by})
    return found


def _is_of(row: dict[str, Any], prompt: str) -> bool:
    asked = [str(row.get(name) or "") for name in ("narrative", "Question", "question", "problem", "Problem")]
    return prompt.startswith(next(text for text in asked if text))


def _by_lm_eval(name: str, doc: dict[str, Any], reply: str, letter: str, options: Any) -> dict[str, bool]:  # noqa: ANN401
    from evalcube.stages.generate.foreign import lm_eval_door as door

    if name not in THEIRS:
        return {}
    yaml, *filters = THEIRS[name]
    if name == "math500":
        doc = {**doc, "solution": f"\\boxed{{{doc['answer']}}}"}
    if name == "gpqa-diamond":
        doc = {"answer": f"({letter})", "choices": options, "Question": doc["Question"]}
        doc |= {f"choice{place}": text for place, text in enumerate(options, 1)}
    task = {"yaml": yaml, "features": list(doc), "targets": 0, "inputs": 0}
    scores: Any = door.answer({"root": "", "task": task, "doc": doc, "text": reply})
    return {
        f"lm-eval {each}".removesuffix(" none"): scores[each]["scores"]["exact_match"] == 1
        for each in filters
    }


def by_inspect(cases: list[dict[str, Any]]) -> None:
    """Add what Inspect's scorers make of cases."""
    import asyncio

    from inspect_ai.model import ChatMessageUser, ModelOutput
    from inspect_ai.scorer import Target, choice, match
    from inspect_ai.solver import TaskState
    from inspect_ai.solver._multiple_choice import parse_answers, set_choices_based_on_generated_response
    from inspect_evals.utils.aime_common import aime_scorer

    scorers: dict[str, Any] = {"gsm8k": match(numeric=True), "aime24": aime_scorer(), "aime25": aime_scorer()}
    try:
        from inspect_evals.math.math import expression_exact_match_sympy

        scorers["math500"] = expression_exact_match_sympy()
    except ImportError as error:
        print(f"no scorer of MATH: {error}")
    for case in cases:
        scorer = choice() if case["choices"] else scorers.get(case["recipe"])
        if scorer is None:
            continue
        state = TaskState(
            model="m",  # type: ignore[arg-type]
            sample_id=1,
            epoch=1,
            input="",
            messages=[ChatMessageUser(content="")],
            choices=case["choices"],
            target=Target(case["right"]),
            output=ModelOutput.from_content("m", case["reply"]),
        )
        if case["choices"]:
            set_choices_based_on_generated_response(state, parse_answers(state, False))
        try:
            case["by"]["Inspect"] = asyncio.run(scorer(state, Target(case["right"]))).value in ("C", 1, True)
        except ImportError as error:
            print(f"no scorer of {case['recipe']}: {error}")
            scorers.pop(case["recipe"])


def table(cases: list[dict[str, Any]]) -> None:
    """Print who agrees on complete replies, and how many cut ones each calls right."""
    heads = (
        "recipe, scorer, agrees on complete replies, right called wrong, wrong called right, cut called right"
    )
    print(f"| {heads.replace(', ', ' | ')} |")
    print("|---|---|---|---|---|---|")
    for name in dict.fromkeys(case["recipe"] for case in cases):
        mine = [case for case in cases if case["recipe"] == name]
        cut = [case for case in mine if case["status"] == "truncated"]
        whole = [case for case in mine if case["status"] != "truncated"]
        for scorer in dict.fromkeys(by for case in mine for by in case["by"]):
            right = {True: [], False: []}  # by what a case is
            for case in whole:
                right[case["status"] == "correct"].append(case["by"][scorer])
            missed, let_in = right[True].count(False), right[False].count(True)
            share = 100 * (1 - (missed + let_in) / len(whole))
            print(
                f"| `{name}` | {scorer} | {share:.0f} % of {len(whole)} | {missed} | {let_in} "
                f"| {sum(case['by'][scorer] for case in cut)} of {len(cut)} |"
            )


if __name__ == "__main__":
    path = Path(sys.argv[1])
    if "--inspect" in sys.argv:
        listed = json.loads(path.read_text())
        by_inspect(listed)
    else:
        listed = ours()
        path.write_text(json.dumps(listed))
    table(listed)
