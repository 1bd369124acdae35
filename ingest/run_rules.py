"""The rules of one run: the `tracewh.toml` in its directory."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from typing import Any

from tracewh.ingest.errors import UnreadableFile
from tracewh.ingest.rule_patterns import anchored, pattern_fault
from tracewh.ingest.storable_text import storable

DEFAULT_PRIORITY = 100
_PHASE = re.compile(r"[a-z][a-z0-9_]{0,59}")
# Views give them themselves.
_TAKEN_PHASES = ("communication", "unattributed")
_TAKEN_GROUP = "unattributed"
_MAX_TEXT = 1000
_MAX_RULES = 1000
_MAX_PRIORITY = 1_000_000


class BadRule(ValueError):
    """A rule is wrong; its text says what, and what to write instead."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: of phase_rules, scope_rules or component_rules, by its kind phase, structure or component.

    `pattern` matches a whole segment or, of a component, a whole scope; so does `inside`.
    """

    kind: str
    pattern: str
    phase: str | None = None
    group: str | None = None
    inside: str | None = None
    is_direct: bool = False
    is_structural: bool = True
    priority: int = DEFAULT_PRIORITY
    reason: str = "a user's rule"


# What each table of the file is made of: key -> whether it must be there.
_KEYS: dict[str, dict[str, bool]] = {
    "component": {"scope": True, "group": True, "phase": False, "inside": False, "direct": False},
    "phase": {"segment": True, "phase": True},
    "structure": {"segment": True, "structural": False},
}
_COMMON_KEYS = {"priority": False, "reason": False}


def read_rules(data: bytes, place: str) -> list[Rule]:
    """Read the rules in a TOML file, in its order. Raises UnreadableFile, naming the rule and the key."""
    try:
        # Editors of Windows begin a file with a byte order mark.
        content = tomllib.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        # Beside its own errors, tomllib lets those of int() through.
        reason = " ".join(str(error).split())
        raise UnreadableFile(f"{place}: not valid TOML: {reason}. Correct the file or remove it.") from error
    rules = []
    for kind, entries in content.items():
        if kind not in _KEYS or not isinstance(entries, list):
            known = ", ".join(f"[[{name}]]" for name in _KEYS)
            raise UnreadableFile(f"{place}: {kind[:80]} is no list of rules. Rules are {known}.")
        for number, entry in enumerate(entries, 1):
            try:
                rules.append(_rule(kind, entry))
            except BadRule as error:
                raise UnreadableFile(f"{place}: [[{kind}]] number {number}: {error}. Correct it.") from error
    if len(rules) > _MAX_RULES:
        raise UnreadableFile(f"{place}: more than {_MAX_RULES:,} rules. Join patterns with |.")
    return rules


def checked_rule(rule: Rule) -> Rule:
    """The rule with anchored patterns. Raises BadRule where a part of it is wrong."""
    for name, pattern in (("pattern", rule.pattern), ("inside", rule.inside)):
        fault = None if pattern is None else pattern_fault(pattern)
        if fault is not None:
            raise BadRule(f"{name} {pattern!r}: {fault}")
    if rule.phase is not None and not _PHASE.fullmatch(rule.phase):
        raise BadRule(f"phase {rule.phase[:80]!r}: write a lower-case word, such as forward or update")
    if rule.phase in _TAKEN_PHASES:
        raise BadRule(f"phase {rule.phase!r} is what views say without a rule; choose another")
    if rule.group is not None and not (rule.group.strip() and rule.group.isprintable()):
        raise BadRule("group is empty or has characters that cannot be shown; write a name")
    if rule.group == _TAKEN_GROUP:
        raise BadRule(f"group {rule.group!r} is what views say without a rule; choose another")
    if storable(rule.reason) != rule.reason:
        raise BadRule("reason is no UTF-8 text; write it in UTF-8")
    for name, text in (("group", rule.group), ("reason", rule.reason)):
        if text is not None and len(text) > _MAX_TEXT:
            raise BadRule(f"{name} is longer than {_MAX_TEXT:,} characters; shorten it")
    if not 0 <= rule.priority <= _MAX_PRIORITY:
        # A number of thousands of digits, which Python refuses to write out, shows nothing.
        shown = f" {rule.priority}" if abs(rule.priority) < 10**18 else ""
        raise BadRule(f"priority{shown} is not between 0 and {_MAX_PRIORITY:,}")
    return Rule(
        rule.kind,
        anchored(rule.pattern),
        rule.phase,
        rule.group,
        None if rule.inside is None else anchored(rule.inside),
        rule.is_direct,
        rule.is_structural,
        rule.priority,
        rule.reason,
    )


def _rule(kind: str, entry: Any) -> Rule:
    if not isinstance(entry, dict):
        raise BadRule("not a table of keys and values")
    keys = _KEYS[kind] | _COMMON_KEYS
    for key in entry:
        if key not in keys:
            raise BadRule(f"key {key[:80]!r} is not known; keys are {', '.join(keys)}")
    missing = [key for key, is_needed in keys.items() if is_needed and key not in entry]
    if missing:
        raise BadRule(f"key {missing[0]!r} is missing")
    return checked_rule(
        Rule(
            kind,
            _value(entry, "scope" if kind == "component" else "segment", str, ""),
            _value(entry, "phase", str, None),
            _value(entry, "group", str, None),
            _value(entry, "inside", str, None),
            _value(entry, "direct", bool, False),
            _value(entry, "structural", bool, True),
            _value(entry, "priority", int, DEFAULT_PRIORITY),
            _value(entry, "reason", str, "a rule of the run"),
        )
    )


def _value(entry: dict[str, Any], key: str, kind: type, default: Any) -> Any:
    value = entry.get(key, default)
    if value is default:
        return value
    # True is an int to Python, and no priority.
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        wanted = {str: "a text in quotes", bool: "true or false", int: "a whole number"}[kind]
        raise BadRule(f"key {key!r} must be {wanted}")
    return value
