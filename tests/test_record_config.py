"""What a configuration becomes as JSON."""

from __future__ import annotations

import argparse
import enum
import json
from collections import namedtuple
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tracewh
from tracewh.ingest.errors import RecordError
from tracewh.record_config import config_object, without_secrets

from .test_ingest_metadata import HARMLESS, SECRETS


class Kind(enum.Enum):
    MIXTRAL = "mixtral"
    OTHER = object()


@dataclass
class Rope:
    theta: float = 1e6


@dataclass
class Model:
    layers: int = 56
    rope: Rope = field(default_factory=Rope)
    kind: Kind = Kind.MIXTRAL


class HyperParameters:
    """As in MaxText: attributes are keys, and others are refused."""

    def __init__(self, keys: dict[str, Any]) -> None:
        self.__dict__["_keys"] = keys

    def __getattr__(self, name: str) -> Any:
        if name not in self._keys:
            raise ValueError(f"Requested key {name}, not in config")
        return self._keys[name]

    def get_keys(self) -> dict[str, Any]:
        return self._keys


class WithToDict:
    def to_dict(self) -> dict[str, int]:
        return {"layers": 56}


class Pydantic:
    def model_dump(self) -> dict[str, int]:
        return {"layers": 56}


@pytest.mark.parametrize(
    "config",
    [
        {"layers": 56},
        argparse.Namespace(layers=56),
        HyperParameters({"layers": 56}),
        WithToDict(),
        Pydantic(),
        namedtuple("Config", "layers")(56),
    ],
    ids=lambda config: type(config).__name__,
)
def test_objects_that_hold_a_configuration(config: Any) -> None:
    assert config_object(config) == {"layers": 56}


def test_dataclasses() -> None:
    assert config_object(Model()) == {"layers": 56, "rope": {"theta": 1e6}, "kind": "mixtral"}


@pytest.mark.parametrize("config", [["layers", 56], "layers=56", 56, Model], ids=str)
def test_what_is_no_configuration_is_refused(config: Any, tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="no configuration"):
        tracewh.record(tmp_path / "run", config=config)
    assert not (tmp_path / "run").exists()


class Odd:
    def __repr__(self) -> str:
        return "Odd(3)"


class Unprintable:
    def __repr__(self) -> str:
        raise RuntimeError


class Settings:
    def __repr__(self) -> str:
        return "Settings(url='x', api_key='s3cret')"


class Long:
    def __repr__(self) -> str:
        return "x" * 10_000


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (True, True),
        (3, 3),
        (2**70, 2**70),
        (0.5, 0.5),
        (float("inf"), "inf"),
        (float("nan"), "nan"),
        ("text", "text"),
        ("\udcff", "\udcff"),
        (np.float32(0.5), 0.5),
        (np.int64(3), 3),
        (np.bool_(True), True),
        (jnp.bfloat16, "bfloat16"),
        (jnp.float32, "float32"),
        (np.float32, "float32"),
        (jnp.dtype("bfloat16"), "bfloat16"),
        (np.dtype("int8"), "int8"),
        (np.zeros((2, 3)), "float64[2, 3]"),
        ((1, (2, "a")), [1, [2, "a"]]),
        ({"b", "a"}, ["a", "b"]),
        ({1: {None: 2}}, {"1": {"None": 2}}),
        (Path("a/b"), "a/b"),
        (Kind.MIXTRAL, "mixtral"),
        (Kind.OTHER, "OTHER"),
        (jax.nn.gelu, "jax._src.nn.functions.gelu"),
        (b"\xff", "b'\\xff'"),
        (Odd(), "Odd(3)"),
        (Unprintable(), "<Unprintable>"),
        (Settings(), "<Settings>"),
        (Long(), "x" * 1000 + "..."),
    ],
    ids=lambda value: type(value).__name__,
)
def test_values(value: Any, expected: Any) -> None:
    found = config_object({"value": value})
    assert found == {"value": expected}
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_an_array_of_jax() -> None:
    assert config_object({"value": jnp.zeros((2, 3), jnp.bfloat16)}) == {"value": "bfloat16[2, 3]"}


def test_a_configuration_that_holds_itself() -> None:
    config: dict[str, Any] = {"layers": 56}
    config["again"] = config
    assert config_object(config)["layers"] == 56


@pytest.mark.parametrize("name", SECRETS)
def test_secrets_are_dropped(name: str) -> None:
    """The same that ingest does not store, see test_ingest_metadata."""
    found = config_object({name: SECRETS[name]} | HARMLESS)
    assert "s3cret" not in json.dumps(found)
    assert HARMLESS.items() <= found.items()


def test_arguments_without_secrets() -> None:
    content = {"argv": ["train.py", "--hf_token", "s3cret", "--steps", "3", "--api-key=s3cret"]}
    assert without_secrets(content) == {"argv": ["train.py", "--hf_token", None, "--steps", "3", None]}
