"""Comments on merge requests: whatever models say, it stays text."""

from markdown_it import MarkdownIt

from evalcube.stages.analyze.render.flips import flip_cells, flips_markdown
from evalcube.stages.analyze.render.text import code
from tests.cases import with_cases

HOSTILE = [
    "<img src=x onerror=alert(1)>",
    "@everyone closes #1 !2 $3",
    "![p](https://evil.example/x.png) [l](javascript:alert(1)) https://evil.example",
    "a | b || c",
    "`` ` ``` `",
    "`",
    "` <img src=x onerror=alert(1)> @evil ` <b>",
    "`` <img src=x> ` [l](https://evil.example) ``",
    "\\| \\` \\",
    "one\n\n# two\n\n| three |",
    "\u202eright to left\u2069 \x1b[31mred",
    "  ",
    "",
    "=1+1",
    "*bold* ~gone~ &lt;",
]


def reply(text, status="incorrect"):
    return {"status": status, "right": 0, "answer": text, "response": text, "reasoning": text}


def row(text, status="incorrect"):
    return {
        "change": "lost",
        "task": text,
        "shown": {text: text},
        "trial": 0,
        "row_id": text,
        "asked": 1,
        "prompt": text,
        "reference": text,
        "first": reply(text, status),
        "second": reply(text),
    }


@with_cases("text", HOSTILE)
@with_cases("status", ["incorrect", "invalid"])
def test_flips_markdown__texts_are_code_and_the_table_keeps_its_columns(text, status):
    comment = flips_markdown(
        [f"Changed from {text} to b."], [], [row(text, status)] * 2, (text, "b"), ["end"]
    )
    tokens = MarkdownIt("gfm-like", {"html": True, "linkify": False}).parse(comment)

    kinds = {token.type for token in tokens} | {
        child.type for token in tokens for child in token.children or ()
    }
    assert not kinds & {"html_block", "html_inline", "image", "link_open", "heading_open2", "fence"}
    assert sum(token.type == "heading_open" for token in tokens) == 1
    assert sum(token.type == "tr_open" for token in tokens) == 3
    assert sum(token.type == "td_open" for token in tokens) == 16
    plain_text = [
        child.content
        for token in tokens
        for child in token.children or ()
        if child.type == "text" and token.type == "inline"
    ]
    assert not [part for part in plain_text if "evil" in part or "@" in part or "#1" in part]


def test_flips_markdown__escapes_bars_only_where_a_table_would_end():
    comment = flips_markdown(["From a|b to b."], [], [], ("a|b", "b"), [])

    assert comment.startswith("### `a|b` → `b`")
    assert r"From a\|b to b." in comment


def test_code__keeps_what_it_can_of_a_text():
    assert code("a|b") == "`a\\|b`"
    assert code("x" * 500).startswith("`xxx")
    assert len(code("x" * 500)) < 220


def test_flip_cells__say_what_became_of_an_answer_and_how_many_were_right():
    cells = flip_cells(
        row("7") | {"asked": 4, "first": reply("so far so", "truncated") | {"right": 3}, "row_id": None}
    )

    assert cells["first"] == "3/4 truncated: …so far so"
    assert cells["second"] == "0/4 7"
    assert cells["trial"] == "0"


def test_flip_cells__without_a_reply_at_hand():
    lost = row("7") | {"first": reply(None, "correct")}

    assert flip_cells(lost)["first"] == "correct, reply not at hand"
