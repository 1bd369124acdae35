"""A number that two files about one process share, whatever their formats."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tracewh.ingest.rocm_process import FACT_TIMES, RocmProcess

# What every format of a profiler has, the first that has rows.
_TABLES = ("kernel_dispatch", "memory_copy", "region")
# Odd numbers without a pattern, to spread the bits of times.
_MULTIPLIERS = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F), np.uint64(0x165667B19E3779F9))


def fingerprint(process: RocmProcess) -> str | None:
    """Return the digest of the starts and ends of a process's work, in any order; None where it has none.

    Of its calls, where it has no work.
    """
    for base in _TABLES:
        count, total = 0, np.uint64(0)
        for rows in process.columns(base, FACT_TIMES[base]):
            start, end = (rows.integers(column) for column in FACT_TIMES[base])
            known = pc.and_(start.is_valid(), end.is_valid())
            starts, ends = (np.asarray(time.filter(known).cast(pa.int64())) for time in (start, end))
            count += len(starts)
            with np.errstate(over="ignore"):
                mixed = starts.view(np.uint64) * _MULTIPLIERS[0] + ends.view(np.uint64) * _MULTIPLIERS[1]
                mixed = (mixed ^ (mixed >> np.uint64(31))) * _MULTIPLIERS[2]
                total += np.sum(mixed ^ (mixed >> np.uint64(29)), dtype=np.uint64)
        if count:
            return f"{base}:{count}:{int(total):016x}"
    return None
