"""All cases of a test as one test."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest


def with_cases(
    names: str | tuple[str, ...], cases: Iterable[Any]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Call a test with each case, and fail it with all that fail: like `parametrize`, for what takes no time.

    To begin and to report a test takes a millisecond, which is more than most cases. All share a test's fixtures.
    """
    keys = (names,) if isinstance(names, str) else names
    rows = [(case,) if isinstance(names, str) else case for case in cases]

    def of(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def call_with_each(**fixtures: object) -> None:
            failures = []
            for row in rows:
                case = dict(zip(keys, row, strict=True))
                try:
                    test(**case, **fixtures)
                except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - raised below
                    error.add_note(f"in case of {case!r:.1000}")
                    failures.append(error)
            if len(failures) == 1:
                raise failures[0]
            if failures:
                raise BaseExceptionGroup(f"{len(failures)} of {len(rows)} cases", failures)

        own = inspect.signature(test)
        call_with_each.__signature__ = own.replace(  # type: ignore[attr-defined]
            parameters=[parameter for parameter in own.parameters.values() if parameter.name not in keys]
        )
        return call_with_each

    return of
