"""What an analysis database of rocprof-compute says of a workload: machine, options, measured peaks."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from tracewh.ingest.capture import ProblemCounter
from tracewh.ingest.measured_peaks import MeasuredPeak, peaks_of

_SYSTEM, _OPTIONS, _PEAKS = "sys_info_extdata", "profiling_config_extdata", "roofline_bench_extdata"
_SUFFIX = "_extdata"
_PEAKS_SOURCE = "rocprof-compute, roofline_bench_extdata"
# Columns that are no attributes.
_OTHERS = ("workload_id", _PEAKS)
# What rocprofiler-sdk calls the same of an agent.
_AGENT_FIELDS = {
    "cu_count": "cu_per_gpu",
    "num_xcc": "num_xcd",
    "simd_per_cu": "simd_per_cu",
    "wave_front_size": "wave_size",
    "max_waves_per_cu": "max_waves_per_cu",
    "max_engine_clk_fcompute": "max_sclk",
    "workgroup_max_size": "workgroup_max_size",
}


class Description:
    """A row of compute_workload. Its JSON that is none is kept as text, and counted as `invalid_json`."""

    def __init__(self, row: Mapping[str, Any], place: str, problems: ProblemCounter) -> None:
        self._place, self._problems = place, problems
        self._content = {
            column: self._parsed(column, value) if column.endswith(_SUFFIX) else value
            for column, value in row.items()
        }

    def attributes(self) -> dict[str, str | None]:
        """Return all but the peaks: `workload.name`, `sys_info.gpu_arch`, `profiling_config.device`, ..."""
        found: dict[str, str | None] = {}
        for column, value in self._content.items():
            if column not in _OTHERS:
                is_json = column.endswith(_SUFFIX)
                found |= flattened({column.removesuffix(_SUFFIX) if is_json else f"workload.{column}": value})
        return found

    def said(self, key: str) -> str | None:
        """Return what the profiler found of the machine."""
        return flattened(self._system()).get(key) or None

    def agent_fields(self) -> str | None:
        """Return what it found of the GPU as rocprofiler-sdk would say it, as JSON."""
        system = self._system()
        fields = {name: system[key] for name, key in _AGENT_FIELDS.items() if system.get(key) is not None}
        return json.dumps(fields) if fields else None

    def peaks(self) -> list[MeasuredPeak]:
        """Return the peaks; they are those of the device that the options name, else of the first."""
        measured = self._content.get(_PEAKS)
        if not isinstance(measured, dict):
            if measured not in (None, ""):
                self._problems.add("unknown_layout", f"{self._place}.{_PEAKS}", "expected peaks by name")
            return []
        options = self._content.get(_OPTIONS)
        device = options.get("device") if isinstance(options, dict) else None
        is_one = isinstance(device, int) and not isinstance(device, bool) and device >= 0
        return peaks_of(flattened(measured), str(device) if is_one else "0", _PEAKS_SOURCE, self._problems)

    def _system(self) -> dict[str, Any]:
        system = self._content.get(_SYSTEM)
        return system if isinstance(system, dict) else {}

    def _parsed(self, column: str, text: str | None) -> Any:
        if text is None:
            return None
        try:
            content = json.loads(text)
            # What is nested too deep to be walked is kept as text, too.
            flattened({"": content})
        except (ValueError, RecursionError) as error:
            place = f"{self._place}.{column}"
            self._problems.add("invalid_json", place, f"kept as text: {error}")
            return text
        return content


def flattened(content: Mapping[str, Any]) -> dict[str, str | None]:
    """Return scalars of nested objects and lists as text by their path: `a.b`, `a[0]`."""
    return {path: text for key, value in content.items() for path, text in _walk(str(key), value)}


def _walk(path: str, value: Any) -> Iterator[tuple[str, str | None]]:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _walk(f"{path}.{key}" if path else key, inner)
    elif isinstance(value, list) and value:
        for index, inner in enumerate(value):
            yield from _walk(f"{path}[{index}]", inner)
    elif value is None:
        yield _encodable(path), None
    else:
        yield _encodable(path), _encodable(value if isinstance(value, str) else json.dumps(value))


def _encodable(text: str) -> str:
    """The text with lone surrogates, which JSON can spell and UTF-8 cannot, written as escapes."""
    return text.encode("utf-8", "backslashreplace").decode()
