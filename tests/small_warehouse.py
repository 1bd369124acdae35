"""A warehouse small enough to know by heart: run `base` with two captures, and `evil` with none."""

from pathlib import Path

from tracewh.sql.warehouse import Warehouse

# What a file may claim to be called: a terminal would turn red.
EVIL_NAME = "evil\x1b[31m"
KERNEL = "void gemm<float, 128>(gemm<float, 128>::Params)"


def make_small_warehouse(path: Path) -> Path:
    """Write the warehouse to `path`: 10 + 20 kernels on two devices, one step, one rejected file."""
    with Warehouse.open(path, read_only=False) as warehouse:
        execute = warehouse.connection.execute
        execute(
            "INSERT INTO runs (run_id, run_name, path, commit_sha) VALUES "
            "(1, 'base', '/data/base', '4f2a91c0deadbeefcafe'), (2, ?, '/data/evil', NULL)",
            [EVIL_NAME],
        )
        execute(
            "INSERT INTO artifacts (artifact_id, run_id, capture_id, path, kind, sha256, bytes, reader, "
            "reader_version, status, detail) VALUES "
            "(1, 1, 1, 'a.xplane.pb', 'xspace', '01', 5000, 'xspace', 1, 'loaded', NULL), "
            "(2, 1, 2, 'b.xplane.pb', 'xspace', '02', 6000, 'xspace', 1, 'loaded', NULL), "
            "(3, 1, NULL, 'c.xplane.pb', 'xspace', '03', 7, 'xspace', 1, 'rejected', 'truncated at byte 7')"
        )
        execute(
            "INSERT INTO captures (capture_id, run_id, artifact_id, source_kind, process_index, platform) "
            "VALUES (1, 1, 1, 'xspace', 0, 'cuda'), (2, 1, 2, 'xspace', 1, 'cuda')"
        )
        execute(
            "INSERT INTO devices (device_id, run_id, hostname, device_type, device_ordinal, device_kind) "
            "VALUES (1, 1, 'a', 'GPU', 0, 'NVIDIA H200'), (2, 1, 'b', 'GPU', 0, 'NVIDIA H200')"
        )
        execute("INSERT INTO names (name_id, name) VALUES (1, ?), (2, 'train')", [KERNEL])
        for capture_id, count in ((1, 10), (2, 20)):
            execute(
                "INSERT INTO device_events (capture_id, device_event_id, device_id, track_id, name_id, "
                "start_ps, end_ps, kind, role) "
                "SELECT $1, i, $1, 0, 1, i * 1000, i * 1000 + 400, 'kernel', 'work' FROM range($2) AS t(i)",
                [capture_id, count],
            )
        execute(
            "INSERT INTO steps (capture_id, step_id, step_num, name_id, track_id, start_ps, end_ps, source) "
            "VALUES (1, 0, 7, 2, 0, 0, 9000, 'step_trace_annotation')"
        )
        execute(
            "INSERT INTO ingest_problems (run_id, artifact_id, problem, place, occurrences, detail) "
            "VALUES (1, 3, 'unreadable_file', 'c.xplane.pb', 1, 'truncated at byte 7')"
        )
    return path
