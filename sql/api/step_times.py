"""Step times without a profiler, which `tracewh.time_steps` measures."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import jax

from tracewh.ingest.errors import RecordError
from tracewh.record_config import without_secrets
from tracewh.record_environment import commit, environment
from tracewh.record_files import TIMING_FILE, RunFiles, json_bytes
from tracewh.step_bounds import counted_compilations, wait_for_device


class StepTimes(NamedTuple):
    """The state after the last update, and the seconds of each timed one."""

    state: Any
    seconds: list[float]


def time_steps(
    directory: str | os.PathLike[str],
    update: Callable[[Any], Any],
    state: Any,
    *,
    steps: int,
    warmup: int,
    repository: str | os.PathLike[str] | None,
    exist_ok: bool,
) -> StepTimes:
    """Time updates; see `tracewh.time_steps`."""
    if steps < 1 or warmup < 0:
        raise RecordError(
            f"steps={steps}, warmup={warmup}: time at least one step, after none or more others."
        )
    files = RunFiles(directory, jax.process_index(), jax.process_count())
    files.claim_timing(exist_ok=exist_ok)
    for _ in range(warmup):
        state = _updated(update, state)
    seconds = []
    wait_for_device()
    with counted_compilations() as compilations:
        for _ in range(steps):
            started = time.perf_counter()
            state = _updated(update, state)
            seconds.append(time.perf_counter() - started)
    if compilations.count:
        warnings.warn(
            f"tracewh.time_steps: {compilations.count} programs were compiled in the timed steps, and the "
            "times have that in them. Raise warmup, or find what changes shape.",
            stacklevel=3,
        )
    errors: dict[str, str] = {}
    timing = {
        "unprofiled_step_s": seconds,
        "warmup": warmup,
        "compilations": compilations.count,
        **commit(repository, errors),
        "environment": environment(),
    }
    if errors:
        timing["errors"] = errors
    files.write_shared(TIMING_FILE, json_bytes(without_secrets(timing)))
    return StepTimes(state, seconds)


def _updated(update: Callable[[Any], Any], state: Any) -> Any:
    state = update(state)
    if not any(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(state)):
        raise RecordError(
            f"update: returned a {type(state).__name__} without any array of JAX, so the end of its work "
            "cannot be waited for. Return the state that the step computed."
        )
    return jax.block_until_ready(state)
