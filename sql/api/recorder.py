"""The recorder behind `tracewh.record`: profiles a block, and writes beside the profile what explains it."""

from __future__ import annotations

import operator
import os
import time
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self, TypeVar

import jax

from tracewh.ingest.discovery import RECORD_FILE
from tracewh.ingest.errors import RecordError
from tracewh.record_config import config_object, without_secrets
from tracewh.record_environment import commit, environment
from tracewh.record_files import (
    CONFIG_FILE,
    MEMORY_PROFILE_FILE,
    MEMORY_STATS_FILE,
    PROFILE_FOLDER,
    RunFiles,
    json_bytes,
)
from tracewh.record_program import check_compiled, noted, reason, write_program
from tracewh.step_bounds import counted_compilations, wait_for_device

Value = TypeVar("Value")

_FORMAT = 1


class Recorder:
    """Records the block of its `with` statement; made by `tracewh.record`, whose arguments it has."""

    def __init__(
        self,
        directory: str | os.PathLike[str],
        *,
        step: int | None,
        compiled: jax.stages.Compiled | None,
        config: Any | None,
        mesh: Any | None,
        repository: str | os.PathLike[str] | None,
        profiler_options: Any | None,
        exist_ok: bool,
    ) -> None:
        if compiled is not None:
            check_compiled(compiled)
        self._compiled = compiled
        self._config = None if config is None else config_object(config)
        self._block_step = None if step is None else operator.index(step)
        self._mesh, self._repository, self._options = mesh, repository, profiler_options
        self._exist_ok = exist_ok
        self._process = jax.process_index(), jax.process_count()
        self._files = RunFiles(directory, *self._process)
        self._state = "new"
        self._module: str | None = None
        self._errors: dict[str, str] = {}
        self._steps: list[tuple[int, float]] = []
        self._memory: dict[str, dict[str, dict[str, int]]] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        if self._state != "new":
            raise RecordError(
                f"{self._files.root}: a recorder records once. Make another with tracewh.record."
            )
        self._state = "ended"
        wait_for_device()
        self._files.claim_record(exist_ok=self._exist_ok)
        self._started_at = datetime.now(UTC)
        if self._config is not None:
            self._files.write_shared(CONFIG_FILE, json_bytes(self._config))
        if self._compiled is not None and self._files.writes_shared:
            self._module = write_program(self._compiled, self._files, self._errors)
        self._note_memory("before")
        self._start_trace()
        self._compilations = self._stack.enter_context(counted_compilations())
        self._state = "open"
        if self._block_step is not None:
            self._stack.enter_context(self._marked(self._block_step))
        return self

    def step(self, number: int) -> AbstractContextManager[None]:
        """Mark the block as the update of this number: `with recorder.step(10): ...`.

        At both ends it waits until the device is idle, so that the device's work of the update lies within.
        Raises RecordError within another step, and outside of the recorded block.
        """
        if self._state == "in a step":
            raise RecordError(
                f"step {number}: a step is open already: steps do not nest, and with step= the block is one."
            )
        if self._state != "open":
            raise RecordError(
                f"step {number}: not within `with tracewh.record(...)`, so nothing is recorded."
            )
        return self._marked(operator.index(number))

    def wait(self, value: Value) -> Value:
        """Return the arrays in `value`, any tree of them, when they are computed."""
        ready: Value = jax.block_until_ready(value)
        return ready

    @contextmanager
    def _marked(self, number: int) -> Iterator[None]:
        wait_for_device()
        state, self._state = self._state, "in a step"
        started = time.perf_counter()
        try:
            with jax.profiler.StepTraceAnnotation("train", step_num=number):
                yield
                wait_for_device()
            self._steps.append((number, time.perf_counter() - started))
        finally:
            self._state = state

    def _start_trace(self) -> None:
        options = self._options if self._options is not None else _profiler_options()
        named = {} if options is None else {"profiler_options": options}
        try:
            jax.profiler.start_trace(self._files.own_staging(PROFILE_FOLDER), **named)
        except BaseException:
            self._files.withdraw()
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        late: BaseException | None = None
        try:
            self._stack.__exit__(kind, error, traceback)
            if error is None:
                wait_for_device()
        except BaseException as raised:
            # Of an asynchronous computation, an error comes up where it is waited for.
            late = raised
        self._state = "ended"
        first = error or late
        try:
            self._finish(first)
        except Exception as failure:
            if first is None:
                raise
            first.add_note(f"{self._files.root}: the record is not complete: {failure}")
        if late is not None and late is not error:
            raise late

    def _finish(self, error: BaseException | None) -> None:
        """Stop the profiler and write what is known now. Raises RecordError without a profile."""
        self._note_memory("after")
        with noted(self._errors, "profile"):
            jax.profiler.stop_trace()
            self._files.place_own(PROFILE_FOLDER)
        if self._memory:
            self._files.write_own(MEMORY_STATS_FILE, json_bytes(self._memory))
        with noted(self._errors, "device_memory_profile"):
            self._files.write_own(MEMORY_PROFILE_FILE, jax.profiler.device_memory_profile())
        self._files.write_own(RECORD_FILE, json_bytes(self._record(error)))
        if "profile" in self._errors:
            raise RecordError(f"{self._files.own}: no profile: {self._errors['profile']}")
        if self._compilations.count:
            warnings.warn(
                f"tracewh.record: {self._compilations.count} programs were compiled while the profiler ran. "
                "Run the step before the recorded block, so that its times are those of a compiled step.",
                stacklevel=3,
            )

    def _record(self, error: BaseException | None) -> dict[str, Any]:
        index, count = self._process
        times = self._steps if self._files.writes_shared else []
        state = commit(self._repository, self._errors)
        with noted(self._errors, "environment"):
            state["environment"] = environment(self._mesh)
        if error is not None:
            self._errors["block"] = reason(error)
        if not self._steps:
            self._errors["steps"] = (
                "no step was completed; mark each with recorder.step(number), or pass step="
            )
        if self._compiled is None:
            self._errors["program"] = "compiled was not passed: no memory and cost analysis"
        return without_secrets(
            {
                "format": _FORMAT,
                **state,
                "process_index": index,
                "process_count": count,
                "started_at": self._started_at.isoformat(timespec="seconds"),
                "hlo_module": self._module,
                "step_count": len(self._steps),
                "compilations": self._compilations.count,
                "profiled_steps": [{"step_num": number, "seconds": seconds} for number, seconds in times],
                "errors": self._errors,
            }
        )

    def _note_memory(self, when: str) -> None:
        """Note the allocator's statistics of the devices of this process, in bytes."""
        with noted(self._errors, f"memory_stats_{when}"):
            for device in jax.local_devices():
                statistics = device.memory_stats()
                if statistics:
                    self._memory.setdefault(when, {})[_device_label(device)] = dict(statistics)
            if when not in self._memory:
                self._errors[f"memory_stats_{when}"] = "the backend gives no allocator statistics"


def _device_label(device: jax.Device) -> str:
    """The device by its place in this host, which is what profilers number devices by."""
    place = getattr(device, "local_hardware_id", None)
    return f"{device.platform}:{device.id if place is None else place}"


def _profiler_options() -> Any | None:
    """Options for a trace that tells of device and runtime, without the cost of each call of Python."""
    if not hasattr(jax.profiler, "ProfileOptions"):
        return None
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0
    options.host_tracer_level = 2
    options.enable_hlo_proto = True
    return options
