"""The tables of a comparison: what `tracewh diff` shows of it in the terminal and as Markdown."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tracewh.cli.metric_values import change_text, interval_text, metric_text, time_text
from tracewh.cli.report_values import short_kernel
from tracewh.cli.sections import Section
from tracewh.cli.table import Header

if TYPE_CHECKING:
    from tracewh.sql.comparison import Comparison, MetricChange, PartChange

_PS_PER_MS = 1e9
# What is looked at first; the others follow by name.
_FIRST_METRICS = (
    *("step_time", "device_step_time", "tokens_per_s", "mfu", "busy", "compute", "exposed_communication"),
    *("exposed_copy", "idle", "memory_peak"),
)
# Others that the step time gives, which change as it does.
_OF_STEP_TIME = (
    *("tokens_per_s_per_device", "nonpadding_tokens_per_s", "nonpadding_tokens_per_s_per_device"),
    *("expert_assignments_per_s", "useful_flop_rate", "executed_flop_rate", "hfu"),
    *("profiled_step_time", "profiled_over_unprofiled", "executed_over_useful"),
)
_FAMILIES = ("phase_time", "component_group_time", "component_time", "op_family_time", "kernel_time")
_PLANNED = "planned_memory"
# Metrics that few ask for are shown where they changed by more.
_LEAST_CHANGE = 0.01
_MOST_REASONS = 3
_MOST_CAUSES = 3
_DECIDED = ("regressed", "improved")
_PART_INDENT = "  "
# Parts that change less, of what all phases change, are told together.
_LEAST_SHARE = 0.01
_OP_LEVEL = 3
_SHOWN_SCOPES = 2
_KERNEL_START, _KERNEL_END = 18, 16
_LONGEST_NAME = 36
_SIDES = (Header("base", True), Header("head", True), Header("change", True))
# Neither is to be broken into lines, as numbers are not.
_JUDGED = (*_SIDES, Header("interval", True), Header("verdict", True))
_TOLD = ("step_time",)
_VERDICTS = {"too_few_runs": "too few"}
_CHANGE_WORDS = {"candidate_cause": "candidate cause", "not_comparable": "not comparable"}


def verdict_lines(comparison: Comparison, is_shown: bool) -> list[str]:
    """What the comparison says, in a few sentences."""
    lines = []
    headline = comparison.headline
    if comparison.reasons:
        lines.append(not_comparable(comparison))
    if not is_shown:
        return [*lines, "With --force the numbers are shown all the same."]
    if headline is None:
        lines.append("No time of a step is known of both sides.")
        return lines
    judgement = headline.judgement
    values = " to ".join(
        metric_text(value, headline.unit) for value in (judgement.base_median, judgement.head_median)
    )
    interval = interval_text(judgement.low, judgement.high)
    change = change_text(judgement.ratio) + (f", interval {interval}" if interval else "")
    verdict = judgement.verdict.replace("_", " ")
    lines.append(
        f"{verdict.capitalize()}: {metric_label(headline)} {values} ({change}), "
        f"{_count('run', headline.base_runs)} against {headline.head_runs}."
    )
    if judgement.reason:
        lines.append(judgement.reason)
    return [*lines, *_certain(comparison), *_causes(comparison)]


def _certain(comparison: Comparison) -> list[str]:
    """What the compiler says, which needs no replicates."""
    known = [
        f"{change.metric} {change_text(change.judgement.ratio)}"
        for change in comparison.metrics
        if change.judgement.p is None and not change.scope and change.judgement.verdict in _DECIDED
    ]
    return [f"Certain with one run a side: {', '.join(known)}."] if known else []


def _causes(comparison: Comparison) -> list[str]:
    causes = [row for row in comparison.settings if row["effect"] == "candidate_cause"]
    if not causes:
        return []
    told = [
        f"{row['setting']} {_setting(row, 'base')} to {_setting(row, 'head')}"
        for row in causes[:_MOST_CAUSES]
    ]
    more = [f"and {len(causes) - _MOST_CAUSES} more"] if len(causes) > _MOST_CAUSES else []
    return [f"Candidate causes: {', '.join([*told, *more])}."]


def not_comparable(comparison: Comparison) -> str:
    """Why the sides cannot be compared; of many reasons the first."""
    reasons = comparison.reasons
    more = [f"and {len(reasons) - _MOST_REASONS} more"] if len(reasons) > _MOST_REASONS else []
    return f"Not comparable: {'; '.join([*reasons[:_MOST_REASONS], *more])}."


def comparison_sections(comparison: Comparison, limit: int | None) -> Iterator[Section]:
    """The tables that have rows, with at most `limit` rows of each list.

    Where a side has no device steps, nothing is said of their parts.
    """
    base_runs, head_runs = len(comparison.base.run_ids), len(comparison.head.run_ids)
    has_steps = any(
        change.metric == "device_step_time" and change.base_runs and change.head_runs
        for change in comparison.metrics
    )
    of_steps = (
        _parts(comparison.parts, limit),
        _families(comparison.metrics, limit),
        _kernels(comparison.kernels, base_runs, head_runs, limit),
    )
    sections = (
        setting_section(comparison.settings, limit),
        _metrics(comparison.metrics),
        *(of_steps if has_steps else ()),
        _hlo(comparison.hlo, limit),
        _memory(comparison.metrics),
    )
    return (section for section in sections if section.rows)


def metric_label(change: MetricChange) -> str:
    """A metric with what tells it from others of its name: step_time (unprofiled)."""
    about = ", ".join(filter(None, (change.scope, change.timing or change.evidence)))
    return f"{change.metric} ({about})"


def setting_section(settings: Sequence[Mapping[str, Any]], limit: int | None) -> Section:
    """The settings that differ, as rows of v1.setting_changes."""
    rows = [
        (
            _CHANGE_WORDS.get(row["effect"], row["effect"]),
            row["setting"],
            *(_setting(row, side) for side in ("base", "head")),
        )
        for row in settings
    ]
    headers = (Header("effect"), Header("setting"), Header("base"), Header("head"))
    return Section("What the runs were made with", "", headers, _limited(rows, limit))


def _setting(row: Mapping[str, Any], side: str) -> str:
    """A value, and how many runs of the side have it where not all do."""
    value, runs, known = row[f"{side}_value"], row[f"{side}_runs"], row[f"{side}_known_runs"]
    if value is None:
        return "(not set)" if known else "(unknown)"
    return _value(value or "(empty)") + (f" ({runs} of {known} runs)" if runs < known else "")


def _metrics(changes: Sequence[MetricChange]) -> Section:
    shown = [
        change
        for change in changes
        if change.base_runs
        and change.head_runs
        and change.metric not in (*_FAMILIES, *_OF_STEP_TIME, _PLANNED)
    ]
    shown = [change for change in shown if _is_first(change) or _is_large(change)]
    places = {metric: place for place, metric in enumerate(_FIRST_METRICS)}
    shown.sort(key=lambda change: (places.get(change.metric, len(places)), change.metric))
    several = [change.metric for change in shown]
    rows = tuple(
        (
            # What tells it from another of its name, or from one that looks like it.
            metric_label(change)
            if change.metric in _TOLD or several.count(change.metric) > 1
            else change.metric,
            *_judged(change),
        )
        for change in shown
    )
    headers = (Header("metric"), *_JUDGED)
    note = (
        "Medians over the runs of a side. step_time is the time of an update, device_step_time the window of "
        f"its device work under the profiler. Metrics not listed changed by at most {_LEAST_CHANGE:.0%}."
    )
    return Section("Metrics", note, headers, rows)


def _is_first(change: MetricChange) -> bool:
    # A program without collectives or copies has nothing of them to compare.
    values = (change.judgement.base_median, change.judgement.head_median)
    return change.metric in _FIRST_METRICS and values != (0, 0)


def _is_large(change: MetricChange) -> bool:
    ratio = change.judgement.ratio
    return bool(_difference(change)) and (ratio is None or abs(ratio - 1) > _LEAST_CHANGE)


def _judged(change: MetricChange) -> tuple[str, str, str, str, str]:
    judgement = change.judgement
    return (
        _short(judgement.base_median, change.unit),
        _short(judgement.head_median, change.unit),
        change_text(judgement.ratio),
        interval_text(judgement.low, judgement.high),
        _VERDICTS.get(judgement.verdict, judgement.verdict).replace("_", " "),
    )


def _short(value: float | None, unit: str) -> str:
    """A value without the unit of a rate, which the name of the metric tells."""
    return metric_text(value, unit).removesuffix(f" {unit}") if "/" in unit else metric_text(value, unit)


def _parts(parts: Sequence[PartChange], limit: int | None) -> Section:
    whole = next((part for part in parts if part.level == 0), None)
    if whole is None:
        return Section("")
    children: dict[tuple[str | None, ...], list[PartChange]] = {}
    for part in parts:
        if part.level and (part.phase != "idle" or part.level == 1):
            children.setdefault(part.path[:-1], []).append(part)
    least = _LEAST_SHARE * sum(abs(part.change_ps) for part in children.get((), ()))
    rows = [*_part_rows(children, (), least, limit), _part_row("device step", whole, 0)]
    headers = (Header("phase / component / op / kernel"), *_SIDES, Header("share", True))
    note = (
        "Each moment of the mean device step belongs to one part: compute before collectives before copies. "
        "The changes of each level add up to that of the step. They are differences of means, without an "
        "interval: what the other tables call unchanged may be chance here, idle time above all."
    )
    return Section("Where the device step changed", note, headers, tuple(rows))


def _part_rows(
    children: Mapping[tuple[str | None, ...], Sequence[PartChange]],
    path: tuple[str | None, ...],
    least: float,
    limit: int | None,
) -> Iterator[tuple[str, ...]]:
    parts = children.get(path, ())
    large = [part for part in parts if abs(part.change_ps) >= least or not path]
    if len(path) == _OP_LEVEL and len(large) < 2:
        return  # the one kernel of an op says no more than the op
    shown = large if limit is None or not path else large[:limit]
    for part in shown:
        name = part.path[-1] or "(unnamed)"
        yield _part_row(_last_scopes(name) if part.level < 4 else _kernel(name), part, part.level - 1)
        yield from _part_rows(children, part.path, least, limit)
    rest = [part for part in parts if part not in shown]
    if shown and rest:
        change = sum(part.change_ps for part in rest)
        base, head = sum(part.base_ps for part in rest), sum(part.head_ps for part in rest)
        yield (
            _PART_INDENT * len(path) + f"{len(rest)} more",
            *(time_text(ps / _PS_PER_MS) for ps in (base, head)),
            time_text(change / _PS_PER_MS, is_signed=True),
            "",
        )


def _part_row(name: str, part: PartChange, depth: int) -> tuple[str, ...]:
    return (
        _PART_INDENT * depth + name,
        time_text(part.base_ps / _PS_PER_MS),
        time_text(part.head_ps / _PS_PER_MS),
        time_text(part.change_ps / _PS_PER_MS, is_signed=True),
        "" if part.share_ratio is None else f"{100 * part.share_ratio + 0.0:,.1f}%".replace("-0.0%", "0.0%"),
    )


def _families(changes: Sequence[MetricChange], limit: int | None) -> Section:
    rows: list[tuple[str, ...]] = []
    for metric in _FAMILIES:
        family = [change for change in changes if change.metric == metric and _difference(change)]
        family.sort(key=lambda change: -abs(_difference(change)))
        rows += [
            (metric.removesuffix("_time").replace("_", " "), _last_scopes(change.scope), *_judged(change))
            for change in (family if limit is None else family[:limit])
        ]
    headers = (Header("of each"), Header("name"), *_JUDGED)
    note = (
        "Summed durations in the mean device step, whatever runs at the same time. Verdicts allow for the "
        "number of scopes of a metric."
    )
    return Section("Durations that changed most", note, headers, tuple(rows))


def _difference(change: MetricChange) -> float:
    return (change.judgement.head_median or 0) - (change.judgement.base_median or 0)


def _kernels(
    kernels: Sequence[Mapping[str, Any]], base_runs: int, head_runs: int, limit: int | None
) -> Section:
    rows = [
        (
            row["change"].replace("_", " "),
            f"{row['phase']} / {row['component']}",
            _last_scopes(row["op"]),
            *(_kernel_of(row, side, runs) for side, runs in (("base", base_runs), ("head", head_runs))),
            *(time_text(row[side] / _PS_PER_MS) for side in ("base_sum_ps", "head_sum_ps")),
        )
        for row in kernels
    ]
    headers = (
        *(Header("change"), Header("place"), Header("op"), Header("base kernel"), Header("head kernel")),
        *(Header("base", True), Header("head", True)),
    )
    note = "Summed durations in the mean step of all runs of a side, also of those that run another kernel."
    return Section("Kernels that only one side runs", note, headers, _limited(rows, limit))


def _kernel_of(row: Mapping[str, Any], side: str, runs: int) -> str:
    if row[f"{side}_kernel"] is None:
        return ""
    ran = row[f"{side}_runs"]
    return _kernel(row[f"{side}_kernel"]) + (f" ({ran} of {runs} runs)" if ran < runs else "")


def _kernel(name: str) -> str:
    """A kernel's name; of a long one without parameters the middle is cut: variants differ at the end."""
    short = short_kernel(name)
    if len(name) == len(short) or re.search(r"[(<]", name):
        return short
    return f"{name[:_KERNEL_START]}…{name[-_KERNEL_END:]}"


