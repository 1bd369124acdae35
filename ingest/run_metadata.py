"""A run's own files beside its captures: configuration, step times, memory figures, training log."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from tracewh.ingest.capture import ProblemCounter
from tracewh.ingest.errors import UnreadableFile

READER_VERSION = 1

# A segment of a parameter's path that says that what lies below is a secret, which is never stored.
_SECRET_NAME = (
    r"\w*(?:password|passwd|secret|api_?key|access_?key|credential|private_?key)\w*"
    r"|(?!(?:bos|cls|eos|image|mask|pad|sep|unk)_)(?:\w*_)?token|(?:access|auth|api|bearer|github|hf|wandb)_?tokens?"
)
_SECRET = re.compile(rf"(?:^|[.\]])(?:{_SECRET_NAME})(?=$|[.\[])", re.IGNORECASE)
# The same in a command line: --hf_token=..., or --hf_token and the next argument.
_SECRET_OPTION = re.compile(
    rf"^--?(?:{_SECRET_NAME})(=.*)?$".replace("_?", "[-_]?"), re.IGNORECASE | re.DOTALL
)
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
_DEVICE_LABEL = re.compile(r"(\d+)$")
_LOG_STEP = re.compile(r"completed step: (\d+), (.*)")
_LOG_METRICS = {
    "seconds": "step_time_s",
    "TFLOP/s/device": "tflops_per_device",
    "Tokens/s/device": "tokens_per_s_per_device",
    "total_weights": "total_weights",
    "loss": "loss",
}


@dataclass
class RunMetadata:
    """Rows for the run's tables, without ids of the warehouse."""

    params: list[tuple[str, str | None]] = field(default_factory=list)
    memory: list[tuple[str, int | None, str, int, str]] = field(default_factory=list)
    """(label, device ordinal or None, kind, bytes, evidence)"""
    timing: list[tuple[int | None, str, float, bool | None]] = field(default_factory=list)
    """(step number or None, metric, value, is_profiled)"""
    commit_sha: str | None = None
    process_index: int | None = None


def read(kind: str, data: bytes, place: str, problems: ProblemCounter) -> RunMetadata:
    """Read one metadata file of the given artifact kind. Raises UnreadableFile."""
    if kind == "training_log":
        return _training_log(data)
    content = _parsed(kind, data, place)
    result = RunMetadata()
    match kind:
        case "config":
            _config(content, result, problems, place)
        case "timing":
            _timing(content, result, problems, place)
        case "memory_analysis":
            _memory_analysis(content, result)
        case "memory_stats":
            _memory_stats(content, result, problems, place)
        case "cost_analysis":
            result.params += [(f"cost_analysis.{key}", value) for key, value in _flat(content)]
        case _:
            raise ValueError(f"no reader for {kind}")
    return result


def _parsed(kind: str, data: bytes, place: str) -> dict[str, Any]:
    try:
        if place.removesuffix(".gz").endswith((".yaml", ".yml")):
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


def _flat(value: Any, prefix: str = "") -> Iterator[tuple[str, str | None]]:
    """Scalars of nested objects and lists, named by their path: `mesh.fsdp`, `device_ids[0]`."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _flat(inner, f"{prefix}.{key}" if prefix else str(key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _flat(inner, f"{prefix}[{index}]")
    elif value is None:
        yield _encodable(prefix), None
    else:
        text = value if isinstance(value, str) else json.dumps(value, default=str)
        yield _encodable(prefix), _encodable(text)


def _encodable(text: str) -> str:
    """The text with lone surrogates, which JSON can spell and UTF-8 cannot, written as escapes."""
    return text.encode("utf-8", "backslashreplace").decode()


def _without_secrets(
    params: Iterator[tuple[str, str | None]], problems: ProblemCounter, place: str
) -> Iterator[tuple[str, str | None]]:
    """The parameters, with NULL in place of each value that its name or the option before it calls secret."""
    follows_option = False
    for param, value in params:
        option = _SECRET_OPTION.match(value) if value is not None and param.endswith("]") else None
        is_secret = bool(_SECRET.search(param)) or follows_option or (option is not None and bool(option[1]))
        follows_option = option is not None and not option[1]
        if is_secret and value is not None:
            problems.add("secret_dropped", place, f"value of {param} is not stored")
            value = None
        yield param, value


def _config(content: dict[str, Any], result: RunMetadata, problems: ProblemCounter, place: str) -> None:
    result.params += _without_secrets(_flat(content), problems, place)
    for key in _COMMIT_KEYS:
        if isinstance(content.get(key), str) and content[key]:
            result.commit_sha = content[key]
            break
    index = content.get("process_index")
    result.process_index = index if isinstance(index, int) else None


def _timing(content: dict[str, Any], result: RunMetadata, problems: ProblemCounter, place: str) -> None:
    for key, is_profiled in (("unprofiled_step_s", False), ("profiled_step_s", True), ("step_s", None)):
        samples = content.get(key, [])
        if not isinstance(samples, list):
            samples = [samples]
        for sample in samples:
            if isinstance(sample, int | float) and not isinstance(sample, bool):
                result.timing.append((None, "step_time_s", float(sample), is_profiled))
            else:
                problems.add("not_a_number", f"{place}, {key}", f"{sample!r} is not a step time in seconds")
    # What the file states beside the samples is its own arithmetic: kept as its claim, not as a measurement.
    claims = {key: value for key, value in content.items() if not isinstance(value, list | dict)}
    result.params += [(f"timing.{key}", value) for key, value in _flat(claims)]


def _memory_analysis(content: dict[str, Any], result: RunMetadata) -> None:
    for key, value in content.items():
        if isinstance(value, int):
            kind = _MEMORY_KINDS.get(key, key.removesuffix("_in_bytes").removesuffix("_size"))
            result.memory.append(("compiled", None, kind, value, "compiler"))


def _memory_stats(content: dict[str, Any], result: RunMetadata, problems: ProblemCounter, place: str) -> None:
    """Allocator statistics: {when: {device: {statistic: value}}}."""
    for label, by_device in content.items():
        if not isinstance(by_device, dict):
            problems.add("unknown_layout", f"{place}, {label}", "expected statistics per device")
            continue
        for device, statistics in by_device.items():
            ordinal = _DEVICE_LABEL.search(device)
            if not isinstance(statistics, dict) or ordinal is None:
                problems.add("unknown_layout", f"{place}, {label}.{device}", "expected a device's statistics")
                continue
            for kind, value in statistics.items():
                if isinstance(value, int):
                    result.memory.append((label, int(ordinal[1]), kind, value, "measured"))


def _training_log(data: bytes) -> RunMetadata:
    """Lines of a MaxText log: `completed step: 7, seconds: 20.6, TFLOP/s/device: 385.3, ...`."""
    result = RunMetadata()
    for found in _LOG_STEP.finditer(data.decode("utf-8", "replace")):
        for part in found[2].split(", "):
            key, _, value = part.partition(": ")
            if key in _LOG_METRICS:
                try:
                    number = float(value)
                except ValueError:
                    continue
                result.timing.append((int(found[1]), _LOG_METRICS[key], number, None))
    return result
