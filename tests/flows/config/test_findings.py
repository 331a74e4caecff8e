"""One mistake in a config -> exactly one problem, with its exact text."""

from __future__ import annotations

import pytest
from pydantic_core import PydanticCustomError

from evalcube.flows.config.load import parse_config
from evalcube.flows.config.values import sampler_param
from evalcube.flows.errors import ConfigError
from tests.cases import with_cases
from tests.flows.config.sources import problems, text

FILE_REMEDY = "Put the key in a file that the workers can read and give the file's path"
COMMAND_REMEDY = "Give a command that finds the key, such as [pass, show, openai]"
KEY_REMEDY = (
    "Put the key in an environment variable and give the variable's name as key_env, such as OPENAI_API_KEY"
)
MODEL = "c.yaml:2: models[0]"

BAD = {
    "unknown field": (
        text(models='- {name: a, endpoint: "sim:", limits: {conections: 3}}'),
        f"{MODEL}.limits.conections: unknown field 'conections'. Did you mean 'connections'?",
    ),
    "unknown field far from all": (
        text(models='- {name: a, endpoint: "sim:", prices: {zzz: 3}}'),
        f"{MODEL}.prices.zzz: unknown field 'zzz'. Fields: prompt, completion, cached, batch",
    ),
    "misspelt required field": (
        text(models='- {name: a, endpont: "sim:"}'),
        f"{MODEL}.endpont: unknown field 'endpont'. Did you mean 'endpoint'?",
    ),
    "misspelt section": (
        text(samplers="").replace("tasks:", "sampler: {g: {}}\ntasks:"),
        "c.yaml:3: sampler: unknown field 'sampler'. Did you mean 'samplers'?",
    ),
    "field of another program": (
        text(models="- {name: a, base_url: http://h/v1}"),
        f"{MODEL}.base_url: unknown field 'base_url'. Did you mean 'endpoint'?",
    ),
    "missing section": (
        text(models=""),
        "c.yaml:1: models: is missing. Add it: Models to measure",
    ),
    "parameter of imported evaluations": (
        text(samplers="greedy: {imported: {tool: x}}"),
        "c.yaml:4: samplers.greedy.imported: marks evaluations that another tool asked. Remove it: no server takes it",
    ),
    "connections that are no number": (
        text(models='- {name: a, endpoint: "sim:", limits: {connections: true}}'),
        (
            f"{MODEL}.limits.connections: must be auto, a whole number or a mapping, got true. "
            "Write auto, or {start: 16, most: 256}"
        ),
    ),
    "connections that start above the most": (
        text(models='- {name: a, endpoint: "sim:", limits: {connections: {start: 20, most: 10}}}'),
        f"{MODEL}.limits.connections.start: must be at most most (10), got 20. Lower it, or raise most",
    ),
    "unknown field of connections": (
        text(models='- {name: a, endpoint: "sim:", limits: {connections: {strat: 20}}}'),
        f"{MODEL}.limits.connections.strat: unknown field 'strat'. Did you mean 'start'?",
    ),
    "misspelt parameter": (
        text(samplers="greedy: {temprature: 0}"),
        "c.yaml:4: samplers.greedy.temprature: unknown parameter 'temprature'. Did you mean 'temperature'?",
    ),
    "wrong type": (
        text(models='- {name: 5, endpoint: "sim:"}'),
        f"{MODEL}.name: must be a text, got 5. Put quotes round it",
    ),
    "true is no number": (
        text(trials="true"),
        "c.yaml:8: trials: must be a whole number, got true",
    ),
    "half a trial": (text(trials="1.5"), "c.yaml:8: trials: must be a whole number, got 1.5"),
    "no trials": (text(trials="0"), "c.yaml:8: trials: must be at least 1, got 0"),
    "too many repeats": (text(repeats="100001"), "c.yaml:8: repeats: must be at most 100,000, got 100001"),
    "infinite price": (
        text(models='- {name: a, endpoint: "sim:", prices: {prompt: .inf, completion: 1}}'),
        f"{MODEL}.prices.prompt: must be a finite number, got inf",
    ),
    "mapping for a list": (
        text(models='{name: a, endpoint: "sim:"}'),
        "c.yaml:1: models: must be a list, got a mapping. Start each item with - or write [a, b]",
    ),
    "list for a mapping": (
        text(samplers="- {temperature: 0}"),
        "c.yaml:3: samplers: must be a mapping, got a list. Write key: value lines or {key: value}",
    ),
    "nothing for a mapping": (
        text(models='- {name: a, endpoint: "sim:", limits: }'),
        f"{MODEL}.limits: must be a mapping, got null. Write key: value lines or {{key: value}}",
    ),
    "empty list": (text(models="[]"), "c.yaml:1: models: must not be empty. Give at least one"),
    "equal names": (
        text(models='- {name: a, endpoint: "sim:"}\n  - {name: a, endpoint: "sim:"}'),
        (
            "c.yaml:3: models[1].name: model names must be unique: models[0] has this one, too, got 'a'. "
            "Give one of them another name"
        ),
    ),
    "line break in a name": (
        text(models='- {name: "a\\nb", endpoint: "sim:"}'),
        (
            f"{MODEL}.name: must not contain line breaks or other control characters, got 'a\\nb'. "
            "Use one line of text"
        ),
    ),
    "long name": (
        text(models=f'- {{name: {"x" * 129}, endpoint: "sim:"}}'),
        f"{MODEL}.name: must have at most 128 characters, has 129, got '{'x' * 55}...'. Shorten it",
    ),
    "blank key": (
        text(samplers='" ": {temperature: 0}'),
        "c.yaml:4: samplers[' ']: must not be blank, got ' '. Give it a name",
    ),
    "endpoint with a path to chat": (
        text(models="- {name: a, endpoint: https://h/v1/chat/completions/}"),
        (
            f"{MODEL}.endpoint: must be the base URL, without /chat/completions, "
            "got 'https://h/v1/chat/completions/'. Write https://h/v1"
        ),
    ),
    "endpoint without a scheme": (
        text(models="- {name: a, endpoint: localhost:8000/v1}"),
        (
            f"{MODEL}.endpoint: must be http(s)://host/v1, local:smollm2, local:/path/model.gguf or sim:, "
            "got 'localhost:8000/v1'. Did you mean 'http://localhost:8000/v1'?"
        ),
    ),
    "endpoint with a wrong port": (
        text(models="- {name: a, endpoint: 'http://h:99999/v1'}"),
        (
            f"{MODEL}.endpoint: must be http(s)://host/v1, local:smollm2, local:/path/model.gguf or sim:, "
            "got 'http://h:99999/v1'"
        ),
    ),
    "unknown local model": (
        text(models="- {name: a, endpoint: 'local:gpt9'}"),
        (
            f"{MODEL}.endpoint: a local endpoint is local:, local:smollm2 or local:/path/model.gguf, "
            "got 'local:gpt9'. Give a file that ends in .gguf"
        ),
    ),
    "password in a URL": (
        text(models="- {name: a, endpoint: 'https://me:hunter2@h/v1'}"),
        f"{MODEL}.endpoint: a URL must not hold a user or password. {KEY_REMEDY}",
    ),
    "key in a URL": (
        text(models="- {name: a, endpoint: 'https://h/v1?key=hunter2'}"),
        f"{MODEL}.endpoint: a URL must end before ? and #. Give the base URL, such as http://host/v1",
    ),
    "key for its variable's name": (
        text(models='- {name: a, endpoint: "sim:", key_env: sk-hunter2}'),
        f"{MODEL}.key_env: looks like a key, not like the name of an environment variable. {KEY_REMEDY}",
    ),
    "no variable's name": (
        text(models='- {name: a, endpoint: "sim:", key_env: "hunter2!"}'),
        f"{MODEL}.key_env: must be the name of an environment variable. {KEY_REMEDY}",
    ),
    "number for a variable's name": (
        text(models='- {name: a, endpoint: "sim:", key_env: 4711}'),
        f"{MODEL}.key_env: must be the name of an environment variable. {KEY_REMEDY}",
    ),
    "key for its file": (
        text(models='- {name: a, endpoint: "sim:", key_file: sk-hunter2}'),
        f"{MODEL}.key_file: looks like a key, not like the path of a file. {FILE_REMEDY}",
    ),
    "no file of a key": (
        text(models='- {name: a, endpoint: "sim:", key_file: [hunter2]}'),
        f"{MODEL}.key_file: must be the path of a file that holds the key. {FILE_REMEDY}",
    ),
    "line of a shell for a command": (
        text(models='- {name: a, endpoint: "sim:", key_command: "pass show hunter2"}'),
        f"{MODEL}.key_command: must be a list of a program and its arguments. {COMMAND_REMEDY}",
    ),
    "key in a command": (
        text(models='- {name: a, endpoint: "sim:", key_command: [echo, sk-hunter2]}'),
        f"{MODEL}.key_command[1]: looks like a key, and is no place for one. {COMMAND_REMEDY}",
    ),
    "number in a command": (
        text(models='- {name: a, endpoint: "sim:", key_command: [echo, 4711]}'),
        f"{MODEL}.key_command[1]: must be a text. Put quotes round it",
    ),
    "lines in a command": (
        text(models='- {name: a, endpoint: "sim:", key_command: [echo, "a\\nb"]}'),
        f"{MODEL}.key_command[1]: must be a text on one line. Put quotes round it",
    ),
    "half a character in a command": (
        text(models='- {name: a, endpoint: "serve:", serve: {command: [go, "{port}", "hunter2\\uD800"]}}'),
        (
            f"{MODEL}.serve.command[2]: must not contain half a surrogate pair. "
            "Write the character itself, not \\u escapes"
        ),
    ),
    "command of nothing": (
        text(models='- {name: a, endpoint: "sim:", key_command: []}'),
        f"{MODEL}.key_command: must be a list of a program and its arguments. {COMMAND_REMEDY}",
    ),
    "two places of a key": (
        text(models='- {name: a, endpoint: "http://h/v1", key_env: A, key_file: /run/key}'),
        f"{MODEL}.key_file: excludes key_env. Give one of them",
    ),
    "key as a field": (
        text(models='- {name: a, endpoint: "sim:", api_key: hunter2}'),
        f"{MODEL}.api_key: unknown field 'api_key'. Did you mean 'key_env'?",
    ),
    "secret header": (
        text(models='- {name: a, endpoint: "sim:", headers: {X-Api-Key: hunter2}}'),
        f"{MODEL}.headers: a header with 'api-key' in its name carries a secret. {KEY_REMEDY}",
    ),
    "secret in a header": (
        text(models='- {name: a, endpoint: "sim:", headers: {X-Team: Bearer hunter2}}'),
        f"{MODEL}.headers.X-Team: this header's value looks like a key. {KEY_REMEDY}",
    ),
    "header of evalcube's own": (
        text(models='- {name: a, endpoint: "sim:", headers: {x-evalcube-truth: hunter2}}'),
        f"{MODEL}.headers.x-evalcube-truth: evalcube sets this header itself. Remove it",
    ),
    "headers that are a text": (
        text(models='- {name: a, endpoint: "sim:", headers: "X: hunter2"}'),
        f"{MODEL}.headers: must be a mapping of header names to texts. Write {{X-Team: reasoning}}",
    ),
    "abilities of a real model": (
        text(models="- {name: a, endpoint: http://h/v1, simulate: {ability: 3}}"),
        (
            f"{MODEL}.simulate: only a simulated model has abilities to simulate. "
            'Remove it, or write endpoint: "sim:"'
        ),
    ),
    "ability out of range": (
        text(models='- {name: a, endpoint: "sim:", simulate: {refusal: 2}}'),
        f"{MODEL}.simulate.refusal: must be at most 1, got 2",
    ),
    "unknown word": (
        text(models='- {name: a, endpoint: "sim:", simulate: {reasoning: thinking}}'),
        f"{MODEL}.simulate.reasoning: must be one of 'none', 'think' or 'field', got 'thinking'",
    ),
    "list as a facet": (
        text(models='- {name: a, endpoint: "sim:", facets: {size: [7]}}'),
        (
            f"{MODEL}.facets.size: must be a text, a finite number, true or false, got a list. "
            "Give one plain value"
        ),
    ),
    "reserved parameter": (
        text(samplers="greedy: {stream: true}"),
        (
            "c.yaml:4: samplers.greedy.stream: 'stream' cannot be a sampler's parameter: "
            "it is a setting of the model. Remove it"
        ),
    ),
    "no tokens": (
        text(samplers="greedy: {max_tokens: 0}"),
        (
            "c.yaml:4: samplers.greedy.max_tokens: must be a whole number of at least 1, got 0. "
            "Leave it out for the server's default"
        ),
    ),
    "no JSON": (
        text(samplers="greedy: {temperature: .nan}"),
        "c.yaml:4: samplers.greedy.temperature: must be a finite number, got nan. JSON has no inf and no NaN",
    ),
    "template with an unknown variable": (
        text(templates='t: [{role: user, content: "{{ promt }}"}]'),
        "c.yaml:8: templates.t[0].content: wrong variable: 'promt' is undefined. Did you mean 'prompt'?",
    ),
    "template with wrong Jinja": (
        text(templates="t:\n    - role: user\n      content: |\n        Hello\n        {{ prompt | }}\n"),
        (
            "c.yaml:10: templates.t[0].content: wrong Jinja: expected token 'name', "
            "got 'end of print statement' (line 2 of the text). Write a literal {{ as {{ '{{' }}"
        ),
    ),
    "template without the prompt": (
        text(templates="t: [{role: user, content: hello}]"),
        (
            "c.yaml:8: templates.t: never uses the prompt: every question would be the same. "
            "Write {{ prompt }} into it"
        ),
    ),
    "template with an unknown role": (
        text(templates='t: [{role: usr, content: "{{ prompt }}"}]'),
        "c.yaml:8: templates.t[0].role: message 1 has an unknown role 'usr'. Did you mean 'user'?",
    ),
    "template without messages": (
        text(templates="t: []"),
        (
            "c.yaml:8: templates.t: is an empty list of messages. "
            'Write a list such as [{role: user, content: "{{ prompt }}"}]'
        ),
    ),
    "template of one text": (
        text(templates="t: '{{ prompt }}'"),
        (
            "c.yaml:8: templates.t: is a text, not a list of messages. "
            'Write a list such as [{role: user, content: "{{ prompt }}"}]'
        ),
    ),
    "template with a param that a task lacks": (
        text(templates='t: [{role: user, content: "{{ prompt }} {{ params.swaps }}"}]'),
        (
            "c.yaml:8: templates.t[0].content: wrong variable: 'dict object' has no attribute 'swaps' "
            "(with task arithmetic). There are prompt, task and params (params.length, ...)"
        ),
    ),
    "evaluation of an unknown model": (
        text(evaluations="- {models: [b]}"),
        "c.yaml:8: evaluations[0].models[0]: unknown model 'b'. Models: a",
    ),
    "evaluation with a misspelt sampler": (
        text(evaluations="- {samplers: [greedi]}"),
        "c.yaml:8: evaluations[0].samplers[0]: unknown sampler 'greedi'. Did you mean 'greedy'?",
    ),
    "unknown task": (
        text(tasks="aritmetic: {manifold: [{points: [{length: 4}]}]}"),
        "c.yaml:6: tasks.aritmetic: unknown task 'aritmetic'. Did you mean 'arithmetic'?",
    ),
    "unknown param": (
        text(tasks="arithmetic:\n    manifold:\n    - grid:\n        lenght: [4]"),
        "c.yaml:9: tasks.arithmetic.manifold[0].grid.lenght: unknown field 'lenght'. Did you mean 'length'?",
    ),
    "param out of range": (
        text(tasks="arithmetic:\n    manifold:\n    - grid:\n        length:\n        - 4\n        - 99"),
        (
            "c.yaml:11: tasks.arithmetic.manifold[0].grid.length[1]: "
            "length must be a whole number from 3 to 50, got 99"
        ),
    ),
    "no points": (
        text(tasks="arithmetic: {manifold: [{tiers: [easy]}]}"),
        "c.yaml:6: tasks.arithmetic.manifold[0]: must have either grid or points. Give one of the two",
    ),
    "empty axis": (
        text(tasks="arithmetic: {manifold: [{grid: {length: []}}]}"),
        "c.yaml:6: tasks.arithmetic.manifold[0].grid.length: must not be empty. Give at least one value",
    ),
    "huge grid": (
        text(
            tasks="arithmetic: {manifold: [{grid: {length: &a "
            + str(list(range(400)))
            + ", max_depth: *a, min_number: *a}}]}"
        ),
        (
            "c.yaml:6: tasks.arithmetic.manifold: has 64,000,000 points, at most 100,000 are allowed. "
            "Use fewer values"
        ),
    ),
    "misspelt grid": (
        text(tasks="arithmetic: {manifold: [{gird: {length: 4}}]}"),
        "c.yaml:6: tasks.arithmetic.manifold[0].gird: unknown field 'gird'. Did you mean 'grid'?",
    ),
    "empty file": ("# nothing\n", "c.yaml:1: the config is empty. Write a first config with: evalcube init"),
    "list at the top": (
        "- a\n",
        (
            "c.yaml:1: the config must be a mapping, got a list. "
            "Begin with lines such as models:, samplers:, tasks:"
        ),
    ),
    "duplicate key": (
        "seed: 1\nname: x\nseed: 2\n",
        "c.yaml:3: key 'seed' is given twice, in lines 1 and 3. Keep one of them",
    ),
    "sim without quotes": (
        "models:\n  - name: a\n    endpoint: sim:\n",
        (
            "c.yaml:3: wrong YAML at column 18: mapping values are not allowed here. "
            'Indent the key like its siblings; put quotes round a text with a colon, such as "sim:"'
        ),
    ),
    "tab": (
        "models:\n\t- a\n",
        (
            "c.yaml:2: wrong YAML at column 1: found character '\\t' that cannot start any token "
            "(while scanning for the next token). Indent with spaces, not with tabs"
        ),
    ),
    "code in a tag": (
        "name: !!python/object/apply:os.system ['true']\n",
        "c.yaml:1: tag 'python/object/apply:os.system' is not allowed. Remove what starts with !",
    ),
    "control character": (
        "name: a\nseed: \x01\n",
        "c.yaml:2: wrong YAML: control character '\\x01' is not allowed. Remove it",
    ),
    "alias of itself": (
        "name: &a [*a]\n",
        "c.yaml:1: nested deeper than 50 levels. An alias must not contain itself",
    ),
    "merge of itself": (
        "name: &a\n  <<: *a\n",
        "c.yaml:1: nested deeper than 50 levels. An alias must not contain itself",
    ),
    "too deep": ("[" * 1_000, "c.yaml:1: nested too deeply. Use at most 50 levels"),
}


