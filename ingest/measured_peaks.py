"""Peaks that rocprof-compute measured on the machine itself, by the names of its roofline benchmark.

`roofline.csv` and the analysis database have the same names, in GB/s, GFLOP/s and GOP/s. Beside a name may
stand the bounds of a 95 % confidence interval of its mean, under names ending in `Low` and `High`, of which
some producers misspell a few (`hbmBwHigh`, `MFMAFI8OpsLow`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from tracewh.ingest.capture import ProblemCounter

_GIGA = 1e9
_BANDWIDTH = re.compile(r"(?P<level>HBM|MALL|L2|L1|L0|LDS)Bw(?P<bound>Low|High)?", re.IGNORECASE)
# The F before an integer type is the misspelt one.
_RATE = re.compile(
    r"(?P<unit>MFMA|WMMA)?(?:F(?=I))?"
    r"(?P<dtype>(?:MX)?(?:FP|BF|XF|F|I)\d+(?:F\d+)?)(?:Flops|Ops)(?P<bound>Low|High)?",
    re.IGNORECASE,
)
_DTYPE_FAMILIES = {"fp": "fp", "f": "fp", "bf": "bf", "xf": "xf", "i": "int"}
_DTYPE_PART = re.compile(r"(fp|bf|xf|f|i)(\d+)")


@dataclass(frozen=True)
class MeasuredPeak:
    """One ceiling of one device, as the columns of `device_peaks`.

    `device` is the source's own label. `value` is in bytes or operations per second. `memory_level` (HBM,
    MALL, L2, L1, L0, LDS) is that of a bandwidth, `dtype` (fp64, fp32, xf32, fp16, bf16, fp8, mxfp8, fp6,
    fp4, fp6fp4, int8, int32, int64) that of a rate; `source` says what was read, with the measured range.
    """

    device: str
    quantity: str
    memory_level: str | None
    dtype: str | None
    value: float
    source: str


@dataclass(frozen=True)
class _Quantity:
    quantity: str
    memory_level: str | None
    dtype: str | None


def peaks_of(
    values: Mapping[str, float | str | None],
    device: str,
    source: str,
    problems: ProblemCounter | None = None,
) -> list[MeasuredPeak]:
    """Read the peaks of one device from figures by name, in GB/s, GFLOP/s or GOP/s.

    An empty figure and zero, which stands for a type that the device lacks, are no peaks. Names that mean
    nothing here and figures that are no positive number go to `problems` at the place `source`.
    """
    counter = problems or ProblemCounter()
    central: dict[_Quantity, tuple[str, float]] = {}
    bounds: dict[tuple[_Quantity, str], tuple[str, float]] = {}
    for name, figure in values.items():
        parsed = _parsed(name)
        if parsed is None:
            counter.add("unknown_peak", source, f"not loaded: {name[:80]!r} names no peak known here")
            continue
        number = _number(figure)
        if number is None:
            if figure not in (None, ""):
                detail = f"not loaded: {name} is {str(figure)[:80]!r}, no positive number"
                counter.add("not_a_number", source, detail)
        elif parsed[1]:
            bounds[parsed] = (name, number)
        elif number and parsed[0] in central:
            detail = f"not loaded: {name} measures the same as {central[parsed[0]][0]}"
            counter.add("repeated_peak", source, detail)
        elif number:
            central[parsed[0]] = (name, number)
    for (quantity, _), (name, number) in bounds.items():
        if quantity not in central and number:
            counter.add("bound_without_peak", source, f"not loaded: {name} bounds no peak")
    return [
        MeasuredPeak(
            device=device,
            quantity=quantity.quantity,
            memory_level=quantity.memory_level,
            dtype=quantity.dtype,
            value=number * _GIGA,
            source=f"{source}: {name}" + _range_text(bounds, quantity),
        )
        for quantity, (name, number) in central.items()
    ]


def _parsed(name: str) -> tuple[_Quantity, str] | None:
    """What a name measures, and which bound of it (empty for the mean); None for no peak."""
    if found := _BANDWIDTH.fullmatch(name):
        return _Quantity("bytes_per_s", found["level"].upper(), None), (found["bound"] or "").lower()
    if found := _RATE.fullmatch(name):
        quantity = "matrix_flops_per_s" if found["unit"] else "vector_flops_per_s"
        return _Quantity(quantity, None, _dtype(found["dtype"].lower())), (found["bound"] or "").lower()
    return None


def _dtype(text: str) -> str:
    scaled = "mx" if text.startswith("mx") else ""
    parts = _DTYPE_PART.findall(text.removeprefix("mx"))
    return scaled + "".join(_DTYPE_FAMILIES[family] + bits for family, bits in parts)


def _number(figure: float | str | None) -> float | None:
    try:
        number = float(figure) if figure is not None else math.nan
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


def _range_text(bounds: Mapping[tuple[_Quantity, str], tuple[str, float]], quantity: _Quantity) -> str:
    low, high = bounds.get((quantity, "low")), bounds.get((quantity, "high"))
    if low is None and high is None:
        return ""
    low_text, high_text = ("?" if bound is None else f"{bound[1]:.10g}" for bound in (low, high))
    return f", range {low_text} to {high_text} e9"
