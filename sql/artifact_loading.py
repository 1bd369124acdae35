"""One artifact into the warehouse, in one transaction: a capture, an HLO module, or a metadata file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

import duckdb
import pyarrow as pa

from tracewh.ingest import hlo, hlo_files, hlo_text, rocpd, run_metadata, xspace
from tracewh.ingest.capture import Capture, Interner, Problem, ProblemCounter
from tracewh.ingest.discovery import CAPTURE_KINDS, HLO_KINDS, METADATA_KINDS, Artifact
from tracewh.ingest.run_metadata import RunMetadata
from tracewh.sql.loading import insert_rows, load_capture, load_problems, load_tables, next_id
from tracewh.sql.rows import first_row
from tracewh.sql.run_identity import Commit, Run
from tracewh.sql.warehouse import delete_everywhere, transaction

_READER_VERSIONS = {
    "xspace": xspace.READER_VERSION,
    "rocpd": rocpd.READER_VERSION,
    "hlo": hlo.READER_VERSION,
    "run_metadata": run_metadata.READER_VERSION,
    "none": 1,
}


@dataclass
class Loaded:
    """What the load of one artifact added; `status` is loaded, merged or recorded."""

    status: str
    detail: str | None = None
    captures: int = 0
    events: int = 0
    modules: int = 0
    steps: int = 0
    problems: int = 0
    capture_id: int | None = None


@dataclass
class ArtifactLoader:
    """Loads the artifacts of one run; the run's row is made with the first."""

    connection: duckdb.DuckDBPyConnection
    run: Run
    root: Path
    commit: Commit
    labels: Mapping[str, str]

    def holder(self, kind: str, path: str, sha256: str) -> str | None:
        """Name of the run that holds these bytes: a capture in any run, other files at `path` of this run."""
        row = first_row(
            self.connection,
            "SELECT r.run_name FROM main.artifacts AS a JOIN main.runs AS r USING (run_id) "
            "WHERE a.sha256 = ? AND a.status <> 'rejected' AND (? OR (a.run_id = ? AND a.path = ?)) "
            "ORDER BY r.run_id LIMIT 1",
            [sha256, kind in CAPTURE_KINDS, self.run.run_id, path],
        )
        return None if row is None else str(row[0])

    def load(
        self,
        artifact: Artifact,
        path: str,
        sha256: str,
        process_index: int | None,
        metadata: RunMetadata | None,
        problems: ProblemCounter,
    ) -> Loaded:
        """Read and load one artifact, all of it or nothing. Raises UnreadableFile."""
        kind, place = artifact.kind, str(artifact.path)
        captures: list[tuple[Capture, list[hlo.HloModule]]] = []
        if kind == "xspace":
            modules: list[hlo.HloModule] = []
            captures = [(xspace.read(artifact.read(), place, modules), modules)]
        elif kind == "rocpd":
            captures = [(capture, []) for capture in rocpd.read(artifact.path)]
        run_before = self.run.run_id
        try:
            with transaction(self.connection):
                return self._load(artifact, path, sha256, process_index, metadata, problems, captures)
        except BaseException:
            self.run.run_id = run_before
            raise

    def _load(
        self,
        artifact: Artifact,
        path: str,
        sha256: str,
        process_index: int | None,
        metadata: RunMetadata | None,
        problems: ProblemCounter,
        captures: Sequence[tuple[Capture, Sequence[hlo.HloModule]]],
    ) -> Loaded:
        self._ensure_run()
        self._forget(artifact, path, sha256)
        artifact_id = next_id(self.connection, "artifacts", "artifact_id")
        if captures:
            loaded = Loaded("loaded")
            for capture, capture_modules in captures:
                self._load_capture(capture, capture_modules, artifact_id, process_index, loaded)
        elif artifact.kind in HLO_KINDS:
            loaded = self._load_hlo(artifact, path, artifact_id, problems)
        elif metadata is not None:
            loaded = self._load_metadata(metadata, artifact_id, problems)
        else:
            loaded = Loaded("recorded")
        loaded.problems += load_problems(
            self.connection, self._run_id, loaded.capture_id, artifact_id, problems.problems()
        )
        self._add_artifact(
            artifact, artifact_id, path, sha256, loaded.status, loaded.detail, loaded.capture_id
        )
        return loaded

    def reject(self, artifact: Artifact, path: str, sha256: str, reason: str) -> None:
        """Record that a file of the run could not be read, once for the same bytes."""
        known = first_row(
            self.connection,
            "SELECT 1 FROM main.artifacts "
            "WHERE run_id = ? AND path = ? AND sha256 = ? AND status = 'rejected'",
            [self._run_id, path, sha256],
        )
        if known is not None:
            return
        with transaction(self.connection):
            artifact_id = next_id(self.connection, "artifacts", "artifact_id")
            self._add_artifact(artifact, artifact_id, path, sha256, "rejected", reason, None)
            load_problems(
                self.connection, self._run_id, None, artifact_id, [Problem("unreadable_file", path, reason)]
            )

    def set_labels(self) -> None:
        """Set the labels and a commit that the caller gave; those given before stay or are replaced."""
        if not self.labels and self.commit.source != "option":
            return
        with transaction(self.connection):
            for label, value in self.labels.items():
                self.connection.execute(
                    "DELETE FROM main.run_labels WHERE run_id = ? AND label = ?", [self._run_id, label]
                )
                self.connection.execute(
                    "INSERT INTO main.run_labels VALUES (?, ?, ?)", [self._run_id, label, value]
                )
            if self.commit.source == "option":
                self.connection.execute(
                    "UPDATE main.runs SET commit_sha = ?, commit_source = ? WHERE run_id = ?",
                    [self.commit.sha, self.commit.source, self._run_id],
                )

    def device_count(self) -> int:
        """Number of devices of the run."""
        row = first_row(self.connection, "SELECT COUNT(*) FROM main.devices WHERE run_id = ?", [self._run_id])
        assert row is not None
        return int(row[0])

    @property
    def _run_id(self) -> int:
        assert self.run.run_id is not None
        return self.run.run_id

    def _ensure_run(self) -> None:
        if self.run.run_id is not None:
            return
        self.run.run_id = next_id(self.connection, "runs", "run_id")
        self.connection.execute(
            "INSERT INTO main.runs VALUES (?, ?, ?, ?, ?)",
            [self.run.run_id, self.run.name, str(self.root), self.commit.sha, self.commit.source],
        )

    def _forget(self, artifact: Artifact, path: str, sha256: str) -> None:
        """Delete what an earlier ingest of the same bytes, or of the same metadata file, left."""
        replaced = self.connection.execute(
            "SELECT artifact_id FROM main.artifacts WHERE sha256 = ? AND (? OR run_id = ? AND path = ?) "
            "OR NOT ? AND run_id = ? AND path = ?",
            [
                sha256,
                artifact.kind in CAPTURE_KINDS,
                self._run_id,
                path,
                artifact.kind in CAPTURE_KINDS,
                self._run_id,
                path,
            ],
        ).fetchall()
        for (artifact_id,) in replaced:
            captures = self.connection.execute(
                "SELECT capture_id FROM main.captures WHERE artifact_id = ?", [artifact_id]
            ).fetchall()
            for (capture_id,) in captures:
                delete_everywhere(self.connection, "capture_id", capture_id)
            delete_everywhere(self.connection, "artifact_id", artifact_id)

    def _load_capture(
        self,
        capture: Capture,
        modules: Sequence[hlo.HloModule],
        artifact_id: int,
        process_index: int | None,
        loaded: Loaded,
    ) -> None:
        programs: dict[int, hlo.HloModule] = {}
        for module in modules:
            program_id = 0 if module.program_id is None else module.program_id
            if programs.setdefault(program_id, module) is not module:
                capture.problems.append(
                    Problem("duplicate_program", f"program {program_id}", f"{module.module_name} is left out")
                )
        if programs:
            capture.tables |= _hlo_tables(programs, artifact_id)
        capture_id = load_capture(self.connection, self._run_id, artifact_id, process_index, capture)
        loaded.capture_id = capture_id if loaded.captures == 0 else None
        loaded.captures += 1
        loaded.events += capture.row_count("device_events") + capture.row_count("host_events")
        loaded.modules += len(programs)
        loaded.steps += capture.row_count("steps")
        loaded.problems += load_problems(
            self.connection, self._run_id, capture_id, artifact_id, capture.problems
        )

    def _load_hlo(self, artifact: Artifact, path: str, artifact_id: int, problems: ProblemCounter) -> Loaded:
        """Give a module to the captures nearest to its file that lack it; alone, it is a capture itself."""
        program_id = hlo_files.program_id_from_name(path)
        targets = self._nearest_captures(path)
        data = artifact.read()
        if artifact.kind == "hlo_text":
            # Parsing text needs jaxlib and seconds; the captures mostly hold the module already.
            name = hlo_files.module_name_of_text(data)
            if targets and name and not self._lacking(targets, program_id, name):
                return Loaded("merged", f"{name} is in its capture already", capture_id=targets[0])
        names = Interner()
        place = str(artifact.path)
        if artifact.kind == "hlo_text":
            text = data.decode("utf-8", "replace")
            module = hlo_text.read_text_module(text, program_id, names, problems, place)
        else:
            module = hlo.read_module(data, program_id, names, problems, place)
        known_id = module.program_id if program_id is not None else None
        if targets:
            targets = self._lacking(targets, known_id, module.module_name)
            if not targets:
                detail = f"{module.module_name} is in its capture already"
                return Loaded("merged", detail, capture_id=self._nearest_captures(path)[0])
        loaded = Loaded("loaded", modules=1)
        if not targets:
            capture = Capture("hlo")
            targets = [load_capture(self.connection, self._run_id, artifact_id, None, capture)]
            loaded.captures = 1
        tables = _hlo_tables({module.program_id or 0: module}, artifact_id)
        for capture_id in targets:
            load_tables(self.connection, capture_id, tables, names.strings)
        loaded.capture_id = targets[0] if len(targets) == 1 else None
        return loaded

    def _nearest_captures(self, path: str) -> list[int]:
        """Captures of the run whose files share the most folders with `path`."""
        rows = self.connection.execute(
            "SELECT c.capture_id, a.path "
            "FROM main.captures AS c JOIN main.artifacts AS a USING (artifact_id) "
            "WHERE c.run_id = ? ORDER BY c.capture_id",
            [self._run_id],
        ).fetchall()
        shared = {capture_id: _shared_folders(path, other) for capture_id, other in rows}
        return [capture_id for capture_id, count in shared.items() if count == max(shared.values())]

    def _lacking(self, captures: Sequence[int], program_id: int | None, module_name: str) -> list[int]:
        """Those captures that have no such program; without an id, no module of that name."""
        holding = self.connection.execute(
            "SELECT DISTINCT capture_id FROM main.hlo_modules WHERE list_contains(?, capture_id) "
            "AND CASE WHEN ? IS NULL THEN module_name = ? ELSE program_id = ? END",
            [list(captures), program_id, module_name, program_id],
        ).fetchall()
        held = {row[0] for row in holding}
        return [capture_id for capture_id in captures if capture_id not in held]

    def _load_metadata(self, metadata: RunMetadata, artifact_id: int, problems: ProblemCounter) -> Loaded:
        """Rows of run_params, memory_samples and timing_samples."""
        run_id = self._run_id
        self._insert(
            "run_params",
            [
                {"run_id": run_id, "artifact_id": artifact_id, "param": param, "value": value}
                for param, value in metadata.params
            ],
        )
        devices = self._accelerators()
        for ordinal in {ordinal for _, ordinal, *_ in metadata.memory if ordinal is not None} - set(devices):
            problems.add("unknown_device", f"device {ordinal}", "no capture of the run has it")
        self._insert(
            "memory_samples",
            [
                {
                    "run_id": run_id,
                    "artifact_id": artifact_id,
                    "device_id": None if ordinal is None else devices.get(ordinal),
                    "sample_label": label,
                    "kind": kind,
                    "bytes": size,
                    "evidence": evidence,
                }
                for label, ordinal, kind, size, evidence in metadata.memory
            ],
        )
        self._insert(
            "timing_samples",
            [
                {
                    "run_id": run_id,
                    "artifact_id": artifact_id,
                    "sample_index": index,
                    "step_num": step_num,
                    "metric": metric,
                    "value": value,
                    "is_profiled": is_profiled,
                }
                for index, (step_num, metric, value, is_profiled) in enumerate(metadata.timing)
            ],
        )
        return Loaded("loaded")

    def _accelerators(self) -> dict[int, int]:
        """Device id by ordinal, for ordinals that only one device of the run has."""
        rows = self.connection.execute(
            "SELECT device_ordinal, MIN(device_id) FROM main.devices WHERE run_id = ? "
            "GROUP BY 1 HAVING COUNT(*) = 1",
            [self._run_id],
        ).fetchall()
        return {int(ordinal): int(device_id) for ordinal, device_id in rows}

    def _insert(self, table: str, rows: list[dict[str, Any]]) -> None:
        if rows:
            insert_rows(self.connection, table, pa.Table.from_pylist(rows))

    def _add_artifact(
        self,
        artifact: Artifact,
        artifact_id: int,
        path: str,
        sha256: str,
        status: str,
        detail: str | None,
        capture_id: int | None,
    ) -> None:
        reader = _READER_OF_KIND.get(artifact.kind, "none")
        self.connection.execute(
            "INSERT INTO main.artifacts BY NAME SELECT "
            "? AS artifact_id, ? AS run_id, ? AS capture_id, ? AS path, ? AS kind, ? AS sha256, ? AS bytes, "
            "? AS reader, ? AS reader_version, ? AS status, ? AS detail",
            [
                artifact_id,
                self._run_id,
                capture_id,
                path,
                artifact.kind,
                sha256,
                artifact.bytes,
                reader,
                _READER_VERSIONS[reader],
                status,
                detail,
            ],
        )


_READER_OF_KIND = (
    {kind: kind for kind in CAPTURE_KINDS}
    | dict.fromkeys(HLO_KINDS, "hlo")
    | dict.fromkeys(METADATA_KINDS, "run_metadata")
)


def _hlo_tables(programs: Mapping[int, hlo.HloModule], artifact_id: int) -> dict[str, pa.Table]:
    tables = hlo.module_tables([(module, program_id) for program_id, module in programs.items()])
    modules = tables["hlo_modules"]
    column = pa.array([artifact_id] * modules.num_rows, pa.int64())
    tables["hlo_modules"] = modules.append_column("artifact_id", column)
    return tables


def _shared_folders(path: str, other: str) -> int:
    count = 0
    for mine, theirs in zip(PurePath(path).parent.parts, PurePath(other).parent.parts, strict=False):
        if mine != theirs:
            break
        count += 1
    return count
