"""Templates and prompts -> messages, or an error that says what is wrong."""

from __future__ import annotations

import pickle
import sys
from contextlib import suppress

import jinja2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcube.flows.config.templates import LARGEST_OUTPUT, Template, code_of
from evalcube.flows.errors import TemplateError
from tests.cases import with_cases

texts = st.text(st.characters(exclude_categories=["Cs"]))


def user(content: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": content}]


@given(texts)
def test_render__puts_any_prompt_in_unchanged(prompt: str) -> None:
    plain = Template(user("{{ prompt }}"))
    spaced = Template(user("{{prompt}}"))

    for template in (plain, spaced):
        assert template.render(prompt=prompt) == user(prompt)


def test_render__task_params_and_loops() -> None:
    template = Template(
        [
            {"role": "system", "content": "Solve {{ task }}.\n"},
            {"role": "user", "content": "{% for i in range(params.n) %}{{ i }}{% endfor %}: {{ prompt }}"},
        ]
    )

    messages = template.render(prompt="go", task="sums", params={"n": 3})

    assert messages == [
        {"role": "system", "content": "Solve sums.\n"},
        {"role": "user", "content": "012: go"},
    ]
    assert template.uses >= {"prompt", "task", "params"}


def test_render__loops_keep_their_features() -> None:
    loop = "{% for x in [1, 2, 3] if x > 1 %}{{ x }}/{{ loop.length }}{% if not loop.last %},{% endif %}{% endfor %}"
    other = "{% for key, value in params.items() %}{{ key }}={{ value }}{% else %}none{% endfor %}"

    assert Template(user(loop)).render(prompt="") == user("2/2,3/2")
    assert Template(user(other)).render(prompt="", params={"a": 1}) == user("a=1")
    assert Template(user(other)).render(prompt="") == user("none")


FIELDS = st.sampled_from(
    [
        "{{ prompt }}", "{{prompt|tojson}}", "{{ task }}", "{{ params.n }}", "{{ params.s | tojson }}",
        "{{\n params.b }}", "}}", "{ ", "\r\n", "<&'", "'",
    ]
)  # fmt: skip


@given(st.lists(FIELDS | texts).map("".join), texts)
def test_render__puts_fields_in_as_jinja_does(source: str, prompt: str) -> None:
    params = {"n": 1.5, "s": ["<a>", None], "b": True}
    environment = jinja2.Environment(keep_trailing_newline=True)  # noqa: S701 - nothing of HTML
    template = Template(user(source)) if code_of(user(source)) == "" else None

    messages = template and template.render(prompt=prompt, task="sums", params=params)

    if template is not None and "{{" in source:
        assert messages == user(
            environment.from_string(source).render(prompt=prompt, task="sums", params=params)
        )


@with_cases(
    "text",
    ["{{{ prompt }}}", "{{ prompt", "{# {{ prompt }} #}", "{{ prompt -}}", "{{ params.items }}", "{{ prompt | upper }}",
     "{% raw %}{{ prompt }}{% endraw %}", "{{ params.__class__ }}", "{{ other }}"],
)  # fmt: skip
def test_code_of__is_all_that_is_more_than_fields(text: str) -> None:
    assert code_of([{"role": "user", "content": "x"}, {"role": "user", "content": text}])
    assert not code_of([{"role": text, "content": "{{ prompt }}"}])


def test_render__prompt_is_data_not_code() -> None:
    assert Template(user("{{ prompt }}!")).render(prompt="{{ 1 + 1 }}") == user("{{ 1 + 1 }}!")


@with_cases(
    ("content", "message"),
    [
        ("{{ promtp }}", "wrong variable: 'promtp' is undefined"),
        ("{{ params.none }}", "has no attribute 'none'"),
        ("{{ prompt.__class__.__mro__ }}", "unsafe"),
        ("{{ params.update({'a': 1}) }}", "not safely callable|unsafe"),
        ("{{ ''.__class__ }}", "unsafe"),
        ("{{ 1 / 0 }}", "fails: ZeroDivisionError"),
        ("{% include 'x' %}", "fails: TypeError"),
        ("{% for i in range(99999) %}{{ prompt }}{{ prompt }}{% endfor %}", "renders more than 4,000,000"),
        ("{% for i in range(10 ** 6) %}{% endfor %}", "fails: OverflowError"),
    ],
)
def test_render__refuses(content: str, message: str) -> None:
    with pytest.raises(TemplateError, match=message) as caught:
        Template(user(content)).render(prompt="p" * 40, params={})

    assert caught.value.where == (0, "content")


@with_cases(
    ("source", "message"),
    [
        ([], "is an empty list of messages"),
        (5, "is 5, not a list of messages"),
        ({"role": "user"}, "is a mapping, not a list of messages"),
        ("{{ prompt }}", "is a text, not a list of messages"),
        (["hi"], "message 1 is 'hi', not a mapping"),
        ([{"role": "user"}], "message 1 has no content"),
        ([{"content": "x"}], "message 1 has no role"),
        ([{"role": "boss", "content": "x"}], "message 1 has an unknown role 'boss'. Roles: system, user"),
        ([{"role": "user", "content": ["x"]}], "message 1 has a list for its content, not a text"),
        ([{"role": "user", "content": "x", "name": "y"}], "message 1 has an unknown field 'name'"),
    ],
)
def test_template__refuses_what_is_no_message_list(source: object, message: str) -> None:
    with pytest.raises(TemplateError) as caught:
        Template(source)  # type: ignore[arg-type]

    assert str(caught.value).startswith(message)


def test_render__bounds_the_size_of_all_messages_together() -> None:
    template = Template([{"role": "user", "content": "{{ prompt }}"}] * 3)

    assert len(template.render(prompt="x" * 1000)) == 3
    with pytest.raises(TemplateError, match="renders more than 4,000,000"):
        template.render(prompt="é" * (LARGEST_OUTPUT // 5))


@pytest.mark.parametrize("text", ["{{ prompt }}", "{{ prompt | upper }}"])
def test_render__takes_as_many_bytes_as_are_the_most(text: str) -> None:
    template = Template(user(text))

    assert len(template.render(prompt="x" * LARGEST_OUTPUT)[0]["content"]) == LARGEST_OUTPUT
    with pytest.raises(TemplateError, match="renders more"):
        template.render(prompt="x" * (LARGEST_OUTPUT + 1))


def test_template__error_says_the_line() -> None:
    with pytest.raises(TemplateError, match="wrong Jinja") as caught:
        Template(user("one\ntwo {% if %}"))

    assert caught.value.line == 2


@given(st.text("{}%# promt|()[]*.'\"\n1", max_size=40) | texts)
def test_template__any_text_renders_or_is_refused(text: str) -> None:
    with suppress(TemplateError):
        messages = Template(user(text)).render(prompt="x")

        assert all(isinstance(message["content"], str) for message in messages)


def test_template__survives_pickling() -> None:
    template = pickle.loads(pickle.dumps(Template(user("{{ prompt }}!"))))  # noqa: S301

    assert template.render(prompt="x") == user("x!")


def test_render__plain_prompt_needs_no_engine() -> None:
    template, calls = Template(user("{{ prompt }}")), []

    sys.setprofile(lambda _, event, __: calls.append(event))
    template.render(prompt="What is 1 + 1?")
    sys.setprofile(None)

    assert len(calls) < 50
