"""One artifact into the warehouse, in one transaction, and the rows that say where it came from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import duckdb

from tracewh.ingest import hlo
from tracewh.ingest.capture import Capture, Problem, ProblemCounter
from tracewh.ingest.discovery import CAPTURE_KINDS, HLO_KINDS, PACKAGE_KIND, ROCM_KINDS
from tracewh.ingest.storable_text import storable
from tracewh.sql.capture_files import EVENT_TABLES, open_captures, reader_of, told
from tracewh.sql.device_loading import delete_unused_devices
from tracewh.sql.hlo_loading import add_programs, load_hlo, load_modules
from tracewh.sql.kept_metrics import mark_metrics_outdated
from tracewh.sql.loading import Loaded, Part, Source, load_capture, load_problems, next_id
from tracewh.sql.metadata_loading import load_metadata
from tracewh.sql.process_ranks import Place, set_ranks
from tracewh.sql.rows import first_row
from tracewh.sql.run_identity import Commit, Run
from tracewh.sql.twin_captures import Twin, find_twin, keep_richer
from tracewh.sql.unfinished_runs import finish_run, mark_unfinished
from tracewh.sql.warehouse import delete_everywhere, delete_unused_modules, loading, transaction


class _HeldElsewhere(Exception):
    """Another run has the process that an artifact is about; its text is the name of that run."""


@dataclass
class ArtifactLoader:
    """Loads the artifacts of one run; the run's row is made with the first."""

    connection: duckdb.DuckDBPyConnection
    run: Run
    path: Path
    commit: Commit
    labels: Mapping[str, str]
    _has_deleted: bool = field(default=False, init=False)

    def holder(self, source: Source) -> str | None:
        """Name of the run that holds these bytes: any run for a capture, this one for other files."""
        is_capture = source.artifact.kind in CAPTURE_KINDS
        row = None
        for digest in source.digests:
            row = first_row(
                self.connection,
                "SELECT r.run_name FROM main.artifacts AS a JOIN main.runs AS r USING (run_id) "
                "WHERE a.sha256 = ? AND a.status <> 'rejected' AND (? OR (a.run_id = ? AND a.path = ?)) "
                "ORDER BY r.run_id LIMIT 1",
                [digest, is_capture, self.run.run_id, source.path],
            )
            if row is None:
                return None
        return None if row is None else str(row[0])

    def load(self, source: Source, reached: Callable[[float], None], force: bool) -> Loaded:
        """Read and load one artifact, all of it or nothing. Raises UnreadableFile.

        A process that the run has from another file is merged with it. Of one that another run has, nothing
        is loaded and the status is `already there`, unless `force` moves it here.
        Of a large capture, `reached` is told which share is loaded, 0 to 1.
        """
        run_before = self.run.run_id
        try:
            with (
                open_captures(source.artifact) as captures,
                loading(self.connection),
                transaction(self.connection),
            ):
                for capture, _ in captures:
                    capture.stream = told(capture.stream, capture.streamed_events, reached)
                return self._load(source, captures, force)
        except _HeldElsewhere as held:
            self.run.run_id = run_before
            detail = (
                f"run {held} has this process from another file; --run adds to a run, --force moves it here"
            )
            return Loaded("already there", detail, held_by=str(held))
        except BaseException:
            self.run.run_id = run_before
            raise

    def reject(self, source: Source, reason: str) -> None:
        """Record that a file of the run could not be read, once for the same bytes."""
        known = first_row(
            self.connection,
            "SELECT 1 FROM main.artifacts "
            "WHERE run_id = ? AND path = ? AND sha256 = ? AND status = 'rejected'",
            [self._run_id, source.path, source.sha256],
        )
        if known is not None:
            return
        with transaction(self.connection):
            artifact_id = next_id(self.connection, "artifacts", "artifact_id")
            self._add_artifact(source, artifact_id, Loaded("rejected", reason))
            problem = Problem("unreadable_file", source.path, reason)
            load_problems(self.connection, self._run_id, None, artifact_id, [problem])

    def describe_run(self, ranks: Mapping[Place, int]) -> int:
        """Bring what is known of the run as a whole up to date: labels, commit, ranks, kept rows.

        A commit of the caller's stands over one of the config, and that over git's guess. Returns the number
        of problems between its captures.
        """
        with transaction(self.connection):
            for label, value in self.labels.items():
                self.connection.execute(
                    "DELETE FROM main.run_labels WHERE run_id = ? AND label = ?", [self._run_id, label]
                )
                self.connection.execute(
                    "INSERT INTO main.run_labels VALUES (?, ?, ?)", [self._run_id, label, value]
                )
            known = first_row(
                self.connection,
                "SELECT commit_sha, commit_source FROM main.runs WHERE run_id = ?",
                [self._run_id],
            )
            if known is not None and self._replaces_commit(*known):
                self.connection.execute(
                    "UPDATE main.runs SET commit_sha = ?, commit_source = ? WHERE run_id = ?",
                    [self.commit.sha, self.commit.source, self._run_id],
                )
            set_ranks(self.connection, self._run_id, ranks)
            return finish_run(self.connection, self._run_id)

    def _replaces_commit(self, known_sha: str | None, known_source: str | None) -> bool:
        if self.commit.sha in (None, known_sha):
            return False
        strength = {None: 0, "git": 1, "config": 2, "option": 3}
        # Git's HEAD moves on while a run's directory stays: its first answer was the nearest.
        return strength[self.commit.source] > strength[known_source] or (
            self.commit.source == known_source and known_source != "git"
        )

    def step_count(self) -> int:
        """Number of distinct training steps of the run, over all of its captures."""
        return self._count(
            "SELECT COUNT(DISTINCT a.step_num) FROM v1._step_names AS a "
            "JOIN main.captures AS c USING (capture_id) WHERE c.run_id = ? AND a.is_chosen = 1",
            self._run_id,
        )

    def device_count(self) -> int:
        """Number of devices of the run that worked, as in v1.captures."""
        return self._count(
            "SELECT COUNT(DISTINCT e.device_id) FROM main.device_events AS e "
            "JOIN main.devices AS d USING (device_id) "
            "WHERE d.run_id = ? AND e.role IN ('work', 'serialized')",
            self._run_id,
        )

    def serialized_event_count(self) -> int:
        """Number of device events of the run that ran one by one, for counters."""
        return self._count(
            "SELECT COUNT(*) FROM main.device_events AS e JOIN main.captures AS c USING (capture_id) "
            "WHERE c.run_id = ? AND e.role = 'serialized'",
            self._run_id,
        )

    def _count(self, query: str, parameter: int) -> int:
        row = first_row(self.connection, query, [parameter])
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
            [self.run.run_id, self.run.name, storable(str(self.path)), self.commit.sha, self.commit.source],
        )

    def _load(
        self,
        source: Source,
        captures: Sequence[tuple[Capture, list[hlo.HloProgram]]],
        force: bool,
    ) -> Loaded:
        self._ensure_run()
        mark_unfinished(self.connection, self._run_id)
        self._forget(source, [capture for capture, _ in captures])
        # Else a module that only this artifact had would stay as an older version read it.
        delete_unused_modules(self.connection)
        artifact_id = next_id(self.connection, "artifacts", "artifact_id")
        if captures:
            loaded = self._load_captures(captures, artifact_id, force)
        elif source.artifact.kind in HLO_KINDS:
            loaded = load_hlo(self.connection, self._run_id, artifact_id, source)
        elif source.metadata is not None:
            loaded = Loaded("loaded")
            load_metadata(self.connection, self._run_id, artifact_id, source.metadata, source.problems)
        else:
            loaded = Loaded("recorded")
            if source.artifact.kind == PACKAGE_KIND:
                _count_missing_databases(source)
        loaded.problems += load_problems(
            self.connection, self._run_id, loaded.capture_id, artifact_id, source.problems.problems()
        )
        self._add_artifact(source, artifact_id, loaded)
        if self._has_deleted:
            delete_unused_devices(self.connection)
            self._has_deleted = False
        return loaded

    def _forget(self, source: Source, captures: Sequence[Capture]) -> None:
        """Delete what an earlier ingest left of the same capture, or of the file at the same path."""
        is_capture = source.artifact.kind in CAPTURE_KINDS
        paths = [source.path, *(part.path for part in source.parts)]
        replaced = self.connection.execute(
            "SELECT DISTINCT artifact_id FROM main.artifacts "
            "WHERE run_id = ? AND list_contains(?, path) AND (status = 'rejected' OR NOT ? OR ?) "
            "OR list_contains(?, sha256) AND ?",
            [self._run_id, paths, is_capture, bool(source.parts), source.digests, is_capture],
        ).fetchall()
        for (artifact_id,) in replaced:
            self._delete_artifact(artifact_id)
        if source.artifact.kind in ROCM_KINDS:
            # A database that was read while the profiler still wrote it holds less of the same process.
            for capture in captures:
                self._forget_earlier(source.path, capture)

    def _forget_earlier(self, path: str, capture: Capture) -> None:
        """Delete the captures of the same process that an earlier state of the file at `path` gave.

        A process of another time may have the same number, as in a container: its guid differs, or its start.
        """
        earlier = self.connection.execute(
            "SELECT c.capture_id, c.artifact_id FROM main.captures AS c "
            "JOIN main.artifacts AS a USING (artifact_id) "
            "LEFT JOIN main.capture_attributes AS g ON g.capture_id = c.capture_id AND g.attribute = 'guid' "
            "WHERE c.run_id = ? AND a.path = ? AND c.process_id IS NOT DISTINCT FROM ? AND c.hostname = ? "
            "AND COALESCE(g.value, CAST(c.origin_source_ns AS VARCHAR)) = ?",
            [
                self._run_id,
                path,
                capture.process_id,
                capture.hostname,
                capture.attributes.get("guid") or str(capture.origin_source_ns),
            ],
        ).fetchall()
        for capture_id, artifact_id in earlier:
            self._delete_capture(capture_id)
            left = "SELECT COUNT(*) FROM main.captures WHERE artifact_id = ?"
            if not self._count(left, artifact_id):
                self._delete_artifact(artifact_id)

    def _delete_artifact(self, artifact_id: int) -> None:
        captures = self.connection.execute(
            "SELECT capture_id FROM main.captures WHERE artifact_id = ?", [artifact_id]
        ).fetchall()
        for (capture_id,) in captures:
            self._delete_capture(capture_id)
        delete_everywhere(self.connection, "artifact_id", artifact_id)

    def _delete_capture(self, capture_id: int) -> None:
        # It may be of another run, which has less then.
        owner = first_row(
            self.connection, "SELECT run_id FROM main.captures WHERE capture_id = ?", [capture_id]
        )
        if owner is not None:
            mark_metrics_outdated(self.connection, int(owner[0]))
        delete_everywhere(self.connection, "capture_id", capture_id)
        self._has_deleted = True

    def _load_captures(
        self,
        captures: Sequence[tuple[Capture, list[hlo.HloProgram]]],
        artifact_id: int,
        force: bool,
    ) -> Loaded:
        loaded = Loaded("loaded")
        homes: set[int] = set()
        elsewhere: set[str] = set()
        for capture, programs in captures:
            home = self._load_capture(capture, programs, artifact_id, loaded, force)
            if isinstance(home, int):
                homes.add(home)
            else:
                elsewhere.add(home.run_name)
        if not homes:
            raise _HeldElsewhere(", ".join(sorted(elsewhere)))
        if not loaded.captures:
            loaded.status, loaded.detail = "merged", "the same process as another file"
        elif elsewhere:
            loaded.detail = f"without processes that these runs have: {', '.join(sorted(elsewhere))}"
        loaded.capture_id = homes.pop() if len(homes) == 1 else None
        return loaded

    def _load_capture(
        self,
        capture: Capture,
        programs: list[hlo.HloProgram],
        artifact_id: int,
        loaded: Loaded,
        force: bool,
    ) -> int | Twin:
        """Load a capture, and count it in `loaded`; return the capture that now is that of the process.

        Where another run has it, nothing is loaded, and the twin there is returned, unless `force` moves it.
        """
        problems = ProblemCounter()
        module_ids = load_modules(self.connection, programs, problems)
        # They are large, and the events are still to come.
        programs.clear()
        capture_id, rows = load_capture(self.connection, self._run_id, artifact_id, capture)
        capture.problems += problems.problems()
        twin = None if capture.fingerprint is None else find_twin(self.connection, capture_id)
        if twin is not None and twin.run_id != self._run_id:
            if not force:
                self._delete_capture(capture_id)
                return twin
            self._delete_capture(twin.capture_id)
            twin = None
        home = capture_id
        if twin is not None:
            home, lacking = keep_richer(self.connection, capture_id, capture.source_kind, twin)
            self._has_deleted = True
            # What else its reader found is known from the other file.
            capture.problems = lacking if home == twin.capture_id else capture.problems + lacking
        if home == capture_id:
            loaded.captures += 1
            loaded.events += sum(rows.get(table, 0) for table in EVENT_TABLES)
            add_programs(self.connection, capture_id, artifact_id, module_ids)
            loaded.modules += len(module_ids)
            self._count_repeated_steps(capture, capture_id)
        loaded.problems += load_problems(self.connection, self._run_id, home, artifact_id, capture.problems)
        return home

    def _count_repeated_steps(self, capture: Capture, capture_id: int) -> None:
        """Note the annotations that count as no step, since their number came before."""
        repeated = self._count(
            "SELECT COUNT(*) FROM v1._step_annotations WHERE capture_id = ? AND is_repeated", capture_id
        )
        if repeated:
            detail = "these annotations count as no step; number steps on when a loop starts again"
            capture.problems.append(Problem("repeated_step_number", "step annotations", detail, repeated))

    def _add_artifact(self, source: Source, artifact_id: int, loaded: Loaded) -> None:
        own_bytes = source.artifact.size_bytes - sum(part.size_bytes for part in source.parts)
        own = Part(source.path, source.sha256, own_bytes)
        self._add_file(source, own, artifact_id, loaded.capture_id, loaded.status, loaded.detail)
        status = "merged" if loaded.status == "loaded" else loaded.status
        for part in source.parts:
            part_id = next_id(self.connection, "artifacts", "artifact_id")
            self._add_file(source, part, part_id, loaded.capture_id, status, f"with {source.path}")

    def _add_file(
        self,
        source: Source,
        file: Part,
        artifact_id: int,
        capture_id: int | None,
        status: str,
        detail: str | None,
    ) -> None:
        kind = source.artifact.kind
        self.connection.execute(
            "INSERT INTO main.artifacts BY NAME SELECT "
            "? AS artifact_id, ? AS run_id, ? AS capture_id, ? AS path, ? AS kind, ? AS sha256, ? AS bytes, "
            "? AS reader, ? AS reader_version, ? AS status, ? AS detail",
            [
                artifact_id,
                self._run_id,
                capture_id,
                file.path,
                kind,
                file.sha256,
                file.size_bytes,
                *reader_of(kind),
                status,
                None if detail is None else storable(detail),
            ],
        )


def _count_missing_databases(source: Source) -> None:
    """Note the databases that a package lists and that are not there."""
    from tracewh.ingest.rocpd_package import package_files

    for reason in package_files(source.artifact.path)[1]:
        source.problems.add("missing_database", source.path, f"the package lists {reason}")
