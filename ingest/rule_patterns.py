"""Regular expressions of rules: only what POSIX, RE2 and Java agree on, so that all engines answer alike."""

from __future__ import annotations

import re

from tracewh.ingest.storable_text import storable

_MAX_LENGTH = 1000
_BRACKETS = re.compile(r"\[\^?([^\]]*)\]")
# Java reads more into brackets: nested ones, intersections; Python warns of them.
_DOUBTFUL_IN_BRACKETS = re.compile(r"\[|&&|--|~~|\|\|")
_REPETITION = re.compile(r"\{[0-9]{1,2}(,[0-9]{0,2})?\}")


def pattern_fault(pattern: str) -> str | None:
    """Why engines would not agree on the pattern, and what to write instead; None where they do."""
    if not pattern:
        return "it is empty"
    if len(pattern) > _MAX_LENGTH:
        return f"it is longer than {_MAX_LENGTH:,} characters"
    if storable(pattern) != pattern:
        return "it is no UTF-8 text"
    if "\\" in pattern:
        return "no backslash: write [0-9], [.], [(]"
    if any(character in pattern for character in "\n\r\0"):
        return "no line break in it"
    for found in _BRACKETS.finditer(pattern):
        if not found[1]:
            return "no ] or ^ alone in brackets"
        if _DOUBTFUL_IN_BRACKETS.search(found[1]):
            return "no [, &&, --, ~~ or || in brackets"
    plain = _BRACKETS.sub("x", pattern)
    if "(?" in plain:
        return "no (?...) groups or lookaround"
    if re.search(r"[*+?}][?+]", plain):
        return "no lazy or possessive repetition"
    if re.search(r"[)]\{", plain):
        return "no {n} behind a group: write the group out"
    if re.search(r"[{}]", _REPETITION.sub("", plain)):
        return "braces are for repetitions below 100, as in [0-9]{1,3}"
    try:
        re.compile(pattern)
    except re.error as error:
        return f"{error.msg} at character {(error.pos or 0) + 1}"
    return None


def anchor_fault(pattern: str) -> str | None:
    """Why the pattern does not match whole texts; None where it does."""
    if not (pattern.startswith("^") and pattern.endswith("$")):
        return "the pattern must match the whole string: ^...$, for Snowflake anchors it anyway"
    depth = 0
    for character in _BRACKETS.sub("x", pattern):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "|" and depth == 0:
            return "^ and $ bind to one alternative each: put the alternatives in parentheses"
    return None


def anchored(pattern: str) -> str:
    """The pattern so that it matches whole texts: `wi_[01]` and `^wi_[01]$` are one."""
    if anchor_fault(pattern) is None:
        return pattern
    inner = pattern.removeprefix("^")
    inner = inner.removesuffix("$")
    return f"^({inner})$" if "|" in inner else f"^{inner}$"
