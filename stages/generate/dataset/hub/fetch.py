"""Brings the rows that an address means to this machine; all that is said to the hub is said by huggingface-hub."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from evalcube.stages.generate.dataset.files import file_digest, open_packed, open_table
from evalcube.stages.generate.dataset.hub import shelf
from evalcube.stages.generate.dataset.hub.address import Address, is_hub
from evalcube.stages.generate.dataset.hub.choose import chosen, form_of
from evalcube.stages.generate.dataset.kept import kept_point
from evalcube.stages.generate.dataset.params import DatasetParams
from evalcube.stages.generate.errors import TaskError

MOST_BYTES = 4 << 30
"""Of the files of one address, as they are downloaded; of what they unpack to; and of what they make together."""
MOST_PARTS = 1_000
"""Files of one address."""
MOST_ROWS = 10_000_000
MOST_JSON_BYTES = 256 << 20
"""Of a JSON file that is one list, which is read as a whole."""
_CONVERTED = "refs/convert/parquet"
"""Where the hub itself keeps Parquet files of data sets that are made by a script."""
_TRIES = 4
_LONGEST_WAIT = 60.0
_SHOWN_AFTER = 5.0
"""Seconds of a download from which on its progress is shown."""
_BUSY = (408, 429, 500, 502, 503, 504)
_OF_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS)
_T = TypeVar("_T")

sleep = time.sleep


def fetch(asked: Address) -> shelf.FetchedRows:
    """Bring the rows of an address here, whatever was here before."""
    try:
        return _fetch(asked)
    except OSError as error:
        if error.errno not in _OF_DISK:
            raise
        raise asked.problem(
            f"cannot be kept in {shelf.folder()} ({os.strerror(error.errno)}): correct that, or name another folder in "
            "XDG_CACHE_HOME"
        ) from None


def _fetch(asked: Address) -> shelf.FetchedRows:
    hub = _Hub(asked)
    info = hub.info()
    names = [sibling.rfilename for sibling in info.siblings]
    if not asked.path and not asked.revision and not any(map(form_of, names)):
        with suppress(TaskError):
            info = hub.info(_CONVERTED)
            names = [sibling.rfilename for sibling in info.siblings]
    card = info.card_data.to_dict() if info.card_data else {}
    files = chosen(asked, names, card.get("configs"))
    # it may be called otherwise now
    pinned = replace(asked, repo=Address.parse(f"hf://{info.id}").repo, revision=str(info.sha))
    if not pinned.is_pinned:
        raise asked.problem("has no commit that the hub names; try again later")
    earlier = shelf.find(str(pinned))
    if earlier is not None:
        record = replace(earlier, asked=str(asked))
        shelf.note(record)
        return record
    with _parts(pinned) as parts:
        file, form = _as_one(asked, hub.download(pinned, info, files, parts), parts)
        sha256 = file_digest(str(file))
        rows = len(open_table(str(file), form, sha256))
        if rows > MOST_ROWS:
            raise asked.problem(f"has {rows:,} rows; at most {MOST_ROWS:,} are taken")
        record = shelf.FetchedRows(
            asked=str(asked),
            address=str(pinned),
            commit=pinned.revision,
            licence=_licence(card.get("license")),
            gated=bool(info.gated),
            sha256=sha256,
            format=form,
            rows=rows,
            size=file.stat().st_size,
            files=files,
            fetched=datetime.now(UTC).date().isoformat(),
        )
        shelf.keep(record, file)
    return record


class _BrokenOffError(TaskError):
    """The hub cannot be reached, or is busy: what came so far serves the next try."""


@contextmanager
def _parts(pinned: Address) -> Iterator[Path]:
    """A folder for downloads; only what a broken connection left stays, and the next try goes on from there."""
    name = hashlib.sha256(str(pinned).encode()).hexdigest()[:16]
    parts = shelf.folder() / "parts" / name
    parts.mkdir(parents=True, exist_ok=True)
    useful = False
    try:
        yield parts
    except (_BrokenOffError, KeyboardInterrupt):
        useful = True
        raise
    finally:
        if not useful:
            shutil.rmtree(parts, ignore_errors=True)


def _licence(value: object) -> str:
    """What a card says of the licence, which may be anything."""
    texts = [text for text in (value if isinstance(value, list) else [value]) if isinstance(text, str)]
    return "".join(char for char in ", ".join(texts)[:100] if char.isprintable())


class _Hub:
    """One data set on the hub; every error is told as one that its user can do something about."""

    def __init__(self, asked: Address) -> None:
        try:
            import huggingface_hub
        except ImportError:
            raise asked.problem(
                "needs the package huggingface-hub; install it with: pip install 'evalcube[hub]'"
            ) from None
        self.asked = asked
        self._hub = huggingface_hub
        endpoint = os.environ.get("HF_ENDPOINT", "").rstrip("/") or None
        self._api = huggingface_hub.HfApi(endpoint=endpoint, library_name="evalcube")

    def info(self, revision: str = "") -> Any:  # noqa: ANN401 - of a package that may be missing
        """What the hub says of the data set: commit, card and files."""
        wanted = revision or self.asked.revision or None
        return self._request(
            lambda: self._api.dataset_info(
                self.asked.repo, revision=wanted, files_metadata=True, timeout=_LONGEST_WAIT
            )
        )

    def download(self, pinned: Address, info: Any, files: Sequence[str], parts: Path) -> list[Path]:  # noqa: ANN401
        """The files, each compared with the digest that the hub gave."""
        if len(files) > MOST_PARTS:
            raise self.asked.problem(f"has {len(files):,} files; at most {MOST_PARTS:,} are taken")
        listed = {sibling.rfilename: sibling for sibling in info.siblings}
        total = sum(listed[file].size or 0 for file in files)
        if total > MOST_BYTES:
            raise self.asked.problem(
                f"has {total >> 20:,} MiB in {len(files)} files; at most {MOST_BYTES >> 20:,} are taken"
            )
        paths = []
        for file in files:
            most = listed[file].size or MOST_BYTES
            path = self._request(lambda file=file, most=most: self._file(pinned, file, parts, most))  # type: ignore[misc]
            if not _as_listed(path, listed[file]):
                raise self.asked.problem(
                    f"{file} came with another content than the hub says it has; try again without a proxy, and if "
                    "that does not help tell its owners"
                )
            paths.append(path)
        return paths

    def _file(self, pinned: Address, file: str, parts: Path, most: int) -> Path:
        return Path(
            self._api.hf_hub_download(
                pinned.repo,
                file,
                repo_type="dataset",
                revision=pinned.revision,
                local_dir=parts,
                tqdm_class=_bounded_bar(self.asked, file, most),
            )
        )

    def _request(self, ask: Callable[[], _T]) -> _T:
        """What the hub answers, after some patience with one that is busy."""
        errors = self._hub.errors
        logger = self._hub.utils.logging
        before = logger.get_verbosity()
        logger.set_verbosity_error()  # the one error is ours
        try:
            for tried in range(_TRIES):
                try:
                    return ask()
                except errors.HfHubHTTPError as error:
                    status = error.response.status_code
                    if status not in _BUSY or tried == _TRIES - 1:
                        raise self._refusal(error, status) from None
                    sleep(_wait(error.response.headers.get("retry-after"), tried))
                except (errors.FileMetadataError, json.JSONDecodeError) as error:
                    raise self._no_hub() from error
                except (OSError, self._transport()) as error:
                    if isinstance(error.__cause__, errors.FileMetadataError):
                        raise self._no_hub() from error
                    if getattr(error, "errno", None) in _OF_DISK:
                        raise
                    if os.environ.get("HF_HUB_OFFLINE") or tried == _TRIES - 1:
                        raise self._unreachable(error) from None
                    sleep(_wait(None, tried))
        finally:
            logger.set_verbosity(before)
        raise AssertionError("the last try returns or raises")

    def _transport(self) -> type[Exception]:
        """The base of what the client of huggingface-hub raises where nothing answers."""
        return next(base for base in self._hub.errors.HfHubHTTPError.__mro__ if base.__name__ == "HTTPError")

    def _unreachable(self, error: Exception) -> TaskError:
        cause = error.__cause__ or error
        return _BrokenOffError(
            f"the hub cannot be reached ({type(cause).__name__}), and these rows are not on this machine; where there "
            f"is a network, run: evalcube data fetch '{self.asked}', or fetch by the suite's name all that it reads",
            field="file",
            value=str(self.asked),
        )

    def _no_hub(self) -> TaskError:
        return self.asked.problem(
            f"was asked for at {self._api.endpoint}, and what answers there is not the hub: a proxy or a login page "
            "may stand in between. Open that address in a browser, and correct HTTPS_PROXY or HF_ENDPOINT"
        )

    def _refusal(self, error: Exception, status: int) -> TaskError:
        errors, page = self._hub.errors, f"{self._api.endpoint}/datasets/{self.asked.repo}"
        if isinstance(error, errors.GatedRepoError):
            why = (
                f"is gated: ask for leave on {page}, then put a token of yours into HF_TOKEN where you fetch it; it is "
                "read there and kept nowhere"
            )
        elif isinstance(error, errors.RevisionNotFoundError):
            why = f"has no such revision; see {page}"
        elif isinstance(error, (errors.RepositoryNotFoundError, errors.EntryNotFoundError)):
            why = f"is not at {page}, or is private; correct it, or put a token of yours into HF_TOKEN"
        elif status == 429:
            why = "is asked for too often: the hub wants us to wait; try again later, or with HF_TOKEN"
        elif status in (401, 403):
            why = f"is refused ({status}): the token in HF_TOKEN has no leave for it; see {page}"
        else:
            why = f"is not given by the hub (HTTP {status}); try again later"
        problem = self.asked.problem(why)
        return (
            _BrokenOffError(problem.message, field=problem.field, value=problem.value)
            if status in _BUSY
            else problem
        )


def _wait(header: str | None, tried: int) -> float:
    """Seconds until the next try."""
    if header is not None and header.isascii() and header.isdecimal():
        return min(float(header), _LONGEST_WAIT)
    return 0.5 * float(2**tried)


def _as_listed(path: Path, listed: Any) -> bool:  # noqa: ANN401
    """Whether a file has the digest that the hub lists: SHA-256 of large ones, git's own of others."""
    with path.open("rb") as file:
        if listed.lfs is not None:
            return hashlib.file_digest(file, "sha256").hexdigest() == str(listed.lfs.sha256)
        if listed.blob_id is None:
            return True
        digest = hashlib.sha1(b"blob %d\0" % path.stat().st_size, usedforsecurity=False)
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest() == str(listed.blob_id)


