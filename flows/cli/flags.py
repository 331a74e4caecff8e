"""Errors in the words of the command line: where the library names a parameter, a user of the command wrote a flag."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from typer import BadParameter
from typer.core import TyperCommand

from evalcube import EvalcubeError

_PARAMETER = re.compile(r"`(\w+)`")


class Command(TyperCommand):
    """A command whose errors name its flags.

    Parameters of a command have the names that the library gives them, whatever their flags are called: so the
    command itself says that `version` is ``--score`` here.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - as for `invoke`
        """Read the arguments, as Typer does, and refuse options that would take the place of their own first value.

        A value that is refused is named.
        """
        values: dict[str, Any] = {}
        if not ctx.resilient_parsing:
            values, _, given = self.make_parser(ctx).parse_args(list(args))
            for parameter, times in Counter(given).items():
                if times > 1 and _takes_one_value(parameter):
                    raise BadParameter(
                        f"it is given {times} times, and only the last would count. "
                        "Give it once; what takes several values takes them with commas",
                        param_hint=max(parameter.opts, key=len),
                    )
        try:
            found: list[str] = super().parse_args(ctx, args)
        except BadParameter as error:
            value = values.get(getattr(error.param, "name", None) or "")
            if isinstance(value, str) and value not in error.message:
                error.message = f"{error.message}, got {value!r}"
            raise
        return found

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401 - a context of the click inside Typer
        """Run the command, as Typer does."""
        try:
            return super().invoke(ctx)
        except EvalcubeError as error:
            flags = self._flags()
            error.message, error.remedy = in_flags(error.message, flags), in_flags(error.remedy, flags)
            raise

    def _flags(self) -> dict[str, str]:
        """Parameter -> its flag, or the word in capitals that stands for an argument in ``--help``."""
        return {
            str(parameter.name): max(parameter.opts, key=len)
            if parameter.param_type_name == "option"
            else str(parameter.name).upper()
            for parameter in self.params
        }


def _takes_one_value(parameter: Any) -> bool:  # noqa: ANN401 - a parameter of the click inside Typer
    return parameter.param_type_name == "option" and not (
        parameter.multiple or parameter.is_flag or parameter.count
    )


def in_flags(text: str, flags: dict[str, str]) -> str:
    """The text with the flags of the parameters that it names in backticks; other words in backticks stay.

    Examples
    --------
    >>> in_flags("`version`: there is no `v3`", {"version": "--score"})
    '--score: there is no `v3`'
    """
    return _PARAMETER.sub(lambda match: flags.get(match[1], match[0]), text)
