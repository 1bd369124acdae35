"""A run's configuration, whatever object holds it, as JSON without secrets."""

from __future__ import annotations

import argparse
import dataclasses
import enum
import math
import os
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import tee
from typing import Any

import numpy as np

from tracewh.ingest.errors import RecordError
from tracewh.ingest.secret_names import names_a_secret, secret_params

_MAX_DEPTH = 50
_MAX_TEXT = 1000
# Methods by which configuration objects give their values: MaxText, ml_collections, pydantic, namedtuple.
_TO_MAPPING = ("get_keys", "to_dict", "model_dump", "_asdict")


def config_object(config: Any) -> dict[str, Any]:
    """The configuration as an object of JSON, secrets as null.

    Takes a mapping, a dataclass, an argparse.Namespace, or an object with `get_keys` (as MaxText's),
    `to_dict`, `model_dump` or `_asdict`. A value that JSON has no form for is there as its `repr`. Raises
    RecordError for what is no configuration.
    """
    fields = _fields(config)
    if fields is None:
        raise RecordError(
            f"config: a {type(config).__name__} is no configuration that tracewh.record can write. "
            "Pass a dict, a dataclass or an argparse.Namespace."
        )
    return without_secrets({str(key): _plain(value, 1) for key, value in fields.items()})


def without_secrets(content: dict[str, Any]) -> dict[str, Any]:
    """The object of JSON itself, with null in place of every value that ingest would not store."""
    leaves, named = tee(list(_leaves(content, "")))
    checks = secret_params((path, value if isinstance(value, str) else None) for path, value, _ in named)
    for (_, _, put), is_secret in zip(leaves, checks, strict=True):
        if is_secret:
            put(None)
    return content


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any, Callable[[Any], None]]]:
    """Path, value and setter of each scalar, the paths as in the warehouse."""
    if isinstance(value, dict):
        items = [(key, f"{path}.{key}" if path else key) for key in value]
    else:
        items = [(index, f"{path}[{index}]") for index in range(len(value))]
    for key, inner_path in items:
        inner = value[key]
        if isinstance(inner, dict | list):
            yield from _leaves(inner, inner_path)
        else:
            yield inner_path, inner, partial(value.__setitem__, key)


def _fields(value: Any) -> dict[Any, Any] | None:
    """Names and values of an object that has some by a way of its own; None for other objects."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, type):
        return None
    if dataclasses.is_dataclass(value):
        return {field.name: getattr(value, field.name, None) for field in dataclasses.fields(value)}
    if isinstance(value, argparse.Namespace):
        return vars(value)
    for name in _TO_MAPPING:
        # Asked of the class: the attributes of some configurations are their keys, and refuse others.
        if callable(getattr(type(value), name, None)):
            found = getattr(value, name)()
            if isinstance(found, Mapping):
                return dict(found)
            return {key: getattr(value, key) for key in found}
    return None


def _plain(value: Any, depth: int) -> Any:
    if isinstance(value, enum.Enum):
        value = value.value if isinstance(value.value, str | int | float) else value.name
    if isinstance(value, np.generic) and not isinstance(value, np.void):
        value = value.item()
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(value)
    if isinstance(value, os.PathLike):
        return os.fspath(value) if isinstance(os.fspath(value), str) else repr(value)
    if depth < _MAX_DEPTH:
        fields = _fields(value)
        if fields is not None:
            return {str(key): _plain(inner, depth + 1) for key, inner in fields.items()}
        if isinstance(value, list | tuple):
            return [_plain(inner, depth + 1) for inner in value]
        if isinstance(value, set | frozenset):
            return sorted((_plain(inner, depth + 1) for inner in value), key=str)
    return _described(value)


def _described(value: Any) -> str:
    """An object in words: types of numbers by name, arrays by shape, functions by place, others by repr."""
    try:
        text = _name(value) or repr(value)
    except Exception:  # whatever code of the user's does there
        text = ""
    if not text or names_a_secret(text):
        return f"<{type(value).__name__}>"
    return text if len(text) <= _MAX_TEXT else text[:_MAX_TEXT] + "..."


def _name(value: Any) -> str | None:
    if isinstance(value, np.dtype):
        return str(value.name)
    if isinstance(value, type) and issubclass(value, np.generic):
        return str(np.dtype(value).name)
    # jnp.bfloat16 and its like are no types of numpy, but have one.
    dtype, shape = getattr(value, "dtype", None), getattr(value, "shape", None)
    if dtype is not None:
        return str(dtype) if shape is None else f"{dtype}{list(shape)}"
    if callable(value) and hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    return None
