"""Step times from a training log: MaxText's lines `completed step: 7, seconds: 20.6, loss: 9.5`."""

from __future__ import annotations

import re

from tracewh.ingest.capture import ProblemCounter
from tracewh.ingest.timing import TimingSample, add_sample, metric_name, metric_of

_STEP = re.compile(r"completed step: ([0-9]{1,18}), (.*)")
# Colors and other control sequences of terminals.
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_METRIC = re.compile(r"[a-z][a-z0-9_]{0,99}")


def read_log(data: bytes, place: str, problems: ProblemCounter) -> list[TimingSample]:
    """Every value of the lines of completed steps; of a metric that is not known, under its own name.

    Whatever the lines begin with, such as a time stamp, is passed over. What is no number is a problem.
    """
    samples: list[TimingSample] = []
    text = _CONTROL.sub("", data.decode("utf-8", "replace"))
    for found in _STEP.finditer(text):
        for part in found[2].strip().split(", "):
            key, _, written = part.partition(": ")
            try:
                value = float(written)
            except ValueError:
                value = None
            metric, scale = metric_of(key, beside_step=True) or (metric_name(key), 1.0)
            if value is None or not _METRIC.fullmatch(metric):
                problems.add("unread_log_value", f"{place}, {key[:40]}", f"{part[:80]} is left out")
                continue
            sample = TimingSample(int(found[1]), metric, value * scale)
            add_sample(samples, sample, place, problems)
    return samples
