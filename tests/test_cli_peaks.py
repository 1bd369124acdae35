"""`tracewh peaks`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import pytest
from click.testing import CliRunner, Result

from tracewh.cli import main

from .small_warehouse import EVIL_NAME, make_small_warehouse

RATE = ("NVIDIA H200", "--dtype", "bf16", "--tflops", "700", "--source", "our GEMM")
BANDWIDTH = ("NVIDIA H200", "--level", "HBM", "--gb-per-s", "4210", "--source", "babelstream")


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    """Run `base` has two H200s, one in each of its captures; capture 1 measured a bandwidth, too."""
    path = make_small_warehouse(tmp_path / "small.duckdb")
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "INSERT INTO device_attributes (capture_id, device_id, attribute, value) VALUES "
            "(1, 1, 'core_count', '132'), (2, 2, 'core_count', '132'), "
            "(1, 1, 'memory_bandwidth', '4814304000000')"
        )
        connection.execute(
            "INSERT INTO device_peaks (peak_id, capture_id, device_pattern, quantity, memory_level, "
            "peak_kind, value, source) "
            "VALUES (1001, 1, 'NVIDIA H200', 'bytes_per_s', 'L2', 'measured', 5e12, 'roofline.csv')"
        )
    return path


def peaks(warehouse: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["peaks", *arguments, "-w", str(warehouse)])


def listed(warehouse: Path, *arguments: str) -> list[dict[str, Any]]:
    result = peaks(warehouse, *arguments, "--json")
    assert result.exit_code == 0, result.output
    found: list[dict[str, Any]] = json.loads(result.stdout)
    return found


def own(warehouse: Path) -> list[dict[str, Any]]:
    return [peak for peak in listed(warehouse) if peak["origin"] == "user"]


def test_all_peaks_are_listed_with_their_source(warehouse: Path) -> None:
    found = listed(warehouse)
    assert {peak["origin"] for peak in found} == {"reference", "capture 1"}
    assert all(peak["source"] for peak in found)
    (measured,) = (peak for peak in found if peak["id"] == 1001)
    assert (measured["device"], measured["run"], measured["value"]) == ("NVIDIA H200", "base", 5e12)
    text = peaks(warehouse).stdout
    assert text.count("\n") == len(found) + 2
    assert "989.4 TFLOP/s" in text
    assert "5,300 GB/s" in text
    assert "2,614.9 TOP/s" in text


def test_peaks_of_a_run_are_those_of_its_devices(warehouse: Path) -> None:
    found = {
        (peak["quantity"], peak["dtype"] or peak["level"], peak["kind"]): peak
        for peak in listed(warehouse, "--run", "base")
    }
    assert {peak["device"] for peak in found.values()} == {"NVIDIA H200"}
    rate = found["matrix_flops_per_s", "bf16", "spec"]
    assert (rate["value"], rate["devices"], rate["scale_ratio"], rate["origin"]) == (
        989.4e12,
        2,
        1.0,
        "reference",
    )
    assert ("bytes_per_s", "L2", "measured") in found
    text = peaks(warehouse, "--run", "base").stdout
    (line,) = (line for line in text.splitlines() if " HBM " in line and "4,814 GB/s" in line)
    assert "4,800 GB/s" in line


def test_a_run_without_known_devices(warehouse: Path) -> None:
    result = peaks(warehouse, "--run", EVIL_NAME)
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "No peak is known for the devices of evil\\x1b[31m.\n"
    assert listed(warehouse, "--run", EVIL_NAME) == []
    result = peaks(warehouse, "--run", "none")
    assert result.exit_code == 1
    assert "has no run none; its runs: base" in result.stderr


def test_a_rate_of_every_run(warehouse: Path) -> None:
    result = peaks(warehouse, "add", *RATE)
    assert result.exit_code == 0, result.output
    assert result.stdout == "Added peak 1002: NVIDIA H200, bf16, 700.0 TFLOP/s.\n"
    assert result.stderr == f"Undo: tracewh peaks -w {warehouse} remove 1002\n"
    (peak,) = own(warehouse)
    assert (peak["quantity"], peak["dtype"], peak["level"]) == ("matrix_flops_per_s", "bf16", None)
    assert (peak["kind"], peak["value"], peak["run"], peak["source"]) == ("measured", 7e14, None, "our GEMM")
    (counted,) = (peak for peak in listed(warehouse, "--run", "base") if peak["id"] == 1002)
    assert (counted["origin"], counted["devices"]) == ("user", 2)


def test_a_bandwidth_of_one_run_counts_before_that_of_every_run(warehouse: Path) -> None:
    assert peaks(warehouse, "add", *BANDWIDTH, "--kind", "spec").exit_code == 0
    assert peaks(warehouse, "add", *BANDWIDTH, "--kind", "spec", "--run", "base").exit_code == 0
    (counted,) = (
        peak
        for peak in listed(warehouse, "--run", "base")
        if (peak["level"], peak["kind"], peak["devices"]) == ("HBM", "spec", 1)
        and peak["trace_value"] is not None
    )
    assert (counted["id"], counted["origin"], counted["value"]) == (1003, "run_user", 4.21e12)
    assert counted["trace_ratio"] == pytest.approx(4814.304 / 4210)


def test_vector_rates_and_small_letters(warehouse: Path) -> None:
    arguments = ("AMD%gfx942", "--dtype", "fp32", "--tflops", "120", "--vector", "--source", "our FMA loop")
    result = peaks(warehouse, "add", *arguments)
    assert "No device of the warehouse is AMD%gfx942 so far.\n" in result.stderr
    assert (
        peaks(
            warehouse, "add", "NVIDIA H200", "--level", "lds", "--gb-per-s", "30000", "--source", "x"
        ).exit_code
        == 0
    )
    assert [(peak["quantity"], peak["dtype"], peak["level"]) for peak in own(warehouse)] == [
        ("vector_flops_per_s", "fp32", None),
        ("bytes_per_s", None, "LDS"),
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("x", "--source", "s"), "give either --dtype and --tflops or --level and --gb-per-s."),
        ((*RATE, "--level", "HBM", "--gb-per-s", "4000"), "give either"),
        (("x", "--dtype", "bf16", "--source", "s"), "a rate needs --dtype and --tflops."),
        (("x", "--vector", "--source", "s"), "a rate needs --dtype and --tflops."),
        (("x", "--level", "HBM", "--source", "s"), "a bandwidth needs --level and --gb-per-s."),
        (("x", "--dtype", "bf17", "--tflops", "1", "--source", "s"), "dtype 'bf17' is none of fp64, fp32"),
        (("x", "--level", "L9", "--gb-per-s", "99", "--source", "s"), "memory level 'L9' is none of HBM,"),
        (("x", "--dtype", "bf16", "--tflops", "0", "--source", "s"), "--tflops 0 is no positive number."),
        (("x", "--dtype", "bf16", "--tflops", "-3", "--source", "s"), "--tflops -3 is no positive number."),
        (("x", "--dtype", "bf16", "--tflops", "nan", "--source", "s"), "--tflops nan is no positive number."),
        (("x", "--level", "HBM", "--gb-per-s", "inf", "--source", "s"), "--gb-per-s inf is no positive"),
        (("x", "--dtype", "bf16", "--tflops", "7e14", "--source", "s"), "give it in 1e12 operations per"),
        (("x", "--level", "HBM", "--gb-per-s", "8e12", "--source", "s"), "give it in 1e9 bytes per second."),
        (("x", "--level", "HBM", "--gb-per-s", "4.8", "--source", "s"), "give it in 1e9 bytes per second."),
        (("x", "--level", "HBM", "--gb-per-s", "much", "--source", "s"), "'much' is not a valid float"),
        ((*RATE, "--kind", "hoped"), "kind 'hoped' is none of measured, achievable, spec."),
        (("x", "--dtype", "bf16", "--tflops", "7", "--source", " "), "the source is empty or not printable."),
        (("x", "--dtype", "bf16", "--tflops", "7", "--source", "a" * 1001), "longer than 1,000 characters."),
        (("", "--dtype", "bf16", "--tflops", "7", "--source", "s"), "the device pattern is empty"),
        (("x\x1b", "--dtype", "bf16", "--tflops", "7", "--source", "s"), "the device pattern is empty or"),
        (("%", "--dtype", "bf16", "--tflops", "7", "--source", "s"), "would match every device"),
        (("x", "--dtype", "bf16", "--tflops", "7"), "Missing option '--source'"),
    ],
)  # fmt: skip
def test_what_is_no_peak(warehouse: Path, arguments: tuple[str, ...], message: str) -> None:
    result = peaks(warehouse, "add", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert own(warehouse) == []


def test_the_same_peak_twice(warehouse: Path) -> None:
    assert peaks(warehouse, "add", *RATE).exit_code == 0
    result = peaks(warehouse, "add", *RATE)
    assert result.exit_code == 1
    assert "peak 1002 is the same one of NVIDIA H200, 7e+14 per second." in result.stderr
    assert "`tracewh peaks remove 1002`" in result.stderr
    # Of another kind, of another run, or of another type, it is another one.
    assert peaks(warehouse, "add", *RATE, "--kind", "achievable").exit_code == 0
    assert peaks(warehouse, "add", *RATE, "--run", "base").exit_code == 0
    assert peaks(warehouse, "add", *RATE, "--vector").exit_code == 0


def test_a_run_that_is_not_there(warehouse: Path) -> None:
    result = peaks(warehouse, "add", *RATE, "--run", "none")
    assert result.exit_code == 1
    assert "has no run none" in result.stderr


def test_removing(warehouse: Path) -> None:
    peaks(warehouse, "add", *RATE)
    result = peaks(warehouse, "remove", "1002")
    assert (result.exit_code, result.stdout) == (0, "Removed peak 1002.\n")
    assert own(warehouse) == []
    for peak_id, message in (
        ("1002", "no peak 1002. `tracewh peaks` lists them."),
        ("1", "peak 1 is shipped with tracewh. Add one of your own, which counts first."),
        ("1001", "peak 1001 was measured with capture 1 of run base."),
    ):
        result = peaks(warehouse, "remove", peak_id)
        assert result.exit_code == 1
        assert message in result.stderr
    assert 1001 in {peak["id"] for peak in listed(warehouse)}


def test_peaks_of_a_run_go_with_it(warehouse: Path) -> None:
    peaks(warehouse, "add", *RATE, "--run", "base")
    peaks(warehouse, "add", *BANDWIDTH)
    assert CliRunner().invoke(main, ["rm", "base", "--yes", "-w", str(warehouse)]).exit_code == 0
    assert {peak["id"] for peak in listed(warehouse) if peak["origin"] != "reference"} == {1003}


def test_a_warehouse_before_the_subcommand_holds_for_it(warehouse: Path) -> None:
    result = CliRunner().invoke(main, ["peaks", "-w", str(warehouse), "add", *RATE])
    assert result.exit_code == 0, result.output
    assert len(own(warehouse)) == 1
