"""Rules about single values of a config, each with its remedy; they read no file and use no network."""

from __future__ import annotations

import difflib
import math
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from typing import Literal, TypeGuard
from urllib.parse import SplitResult, urlsplit

from pydantic_core import PydanticCustomError

from evalcube.flows.config.secrecy import looks_secret, secret_word
from evalcube.flows.config.templates import Template
from evalcube.flows.errors import TemplateError
from evalcube.stages.infer.apis import APIS

LONGEST_NAME = 128
LONGEST_PATH = 1024
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
"""Names of environment variables."""
KEY_REMEDY = (
    "Put the key in an environment variable and give the variable's name as key_env, such as OPENAI_API_KEY"
)

_FILE_REMEDY = "Put the key in a file that the workers can read and give the file's path"
_COMMAND_REMEDY = "Give a command that finds the key, such as [pass, show, openai]"
_MOST_ARGUMENTS = 256
_MOST_REPLICAS = 256
MISSING = "\0missing"
"""Stands for an endpoint that is not there; no config can hold it."""

_TOKEN_PARAMS = (
    *("max_tokens", "max_completion_tokens", "max_new_tokens", "min_tokens", "truncate_prompt_tokens"),
    *("stop_token_ids", "skip_special_tokens", "add_special_tokens", "budget_tokens"),
)
"""Parameters whose names, misspelt, look like those of secrets."""
_NEAR = 0.85
_RESERVED_PARAMS = {
    "model": "it comes from the model's own entry",
    "messages": "they come from the template",
    "stream": "it is a setting of the model",
    "n": "repeats are requests of their own, so that each is cached",
    "repeat": "evalcube counts repeats itself",
}
_RESERVED_HEADERS = "host content-length content-type transfer-encoding connection accept-encoding".split()
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}")
_DEEPEST_JSON = 20
_CAPITALS = re.compile(r"[A-Z]{2,16}(_[A-Z]{2,16}){1,6}")


def refusal(
    rule: str,
    remedy: str = "",
    *,
    secret: bool = False,
    where: tuple[str | int, ...] = (),
    told: bool = False,
) -> PydanticCustomError:
    """Build the error of a broken rule."""
    context = {"rule": rule, "remedy": remedy, "secret": secret, "told": told}
    return PydanticCustomError("rule", "{rule}", {**context, "where": list(where)})


def name(value: str) -> str:
    """Check a label: 1 to 128 printable characters, no space at the ends."""
    return _label(value, LONGEST_NAME)


def revision(value: object) -> str:
    """Check what tells a model from others of its name: one line of text; empty for none."""
    if not isinstance(value, str):
        # 1.10 would become 1.1, and another model's answers with it.
        raise refusal("must be a text", "Write it in quotes")
    return _label(value, LONGEST_PATH) if value else ""


def path(value: str) -> str:
    """Check a path or URL of a store."""
    if re.search(r"://[^/@]*@", value):
        raise refusal(
            "a URL must not hold a user or password", "Use the store's own credentials", secret=True
        )
    return _label(value, LONGEST_PATH)


def _label(value: str, longest: int) -> str:
    if not value.strip():
        raise refusal("must not be blank", "Give it a name")
    if len(value) > longest:
        raise refusal(f"must have at most {longest} characters, has {len(value)}", "Shorten it")
    if value != value.strip():
        raise refusal("must not begin or end with a space", "Remove the space")
    if any(ord(c) < 32 or 0x7F <= ord(c) < 0xA0 or c in "\u2028\u2029" for c in value):
        raise refusal("must not contain line breaks or other control characters", "Use one line of text")
    return unicode(value)


def unicode(value: str, where: tuple[str | int, ...] = (), *, secret: bool = False) -> str:
    """Check that a text can be written as UTF-8; `where` and `secret` are those of `refusal`."""
    if any("\ud800" <= c <= "\udfff" for c in value):
        rule, remedy = "must not contain half a surrogate pair", "Write the character itself, not \\u escapes"
        raise refusal(rule, remedy, secret=secret, where=where)
    return value


def endpoint(value: object) -> str | tuple[str, ...]:
    """Check where a model is: one address, or a list of several that all serve it."""
    if isinstance(value, str):
        return _endpoint(value)
    if not isinstance(value, (list, tuple)):
        raise refusal("must be a text, or a list of texts", "Put quotes round it")
    if not 0 < len(value) <= _MOST_REPLICAS:
        raise refusal(f"must have from 1 to {_MOST_REPLICAS} addresses, has {len(value)}", told=True)
    addresses: list[str] = []
    for item in value:
        addresses.append(_replica(item, addresses))
    return tuple(addresses)


