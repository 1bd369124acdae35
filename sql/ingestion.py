"""One run into the warehouse: find its artifacts, read each, load each capture in one transaction."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

import duckdb

from tracewh.ingest.discovery import (
    CAPTURE_KINDS,
    METADATA_KINDS,
    Artifact,
    discover,
)
from tracewh.ingest.errors import TracewhError, UnreadableFile
from tracewh.ingest.piped import PIPED_RUN
from tracewh.ingest.run_metadata import read as read_metadata
from tracewh.ingest.storable_text import storable
from tracewh.sql.artifact_loading import ArtifactLoader
from tracewh.sql.loading import Part, Source
from tracewh.sql.process_ranks import known_ranks, process_ranks
from tracewh.sql.rows import first_row
from tracewh.sql.run_identity import (
    find_commit,
    find_run,
    piped_path,
    place_piped,
    read_elsewhere,
    rebase,
)
from tracewh.sql.step_choices import StepChoice, StepChoiceError, change_choice
from tracewh.sql.user_files import follow_files
from tracewh.sql.warehouse import Warehouse, transaction


class Progress(Protocol):
    """Told of the progress of an ingest; amounts are bytes of artifacts."""

    def found(self, artifacts: Sequence[Artifact]) -> None:
        """These artifacts will be read."""

    def begin(self, label: str, total: int) -> None:
        """A run of `total` bytes begins."""

    def advance(self, amount: int) -> None:
        """Another `amount` bytes are done."""

    def end(self) -> None:
        """The run is done."""


class SilentProgress:
    """Progress that nobody watches."""

    def found(self, artifacts: Sequence[Artifact]) -> None:
        """Say nothing."""

    def begin(self, label: str, total: int) -> None:
        """Say nothing."""

    def advance(self, amount: int) -> None:
        """Say nothing."""

    def end(self) -> None:
        """Say nothing."""


@dataclass(frozen=True)
class IngestOptions:
    """What the caller says of the run; None is found out from the run itself."""

    run_name: str | None = None
    commit_sha: str | None = None
    labels: dict[str, str] = field(default_factory=dict)
    force: bool = False
    steps: StepChoice = field(default_factory=StepChoice)


@dataclass
class ArtifactOutcome:
    """What became of one file; `status` is loaded, merged, recorded, rejected or already there."""

    path: str
    kind: str
    size_bytes: int
    status: str
    detail: str | None = None


@dataclass
class RunReport:
    """What an ingest did.

    Captures, events, modules and problems are those that it added; devices, steps and serialized events (of
    runs that counted per dispatch), where it added anything, are those of the whole run. `status` is loaded,
    already there, or failed: a file was rejected, which does not stop the others.
    """

    run_name: str
    path: Path
    status: str
    captures: int = 0
    devices: int = 0
    events: int = 0
    modules: int = 0
    steps: int = 0
    serialized_events: int = 0
    problems: int = 0
    seconds: float = 0.0
    artifacts: list[ArtifactOutcome] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)  # what may not be as the caller thinks


def ingest_path(warehouse: Warehouse, path: Path, options: IngestOptions, progress: Progress) -> RunReport:
    """Load the run at `path`, a directory or one file.

    Bytes that the warehouse already holds are left alone unless `options.force`. A file that cannot be read
    is rejected and the others load; where none of the run's captures can be read, the error is raised and
    the warehouse stays as it was. Raises NothingToIngest where there is no artifact.
    """
    started = time.monotonic()
    path = Path(os.path.abspath(path))
    return _ingest_found(warehouse, path, discover(path), options, progress, started)


def ingest_piped(
    warehouse: Warehouse, capture: Artifact, options: IngestOptions, progress: Progress
) -> RunReport:
    """Load a capture that came by a pipe, as its file would load. Raises UnreadableFile."""
    return _ingest_found(warehouse, capture.path, [capture], options, progress, time.monotonic())


def _ingest_found(
    warehouse: Warehouse,
    path: Path,
    artifacts: Sequence[Artifact],
    options: IngestOptions,
    progress: Progress,
    started: float,
) -> RunReport:
    progress.found(artifacts)
    # Each file is passed twice: to know it by its content, and to load it.
    progress.begin(path.name, 2 * sum(artifact.size_bytes for artifact in artifacts))
    try:
        report = _ingest(warehouse, path, options, artifacts, progress)
    finally:
        progress.end()
    report.seconds = time.monotonic() - started
    return report


def _ingest(
    warehouse: Warehouse,
    path: Path,
    options: IngestOptions,
    artifacts: Sequence[Artifact],
    progress: Progress,
) -> RunReport:
    sources = [_source(artifact, progress) for artifact in artifacts]
    captures = [source for source in sources if source.artifact.kind in CAPTURE_KINDS]
    others = [source for source in sources if source.artifact.kind not in CAPTURE_KINDS]
    connection = warehouse.connection
    digests = [digest for source in captures for digest in source.digests]
    run = find_run(connection, path, options.run_name, digests)
    elsewhere = read_elsewhere(connection, run, path) if options.run_name is None else None
    base = None if path == PIPED_RUN else rebase(connection, run, path, digests)
    for source in sources:
        if base is None:
            source.path = piped_path(connection, run, source.sha256)
        else:
            source.path = os.path.relpath(storable(str(source.artifact.path)), base)
            for part in source.parts:
                part.path = os.path.relpath(storable(part.path), base)
            place_piped(connection, run, source.sha256, source.path)
    metadata = {source.path: source.metadata for source in sources if source.metadata is not None}
    commit = find_commit(base, options.commit_sha, metadata.values())
    earlier_commit = _commit_of(connection, run.run_id)
    loader = ArtifactLoader(connection, run, path, commit, options.labels)
    known = known_ranks(connection, run.run_id)
    report = RunReport(run.name, path, "already there")
    if elsewhere is not None:
        report.warnings.append(
            f"{path} has a capture of this run, which was read from {elsewhere}: its other files count for "
            "the run too. To keep them apart, use another warehouse."
        )

    holders = set()
    for source in captures:
        holders.add(_load(loader, source, options.force, report, progress))
    if captures and all(source.error is not None for source in captures):
        raise _combined([source for source in sources if source.error is not None])
    if captures and loader.run.run_id is None:
        # Other runs hold these captures: what lies beside them would make a run without any.
        report.run_name = ", ".join(sorted(holder for holder in holders if holder is not None))
        return report
    for source in others:
        _load(loader, source, options.force, report, progress)

    failed = [source for source in sources if source.error is not None]
    if loader.run.run_id is None:
        raise _combined(failed)
    for source in failed:
        loader.reject(source, str(source.error))
        report.problems += 1
    report.warnings += follow_files(connection, loader.run.run_id, path, base, sources)
    now = known_ranks(connection, loader.run.run_id)
    # A part of the run does not tell which of its processes it is: those known keep their ranks.
    is_whole = base == Path(storable(str(path)))
    told = {place: rank for ranks in (known, now) for place, rank in ranks.items() if rank is not None}
    kept = {} if is_whole else told
    # Piped bytes do not tell that either, unless they are the only ones of the run.
    ranked = now.keys() & kept.keys() if base is None and known else now.keys()
    found = process_ranks(ranked, metadata, kept)
    between = loader.describe_run({place: rank for place, rank in found.items() if now[place] != rank})
    later_commit = _commit_of(connection, loader.run.run_id)
    if earlier_commit not in (None, later_commit):
        report.warnings.append(
            f"The commit of run {run.name} is now {later_commit}; it was {earlier_commit}."
        )
    report.warnings += _choose_steps(warehouse, loader.run.run_id, options.steps)
    if report.status == "loaded":
        report.problems += between
        report.devices, report.steps = loader.device_count(), loader.step_count()
        report.serialized_events = loader.serialized_event_count()
    if failed:
        report.status = "failed"
    return report


def _commit_of(connection: duckdb.DuckDBPyConnection, run_id: int | None) -> str | None:
    found = first_row(connection, "SELECT commit_sha FROM main.runs WHERE run_id = ?", [run_id])
    return None if found is None else found[0]


def _choose_steps(warehouse: Warehouse, run_id: int, change: StepChoice) -> list[str]:
    """Choose the steps of a run that was loaded; one that fits nothing is a warning, and the former stays."""
    if change.is_empty:
        return []
    try:
        with transaction(warehouse.connection):
            return change_choice(warehouse.connection, run_id, change)
    except StepChoiceError as error:
        return [f"the steps are not chosen: {error}"]


def _source(artifact: Artifact, progress: Progress) -> Source:
    """What the file itself tells; its path in the run is not known yet."""
    source = Source(artifact, "", "")
    try:
        source.sha256 = artifact.sha256()
        digests = artifact.part_digests()
        source.parts = [Part(str(path), digest, path.stat().st_size) for path, digest in digests.items()]
        # A table that is there twice, as with its `.gz`, has its rows once.
        others = {digest: path for path, digest in reversed(digests.items()) if digest != source.sha256}
        distinct = tuple(path for path in artifact.parts if path in others.values())
        source.artifact = replace(artifact, parts=distinct)
        if artifact.kind in METADATA_KINDS:
            place = str(artifact.path)
            source.metadata = read_metadata(artifact.kind, artifact.read(), place, source.problems)
    except UnreadableFile as error:
        source.error = error
    progress.advance(artifact.size_bytes)
    return source


def _load(
    loader: ArtifactLoader,
    source: Source,
    force: bool,
    report: RunReport,
    progress: Progress,
) -> str | None:
    """Load one source unless it is held; note in `report` what became of it, in `source` an error.

    Returns the run that has it already, None for none.
    """
    artifact = source.artifact
    passed = 0

    def reached(share: float) -> None:
        nonlocal passed
        now = int(share * artifact.size_bytes)
        progress.advance(now - passed)
        passed = now

    holder = None if force else loader.holder(source)
    if holder is not None and source.error is None:
        is_own = holder == report.run_name
        detail = (
            None if is_own else f"in run {holder}, where it stays unless that run is removed (tracewh rm)"
        )
        status = "already there"
    elif source.error is None:
        try:
            counts = loader.load(source, reached, force)
        except UnreadableFile as error:
            source.error = error
        else:
            status, detail, holder = counts.status, counts.detail, counts.held_by
            for name in ("captures", "events", "modules", "problems"):
                setattr(report, name, getattr(report, name) + getattr(counts, name))
            if status != "already there":
                report.status = "loaded"
    if source.error is not None:
        status, detail = "rejected", str(source.error)
    reached(1)
    sizes = {part.path: part.size_bytes for part in source.parts}
    own_bytes = artifact.size_bytes - sum(sizes.values())
    report.artifacts.append(ArtifactOutcome(source.path, artifact.kind, own_bytes, status, detail))
    for part, size in sizes.items():
        part_status = "merged" if status == "loaded" else status
        report.artifacts.append(ArtifactOutcome(part, artifact.kind, size, part_status))
    return holder


def _combined(failed: Sequence[Source]) -> TracewhError:
    """The error of the one failed file, or one error that lists each."""
    errors = [source.error for source in failed if source.error is not None]
    if len(errors) == 1:
        return errors[0]
    return UnreadableFile("\n".join([f"none of {len(errors)} files can be read:", *map(str, errors)]))
