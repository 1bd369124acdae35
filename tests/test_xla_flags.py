"""XLA_FLAGS split as XLA splits them."""

from __future__ import annotations

from pathlib import Path

import pytest

import tracewh
from tracewh.ingest.xla_flags import held_flags, split_flags

from .ingest_runs import query, small_capture, write_run


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        (" \t\n", {}),
        ("--xla_a=1", {"xla_a": "1"}),
        (" --xla_a=1 \t--xla_b\n", {"xla_a": "1", "xla_b": "true"}),
        ("--xla_a= --xla_b=", {"xla_a": "", "xla_b": ""}),
        ('--xla_a="x y" --xla_b=\'p "q" r\'', {"xla_a": "x y", "xla_b": 'p "q" r'}),
        (r'--xla_a="x \"y\" \\" --xla_b=2', {"xla_a": 'x "y" \\', "xla_b": "2"}),
        (r"--xla_a='x\' --xla_b=2", {"xla_a": "x\\", "xla_b": "2"}),
        ('--xla_a="x y', {"xla_a": "x y"}),
        ('--xla_a=x"y z', {"xla_a": 'x"y'}),
        ("--xla_a=--b=c", {"xla_a": "--b=c"}),
        ("--xla_re=.*step.*,+x", {"xla_re": ".*step.*,+x"}),
        ("--xla_a=1 --xla_b=2 --xla_a=3", {"xla_a": "1 3", "xla_b": "2"}),
        ("--xla_a=1 --xla_a=1", {"xla_a": "1"}),
        ("--xla_a=1 --xla_a=2 --xla_a=1", {"xla_a": "1 2 1"}),
        # What begins with no dash is the name of a file that holds flags, or ends them.
        ("flags.txt", {}),
        ("--xla_a=1 oops --xla_b=2", {"xla_a": "1"}),
    ],
)
def test_split(text: str, expected: dict[str, str]) -> None:
    assert split_flags(text) == expected


def test_long_texts_take_no_time_of_their_square() -> None:
    flags = {f"xla_f{number}": "x" * 50 for number in range(20_000)}
    assert split_flags(" ".join(f"--{name}={value}" for name, value in flags.items())) == flags


def test_parameters_that_hold_flags() -> None:
    params = [
        ("xla_flags", "--xla_a=1"),
        ("record.environment.xla_flags", "--xla_b"),
        ("env.XLA_FLAGS", "--xla_c=2"),
        ("xla_flags[1]", "--xla_d=3"),
        ("libtpu_init_args", "--xla_e=4"),
        ("my_xla_flags_note", "--xla_f=5"),
        ("flags", "--xla_g=6"),
        ("model.xla_flags", None),
    ]
    assert list(held_flags(params)) == [
        ("xla_flags", "xla_a", "1"),
        ("record.environment.xla_flags", "xla_b", "true"),
        ("env.XLA_FLAGS", "xla_c", "2"),
        ("xla_flags[1]", "xla_d", "3"),
        ("libtpu_init_args", "xla_e", "4"),
    ]


def test_ingest_keeps_flags(tmp_path: Path) -> None:
    warehouse = tmp_path / "w.duckdb"
    config = {"xla_flags": "--xla_dump_to=/tmp/x --xla_gpu_enable_command_buffer=", "layers": 2}
    run = write_run(tmp_path / "run", {"a.xplane.pb": small_capture()}, {"config.json": config})
    tracewh.ingest_run(run, warehouse=warehouse)
    assert query(warehouse, "SELECT param, flag, value FROM run_flags ORDER BY flag") == [
        ("xla_flags", "xla_dump_to", "/tmp/x"),
        ("xla_flags", "xla_gpu_enable_command_buffer", ""),
    ]
    params = "SELECT value FROM run_params WHERE param = 'xla_flags'"
    assert query(warehouse, params) == [(config["xla_flags"],)]