def _bounded_bar(asked: Address, file: str, most: int) -> type[Any]:
    """A progress bar that shows itself when a download is slow, and ends one that is larger than announced."""
    from huggingface_hub.utils.tqdm import tqdm

    class Bounded(tqdm):
        total_bytes = 0

        def __init__(self, *args: object, **named: object) -> None:
            # On a terminal often, elsewhere, such as in a log, a line now and then.
            more = {
                "delay": _SHOWN_AFTER,
                "mininterval": 0.5 if sys.stderr.isatty() else 30,
                "leave": False,
                "desc": file[-40:],
                "disable": False,
            }
            super().__init__(*args, **{**named, **more})  # type: ignore[no-untyped-call]

        def update(self, n: float | None = 1) -> None:
            self.total_bytes += int(n or 0)
            if self.total_bytes > most:
                raise asked.problem(
                    f"sends more of {file} than the {most:,} bytes that it announced; try again without a proxy"
                )
            super().update(n)

    return Bounded


def _as_one(asked: Address, paths: Sequence[Path], parts: Path) -> tuple[Path, str]:
    """The rows of all files in one, and its format."""
    plain = _unpack(asked, paths)
    forms = [_jsonl(asked, path) if form_of(path.name) == "json" else form_of(path.name) for path in plain]
    if len(plain) == 1:
        return plain[0], forms[0]
    joined = parts / "joined.jsonl"
    size = 0
    with joined.open("wb") as target:
        for path, form in zip(plain, forms, strict=True):
            table = open_table(str(path), form, file_digest(str(path)))
            for index in range(len(table)):
                line = json.dumps(table.row(index), ensure_ascii=False, default=_plain, allow_nan=False)
                size += target.write(line.encode() + b"\n")
                _refuse_too_much(asked, size)
    return joined, "jsonl"


