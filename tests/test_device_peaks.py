"""The shipped peaks, recomputed from what the architectures do per clock, and what holds for real devices."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from tracewh.sql.peaks import DTYPES, MEMORY_LEVELS, PEAK_KINDS
from tracewh.sql.rows import SHIPPED_IDS
from tracewh.sql.schema_files import create_schema
from tracewh.sql.view_install import install_views
from tracewh.views.audit_catalog import load_audits
from tracewh.views.catalog import load_views

from .shared_runs import ingested

# Operations per clock of one unit, a multiply-add being two: of a CDNA compute unit, of an SM, of a
# TensorCore with its MXUs of 128 x 128 multiply-adds. By the white papers of CDNA 2, 3 and 4, of A100 and of
# H100, and by the system architecture pages of Cloud TPU; those of v6e say two MXUs of 256 x 256, which make
# its rate at twice the clock alone.
MXU = 128 * 128 * 2


def rates(matrix_16bit: int, *, vector: dict[str, int], **others: int) -> dict[str, dict[str, int]]:
    """Operations per clock by kind of unit and dtype; bf16 and fp16 have one rate in matrix units."""
    return {"matrix": {"bf16": matrix_16bit, "fp16": matrix_16bit, **others}, "vector": vector}


CDNA2 = rates(1024, fp64=256, fp32=256, int8=1024, vector={"fp64": 128, "fp32": 256})
CDNA3 = rates(2048, fp64=256, fp32=256, xf32=1024, fp8=4096, int8=4096, vector={"fp64": 128, "fp32": 256})
CDNA4 = rates(
    4096, fp64=128, fp32=256, fp8=8192, int8=8192, fp6=16384, fp4=16384, vector={"fp64": 128, "fp32": 256}
)
AMPERE = rates(
    2048, fp64=128, tf32=1024, int8=4096, vector={"fp64": 64, "fp32": 128, "bf16": 256, "fp16": 512}
)
HOPPER = rates(
    4096,
    fp64=256, tf32=2048, fp8=8192, int8=8192,
    vector={"fp64": 128, "fp32": 256, "bf16": 512, "fp16": 512},
)  # fmt: skip
BLACKWELL = rates(8192, tf32=4096, fp8=16384, fp6=16384, int8=16384, fp4=32768, vector={})
V4: dict[str, dict[str, int]] = {"matrix": {"bf16": 4 * MXU, "int8": 4 * MXU}, "vector": {}}
V5: dict[str, dict[str, int]] = {"matrix": {"bf16": 4 * MXU, "int8": 8 * MXU}, "vector": {}}
V6: dict[str, dict[str, int]] = {"matrix": {"bf16": 16 * MXU, "int8": 32 * MXU}, "vector": {}}
# Units, highest clocks in MHz for rates of matrix units (without fp64) and for the others.
DEVICES = {
    "AMD Instinct MI250X": (CDNA2, 110, 1700, 1700),
    "AMD Instinct MI300X": (CDNA3, 304, 2100, 2100),
    "AMD Instinct MI325X": (CDNA3, 304, 2100, 2100),
    "AMD Instinct MI350X": (CDNA4, 256, 2200, 2200),
    "AMD Instinct MI355X": (CDNA4, 256, 2400, 2400),
    "NVIDIA A100 SXM 40GB": (AMPERE, 108, 1410, 1410),
    "NVIDIA A100 SXM 80GB": (AMPERE, 108, 1410, 1410),
    "NVIDIA A100 PCIe 40GB": (AMPERE, 108, 1410, 1410),
    "NVIDIA A100 PCIe 80GB": (AMPERE, 108, 1410, 1410),
    "NVIDIA H100 SXM": (HOPPER, 132, 1830, 1980),
    "NVIDIA H100 PCIe": (HOPPER, 114, 1620, 1755),
    # Its data sheet has sparse rates alone; half of them is this clock.
    "NVIDIA H100 NVL": (HOPPER, 132, 1545, 1785),
    "NVIDIA H200": (HOPPER, 132, 1830, 1980),
    # A clock for which the data sheet's rounded figures fit.
    "NVIDIA B200": (BLACKWELL, 148, 1856, 1965),
    "TPU v4": (V4, 2, 1050, 1050),
    "TPU v5e": (V5, 1, 1500, 1500),
    "TPU v5p": (V5, 2, 1750, 1750),
    "TPU v6e": (V6, 1, 1751, 1751),
}
#: Bits of the memory bus, and Gb/s of each.
MEMORY = {
    "AMD Instinct MI250X": (4096, 3.2),
    "AMD Instinct MI300X": (8192, 5.2),
    "AMD Instinct MI325X": (8192, 6.0),
    "AMD Instinct MI350X": (8192, 8.0),
    "AMD Instinct MI355X": (8192, 8.0),
    "NVIDIA A100 SXM 40GB": (5120, 2.43),
    "NVIDIA A100 PCIe 40GB": (5120, 2.43),
    "NVIDIA A100 SXM 80GB": (5120, 3.186),
    "NVIDIA A100 PCIe 80GB": (5120, 3.024),
    "NVIDIA H100 SXM": (5120, 5.238),
    "NVIDIA H100 PCIe": (5120, 3.186),
    "NVIDIA H100 NVL": (6016, 5.238),
    "NVIDIA B200": (8192, 8.0),
}
#: Links, and GB/s of each in one direction.
LINKS = {
    "AMD Instinct MI300X": (7, 64),
    "AMD Instinct MI325X": (7, 64),
    "AMD Instinct MI350X": (7, 76.8),
    "AMD Instinct MI355X": (7, 76.8),
    "NVIDIA A100 SXM 40GB": (12, 25),
    "NVIDIA A100 SXM 80GB": (12, 25),
    "NVIDIA H100 SXM": (18, 25),
    "NVIDIA H200": (18, 25),
    "NVIDIA B200": (18, 50),
    "TPU v4": (6, 50),
    "TPU v5e": (4, 50),
    "TPU v5p": (6, 100),
    "TPU v6e": (4, 100),
}
#: Bytes per clock of a whole device: XCDs or dies x channels x line, and banks x 4 B of each unit.
L2_BYTES = {
    "AMD Instinct MI250X": 32 * 128,
    **dict.fromkeys(["AMD Instinct MI300X", "AMD Instinct MI325X"], 8 * 16 * 128),
    **dict.fromkeys(["AMD Instinct MI350X", "AMD Instinct MI355X"], 8 * 16 * 128),
    **{name: 5120 for name in DEVICES if "A100" in name},
}
LDS_BANKS = {name: 64 if architecture is CDNA4 else 32 for name, (architecture, *_) in DEVICES.items()}


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        create_schema(connection)
        install_views(connection, load_views())
        yield connection


def shipped(
    connection: duckdb.DuckDBPyConnection, product: str, quantity: str, kind: str = "spec"
) -> dict[str, tuple[float, float | None, int | None]]:
    """Value, clock and cores of what is shipped for a product, by dtype or memory level."""
    rows = connection.execute(
        "SELECT COALESCE(dtype, memory_level), value, clock_mhz, core_count FROM main.device_peaks "
        "WHERE device_pattern = ? AND quantity = ? AND peak_kind = ?",
        [product, quantity, kind],
    ).fetchall()
    found = {name: (value, clock, cores) for name, value, clock, cores in rows}
    assert len(found) == len(rows)
    return found


def test_rows_are_whole(connection: duckdb.DuckDBPyConnection) -> None:
    rows = connection.execute(
        "SELECT peak_id, run_id, capture_id, device_pattern, quantity, memory_level, dtype, peak_kind, "
        "value, source FROM main.device_peaks"
    ).fetchall()
    assert len({row[0] for row in rows}) == len(rows)
    assert {row[3] for row in rows} == set(DEVICES)
    for peak_id, run_id, capture_id, _, quantity, level, dtype, kind, value, source in rows:
        assert 0 < peak_id <= SHIPPED_IDS
        assert run_id is None
        assert capture_id is None
        assert (level in MEMORY_LEVELS, dtype in DTYPES) == (
            quantity == "bytes_per_s",
            quantity != "bytes_per_s",
        )
        assert kind in PEAK_KINDS
        assert value > 0
        assert source.strip()


@pytest.mark.parametrize("product", DEVICES)
def test_rates_are_units_times_clock_times_operations(
    connection: duckdb.DuckDBPyConnection, product: str
) -> None:
    architecture, units, matrix_mhz, other_mhz = DEVICES[product]
    for kind, per_clock in architecture.items():
        found = shipped(connection, product, f"{kind}_flops_per_s")
        # What NVIDIA's sheets leave open is not made up.
        missing = {"bf16", "fp16"} if product == "NVIDIA H100 NVL" and kind == "vector" else set()
        assert set(found) == set(per_clock) - missing
        for dtype, (value, clock, cores) in found.items():
            mhz = matrix_mhz if kind == "matrix" and dtype != "fp64" else other_mhz
            assert cores == units
            assert clock in (mhz, None)
            # Sheets round, some to two digits.
            expected = units * mhz * 1e6 * per_clock[dtype]
            assert value == pytest.approx(expected, rel=5e-3 if clock else 1e-2)


@pytest.mark.parametrize("product", DEVICES)
def test_achievable_rates_are_below_the_specified(
    connection: duckdb.DuckDBPyConnection, product: str
) -> None:
    for quantity in ("matrix_flops_per_s", "bytes_per_s"):
        spec = shipped(connection, product, quantity)
        for name, (value, *_) in shipped(connection, product, quantity, "achievable").items():
            assert 0.4 * spec[name][0] < value < spec[name][0]


@pytest.mark.parametrize("product", DEVICES)
def test_bandwidths(connection: duckdb.DuckDBPyConnection, product: str) -> None:
    found = {name: value for name, (value, *_) in shipped(connection, product, "bytes_per_s").items()}
    _, units, _, mhz = DEVICES[product]
    if product in MEMORY:
        bits, gbits = MEMORY[product]
        # AMD and NVIDIA round down, to 6.0 TB/s where the bus of MI325X has 6.144.
        assert found["HBM"] == pytest.approx(bits / 8 * gbits * 1e9, rel=0.025)
    else:
        assert found["HBM"] > 0
    assert ("network" in found) == (product in LINKS)
    if product in LINKS:
        count, each = LINKS[product]
        assert found["network"] == pytest.approx(count * each * 1e9)
    assert ("L2" in found) == (product in L2_BYTES)
    if product in L2_BYTES:
        assert found["L2"] == pytest.approx(L2_BYTES[product] * mhz * 1e6, rel=1e-3)
    assert ("LDS" in found) == (not product.startswith("TPU") and product != "NVIDIA B200")
    if "LDS" in found:
        assert found["LDS"] == pytest.approx(units * LDS_BANKS[product] * 4 * mhz * 1e6, rel=1e-3)


def test_ridge_of_mi355x(connection: duckdb.DuckDBPyConnection) -> None:
    flops = shipped(connection, "AMD Instinct MI355X", "matrix_flops_per_s")["bf16"][0]
    bandwidth = shipped(connection, "AMD Instinct MI355X", "bytes_per_s")["HBM"][0]
    assert flops / bandwidth == pytest.approx(314.6, abs=0.05)


def test_every_product_with_peaks_can_be_recognized(connection: duckdb.DuckDBPyConnection) -> None:
    rows = connection.execute(
        "SELECT DISTINCT product, core_count FROM main.device_products WHERE product IN "
        "(SELECT device_pattern FROM main.device_peaks)"
    ).fetchall()
    assert dict(rows) == {product: units for product, (_, units, *_) in DEVICES.items()}
    patterns = connection.execute(
        "SELECT device_pattern, count(DISTINCT product) FROM main.device_products "
        "GROUP BY 1 HAVING count(*) > 1"
    ).fetchall()
    # Only these names say less than the product.
    assert {pattern for pattern, _ in patterns} == {"%gfx90a%", "%gfx942%", "%gfx950%", "MI350"}


def test_mi300x_states_half_of_its_bandwidth(tmp_path: Path) -> None:
    with ingested("TraceLens-mi300-jax08_gemm", tmp_path) as run:
        rows = run.rows(
            "SELECT DISTINCT product, value, trace_value, count(*) OVER () FROM v1.device_peaks "
            "WHERE memory_level = 'HBM' AND peak_kind = 'spec'"
        )
        assert rows == [("AMD Instinct MI300X", 5.3e12, 2.6624e12, 8)]
        query = next(audit.sql for audit in load_audits() if audit.name == "trace_peaks_differ")
        (row,) = run.rows(query)
        assert row[2:7] == ("AMD gfx942", 8, "memory_bandwidth", 2.6624e12, 5.3e12)


def test_devices_of_a_capture_that_are_not_identified_have_no_peaks(tmp_path: Path) -> None:
    with ingested("TraceLens-te_fused_attn", tmp_path) as run:
        known = run.rows("SELECT DISTINCT device_ordinal, product FROM v1.device_peaks")
        assert known == [(0, "AMD Instinct MI355X")]
        assert run.rows("SELECT count(*) FROM main.devices WHERE device_type = 'GPU'") == [(8,)]


def test_tpu_agrees_with_its_trace(tmp_path: Path) -> None:
    with ingested("xprof-tpu_inference_2", tmp_path) as run:
        rows = run.rows(
            "SELECT DISTINCT COALESCE(dtype, memory_level), round(trace_ratio, 3) FROM v1.device_peaks "
            "WHERE trace_value IS NOT NULL ORDER BY 1"
        )
        assert rows == [("HBM", 1.0), ("bf16", 1.0)]


def test_h200(tmp_path: Path) -> None:
    with ingested("h200x1_small", tmp_path) as run:
        rows = run.rows(
            "SELECT COALESCE(dtype, memory_level), value, trace_value FROM v1.device_peaks "
            "WHERE (memory_level = 'HBM' OR dtype = 'bf16' AND quantity = 'matrix_flops_per_s') ORDER BY 1"
        )
        assert rows == [("HBM", 4.8e12, 4.814304e12), ("bf16", 989.4e12, None)]


def test_a_device_of_an_unknown_kind_has_no_peaks(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("INSERT INTO main.runs (run_id, run_name, path) VALUES (1, 'r', '')")
    connection.execute(
        "INSERT INTO main.captures (capture_id, run_id, artifact_id, source_kind) VALUES (1, 1, 1, 'xspace')"
    )
    kinds = [
        "NVIDIA H20",
        "NVIDIA H100",
        "AMD gfx1151",
        "AMD Instinct MI300A",
        "TPU v7x",
        "NVIDIA H200 NVL",
        "Tesla V100",
    ]
    for device_id, kind in enumerate(kinds):
        connection.execute(
            "INSERT INTO main.devices "
            "(device_id, run_id, hostname, device_type, device_ordinal, device_kind) "
            "VALUES ($1, 1, '', 'GPU', $1, $2)",
            [device_id, kind],
        )
        connection.execute(
            "INSERT INTO main.device_attributes (capture_id, device_id, attribute, value) "
            "VALUES (1, ?, 'device_vendor', 'some')",
            [device_id],
        )
    assert connection.execute("SELECT count(*) FROM v1.device_peaks").fetchall() == [(0,)]
    query = next(audit.sql for audit in load_audits() if audit.name == "peak_unknown")
    rows = connection.execute(query).fetchall()
    assert {(row[2], row[4]) for row in rows} == {(kind, "FLOPs and bandwidth") for kind in kinds}
