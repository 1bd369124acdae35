"""The ledger of the worked example, measured twice: from the capture's protobuf, and by the views."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import duckdb

from .xspace_oracle import Event, Space, measure, merged

# A scope under its transformations: transpose(jvp(layers)) is layers.
_SCOPE = re.compile(r"(?:\w+\()*([\w.]+)\)*")
_SCOPES = {
    *("embedding", "final_norm", "lm_head", "layers", "pre_attention_norm", "post_attention_norm"),
    *("query", "key", "value", "out", "rope", "core_attention"),
    *("router_gate", "router_topk", "router_weights", "router_masks", "dispatch", "combine", "weight_sum"),
    *("wi_0", "wi_1", "ffn_act", "wo"),
    *("loss", "gradient_accumulation", "gradient_clipping", "adamw"),
}
_UPDATE = re.compile(r"/(loss|gradient_accumulation|gradient_clipping|optimizer)/")
_GPU = re.compile(r"/device:GPU:(\d+)")


@dataclass(frozen=True)
class DeviceTimes:
    """Times of one GPU, in ps."""

    window: int
    busy: int
    compute: int
    communication: int
    overlap: int
    exposed: int


@dataclass
class Ledger:
    """Sums over all GPUs in ps, and counts of one GPU after the other."""

    components: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By phase and scope, without collectives."""
    collectives: Counter[str] = field(default_factory=Counter)
    """By the phase that launched them."""
    devices: dict[int, DeviceTimes] = field(default_factory=dict)
    forward_kernels: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    """By scope: how often each HLO op of it ran in the forward pass, for each GPU."""


def phase_of(op_name: str) -> str:
    """The phase by the words of the published order of rules."""
    if "/rematted_computation/" in op_name:
        return "remat"
    if "/transpose(jvp(" in op_name:
        return "backward"
    if "/jvp(" in op_name:
        return "forward"
    return "update" if _UPDATE.search(op_name) else "unattributed"


def scope_of(op_name: str) -> str:
    """The deepest of the known scopes."""
    for segment in reversed(op_name.split("/")[:-1]):
        found = _SCOPE.fullmatch(segment)
        if found and found[1] in _SCOPES:
            return found[1]
    return "unattributed"


def kernels_of(space: Space) -> dict[int, list[Event]]:
    """The kernels of each GPU."""
    return {
        int(found[1]): [event for line in plane.lines for event in line.events]
        for plane in space.planes
        if (found := _GPU.fullmatch(plane.name))
    }


def is_collective(kernel: Event) -> bool:
    return kernel.name.startswith("ncclDevKernel")


def ledger_of_space(space: Space) -> Ledger:
    """The ledger by adding up the events that protobuf reads."""
    ledger = Ledger()
    for gpu, kernels in kernels_of(space).items():
        counts: Counter[tuple[str, str]] = Counter()
        for kernel in kernels:
            op_name = kernel.stat("name") or ""
            phase, scope = phase_of(op_name), scope_of(op_name)
            if is_collective(kernel):
                ledger.collectives[phase] += kernel.duration_ps
                continue
            ledger.components[phase, scope] += kernel.duration_ps
            if phase == "forward":
                counts[scope, kernel.stat("hlo_op")] += 1
        for (scope, _), count in counts.items():
            ledger.forward_kernels[scope].append(count)
        ledger.devices[gpu] = _device_times(kernels)
    return ledger


def _device_times(kernels: list[Event]) -> DeviceTimes:
    spans = [(kernel.start_ps, kernel.end_ps, is_collective(kernel)) for kernel in kernels]
    compute = merged((start, end) for start, end, is_communication in spans if not is_communication)
    communication = merged((start, end) for start, end, is_communication in spans if is_communication)
    overlap = index = 0
    for start, end in compute:
        while index and communication[index - 1][1] > start:
            index -= 1
        while index < len(communication) and communication[index][0] < end:
            overlap += max(0, min(end, communication[index][1]) - max(start, communication[index][0]))
            index += 1
    busy = measure((start, end) for start, end, _ in spans)
    return DeviceTimes(
        window=max(end for _, end, _ in spans) - min(start for start, _, _ in spans),
        busy=busy,
        compute=measure(compute),
        communication=measure(communication),
        overlap=overlap,
        exposed=busy - measure(compute),
    )


def ledger_of_views(warehouse: Path, step_num: int) -> Ledger:
    """The ledger of a step by the views."""
    ledger = Ledger()
    with duckdb.connect(str(warehouse), read_only=True) as connection:
        for phase, component, total in connection.execute(
            "SELECT phase, component, SUM(sum_ps)::BIGINT FROM v1.component_time "
            "WHERE step_num = ? AND phase <> 'communication' GROUP BY ALL",
            [step_num],
        ).fetchall():
            # Whatever is known of unattributed work, it is one row.
            scope = "unattributed" if phase == "unattributed" else component
            ledger.components[phase, scope] += total
        for phase, total in connection.execute(
            "SELECT launch_phase, SUM(end_ps - start_ps)::BIGINT FROM v1.attribution "
            "WHERE step_num = ? AND phase = 'communication' GROUP BY ALL",
            [step_num],
        ).fetchall():
            ledger.collectives[phase] = total
        for gpu, *times in connection.execute(
            "SELECT device_ordinal, window_ps, busy_ps, compute_ps, communication_ps, overlap_ps, "
            "exposed_communication_ps FROM v1.device_time WHERE step_num = ?",
            [step_num],
        ).fetchall():
            ledger.devices[gpu] = DeviceTimes(*times)
        for component, count, devices in connection.execute(
            "SELECT o.component, o.actual, o.program_device_count FROM v1.occurrences AS o "
            "WHERE o.component IN ('wi_0', 'wi_1', 'core_attention') AND o.status = 'complete' "
            "AND o.opcode = 'custom-call' AND o.hlo_op IN (SELECT a.hlo_op FROM v1.attribution AS a "
            "WHERE a.phase = 'forward')"
        ).fetchall():
            assert count % devices == 0
            ledger.forward_kernels[component] += [count // devices] * devices
    return ledger
