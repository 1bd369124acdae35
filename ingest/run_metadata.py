"""A run's own files beside its captures: configuration, step times, memory figures, training log."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice, tee
from typing import Any

import yaml

from tracewh.ingest.capture import ProblemCounter
from tracewh.ingest.content import uncompressed_name
from tracewh.ingest.device_labels import device_number
from tracewh.ingest.errors import UnreadableFile
from tracewh.ingest.flop_ledger import LedgerRow, read_ledger
from tracewh.ingest.memory_profile import MemoryProfile
from tracewh.ingest.memory_profile import read as read_memory_profile
from tracewh.ingest.run_rules import Rule, read_rules
from tracewh.ingest.secret_names import secret_params
from tracewh.ingest.step_time_table import read_table
from tracewh.ingest.timing import APART_METRICS, TimingSample, add_sample, metric_of
from tracewh.ingest.training_log import read_log

READER_VERSION = 1

_MAX_PARAMS = 100_000
_MAX_DEPTH = 100
_MAX_PROCESS_INDEX = 2**31 - 1
# Lists of samples in timing.json: what they measure, whether the profiler ran, whether they are warm-up.
_TIMING_LISTS: dict[str, tuple[str, bool | None, bool | None]] = {
    "unprofiled_step_s": ("step_time_s", False, None),
    "profiled_step_s": ("step_time_s", True, None),
    "warmup_step_s": ("step_time_s", False, True),
    "step_s": ("step_time_s", None, None),
    "losses": ("loss", None, None),
}
_RECORDED_STEPS = "profiled_steps"
_COMMIT_KEYS = ("commit", "commit_sha", "git_commit", "git_sha", "sha", "revision")
# compiled.memory_analysis() to the words of the warehouse.
_MEMORY_KINDS = {
    "argument_size_in_bytes": "argument",
    "output_size_in_bytes": "output",
    "alias_size_in_bytes": "alias",
    "temp_size_in_bytes": "temporary",
    "generated_code_size_in_bytes": "generated_code",
    "peak_memory_in_bytes": "peak_memory",
    "total_allocation_bytes": "total_allocation",
    "peak_unpadded_heap_bytes": "peak_unpadded_heap",
    "indefinite_allocations": "indefinite_allocation",
}


@dataclass
class RunMetadata:
    """Rows for the run's tables, without ids of the warehouse."""

    params: list[tuple[str, str | None]] = field(default_factory=list)
    memory: list[tuple[str, int | None, str, int, str]] = field(default_factory=list)
    """(label, device ordinal or None, kind, bytes, evidence)"""
    timing: list[TimingSample] = field(default_factory=list)
    flop_ledger: list[LedgerRow] = field(default_factory=list)
    rules: list[Rule] = field(default_factory=list)
    memory_profile: MemoryProfile | None = None
    commit_sha: str | None = None
    process_index: int | None = None


def read(kind: str, data: bytes, place: str, problems: ProblemCounter) -> RunMetadata:
    """Read one metadata file of the given artifact kind. Raises UnreadableFile."""
    match kind:
        case "training_log":
            return RunMetadata(timing=read_log(data, place, problems))
        case "step_times":
            return RunMetadata(timing=read_table(data, place, problems))
        case "flop_ledger":
            return RunMetadata(flop_ledger=read_ledger(data, place, problems))
        case "rules":
            return RunMetadata(rules=read_rules(data, place))
        case "memory_profile":
            return RunMetadata(memory_profile=read_memory_profile(data, place, problems))
    content = parsed_object(kind, data, place)
    result = RunMetadata()
    match kind:
        case "config":
            _config(content, result, problems, place)
        case "record":
            _record(content, result, problems, place)
        case "timing":
            _timing(content, result, problems, place)
        case "memory_analysis":
            _memory_analysis(content, result, problems, place)
        case "memory_stats":
            _memory_stats(content, result, problems, place)
        case "cost_analysis":
            result.params += [(f"cost_analysis.{key}", value) for key, value in _flat(content, place)]
        case _:
            raise ValueError(f"no reader for {kind}")
    return result


