"""Telling a run from a folder of runs."""

from __future__ import annotations

import json
from pathlib import Path

from tracewh.ingest.discovery import CAPTURE_KINDS, Artifact, discover
from tracewh.ingest.errors import UnreadableFile


def run_directories(path: Path) -> list[Path]:
    """The runs at `path`: itself, or the directories below it that are runs of their own.

    A directory with a config and a capture below it is a run. Several of them below `path`, with every
    capture in one of them, are several runs, unless each config says that it is of one process of several
    (`process_count` above 1). Raises NothingToIngest where there is nothing at `path`.
    """
    if not path.is_dir():
        return [path]
    artifacts = discover(path)
    captures = [artifact.path for artifact in artifacts if artifact.kind in CAPTURE_KINDS]
    configs = [artifact for artifact in artifacts if artifact.kind == "config"]
    with_config = {config.path.parent for config in configs}
    owners = {
        next((folder for folder in capture.parents if folder in with_config), path) for capture in captures
    }
    if len(owners) < 2 or path in owners or any(_is_one_of_several(config) for config in configs):
        return [path]
    return sorted(owners)


def _is_one_of_several(config: Artifact) -> bool:
    """Whether a config is that of one process of a run of several."""
    try:
        content = json.loads(config.read())
    except (UnreadableFile, ValueError, RecursionError):
        return False
    count = content.get("process_count") if isinstance(content, dict) else None
    return isinstance(count, int) and count > 1