def _hlo(changes: Sequence[Mapping[str, Any]], limit: int | None) -> Section:
    rows = [
        (
            row["change"].replace("_", " "),
            row["opcode"],
            _last_scopes(row["op_name"] or ""),
            _value(row["base_value"]),
            _value(row["head_value"]),
            str(max(row["base_count"] or 0, row["head_count"] or 0)),
        )
        for row in changes
    ]
    headers = (
        *(Header("change"), Header("opcode"), Header("op"), Header("base"), Header("head")),
        Header("times", True),
    )
    counts = Counter(row["change"].replace("_", " ") for row in changes)
    note = (
        "Instructions of the step program, matched by what they are and not by their numbers: "
        + ", ".join(f"{count} {change}" for change, count in counts.most_common())
        + ". Those that change its FLOPs and bytes most come first."
    )
    return Section("Optimized HLO", note, headers, _limited(rows, limit))


def _memory(changes: Sequence[MetricChange]) -> Section:
    rows = [
        (change.scope, *_judged(change)[:3])
        for change in changes
        if change.metric == _PLANNED and _difference(change)
    ]
    headers = (Header("kind"), *_SIDES)
    return Section("Planned memory of the step program", "", headers, tuple(rows))


def _limited(rows: Sequence[tuple[str, ...]], limit: int | None) -> tuple[tuple[str, ...], ...]:
    """The first rows, and how many more there are."""
    if limit is None or len(rows) <= limit:
        return tuple(rows)
    return (*rows[:limit], (f"{len(rows) - limit} more", *(len(rows[0]) - 1) * [""]))


def _last_scopes(op: str) -> str:
    """The end of a name stack, which tells the op."""
    end = "/".join(op.split("/")[-_SHOWN_SCOPES:])
    return _cut(f"…/{end}" if len(end) < len(op) else op)


def _cut(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else "…" + name[1 - _LONGEST_NAME :]


def _value(value: object) -> str:
    text = "" if value is None else str(value)
    return text if len(text) <= 2 * _LONGEST_NAME else text[: 2 * _LONGEST_NAME - 1] + "…"


def _count(noun: str, count: int) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")
