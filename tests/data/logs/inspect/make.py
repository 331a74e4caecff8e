# ruff: noqa: ARG001 - names and signatures are those that Inspect asks for
"""Makes the logs of this folder with Inspect's own mock model; run it with inspect_ai installed: python make.py DIR."""

import random
import re
import sys

from inspect_ai import Task, eval, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessageAssistant,
    ContentReasoning,
    ContentText,
    GenerateConfig,
    ModelOutput,
    ModelUsage,
    get_model,
)
from inspect_ai.scorer import Score, choice, includes, match, mean, scorer, stderr
from inspect_ai.solver import generate, multiple_choice, solver, system_message


@task
def sums(n=6, epochs=2):
    """Two scorers, and several epochs."""
    samples = [
        Sample(id=f"s{i}", input=f"What is {i} + {2 * i}?", target=str(3 * i), metadata={"level": i % 3})
        for i in range(n)
    ]
    solvers = [system_message("Be brief."), generate()]
    return Task(
        dataset=MemoryDataset(samples, name="sums"),
        solver=solvers,
        scorer=[match(numeric=True), includes()],
        epochs=epochs,
    )


@task
def capitals(n=4):
    """Options, and no ids of its own."""
    options = ["Alfa", "Bravo", "Charlie", "Delta"]
    samples = [
        Sample(input=f"Which is the capital of land {i}?", choices=options, target="ABCD"[i % 4])
        for i in range(n)
    ]
    return Task(dataset=MemoryDataset(samples, name="capitals"), solver=multiple_choice(), scorer=choice())


@scorer(metrics=[mean(), stderr()])
def closeness():
    """A score between 0 and 1."""

    async def score(state, target):
        text = state.output.completion
        return Score(value=min(1.0, len(text) / 20), answer=text[:10], explanation="by length")

    return score


@solver
def failing():
    """Fails on one sample, with an escape sequence in its message."""

    async def solve(state, generate):
        if state.sample_id == 3:
            raise RuntimeError("the tool broke \x1b[31mred")
        return await generate(state)

    return solve


@task
def essays(n=4):
    """Long references, scores between 0 and 1, and an error."""
    target = "a long rationale\nin two lines " + "x" * 300
    samples = [Sample(id=i, input=f"Write about {i}.", target=target) for i in range(1, n + 1)]
    return Task(dataset=MemoryDataset(samples, name="essays"), solver=failing(), scorer=closeness())


def answerer(seed):
    """A model that is right now and then, is cut and refuses."""
    rng = random.Random(seed)

    def answer(messages, tools, tool_choice, config):
        text, draw, stop = messages[-1].text, rng.random(), "stop"
        if "capital" in text:
            said = "ANSWER: " + rng.choice("ABCD")
        elif "What is" in text:
            a, b = map(int, re.findall(r"\d+", text)[:2])
            said = str(a + b) if draw < 0.6 else f"I think {a + b + 1}"
            stop = "max_tokens" if 0.6 < draw < 0.75 else "content_filter" if draw > 0.9 else "stop"
        else:
            said = "word " * rng.randint(1, 6)
        content = [ContentReasoning(reasoning="Let me add."), ContentText(text=said)] if seed == 2 else said
        used = ModelUsage(input_tokens=len(text) // 4, output_tokens=len(said) // 4 + 1)
        message = ChatMessageAssistant(content=content)
        return ModelOutput(
            model="mockllm/model",
            choices=[ChatCompletionChoice(message=message, stop_reason=stop)],
            usage=used,
        )

    return answer


def main(folder):
    """Run all tasks with two models, and one with a third into a JSON log."""
    for name, seed in (("mockllm/alfa", 1), ("mockllm/bravo", 2)):
        config = GenerateConfig(temperature=0.7, max_tokens=64)
        model = get_model(name, custom_outputs=answerer(seed), config=config, memoize=False)
        eval([sums(), capitals(), essays()], model=model, log_dir=folder, fail_on_error=False, display="none")
    model = get_model("mockllm/charlie", custom_outputs=answerer(3), memoize=False)
    eval(sums(n=3, epochs=1), model=model, log_dir=folder, log_format="json", display="none")


main(sys.argv[1])
