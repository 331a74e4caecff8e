"""What an endpoint may repeat of a key is taken out, in whatever form; other text stays as it is."""

import base64
import json
from urllib.parse import quote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evalcube.stages.infer.keys import MASK, KeyMask

SECRET = "aB3dE5fG7hJ9kL2mN4pQ6rS8tU1vW3xY5zA7bC9dE2fG4hJ6kL8mN1pQ3rS5tU7vW9xY_Z0aBcD-eF"
KEY = f"sk-proj-{SECRET}"
keys = st.text(
    st.characters(min_codepoint=0x21, max_codepoint=0x7E, exclude_characters="-_"), min_size=12, max_size=180
)


def clean(mask, body):
    """What is left of a body."""
    steps = mask.steps(body)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


def left_of(secret, text, size=8):
    """Parts of the secret that a text still holds."""
    return [secret[at : at + size] for at in range(len(secret) - size + 1) if secret[at : at + size] in text]


@pytest.mark.parametrize(
    "form",
    [
        str,
        quote,
        lambda key: "".join(f"%{ord(c):02X}" for c in key),
        lambda key: "".join(f"\\u{ord(c):04x}" for c in key),
        lambda key: key[:12] + "..." + key[-8:],
        lambda key: base64.b64encode(key.encode()).decode(),
        lambda key: base64.b64encode(f"user:{key}".encode()).decode(),
        lambda key: base64.b64encode(f"ab{key}cd".encode()).decode(),
        lambda key: base64.urlsafe_b64encode(key.encode()).decode(),
        lambda key: key.encode().hex(),
        lambda key: key.encode().hex().upper(),
        str.upper,
        lambda key: json.dumps(json.dumps(key.replace("_", "\\u005f")))[3:-3],
    ],
    ids="plain quoted percent json ends base64 basic offset urlsafe hex HEX upper nested".split(),
)
def test_clean__takes_the_key_out_in_every_form(form):
    said = f'{{"error": "Incorrect API key: {form(KEY)}."}}'.encode()

    cleaned = clean(KeyMask(KEY), said)

    assert MASK in cleaned
    assert not left_of(form(SECRET).encode(), cleaned, 20)
    assert cleaned.startswith(b'{"error": "Incorrect API key: ')
    assert cleaned.endswith(b'."}')


@given(keys, st.integers(0, 180), st.integers(8, 40), st.binary(max_size=30), st.binary(max_size=30))
@example("x" * 20, 3, 8, b"", b"")
def test_clean__takes_any_part_of_eight_characters_out(key, start, length, before, after):
    start = min(start, len(key) - 8)
    part = key[start : start + length].encode()

    cleaned = clean(KeyMask(f"gsk_{key}"), before + part + after)

    assert part not in cleaned
    assert MASK in cleaned


@pytest.mark.parametrize("form", [KEY, KEY.upper(), SECRET.encode().hex().upper()])
def test_clean__takes_the_key_out_at_the_very_beginning_and_end(form):
    assert clean(KeyMask(KEY), form.encode()) == MASK


@given(st.text(max_size=40), st.text(max_size=40))
@example("n", "\n")
@example("\\", "")
@example("\\\\n", "\\")
def test_clean__what_is_json_stays_json(before, after):
    body = json.dumps({"a": f"{before}\n{KEY}{after}", "b": f'{before}n{SECRET[1:]}"{after}'}).encode()

    cleaned = json.loads(clean(KeyMask(f"n{SECRET[1:]}"), body))

    assert cleaned["b"].startswith(before)
    assert cleaned["b"].endswith(after)
    assert SECRET[1:20] not in cleaned["a"]


@given(st.binary(max_size=400))
def test_clean__leaves_other_text_alone(body):
    assert clean(KeyMask(KEY), body) == body or left_of(SECRET.encode(), body)


@pytest.mark.parametrize("text", ["sk-proj-", "keys begin with sk-proj- here", SECRET[5:12], ""])
def test_clean__leaves_what_is_no_secret(text):
    assert clean(KeyMask(KEY), text.encode()) == text.encode()


@pytest.mark.parametrize("key", [None, "none", "EMPTY"])
def test_clean__a_placeholder_is_no_secret(key):
    assert clean(KeyMask(key), b"there are none: EMPTY") == b"there are none: EMPTY"


FORMS = (KEY, KEY[:16], KEY[20:29], SECRET.encode().hex(), "".join(f"\\u{ord(c):04x}" for c in KEY[:40]))


@pytest.mark.parametrize("form", FORMS, ids=["whole", "head", "part", "hex", "escaped"])
@pytest.mark.parametrize("step", [64, 97])
def test_clean__takes_a_key_out_wherever_a_step_ends_in_it(monkeypatch, form, step):
    mask = KeyMask(KEY)
    bodies = [b"." * before + form.encode() + b"." * 150 for before in range(step + 1)]
    whole = [clean(mask, body) for body in bodies]
    monkeypatch.setattr("evalcube.stages.infer.keys._STEP_BYTES", step)

    assert [clean(mask, body) for body in bodies] == whole
    assert all(MASK in body for body in whole)