@with_cases(("source", "expected"), BAD.values())
def test_parse_config__tells_one_mistake_once(source: str, expected: str) -> None:
    told = problems(source)

    assert told == [expected]
    assert "hunter2" not in "".join(told)


def test_config_error__shows_the_first_of_very_many_problems() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_config("".join(f"field{i}: {i}\n" for i in range(1_500)))

    lines = str(caught.value).splitlines()
    assert len(caught.value.problems) > 1_500
    assert len(lines) == 51
    assert lines[-1] == f"and {len(caught.value.problems) - 50:,} more problems"


def test_samplers__may_be_left_out_and_hold_what_other_servers_know() -> None:
    assert parse_config(text(samplers="")).samplers == {"default": {}}
    odd = parse_config(text(samplers="odd: {xtc_threshold: 0.1, min_tokens: 3, my_own: true}"))
    assert odd.samplers["odd"] == {"xtc_threshold": 0.1, "min_tokens": 3, "my_own": True}


@with_cases(
    ("name", "said"),
    [
        ("max_token", "unknown parameter 'max_token'. Did you mean 'max_tokens'?"),
        ("max_completion_token", "Did you mean 'max_completion_tokens'?"),
        ("min_token", "Did you mean 'min_tokens'?"),
        ("auth_token", "a parameter with 'token' in its name carries a secret"),
        ("api_key", "carries a secret"),
    ],
)
def test_sampler_param__a_typo_is_no_secret(name, said):
    with pytest.raises(PydanticCustomError) as caught:
        sampler_param(name)

    assert said in f"{caught.value.context['rule']}. {caught.value.context['remedy']}"
