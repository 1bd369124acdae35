"""The files of ROCm's profilers: one door to the readers of all of their formats."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import pyarrow as pa

from tracewh.ingest import rocpd, rpd
from tracewh.ingest.capture import Capture
from tracewh.ingest.discovery import Artifact
from tracewh.ingest.event_stats import intern
from tracewh.ingest.measured_peaks import MeasuredPeak
from tracewh.ingest.rocm_capture import read_capture
from tracewh.ingest.rocpd_database import family_of
from tracewh.ingest.sqlite_file import SqliteFile
from tracewh.ingest.storable_text import storable


@contextlib.contextmanager
def open_captures(artifact: Artifact) -> Iterator[list[Capture]]:
    """The captures in an artifact, whose rows are read from it for as long as the context lasts.

    Raises UnreadableFile, also while their rows are read.
    """
    with contextlib.ExitStack() as stack:
        if artifact.kind == "rocpd":
            yield _of_database(stack.enter_context(SqliteFile(artifact.path)))
        elif artifact.kind == "rocprof_json":
            from tracewh.ingest import rocprof_json

            content = stack.enter_context(artifact.open())
            processes = rocprof_json.read_processes(content.buffer, storable(str(artifact.path)))
            yield [read_capture(process) for process in processes]
        else:
            files = [
                (artifact.path, artifact.open()),
                *zip(artifact.parts, artifact.open_parts(), strict=True),
            ]
            opened = [(storable(str(path)), stack.enter_context(content).buffer) for path, content in files]
            yield _of_csvs(artifact.kind, opened)


def reader_of(kind: str) -> tuple[str, int]:
    """Name and version of the reader of such artifacts."""
    from tracewh.ingest import rocprof_compute_csv, rocprof_csv, rocprof_json

    versions = {
        "rocpd": rocpd.READER_VERSION,
        "rocprof_json": rocprof_json.READER_VERSION,
        "rocprof_csv": rocprof_csv.READER_VERSION,
        "rocprof_compute_csv": rocprof_compute_csv.READER_VERSION,
    }
    return kind, versions[kind]


def _of_database(file: SqliteFile) -> list[Capture]:
    family = family_of(file)
    if family == "rpd_v2":
        return [read_capture(process) for process in rpd.read_processes(file)]
    if family == "rocprof_compute":
        from tracewh.ingest import rocprof_compute_database

        captures = []
        for workload in rocprof_compute_database.read_workloads(file):
            capture = read_capture(workload.process)
            _add_metrics(capture, workload.metrics)
            _add_peaks(capture, workload.peaks)
            captures.append(capture)
        return captures
    return [read_capture(process) for process in rocpd.read_processes(file)]


def _of_csvs(kind: str, files: Sequence[tuple[str, memoryview]]) -> list[Capture]:
    if kind == "rocprof_csv":
        from tracewh.ingest import rocprof_csv

        return [read_capture(process) for process in rocprof_csv.read_processes(files)]
    from tracewh.ingest import rocprof_compute_csv

    workload = rocprof_compute_csv.read_workload(files)
    capture = Capture("rocprof_compute", platform="rocm")
    if workload.process is not None:
        capture = read_capture(workload.process)
    capture.attributes |= workload.attributes
    capture.problems += workload.problems.problems()
    _add_peaks(capture, workload.peaks)
    return [capture]


def _add_metrics(capture: Capture, metrics: pa.Table) -> None:
    kernel_names = intern(capture.names, metrics.column("kernel_name").combine_chunks())
    capture.tables["kernel_metrics"] = metrics.drop_columns(["kernel_name"]).append_column(
        "kernel_name_id", kernel_names
    )


def _add_peaks(capture: Capture, peaks: Sequence[MeasuredPeak]) -> None:
    kinds = [device.kind for device in capture.devices if device.device_type == "GPU" and device.kind]
    capture.tables["device_peaks"] = pa.table(
        {
            "device_pattern": pa.array([kinds[0] if kinds else peak.device for peak in peaks], pa.string()),
            "quantity": pa.array([peak.quantity for peak in peaks], pa.string()),
            "memory_level": pa.array([peak.memory_level for peak in peaks], pa.string()),
            "dtype": pa.array([peak.dtype for peak in peaks], pa.string()),
            "peak_kind": pa.array(["measured" for _ in peaks], pa.string()),
            "value": pa.array([peak.value for peak in peaks], pa.float64()),
            "source": pa.array([peak.source for peak in peaks], pa.string()),
        }
    )