def parsed_object(kind: str, data: bytes, place: str) -> dict[str, Any]:
    """The one object in a JSON or YAML file of the given artifact kind. Raises UnreadableFile."""
    try:
        if uncompressed_name(place).endswith((".yaml", ".yml")):
            content = yaml.safe_load(data)
        else:
            content = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise UnreadableFile(f"{place}: not valid JSON: {error}. Correct the file or remove it.") from error
    except yaml.YAMLError as error:
        where = " ".join(str(error).split())
        raise UnreadableFile(f"{place}: not valid YAML: {where}. Correct the file or remove it.") from error
    if not isinstance(content, dict):
        raise UnreadableFile(f"{place}: a {kind} file must hold one object at its top. Correct or remove it.")
    return content


def _flat(content: dict[str, Any], place: str) -> list[tuple[str, str | None]]:
    """Scalars of nested objects and lists, named by their path: `mesh.fsdp`, `device_ids[0]`.

    Raises UnreadableFile for more of them than a configuration has: YAML's references can make a few lines
    into billions of values, or into one that holds itself.
    """
    flat = list(islice(_walk(content, "", 0, place), _MAX_PARAMS + 1))
    if len(flat) > _MAX_PARAMS:
        raise UnreadableFile(f"{place}: more than {_MAX_PARAMS:,} values. Remove what is no configuration.")
    return flat


def _walk(value: Any, prefix: str, depth: int, place: str) -> Iterator[tuple[str, str | None]]:
    if depth > _MAX_DEPTH:
        raise UnreadableFile(f"{place}: nested over {_MAX_DEPTH} levels deep. Correct the file or remove it.")
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _walk(inner, f"{prefix}.{key}" if prefix else str(key), depth + 1, place)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _walk(inner, f"{prefix}[{index}]", depth + 1, place)
    elif value is None:
        yield _encodable(prefix), None
    else:
        text = value if isinstance(value, str) else json.dumps(value, default=str)
        yield _encodable(prefix), _encodable(text)


def _int64(value: Any) -> int | None:
    """An integer that a table can hold; None for anything else, True and False included."""
    fits = isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63
    return value if fits else None


