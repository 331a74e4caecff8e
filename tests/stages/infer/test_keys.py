"""A key from a file or a command: read on the worker, read again when it expires, shown nowhere."""

import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from evalcube.stages.infer import keys
from evalcube.stages.infer.endpoint import Endpoint, InferenceError
from evalcube.stages.infer.engine import Engine
from evalcube.stages.infer.keys import check_source, read_key
from tests.stages.infer.echo import GOOD, Echo, http
from tests.waiting import PATIENCE

URL = "https://api.example.com/v1"
FIRST, SECOND = "sk-first-3f9a1c77d2e84b6590aa", "sk-second-77d2e84b6590aa3f9a1c"


def printing(code):
    """A command that runs some Python."""
    return (sys.executable, "-c", code)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "key"
    path.write_text(f"{FIRST}\n")
    return path


def test_read_key__takes_it_from_a_file(file):
    assert read_key(Endpoint("m", URL, key_file=str(file))) == FIRST
    assert read_key(Endpoint("m", URL)) is None


@pytest.mark.parametrize("key", ["QWxhZGRpbjpvcGVuIHNlc2FtZQ==", "ABCDEFGH12345678=", "a.b-c_d~e+f/g="])
def test_read_key__an_equals_sign_may_end_a_key(file, key):
    file.write_text(key)

    assert read_key(Endpoint("m", URL, key_file=str(file))) == key


@pytest.mark.cluster
def test_read_key__takes_it_from_a_command():
    assert read_key(Endpoint("m", URL, key_command=printing(f"print(' {FIRST}')"))) == FIRST


@pytest.mark.cluster
def test_read_key__runs_no_shell(tmp_path):
    command = ("echo", "$HOME", ";", "touch", str(tmp_path / "made"))

    assert read_key(Endpoint("m", URL, key_command=command)) == f"$HOME ; touch {tmp_path / 'made'}"
    assert not (tmp_path / "made").exists()