def _replica(item: object, before: Sequence[str]) -> str:
    """Check one of several addresses, after those before it."""
    where = (len(before),)
    if not isinstance(item, str):
        raise refusal("must be a text", "Put quotes round it", where=where)
    try:
        address = _endpoint(item)
    except PydanticCustomError as error:
        context = dict(error.context or {})
        raise PydanticCustomError("rule", "{rule}", {**context, "where": list(where)}) from None
    if "://" not in address or (before and address.startswith("sim:") != before[0].startswith("sim:")):
        rule = "only servers at addresses of their own, all simulators or none, can be one of several"
        raise refusal(rule, "Give http(s)://host/v1 for each", where=where)
    if address in before:
        raise refusal("is in the list already", "Remove it", where=where)
    return address


def _endpoint(value: str) -> str:
    """Check an HTTP base URL (returned without a last slash), ``local:...``, ``sim:...`` or ``serve:``."""
    if value == MISSING:
        raise PydanticCustomError("missing", "is missing")
    if value in ("sim", "sim:"):
        return "sim:"
    if value == "serve:":
        return value
    if value.startswith("sim:"):
        return _running_simulator(value)
    if value == "local" or value.startswith("local:"):
        return _local(value.removeprefix("local").removeprefix(":"))
    return _url(value)


def _running_simulator(value: str) -> str:
    """Check the address of a simulator that the user started; the trial's truth goes there, so it must be here."""
    url = value.removeprefix("sim:")
    if not url.startswith(("http://127.0.0.1:", "http://localhost:")):
        remedy = "Give its abilities as simulate: {...}, and the address that `evalcube simulate` prints"
        raise refusal("a simulated endpoint is sim: or sim:http://127.0.0.1:PORT/v1", remedy)
    return f"sim:{_url(url)}"


def _local(rest: str) -> str:
    if rest in ("", "smollm2"):
        return f"local:{rest}"
    if rest.endswith(".gguf"):
        return f"local:{path(rest)}"
    rule = "a local endpoint is local:, local:smollm2 or local:/path/model.gguf"
    raise refusal(rule, "Give a file that ends in .gguf")


def _url(value: str) -> str:
    parts = _split(value)
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
        remedy = f"Did you mean 'http://{value}'?" if re.match(r"[\w.-]+:\d+(/|$)", value) else ""
        rule = "must be http(s)://host/v1, local:smollm2, local:/path/model.gguf or sim:"
        raise refusal(rule, remedy, secret="@" in value)
    if "@" in parts.netloc:
        raise refusal("a URL must not hold a user or password", KEY_REMEDY, secret=True)
    if parts.query or parts.fragment or "?" in value or "#" in value:
        remedy = "Give the base URL, such as http://host/v1"
        raise refusal("a URL must end before ? and #", remedy, secret=True)
    if any(c.isspace() or ord(c) < 32 for c in value) or len(value) > LONGEST_PATH:
        raise refusal("a URL must have no spaces and at most 1024 characters", "Encode a space as %20")
    trimmed = value.rstrip("/")
    # The longest first: a path may end with that of another API.
    for suffix in sorted(("/chat", *(api.path for api in APIS.values())), key=len, reverse=True):
        if parts.path.rstrip("/").endswith(suffix):
            base = trimmed.removesuffix(suffix)
            raise refusal(f"must be the base URL, without {suffix}", f"Write {base}")
    return unicode(trimmed)


def _split(value: str) -> SplitResult | None:
    try:
        parts = urlsplit(value)
        port = parts.port
    except ValueError:  # a wrong port or a broken [IPv6] address
        return None
    return None if port == 0 else parts


def key_env(value: object) -> str:
    """Check the name of the variable with a key; a key given in its place is never shown."""
    return variable(value, KEY_REMEDY)


def variable(value: object, remedy: str = "Give its NAME alone, such as HF_HOME") -> str:
    """Check the name of an environment variable; a value given in its place is never shown."""
    if not isinstance(value, str):
        raise refusal("must be the name of an environment variable", remedy, secret=True)
    # HF_TOKEN begins like a key of Hugging Face; keys are not of words in capitals.
    if looks_secret(value) and not _CAPITALS.fullmatch(value):
        raise refusal("looks like a key, not like the name of an environment variable", remedy, secret=True)
    if not VARIABLE.fullmatch(value):
        raise refusal("must be the name of an environment variable", remedy, secret=True)
    return value


