"""Token estimates from requests and reported usage."""

from hypothesis import given
from hypothesis import strategies as st

from evalcube.stages.infer.apis import build_request
from evalcube.stages.infer.endpoint_queue import TokenEstimate
from evalcube.stages.infer.reply import Reply, RetryClass
from tests.cases import with_cases


def body(text="", api="chat", **sampler):
    return build_request("m", [{"role": "user", "content": text}], sampler, api=api).body


def test_guess__takes_the_longest_completion_before_the_first_reply():
    request = body(max_tokens=500)

    assert TokenEstimate().guess(request) == len(request) / 4 + 500
    assert TokenEstimate().guess(body(max_completion_tokens=70)) > 70
    assert TokenEstimate().guess(body()) > 1000
    assert TokenEstimate().guess(body(api="responses", max_tokens=9000)) > 9000


def test_guess__is_not_misled_by_a_prompt():
    assert TokenEstimate().guess(body('say "max_tokens":5 please', max_tokens=900)) > 900


def test_taken__is_what_is_reported_or_else_a_guess():
    estimate, request = TokenEstimate(), body("hello", max_tokens=50)

    assert estimate.tokens_taken(request, Reply(RetryClass.FINAL, prompt_tokens=7, completion_tokens=3)) == (
        7,
        3,
    )
    assert estimate.tokens_taken(request, Reply(RetryClass.FINAL, text_bytes=80)) == (len(request) / 4, 20)
    assert estimate.tokens_taken(request, Reply(RetryClass.FINAL, "context")) == (0, 0)


@given(st.integers(1, 100_000), st.integers(1, 100_000))
def test_excess__comes_to_nothing_when_replies_are_alike(prompt, completion):
    estimate, request = TokenEstimate(), body("hello", max_tokens=50)
    for _ in range(400):
        excess = estimate.excess(
            estimate.guess(request),
            request,
            Reply(RetryClass.FINAL, prompt_tokens=prompt, completion_tokens=completion),
        )

    assert abs(excess) <= 1e-3 * (prompt + completion) + 1e-3


@with_cases(
    ("reply", "excess"),
    [
        (Reply(RetryClass.FINAL, prompt_tokens=30, completion_tokens=20), -50),
        (Reply(RetryClass.FINAL), 0),
        (Reply(RetryClass.FINAL, "filter"), -100),
        (Reply(RetryClass.RETRY, "http 429"), -100),
        (Reply(RetryClass.RETRY, "connect"), -100),
        (Reply(RetryClass.RETRY, "timeout"), 0),
        (Reply(RetryClass.RETRY, "cut reply"), 0),
    ],
)
def test_excess__of_a_guess_of_100(reply, excess):
    assert TokenEstimate().excess(100.0, b"", reply) == excess
