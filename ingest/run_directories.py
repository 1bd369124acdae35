"""Telling a run from a folder of runs."""

from __future__ import annotations

from pathlib import Path

from tracewh.ingest.discovery import CAPTURE_KINDS, Artifact, discover
from tracewh.ingest.errors import UnreadableFile
from tracewh.ingest.run_metadata import parsed_object


def run_directories(path: Path) -> list[Path]:
    """The runs at `path`: itself, or the directories below it that are runs of their own.

    A directory with a config, or with what tracewh.record noted, and a capture below it is a run; where that
    says that it is of one process of several (`process_count` above 1), the run is the directory that holds
    the processes. Where a capture
    lies outside of these directories, all of `path` is one run. Raises NothingToIngest where there is
    nothing at `path`.
    """
    if not path.is_dir():
        return [path]
    artifacts = discover(path)
    # Both may be there, and only one of them tell of the processes: tracewh.record's word comes first.
    configs: dict[Path, Artifact] = {}
    for kind in ("record", "config"):
        for artifact in artifacts:
            if artifact.kind == kind:
                configs.setdefault(artifact.path.parent, artifact)
    runs = set()
    for artifact in artifacts:
        if artifact.kind in CAPTURE_KINDS:
            owner = next((folder for folder in artifact.path.parents if folder in configs), path)
            if owner != path and _is_one_of_several(configs[owner]):
                owner = owner.parent
            runs.add(owner)
    return [path] if path in runs or not runs else sorted(runs)


def _is_one_of_several(config: Artifact) -> bool:
    """Whether a config is that of one process of a run of several."""
    try:
        count = parsed_object(config.kind, config.read(), str(config.path)).get("process_count")
    except UnreadableFile:
        return False
    return isinstance(count, int) and count > 1
