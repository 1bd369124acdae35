"""Splits the text of XLA_FLAGS, or of another list of flags for the compiler, as XLA itself does."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

# Parameters that hold such texts, by the last part of their name.
_HOLDERS = frozenset({"xla_flags", "compile_xla_flags", "libtpu_init_args"})
_NAME = re.compile(r"(?:.*\.)?([^.\[]*)(?:\[[0-9]+\])*", re.DOTALL)
_FLAG = re.compile(
    r"""--?(?P<name>[-\w]*)(?:
        =(?:"(?P<double>(?:[^"\\]|\\.)*)"?|'(?P<single>[^']*)'?|(?P<plain>[^ \t\r\n]*))
        |(?P<rest>[^ \t\r\n]*)
    )""",
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_BLANKS = re.compile(r"[ \t\r\n]*")


def held_flags(params: Iterable[tuple[str, str | None]]) -> Iterator[tuple[str, str, str]]:
    """Parameter, flag and value of each flag in the parameters that hold flags."""
    for param, text in params:
        found = _NAME.fullmatch(param)
        if text and found is not None and found[1].lower() in _HOLDERS:
            for flag, value in split_flags(text).items():
                yield param, flag, value


def split_flags(text: str) -> dict[str, str]:
    """Values by flag, without the dashes before it; `true` for a flag without one.

    Values may be in quotes. A flag that comes again has its values in their order, with blanks between: of
    some flags the last counts, of others all. What begins with no dash ends the flags, as in XLA: it is the
    name of a file, or a mistake.
    """
    found: dict[str, list[str]] = {}
    blanks = _BLANKS.match(text)
    while blanks is not None and (flag := _FLAG.match(text, blanks.end())) is not None:
        name, value = flag["name"] + (flag["rest"] or ""), _value(flag)
        values = found.setdefault(name, [])
        if [value] != values[-1:]:
            values.append(value)
        blanks = _BLANKS.match(text, flag.end())
    return {name: " ".join(values) for name, values in found.items()}


def _value(flag: re.Match[str]) -> str:
    if flag["double"] is not None:
        return re.sub(r"\\(.)", r"\1", flag["double"], flags=re.DOTALL)
    given = flag["single"] if flag["single"] is not None else flag["plain"]
    return "true" if given is None else given
