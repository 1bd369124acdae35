"""Reads the configuration of a custom call: JSON, or the MLIR dictionary of an XLA FFI call."""

from __future__ import annotations

import json
import re
from typing import Any

from tracewh.ingest.hlo_cost_value import UnknownCost

_INTEGER = re.compile(r"-?[0-9]{1,19}")
_FLOAT = re.compile(r"-?[0-9]+\.[0-9]*(?:[eE][-+]?[0-9]+)?")
_TOKEN = re.compile(r'\s*("(?:[^"\\]|\\.)*"|->|[^\s"{}\[\]<>(),=:]+|[{}\[\]<>(),=:])', re.DOTALL)
_OPENING, _CLOSING = "{[<(", "}]>)"
_DEEPEST = 50


def read_config(data: bytes) -> dict[str, Any]:
    """The configuration as a dictionary, empty where there is none. Raises UnknownCost.

    The attributes of an FFI call come without the `custom_call_backend_config` that newer compilers wrap
    them in. An MLIR attribute that is no number, truth value, string, list or dictionary becomes None.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise UnknownCost("its configuration is not text") from error
    if not text.strip():
        return {}
    try:
        config = json.loads(text)
    except RecursionError as error:
        raise UnknownCost("its configuration nests too deeply") from error
    except ValueError:
        return _MlirReader(text).dictionary_alone()
    if not isinstance(config, dict):
        raise UnknownCost("its configuration is no JSON object")
    wrapped = config.get("custom_call_backend_config")
    if isinstance(wrapped, dict):
        inner = wrapped.get("attributes") or wrapped.get("opaque")
        if isinstance(inner, str):
            return _MlirReader(inner).dictionary_alone()
    return config


def integer(config: dict[str, Any], name: str) -> int | None:
    """The whole number under `name`; protobuf's JSON has 64-bit ones as strings. None where there is none."""
    value = config.get(name)
    if isinstance(value, str) and _INTEGER.fullmatch(value):
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def integers(config: dict[str, Any], name: str) -> tuple[int, ...]:
    """The list of whole numbers under `name`, empty where it is absent. Raises UnknownCost."""
    values = config.get(name, [])
    read = [integer({name: value}, name) for value in values] if isinstance(values, list) else [None]
    if None in read:
        raise UnknownCost(f"its {name} are no whole numbers")
    return tuple(value for value in read if value is not None)


def section(config: dict[str, Any], name: str) -> dict[str, Any]:
    """The dictionary under `name`, empty where there is none."""
    value = config.get(name)
    return value if isinstance(value, dict) else {}


class _MlirReader:
    """Reads `{name = 16 : i64, is_training = true, sizes = array<i64: 1, 2>, inner = {...}}`."""

    def __init__(self, text: str) -> None:
        self._tokens: list[str] = []
        position = 0
        text = text.rstrip()
        while position < len(text):
            found = _TOKEN.match(text, position)
            if found is None:
                raise UnknownCost("its configuration is neither JSON nor an MLIR dictionary")
            self._tokens.append(found[1])
            position = found.end()
        self._next = 0

    def dictionary_alone(self) -> dict[str, Any]:
        if self._peek() != "{":
            raise UnknownCost("its configuration is neither JSON nor an MLIR dictionary")
        value = self._dictionary(0)
        if self._next != len(self._tokens):
            raise UnknownCost("its configuration goes on after the MLIR dictionary")
        return value

    def _peek(self) -> str:
        return self._tokens[self._next] if self._next < len(self._tokens) else ""

    def _take(self) -> str:
        token = self._peek()
        if not token:
            raise UnknownCost("its configuration ends inside the MLIR dictionary")
        self._next += 1
        return token

    def _dictionary(self, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        self._take()
        while self._peek() != "}":
            name = self._take().strip('"')
            if self._peek() == "=":
                self._take()
                found[name] = self._value(depth + 1)
            else:
                found[name] = True
            self._separator("}")
        self._take()
        return found

    def _list(self, closing: str, depth: int) -> list[Any]:
        found = []
        while self._peek() != closing:
            found.append(self._value(depth + 1))
            self._separator(closing)
        self._take()
        return found

    def _separator(self, closing: str) -> None:
        if self._peek() == ",":
            self._take()
        elif self._peek() != closing:
            raise UnknownCost("its configuration is no well-formed MLIR dictionary")

    def _value(self, depth: int) -> Any:
        if depth > _DEEPEST:
            raise UnknownCost("its configuration nests too deeply")
        token = self._peek()
        value: Any = None
        if token == "{":
            value = self._dictionary(depth)
        elif token == "[":
            self._take()
            value = self._list("]", depth)
        elif token == "array":
            value = self._array(depth)
        else:
            self._take()
            value = _scalar(token)
        self._skip_type()
        return value

    def _array(self, depth: int) -> list[Any]:
        self._take()
        if self._take() != "<":
            raise UnknownCost("its configuration is no well-formed MLIR dictionary")
        self._take()  # the element type
        if self._peek() == ":":
            self._take()
        return self._list(">", depth)

    def _skip_type(self) -> None:
        """Skip to the next value: `: i64`, or the rest of a value such as `dense<0> : tensor<2xi64>`."""
        depth = 0
        while depth or self._peek() not in (",", "", *_CLOSING):
            token = self._take()
            depth += (token in _OPENING) - (token in _CLOSING)


def _scalar(token: str) -> Any:
    if token in ("true", "false"):
        return token == "true"
    if token.startswith('"'):
        return token[1:-1]
    if _INTEGER.fullmatch(token):
        return int(token)
    return float(token) if _FLOAT.fullmatch(token) else None
