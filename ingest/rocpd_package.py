"""Packages of rocpd databases: the `index.yaml` that `rocpd package` writes, naming the databases.

It lies in a folder whose name ends in `.rpdb`, beside the databases or away from them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import yaml

from tracewh.ingest.errors import UnreadableFile

INDEX_NAME = "index.yaml"
FOLDER_SUFFIX = ".rpdb"

_KEYS = ("rocprofiler-sdk", "rocpd")
# A name takes some 100 bytes, and parsing 1 MiB takes seconds.
_MAX_INDEX_BYTES = 1 << 20
_MAX_FILES = 10_000
_SQLITE_MAGIC = b"SQLite format 3\x00"
_WILDCARDS = frozenset("*?[")


def is_package(folder: Path) -> bool:
    """Whether a directory is a package: what it holds is then told by its index, not by a search."""
    return folder.name.endswith(FOLDER_SUFFIX) and (folder / INDEX_NAME).is_file()


def package_files(index: Path) -> tuple[list[Path], list[str]]:
    """Return the databases that an index names, each once, and what it names in vain, with the reason.

    A relative name is looked for in the folder of the index, then in the `path` that the index states. A
    wildcard in the last part of a name stands for the databases that fit. Raises UnreadableFile.
    """
    entry = _entry(index)
    folders = [index.parent]
    if isinstance(entry.get("path"), str):
        folders.append(index.parent / entry["path"])
    listed = entry.get("files") or []
    names = [listed] if isinstance(listed, str) else listed
    if not isinstance(names, list):
        raise UnreadableFile(f"{index}: `files` is no list of databases. Correct it, or give the databases.")
    found: dict[Path, Path] = {}
    missing = [f"{len(names) - _MAX_FILES} more names than can be read"] if len(names) > _MAX_FILES else []
    for name in names[:_MAX_FILES]:
        if not isinstance(name, str):
            missing.append(f"{_shown(name)}: no name of a file")
            continue
        databases, reason = _databases(name, folders)
        for database in databases:
            found.setdefault(database.resolve(), database)
        if not databases:
            missing.append(f"{_shown(name)}: {reason}")
    return list(found.values()), missing


class _Loader(yaml.SafeLoader):
    """Refuses references, with which a few lines can stand for billions of values, or hold themselves."""

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("it has references (*name), which an index has no use for")
        return super().compose_node(parent, index)


def _entry(index: Path) -> dict[str, Any]:
    try:
        with index.open("rb") as file:
            data = file.read(_MAX_INDEX_BYTES + 1)
    except OSError as error:
        raise UnreadableFile(f"{index} cannot be read ({error.strerror}); check the path.") from error
    if len(data) > _MAX_INDEX_BYTES:
        raise UnreadableFile(f"{index} is larger than an index can be; give the databases themselves.")
    try:
        content = yaml.load(data, _Loader)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        why = " ".join(str(error).split())[:500]
        raise UnreadableFile(
            f"{index} is not valid YAML: {why}. Correct it, or give the databases."
        ) from error
    for key in _KEYS:
        content = content.get(key) if isinstance(content, dict) else None
    if not isinstance(content, dict):
        raise UnreadableFile(
            f"{index} is no index of a rocpd package: it has no {': '.join(_KEYS)}. "
            "Give the databases themselves."
        )
    return content


def _databases(name: str, folders: list[Path]) -> tuple[list[Path], str]:
    """The databases of a name, in the first folder that has any; else none, and why."""
    reason = "not found"
    for folder in folders:
        usable = []
        for path in islice(_candidates(folder / name), _MAX_FILES):
            problem = _problem(path)
            if problem is None:
                usable.append(path)
            else:
                reason = problem
        if usable:
            return usable, ""
    return [], reason


def _candidates(path: Path) -> Iterator[Path]:
    """The path if it is there, else what fits its last part."""
    if _exists(path):
        yield path
    elif _WILDCARDS & set(path.name) and not _WILDCARDS & set(str(path.parent)):
        try:
            yield from sorted(path.parent.glob(path.name))
        except (OSError, ValueError):
            return


def _shown(name: object) -> str:
    """The start of a name. Half of a surrogate pair, which cannot be stored, is written as an escape."""
    return str(name)[:200].encode("utf-8", "backslashreplace").decode()


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:
        return False


def _problem(path: Path) -> str | None:
    """Why a path is no database; None where it is one."""
    try:
        if not path.is_file():
            return "no regular file"
        with path.open("rb") as file:
            is_database = file.read(len(_SQLITE_MAGIC)) == _SQLITE_MAGIC
    except OSError as error:
        return f"cannot be read ({error.strerror})"
    return None if is_database else "not a SQLite database"
