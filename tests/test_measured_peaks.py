"""Peaks by the names of rocprof-compute's roofline benchmark."""

from __future__ import annotations

import pytest

from tracewh.ingest.capture import ProblemCounter
from tracewh.ingest.measured_peaks import MeasuredPeak, peaks_of

RATE, MATRIX, BANDWIDTH = "vector_flops_per_s", "matrix_flops_per_s", "bytes_per_s"


@pytest.mark.parametrize(
    ("name", "quantity", "memory_level", "dtype"),
    [
        ("HBMBw", BANDWIDTH, "HBM", None),
        ("MALLBw", BANDWIDTH, "MALL", None),
        ("L2Bw", BANDWIDTH, "L2", None),
        ("L1Bw", BANDWIDTH, "L1", None),
        ("L0Bw", BANDWIDTH, "L0", None),
        ("LDSBw", BANDWIDTH, "LDS", None),
        ("FP64Flops", RATE, None, "fp64"),
        ("FP32Flops", RATE, None, "fp32"),
        ("FP16Flops", RATE, None, "fp16"),
        ("BF16Flops", RATE, None, "bf16"),
        ("FP8Flops", RATE, None, "fp8"),
        ("I8Ops", RATE, None, "int8"),
        ("I32Ops", RATE, None, "int32"),
        ("I64Ops", RATE, None, "int64"),
        ("MFMAF64Flops", MATRIX, None, "fp64"),
        ("MFMAF32Flops", MATRIX, None, "fp32"),
        ("MFMAXF32Flops", MATRIX, None, "xf32"),
        ("MFMAF16Flops", MATRIX, None, "fp16"),
        ("MFMABF16Flops", MATRIX, None, "bf16"),
        ("MFMAF8Flops", MATRIX, None, "fp8"),
        ("MFMAMXF8Flops", MATRIX, None, "mxfp8"),
        ("MFMAF6Flops", MATRIX, None, "fp6"),
        ("MFMAF4Flops", MATRIX, None, "fp4"),
        ("MFMAF6F4Flops", MATRIX, None, "fp6fp4"),
        ("MFMAI8Ops", MATRIX, None, "int8"),
        ("WMMABF16Flops", MATRIX, None, "bf16"),
    ],
)
def test_names(name: str, quantity: str, memory_level: str | None, dtype: str | None) -> None:
    problems = ProblemCounter()
    expected = MeasuredPeak("0", quantity, memory_level, dtype, 2.5e9, f"roofline.csv: {name}")
    assert peaks_of({name: 2.5}, "0", "roofline.csv", problems) == [expected]
    assert peaks_of({name: "2.5"}, "0", "roofline.csv", problems) == [expected]
    assert problems.problems() == []


@pytest.mark.parametrize(
    ("central", "low", "high"),
    [
        ("L2Bw", "L2BwLow", "L2BwHigh"),
        ("HBMBw", "HBMBwLow", "hbmBwHigh"),
        ("MFMAI8Ops", "MFMAFI8OpsLow", "MFMAI8OpsHigh"),
    ],
)
def test_the_range_is_told(central: str, low: str, high: str) -> None:
    [peak] = peaks_of({low: 90, central: "100.25", high: "110.5"}, "MI300X", "roofline.csv")
    assert (peak.device, peak.value) == ("MI300X", 100.25e9)
    assert peak.source == f"roofline.csv: {central}, range 90 to 110.5 e9"


def test_the_first_of_two_names_for_one_thing_holds() -> None:
    problems = ProblemCounter()
    peaks = peaks_of({"MFMAF16Flops": 2, "MFMAFP16Flops": 3, "WMMAF16Flops": 0}, "0", "x", problems)
    assert [peak.value for peak in peaks] == [2e9]
    assert [problem.problem for problem in problems.problems()] == ["repeated_peak"]


def test_what_is_no_peak() -> None:
    problems = ProblemCounter()
    values = {
        "FP32Flops": 0,
        "FP32FlopsLow": 0,
        "FP64Flops": "",
        "I8Ops": None,
        "HBMBw": "N/A",
        "L2Bw": -1.0,
        "L1Bw": float("nan"),
        "device": 0,
        "MFMAF16FlopsLow": 3.0,
    }
    assert peaks_of(values, "0", "roofline.csv", problems) == []
    # Zero stands for what the device does not do; an empty cell says nothing.
    assert [(p.problem, p.occurrences, p.place) for p in problems.problems()] == [
        ("not_a_number", 3, "roofline.csv"),
        ("unknown_peak", 1, "roofline.csv"),
        ("bound_without_peak", 1, "roofline.csv"),
    ]
    assert problems.problems()[2].detail == "not loaded: MFMAF16FlopsLow bounds no peak"