def key_file(value: object) -> str:
    """Check the path of a file with a key; a key given in its place is never shown."""
    if (
        not isinstance(value, str)
        or not value.strip()
        or not value.isprintable()
        or len(value) > LONGEST_PATH
    ):
        raise refusal("must be the path of a file that holds the key", _FILE_REMEDY, secret=True)
    # Of a path, the parts are looked at: a mounted secret's folder may well be a long name with digits.
    if looks_secret(value) and "/" not in value and "\\" not in value:
        raise refusal("looks like a key, not like the path of a file", _FILE_REMEDY, secret=True)
    return value


def key_command(value: object) -> tuple[str, ...]:
    """Check a program with its arguments that prints a key; none of them is ever shown."""
    if isinstance(value, str):
        raise refusal("must be a list of a program and its arguments", _COMMAND_REMEDY, secret=True)
    arguments = command(value, _COMMAND_REMEDY, _COMMAND_REMEDY)
    for index, argument in enumerate(arguments):
        _no_key(argument, (index,), _COMMAND_REMEDY)  # paths, too: here a key is what is at hand
        if not argument.isprintable():
            raise refusal("must be a text on one line", "Put quotes round it", secret=True, where=(index,))
    return arguments


def command(value: object, remedy: str, elsewhere: str) -> tuple[str, ...]:
    """Check a program with its arguments; see `words`."""
    arguments = words(value, remedy, elsewhere)
    if not arguments or not arguments[0].strip():
        raise refusal("must be a list of a program and its arguments", remedy, secret=True)
    return arguments


def words(value: object, remedy: str, elsewhere: str) -> tuple[str, ...]:
    """Check words of a command, none of which is ever shown; a text is split as a shell does, and no shell sees it."""
    if isinstance(value, str):
        try:
            value = shlex.split(value)
        except ValueError:
            raise refusal("has a quote that does not end", remedy, secret=True) from None
    if not isinstance(value, (list, tuple)) or len(value) > _MOST_ARGUMENTS:
        raise refusal(f"must be a list of at most {_MOST_ARGUMENTS} words", remedy, secret=True)
    return tuple(word(element, (index,), elsewhere) for index, element in enumerate(value))


def word(value: object, where: tuple[str | int, ...], elsewhere: str) -> str:
    """Check a word of a command, or a variable's value: it is no key, and is never shown."""
    if not isinstance(value, str) or len(value) > LONGEST_PATH * 4 or "\0" in value:
        raise refusal("must be a text", "Put quotes round it", secret=True, where=where)
    # Of a path, its folders are none: a snapshot of weights lies below long names with digits.
    if "://" in value or "/" not in value:
        _no_key(value, where, elsewhere)
    return unicode(value, where, secret=True)


def _no_key(value: str, where: tuple[str | int, ...], elsewhere: str) -> None:
    if looks_secret(value):
        raise refusal("looks like a key, and is no place for one", elsewhere, secret=True, where=where)


def headers(value: object) -> dict[str, str]:
    """Check extra headers: plain ones only; their values are never shown."""
    if not isinstance(value, Mapping):
        raise refusal("must be a mapping of header names to texts", "Write {X-Team: reasoning}", secret=True)
    for header, text in value.items():
        _header(header, text)
    return dict(value)


def _header(header: object, text: object) -> None:
    kind = secret_word(str(header)) or ("a key" if looks_secret(str(header)) else None)
    if kind is not None:
        rule = f"a header with {kind!r} in its name carries a secret"
        raise refusal(rule, KEY_REMEDY, secret=True, where=("\0key", str(header)))
    if not isinstance(header, str) or not _HEADER_NAME.fullmatch(header):
        raise refusal("a header's name must be letters, digits and dashes", "Write X-Team", secret=True)
    rule, remedy = "", ""
    if header.lower() in _RESERVED_HEADERS or header.lower().startswith("x-evalcube-"):
        rule, remedy = "evalcube sets this header itself", "Remove it"
    elif not isinstance(text, str) or not text.isprintable() or not text.isascii() or len(text) > 4096:
        rule, remedy = "a header must be one line of plain ASCII text", "Put quotes round it"
    elif looks_secret(text):
        rule, remedy = "this header's value looks like a key", KEY_REMEDY
    if rule:
        raise refusal(rule, remedy, secret=True, where=(header,))


def sampler_param(value: str) -> str:
    """Check the name of a request parameter."""
    _label(value, LONGEST_NAME)
    if value in _RESERVED_PARAMS:
        rule = f"{value!r} cannot be a sampler's parameter: {_RESERVED_PARAMS[value]}"
        raise refusal(rule, "Remove it", told=True)
    if (word := secret_word(value)) is not None:
        if near := difflib.get_close_matches(value.lower(), _TOKEN_PARAMS, n=1, cutoff=_NEAR):
            raise refusal(f"unknown parameter {value!r}", f"Did you mean {near[0]!r}?", secret=True)
        raise refusal(f"a parameter with {word!r} in its name carries a secret", KEY_REMEDY, secret=True)
    return value


