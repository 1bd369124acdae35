"""A user's own peaks of devices in a warehouse: what is one, adding and removing."""

from __future__ import annotations

import math
from dataclasses import astuple, dataclass, fields

from tracewh.ingest.errors import WarehouseError
from tracewh.sql.kept_metrics import mark_metrics_outdated
from tracewh.sql.rows import SHIPPED_IDS, first_row, next_own_id
from tracewh.sql.step_choices import run_id_of
from tracewh.sql.warehouse import Warehouse, transaction

DTYPES = (
    *("fp64", "fp32", "tf32", "xf32", "bf16", "fp16", "fp8", "mxfp8", "fp6", "fp4", "fp6fp4"),
    *("int8", "int32", "int64"),
)
MEMORY_LEVELS = ("HBM", "MALL", "L2", "L1", "L0", "LDS", "network")
PEAK_KINDS = ("measured", "achievable", "spec")
_MAX_TEXT = 1000
# No device is beyond these; a figure in another unit mostly is.
_TFLOPS = (0.01, 1e5)
_GB_PER_S = dict.fromkeys(MEMORY_LEVELS, (10.0, 1e6)) | {"network": (1.0, 1e5)}


class BadPeak(ValueError):
    """A peak is wrong; its text says what, and what to write instead."""


@dataclass(frozen=True, slots=True)
class Peak:
    """A user's peak, as the columns of device_peaks; `value` is in operations or bytes per second."""

    device_pattern: str
    quantity: str
    memory_level: str | None
    dtype: str | None
    peak_kind: str
    value: float
    source: str


def rate_peak(
    device_pattern: str, dtype: str, tflops: float, peak_kind: str, source: str, *, is_vector: bool = False
) -> Peak:
    """A peak of 1e12 operations per second, of matrix units or of vector units. Raises BadPeak."""
    if dtype not in DTYPES:
        raise BadPeak(f"dtype {dtype[:40]!r} is none of {', '.join(DTYPES)}")
    _check_figure("--tflops", tflops, _TFLOPS, "1e12 operations per second, without sparsity")
    quantity = "vector_flops_per_s" if is_vector else "matrix_flops_per_s"
    return _checked(Peak(device_pattern, quantity, None, dtype, peak_kind, tflops * 1e12, source))


def bandwidth_peak(device_pattern: str, level: str, gb_per_s: float, peak_kind: str, source: str) -> Peak:
    """A peak of 1e9 bytes per second at a memory level, whose letters may be small. Raises BadPeak."""
    known = {name.lower(): name for name in MEMORY_LEVELS}
    if level.lower() not in known:
        raise BadPeak(f"memory level {level[:40]!r} is none of {', '.join(MEMORY_LEVELS)}")
    name = known[level.lower()]
    _check_figure("--gb-per-s", gb_per_s, _GB_PER_S[name], "1e9 bytes per second")
    return _checked(Peak(device_pattern, "bytes_per_s", name, None, peak_kind, gb_per_s * 1e9, source))


def add_peak(warehouse: Warehouse, peak: Peak, run: str | None) -> int:
    """Add a user's peak, for one run or for every run; return its id.

    Raises WarehouseError where there is no such run, or the run has such a peak already.
    """
    connection = warehouse.connection
    run_id = None if run is None else run_id_of(warehouse, run)
    known = first_row(
        connection,
        "SELECT peak_id, value FROM main.device_peaks WHERE peak_id > ? AND capture_id IS NULL "
        "AND run_id IS NOT DISTINCT FROM ? AND device_pattern = ? AND quantity = ? AND peak_kind = ? "
        "AND memory_level IS NOT DISTINCT FROM ? AND dtype IS NOT DISTINCT FROM ?",
        [
            *(SHIPPED_IDS, run_id, peak.device_pattern, peak.quantity, peak.peak_kind),
            *(peak.memory_level, peak.dtype),
        ],
    )
    if known is not None:
        raise WarehouseError(
            f"{warehouse.path}: peak {known[0]} is the same one of {peak.device_pattern}, {known[1]:g} per "
            f"second. Remove it first with `tracewh peaks remove {known[0]}`."
        )
    with transaction(connection):
        peak_id = next_own_id(connection, "peak_id", ["device_peaks"])
        columns = ["peak_id", "run_id", *(field.name for field in fields(Peak))]
        connection.execute(
            f"INSERT INTO main.device_peaks ({', '.join(columns)}) "
            f"VALUES ({', '.join('?' for _ in columns)})",
            [peak_id, run_id, *astuple(peak)],
        )
        mark_metrics_outdated(connection, run_id)
    return peak_id


def remove_peak(warehouse: Warehouse, peak_id: int) -> None:
    """Remove a user's peak.

    Raises WarehouseError where there is none of that id, or it is a shipped one or from a capture.
    """
    found = first_row(
        warehouse.connection,
        "SELECT p.capture_id, r.run_name FROM main.device_peaks AS p "
        "LEFT JOIN main.captures AS c USING (capture_id) "
        "LEFT JOIN main.runs AS r ON r.run_id = c.run_id WHERE p.peak_id = ?",
        [peak_id],
    )
    if found is None:
        raise WarehouseError(f"{warehouse.path}: no peak {peak_id}. `tracewh peaks` lists them.")
    if peak_id <= SHIPPED_IDS:
        raise WarehouseError(
            f"{warehouse.path}: peak {peak_id} is shipped with tracewh. "
            "Add one of your own, which counts first."
        )
    if found[0] is not None:
        raise WarehouseError(
            f"{warehouse.path}: peak {peak_id} was measured with capture {found[0]} of run {found[1]}. "
            "Add one of your own with --run, which counts first."
        )
    with transaction(warehouse.connection):
        warehouse.connection.execute("DELETE FROM main.device_peaks WHERE peak_id = ?", [peak_id])
        mark_metrics_outdated(warehouse.connection)


def _check_figure(option: str, figure: float, bounds: tuple[float, float], unit: str) -> None:
    if not math.isfinite(figure) or figure <= 0:
        raise BadPeak(f"{option} {figure:g} is no positive number")
    if not bounds[0] <= figure <= bounds[1]:
        raise BadPeak(f"{option} {figure:g} is beyond any device; give it in {unit}")


def _checked(peak: Peak) -> Peak:
    for name, text in (("device pattern", peak.device_pattern), ("source", peak.source)):
        if not text.strip() or not text.isprintable():
            raise BadPeak(f"the {name} is empty or not printable")
        if len(text) > _MAX_TEXT:
            raise BadPeak(f"the {name} is longer than {_MAX_TEXT:,} characters")
    if not peak.device_pattern.strip("%_ "):
        raise BadPeak("the device pattern would match every device; name a kind, as 'NVIDIA H200'")
    if peak.peak_kind not in PEAK_KINDS:
        raise BadPeak(f"kind {peak.peak_kind[:40]!r} is none of {', '.join(PEAK_KINDS)}")
    return peak