BAD_FILES = {
    "missing": (None, r"models\[m\]\.key_file: .*key cannot be read on the worker \(No such file"),
    "empty": (" \n", "is empty"),
    "two lines": (f"{FIRST}\r\nX-Evil: 1", "characters that no HTTP header"),
    "variable": (f"OPENAI_API_KEY={FIRST}", "quotes or a name before the key"),
    "exported": (f"export OPENAI_API_KEY='{FIRST}'", "quotes or a name before the key"),
    "field": (f"api_key: {FIRST}", "quotes or a name before the key"),
    "quoted": (f'"{FIRST}"', "quotes or a name before the key"),
    "large": ("a" * 20_000, "longer than 16384 bytes"),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_read_key__of_a_bad_file_shows_nothing_of_it(file, case):
    text, message = BAD_FILES[case]
    file.unlink()
    if text is not None:
        file.write_text(text)
    endpoint = Endpoint("m", URL, key_file=str(file))

    with pytest.raises(InferenceError, match=message) as caught:
        check_source(endpoint)

    assert "sk-" not in str(caught.value)


def test_read_key__waits_for_no_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")

    with pytest.raises(InferenceError, match="is no file"):
        read_key(Endpoint("m", URL, key_file=str(tmp_path / "pipe")))


BAD_COMMANDS = {
    "failing": (f"import sys; print('{FIRST}'); sys.exit('{FIRST}')", "failed with status 1"),
    "silent": ("", "is empty"),
    "endless": ("while True: print('a' * 1000)", "longer than 16384 bytes"),
    "slow": ("import time; time.sleep(600)", "took more than 1 s"),
    "slow to end": (
        f"import os, time; os.write(1, b'{FIRST}'); os.close(1); time.sleep(600)",
        "took more than 1 s",
    ),
}


@pytest.mark.cluster
@pytest.mark.parametrize("case", BAD_COMMANDS)
def test_read_key__of_a_bad_command_is_bounded_and_shows_nothing_of_it(monkeypatch, capfd, case):
    code, message = BAD_COMMANDS[case]
    monkeypatch.setattr(keys, "_COMMAND_SECONDS", 1.0 if "slow" in case else PATIENCE)
    start = time.monotonic()

    with pytest.raises(InferenceError, match=message) as caught:
        read_key(Endpoint("m", URL, key_command=printing(code)))

    assert time.monotonic() - start < PATIENCE
    assert FIRST not in f"{caught.value}{capfd.readouterr()}"


def test_check_source__finds_a_missing_program_and_runs_none(tmp_path):
    check_source(Endpoint("m", URL, key_command=printing(f"open({str(tmp_path / 'ran')!r}, 'w')")))

    with pytest.raises(InferenceError, match=r"models\[m\]\.key_command: there is no program 'no-such'"):
        check_source(Endpoint("m", URL, key_command=("no-such", "key")))

    assert not (tmp_path / "ran").exists()


def test_account__is_that_of_the_file_or_the_command_whatever_the_key_is_now(file):
    before = Endpoint("a", URL, key_file=str(file)).account
    file.write_text(SECOND)

    assert Endpoint("b", URL, key_file=str(file)).account == before
    assert FIRST not in repr(before)
    others = [Endpoint("c", URL), Endpoint("d", URL, key_file="x"), Endpoint("e", URL, key_command=("x",))]
    assert len({before, *(other.account for other in others)}) == 4


class Expiring:
    """Accepts one key at a time, repeats any other in its refusal, and counts what it says."""

    def __init__(self):
        self.key = FIRST
        self.refused = 0

    def __call__(self, request):
        if self.key.encode() in request:
            return http(GOOD)
        self.refused += 1
        return http(b'{"error": {"message": "' + request.partition(b"Bearer ")[2][:30] + b'"}}', 401)


@pytest.fixture
def server():
    answers = Expiring()
    with Echo(answers, delay=0.02) as echo:
        answers.base_url = echo.base_url
        answers.requests = echo.requests
        yield answers


@pytest.fixture
def engine_for(store, server):
    engines = []

    def make(**settings):
        terms = {"connections": 8, "retries": 2, "backoff_base": 0.01, "timeout": 60.0, **settings}
        engines.append(Engine({name: Endpoint(name, server.base_url, **terms) for name in "mn"}, store))
        return engines[-1]

    yield make
    for engine in engines:
        engine.close()


def counting(tmp_path):
    """A command that prints the key in a file, and leaves a line of each run."""
    code = f"open({str(tmp_path / 'runs')!r}, 'a').write('x'); print(open({str(tmp_path / 'key')!r}).read())"
    return printing(code), lambda: len((tmp_path / "runs").read_text())


@pytest.mark.cluster
def test_expired_key__is_read_again_once_for_all_requests(tmp_path, file, server, engine_for, jobs):
    command, runs = counting(tmp_path)
    engine = engine_for(key_command=command)
    before = engine.run("m", jobs(8, label="before"))
    server.key = SECOND
    file.write_text(SECOND)

    with ThreadPoolExecutor(2) as pool:
        parts = pool.map(lambda model: engine.run(model, jobs(20, label=model)), "mn")
        after = [result for part in parts for result in part]

    assert {result.kind for result in [*before, *after]} == {"stored"}
    assert 1 <= server.refused <= 8
    assert runs() == 2
    assert engine.stats.retries["http 401"] == server.refused


def test_expired_key__in_a_file_is_read_again(file, server, engine_for, jobs):
    engine = engine_for(key_file=str(file))
    server.key = SECOND
    file.write_text(SECOND)

    assert {result.kind for result in engine.run("m", jobs(3))} == {"stored"}


@pytest.mark.cluster
def test_wrong_key__that_stays_ends_the_model_and_is_not_read_for_each_request(
    tmp_path, file, server, engine_for, jobs
):
    file.write_text(FIRST)
    command, runs = counting(tmp_path)
    server.key = SECOND
    engine = engine_for(key_command=command)

    results = engine.run("m", jobs(40))

    assert {(result.kind, result.cause) for result in results} == {("failed", "http 401")}
    assert runs() == 2
    assert FIRST not in repr(results)
    assert any("[key]" in result.detail for result in results)


def test_expired_key__that_cannot_be_read_any_more_is_reported(file, server, engine_for, jobs):
    engine = engine_for(key_file=str(file))
    engine.run("m", jobs(1, label="before"))
    server.key = SECOND
    file.unlink()

    (result,) = engine.run("m", jobs(1))

    assert (result.kind, result.cause) == ("failed", "http 401")
    assert "models[m].key_file" in result.detail


@pytest.mark.cluster
def test_missing_key__is_an_error_before_anything_is_sent(tmp_path, file, server, engine_for, jobs):
    file.unlink()
    command, runs = counting(tmp_path)
    engine = engine_for(key_command=command)

    for _ in range(2):
        with pytest.raises(InferenceError, match="failed with status 1"):
            engine.run("m", jobs(5))

    assert server.requests == []
    assert runs() == 1