def facet(value: object) -> str | int | float | bool:
    """Check a facet's value: a text, a number, true or false."""
    if isinstance(value, str):
        return unicode(value)
    if isinstance(value, bool) or _is_number(value):
        return value
    raise refusal("must be a text, a finite number, true or false", "Give one plain value")


def json_value(value: object) -> object:
    """Check and copy anything that JSON can hold: no inf, no NaN, keys are texts, at most 20 levels."""
    return _json(value, _DEEPEST_JSON)


def _json(value: object, levels: int) -> object:
    if levels == 0:
        raise refusal(f"must not be nested deeper than {_DEEPEST_JSON} levels", "Flatten it")
    if isinstance(value, str):
        return unicode(value)
    if isinstance(value, float) and not math.isfinite(value):
        raise refusal("must be a finite number", "JSON has no inf and no NaN")
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, (list, tuple)):
        return [_json(item, levels - 1) for item in value]
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {unicode(key): _json(item, levels - 1) for key, item in value.items()}
    remedy = "Use texts, numbers, true, false, null, lists, mappings"
    raise refusal("must be a value that JSON can hold", remedy)


def axis(value: object) -> list[object]:
    """Check one axis of a grid; a single value is an axis of one."""
    values = list(value) if isinstance(value, (list, tuple, range)) else [value]
    if not values:
        raise refusal("must not be empty", "Give at least one value", told=True)
    return [json_value(item) for item in values]


def skip(value: object) -> int | Literal["degree"] | dict[str, int]:
    """Check what stands before a window: a number of values, ``degree``, or ``{degree: values per degree}``."""
    if value == "degree":
        return "degree"
    per_degree = isinstance(value, Mapping) and list(value) == ["degree"]
    number = value["degree"] if per_degree and isinstance(value, Mapping) else value
    if type(number) is not int or not per_degree <= number <= 100_000:
        raise refusal("must be a number of values, degree or {degree: 2}", "Write skip: degree")
    return {"degree": number} if per_degree else number


def bounds(value: object) -> tuple[float | None, float | None] | None:
    """Read a range, ``{min, max}`` or a pair of which one is null; None if the value is something else."""
    if isinstance(value, Mapping):
        return value.get("min"), value.get("max")
    if isinstance(value, (list, tuple)) and len(value) == 2 and None in value:
        return value[0], value[1]
    return None


def criterion(value: object) -> object:
    """Check what a view asks of a coordinate: a value, values, or a range."""
    limits = bounds(value)
    if limits is not None:
        _check_bounds(value, limits)
        return dict(value) if isinstance(value, Mapping) else list(value)  # type: ignore[call-overload]
    if not isinstance(value, (list, tuple)):
        return facet(value)
    if not value:
        raise refusal("must not be empty", "Give at least one value", told=True)
    for index, item in enumerate(value):
        if isinstance(item, (list, tuple, Mapping)) or item is None:
            rule = "must be a text, a finite number, true or false"
            raise refusal(rule, "Write a range as {min: 4}", where=(index,))
    return [facet(item) for item in value]


def _check_bounds(value: object, limits: tuple[object, object]) -> None:
    unknown = isinstance(value, Mapping) and set(value) - {"min", "max"}
    numbers = [limit for limit in limits if limit is not None]
    if unknown or not numbers or not all(map(_is_number, numbers)):
        raise refusal(
            "a range must be {min: NUMBER, max: NUMBER} or one of the two", "Write {min: 4, max: 8}"
        )
    if numbers[0] > numbers[-1]:  # type: ignore[operator]  # both are numbers
        raise refusal(
            f"max must be at least min ({numbers[0]}), is {numbers[-1]}", "Exchange them", told=True
        )


def _is_number(value: object) -> TypeGuard[int | float]:
    """Whether it is a number that a float can hold: coordinates, which are compared with it, are arrays."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return abs(value) <= sys.float_info.max


def template(value: object) -> list[dict[str, str]]:
    """Check a template by compiling it; return its source with plain lists and dicts."""
    try:
        Template(value)  # type: ignore[arg-type]  # a wrong type is one of its errors
    except TemplateError as error:
        raise refusal(error.message, error.remedy, where=error.where, told=True) from None
    return [dict(message) for message in value]  # type: ignore[attr-defined]
