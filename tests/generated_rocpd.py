"""Synthetic rocpd databases by name, each built once, for the tests of their generator."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "fixtures"))

import rocpd_counter_passes as counters
import rocpd_damage as damage
import rocpd_device_records as device
import rocpd_host_records as host
import rocpd_layouts as layouts
import rocprof_twins as twins
from rocpd_database import write_file
from rocpd_many import write_many
from rocpd_run import BRANCHES, GUID, SCHEMA_VERSIONS, Run
from rocpd_systems import MD5, write_systems
from rocpd_variants import write_complete

__all__ = [
    "BRANCHES",
    "FIXTURES",
    "GUID",
    "MD5",
    "SCHEMA_VERSIONS",
    "SOUND",
    "SUFFIX",
    "Run",
    "Variants",
    "ask",
    "counters",
    "damage",
    "device",
    "dump",
    "host",
    "layouts",
    "twins",
    "write_complete",
    "write_file",
]

FIXTURES = Path(__file__).parents[1] / "fixtures"
SUFFIX = "_" + GUID.replace("-", "_")
Build = Callable[[Path], Path]


def of_version(version: str) -> Build:
    return lambda path: write_complete(path, version, branches=())


def training(**run: Any) -> Build:
    return lambda path: write_file(path, steps=1, **run)


def counter_pass(number: int, **options: Any) -> Build:
    return lambda path: counters.write_passes(path.parent / path.stem, **options)[number]


#: Databases whose every reference leads somewhere.
SOUND: dict[str, Build] = {
    "default": lambda path: write_file(path),
    "plain": training(hsa=False),
    "first release": training(schema_version="3"),
    "claims 4": training(claimed_version="4"),
    "unlinked": training(collectives_linked=False),
    "complete": write_complete,
    **{version: of_version(version) for version in SCHEMA_VERSIONS},
    "merged": lambda path: layouts.write_merged(path, steps=1),
    "rank 3": lambda path: layouts.write_ranks(path.parent / "ranks", 4, steps=1)[3],
    "packaged": lambda path: layouts.write_package(path, 1, steps=1) / "rank_0_results.db",
    "rocprof-sys": write_systems,
    "rocprof-sys, early": lambda path: write_systems(path, placeholder=True),
    "pass 1": counter_pass(0),
    "pass 2": counter_pass(1),
    "pass 3": counter_pass(2),
    "short pass": counter_pass(2, lost=1),
    "with dimensions": counter_pass(0, dimensions=True, schema_version="3.0.3"),
    "many": lambda path: write_many(path, dispatches=1_000, gpus=3),
    "schema 4": layouts.write_draft_4,
}


def ask(path: Path, sql: str) -> list[tuple[Any, ...]]:
    connection = sqlite3.connect(path)
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


def dump(path: Path) -> list[str]:
    connection = sqlite3.connect(path)
    try:
        return list(connection.iterdump())
    finally:
        connection.close()


class Variants:
    """Builds each sound database when it is first asked for."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def __call__(self, name: str) -> Path:
        folder = self._directory / name.replace(" ", "_")
        if not folder.exists():
            folder.mkdir()
            (folder / "path").write_text(str(SOUND[name](folder / "results.db")))
        return Path((folder / "path").read_text())
