"""Samples of a run's own measurements of time: what each name stands for, and which values are none."""

from __future__ import annotations

import math
import re
from typing import NamedTuple

from tracewh.ingest.capture import ProblemCounter

# Names of a step's time, without the unit; those that come only beside a step number can mean anything else.
_STEP_TIMES = {"step_time", "step_duration", "time_per_step"}
_STEP_TIMES_BESIDE_STEP = {"", "time", "step", "duration", "elapsed"}
# What is reported apart from the step: it takes time of the job, and none of an update.
_APART = {
    **dict.fromkeys(("compile", "compilation", "compile_time", "compilation_time"), "compile_time_s"),
    **dict.fromkeys(("lower", "lowering", "lower_time"), "lower_time_s"),
    **dict.fromkeys(
        ("checkpoint", "checkpoint_time", "checkpointing", "checkpointing_time", "checkpoint_save",
         "save_time"),
        "checkpoint_time_s",
    ),
    **dict.fromkeys(("eval", "eval_time", "evaluation", "evaluation_time"), "evaluation_time_s"),
    **dict.fromkeys(
        ("input_stall", "input_wait", "input_time", "data_wait", "data_load", "data_loading",
         "data_load_time", "data_loading_time", "data_time", "dataloader_time"),
        "input_stall_s",
    ),
}  # fmt: skip
APART_METRICS = frozenset(_APART.values())
"""Metrics of what a job does between its updates, or before the first."""
_OTHERS = {
    **dict.fromkeys(
        ("tflop_s_device", "tflops_s_device", "per_device_tflops_per_sec", "tflops_per_device"),
        "tflops_per_device",
    ),
    **dict.fromkeys(
        ("tokens_s_device", "per_device_tokens_per_sec", "tokens_per_s_per_device"), "tokens_per_s_per_device"
    ),
}
_UNITS = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("ms", "msec", "milliseconds"), 1e-3),
    **dict.fromkeys(("us", "usec", "microseconds"), 1e-6),
}
_UNIT = re.compile(rf"(?:^|_)({'|'.join(_UNITS)})$")
# Groups that MaxText, TensorBoard and others put names of metrics into.
_GROUP = re.compile(r"^(?:perf|learning|train|training|timing|metrics)_(?=.)")
_TIME_METRICS = APART_METRICS | {"step_time_s"}


class TimingSample(NamedTuple):
    """One value of a metric; None where the source does not say."""

    step_num: int | None
    metric: str
    value: float
    is_profiled: bool | None = None
    is_warmup: bool | None = None


def metric_of(name: str, beside_step: bool = False) -> tuple[str, float] | None:
    """The metric that a name stands for, and the factor to its unit; None for a name that is not known.

    `beside_step` says that a step number stands beside it, so that a bare `time` is that of the step.
    """
    plain = _GROUP.sub("", metric_name(name))
    if plain in _OTHERS:
        return _OTHERS[plain], 1.0
    unit = _UNIT.search(plain)
    quantity = plain[: unit.start()] if unit else plain
    scale = _UNITS[unit[1]] if unit else 1.0
    if quantity in _STEP_TIMES or (beside_step and quantity in _STEP_TIMES_BESIDE_STEP):
        # A bare "step" is the number of the step, and a step time without a unit is in seconds.
        return None if plain in ("step", "") else ("step_time_s", scale)
    if quantity in ("s_per_step", "sec_per_step", "seconds_per_step"):
        return "step_time_s", 1.0
    if quantity == "ms_per_step":
        return "step_time_s", 1e-3
    if quantity in _APART and (unit is not None or quantity.endswith("_time")):
        return _APART[quantity], scale
    return None


def metric_name(name: str) -> str:
    """The name in lower case, with `_` for all that is no letter or digit."""
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")


def add_sample(
    samples: list[TimingSample], sample: TimingSample, place: str, problems: ProblemCounter
) -> None:
    """Append the sample, unless it is a time that cannot be one, which is counted as a problem."""
    is_time = sample.metric in _TIME_METRICS
    positive = sample.value > 0 or (sample.metric in APART_METRICS and sample.value == 0)
    if is_time and not (math.isfinite(sample.value) and positive):
        at = "" if sample.step_num is None else f" at step {sample.step_num}"
        problems.add("not_a_time", f"{place}, {sample.metric}", f"{sample.value}{at} is left out")
    else:
        samples.append(sample)
