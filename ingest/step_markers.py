"""Texts of markers that name a training step: what profilers of any kind call NVTX, ROCTx or trace ranges."""

from __future__ import annotations

import re

_STEP_MARKER = re.compile(
    r"(?P<word>train|step|train_step|training_step)"
    r"(?:[ _](?P<plain>\d{1,18})|#(?:[^#]*,)?step_num=(?P<annotated>\d{1,18})(?:,[^#]*)?#)",
    re.IGNORECASE,
)


def step_marker(text: str) -> tuple[str, int] | None:
    """Return what the text of a marker calls a step and its number, or None for another text.

    `train_step 12` and `train_step#step_num=12#` are both step 12 of `train_step`.
    """
    found = _STEP_MARKER.fullmatch(text.strip())
    return (found["word"], int(found["plain"] or found["annotated"])) if found else None