def _float(value: Any) -> float | None:
    """A number as a double; None for anything else, True, False and numbers beyond a double included."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def _encodable(text: str) -> str:
    """The text with lone surrogates, which JSON can spell and UTF-8 cannot, written as escapes."""
    return text.encode("utf-8", "backslashreplace").decode()


def _without_secrets(
    params: Iterable[tuple[str, str | None]], problems: ProblemCounter, place: str
) -> Iterator[tuple[str, str | None]]:
    """The parameters, with NULL in place of each value that its name or the option before it calls secret."""
    params, checked = tee(params)
    for (param, value), is_secret in zip(params, secret_params(checked), strict=True):
        if is_secret and value is not None:
            problems.add("secret_dropped", place, f"value of {param} is not stored")
            yield param, None
        else:
            yield param, value


def _config(content: dict[str, Any], result: RunMetadata, problems: ProblemCounter, place: str) -> None:
    result.params += _without_secrets(_flat(content, place), problems, place)
    _times_apart(content, result, problems, place)
    result.commit_sha = _commit(content)
    result.process_index = _process_index(content)


def _commit(content: dict[str, Any]) -> str | None:
    stated = (content.get(key) for key in _COMMIT_KEYS)
    return next((_encodable(sha) for sha in stated if isinstance(sha, str) and sha), None)


def _process_index(content: dict[str, Any]) -> int | None:
    index = _int64(content.get("process_index"))
    return index if index is not None and 0 <= index <= _MAX_PROCESS_INDEX else None


def _record(content: dict[str, Any], result: RunMetadata, problems: ProblemCounter, place: str) -> None:
    """What tracewh.record noted: environment, commit, and the time of each profiled step."""
    steps = content.get(_RECORDED_STEPS, [])
    for position, step in enumerate(steps if isinstance(steps, list) else [steps]):
        fields = step if isinstance(step, dict) else {}
        number, seconds = _int64(fields.get("step_num")), _float(fields.get("seconds"))
        if number is None or seconds is None:
            where = f"{place}, {_RECORDED_STEPS}[{position}]"
            problems.add("not_a_number", where, "no number of a step with its seconds; left out")
        else:
            add_sample(result.timing, TimingSample(number, "step_time_s", seconds, True), place, problems)
    others = {key: value for key, value in content.items() if key != _RECORDED_STEPS}
    params = [(f"record.{key}", value) for key, value in _flat(others, place)]
    result.params += _without_secrets(params, problems, place)
    result.commit_sha = _commit(content)
    result.process_index = _process_index(content)


def _timing(content: dict[str, Any], result: RunMetadata, problems: ProblemCounter, place: str) -> None:
    for key, (metric, is_profiled, is_warmup) in _TIMING_LISTS.items():
        samples = content.get(key, [])
        for sample in samples if isinstance(samples, list) else [samples]:
            number = _float(sample)
            if number is None:
                problems.add("not_a_number", f"{place}, {key}", f"{str(sample)[:80]} is left out")
            else:
                sample_of_step = TimingSample(None, metric, number, is_profiled, is_warmup)
                add_sample(result.timing, sample_of_step, place, problems)
    _times_apart(content, result, problems, place)
    # What the file states beside the samples is its own arithmetic: kept as its claim, not as a measurement.
    claims = {key: value for key, value in content.items() if key not in _TIMING_LISTS}
    params = [(f"timing.{key}", value) for key, value in _flat(claims, place)]
    result.params += _without_secrets(params, problems, place)
    result.commit_sha = _commit(content)


def _times_apart(content: dict[str, Any], result: RunMetadata, problems: ProblemCounter, place: str) -> None:
    """Times of what a job does between its updates, or before the first: compile_s and the like."""
    for key, value in content.items():
        metric, scale = metric_of(key) or ("", 1.0)
        if metric in APART_METRICS:
            for sample in value if isinstance(value, list) else [value]:
                number = _float(sample)
                if number is not None:
                    add_sample(result.timing, TimingSample(None, metric, number * scale), place, problems)


def _memory_analysis(
    content: dict[str, Any], result: RunMetadata, problems: ProblemCounter, place: str
) -> None:
    for key, value in content.items():
        kind = _MEMORY_KINDS.get(key, key.removesuffix("_in_bytes").removesuffix("_size"))
        _add_memory(result, problems, f"{place}, {key}", ("compiled", None, kind, value, "compiler"))


def _memory_stats(content: dict[str, Any], result: RunMetadata, problems: ProblemCounter, place: str) -> None:
    """Allocator statistics: {when: {device: {statistic: value}}}."""
    for label, by_device in content.items():
        if not isinstance(by_device, dict):
            problems.add("unknown_layout", f"{place}, {label}", "expected statistics per device")
            continue
        for device, statistics in by_device.items():
            ordinal = device_number(device)
            if not isinstance(statistics, dict) or ordinal is None:
                problems.add("unknown_layout", f"{place}, {label}.{device}", "expected a device's statistics")
                continue
            for kind, value in statistics.items():
                sample = (label, ordinal, kind, value, "measured")
                _add_memory(result, problems, f"{place}, {label}.{device}.{kind}", sample)


def _add_memory(
    result: RunMetadata,
    problems: ProblemCounter,
    place: str,
    sample: tuple[str, int | None, str, Any, str],
) -> None:
    label, ordinal, kind, value, evidence = sample
    size = _int64(value)
    if size is None:
        problems.add("not_a_number", place, f"{str(value)[:80]} is no number of bytes; left out")
    else:
        result.memory.append((_encodable(label), ordinal, _encodable(kind), size, evidence))