def _refuse_too_much(asked: Address, size: int) -> None:
    if size > MOST_BYTES:
        raise asked.problem(f"makes more than {MOST_BYTES >> 20:,} MiB; name a smaller part with path=")


def _plain(value: object) -> str | None:
    """What JSON has no form for; nothing of what is no text, such as pictures."""
    return None if isinstance(value, bytes) else str(value)


def _unpack(asked: Address, paths: Sequence[Path]) -> list[Path]:
    """The files, with those in place of packed ones that these unpack to."""
    plain, size = [], 0
    for path in paths:
        if path.suffix.lower() != ".gz":
            plain.append(path)
            continue
        plain.append(path.with_suffix(""))
        with plain[-1].open("wb") as target:
            for block in open_packed(str(path)):
                size += len(block)
                _refuse_too_much(asked, size)
                target.write(block)
    return plain


def _jsonl(asked: Address, path: Path) -> str:
    """Make a file of JSON, which may be one list, one with an object per line."""
    with path.open("rb") as file:
        listed = file.read(1000).lstrip()[:1] == b"["
    if not listed:
        return "jsonl"
    if path.stat().st_size > MOST_JSON_BYTES:
        raise asked.problem(
            f"is one JSON list of more than {MOST_JSON_BYTES >> 20} MiB; it needs one object per line"
        )
    from evalcube.stages.generate.answers.calls import unequal_members  # with readers of answers

    try:
        rows = json.loads(path.read_bytes(), object_pairs_hook=unequal_members)
    except (ValueError, RecursionError) as error:
        raise asked.problem(f"is no JSON: {error}") from None
    with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False, encoding="utf-8") as target:
        target.writelines(json.dumps(row) + "\n" for row in rows)
    Path(target.name).replace(path)
    return "jsonl"


def locate(params: DatasetParams) -> DatasetParams:
    """The params with a commit, a format and a digest, if their file is on the hub.

    What the sweep's own cube has asked comes first, then what was fetched before; the hub is asked for the rest.
    """
    if not is_hub(params.file):
        return params
    asked = Address.parse(params.file)
    params = params.model_copy(update={"file": str(asked)})
    point = kept_point(str(asked))
    named = point is not None and (not asked.is_pinned or point["file"] == str(asked))
    if point is not None and named and params.sha256 in ("", point["sha256"]):
        return params.model_copy(update=dict(point))
    record = shelf.find(str(asked)) or fetch(asked)
    if params.format not in ("auto", record.format):
        raise asked.problem(f"is {record.format} and not {params.format}; leave `format` out")
    if params.sha256 not in ("", record.sha256):
        raise asked.problem(
            f"has the SHA-256 {record.sha256}, and not the one that is given; correct `sha256`"
        )
    return params.model_copy(
        update={"file": record.address, "format": record.format, "sha256": record.sha256}
    )
