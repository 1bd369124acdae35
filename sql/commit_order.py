"""The order of runs: that of their commits where git knows them, and else that of their captures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tracewh.sql.git_history import GitHistory, Lineage
from tracewh.sql.run_selection import counted


@dataclass(frozen=True)
class CommitOrder:
    """Where runs stand, by git or by time; `notes` are sentences on what decided."""

    kind: str
    folder: Path | None
    notes: tuple[str, ...]
    _positions: Mapping[str, int]
    _full_names: Mapping[str, str]
    _lineage: Lineage

    def position(self, run: str) -> int:
        """Where the run stands; runs of one commit stand together."""
        return self._positions[run]

    def full_name(self, commit: str | None) -> str | None:
        """The commit as git writes it in full, or as it is where git does not know it."""
        return None if commit is None else self._full_names.get(commit, commit)

    def between(self, before: str | None, after: str | None) -> list[str] | None:
        """Commits that `after` comes from and `before` does not, without the two, oldest first.

        None where git does not know both.
        """
        if before is None or after is None or not {before, after} <= self._lineage.parents.keys():
            return None
        found = self._lineage.ancestors(after) - self._lineage.ancestors(before) - {after}
        return sorted(found, key=self._lineage.position.__getitem__)

    def is_descendant(self, before: str | None, after: str | None) -> bool | None:
        """Whether `after` comes from `before`; None where git does not know both."""
        if before is None or after is None or not {before, after} <= self._lineage.parents.keys():
            return None
        return before in self._lineage.ancestors(after)


def commit_order(runs: Sequence[Mapping[str, Any]], history: GitHistory | None) -> CommitOrder:
    """Order `runs`, which have a run_id, run_name, commit_sha and captured_unix_ns. Raises GitError.

    Where git knows some of the commits, a run of another stands after the newest of those that were captured
    before it.
    """
    commits = list(dict.fromkeys(run["commit_sha"] for run in runs if run["commit_sha"] is not None))
    known = {} if history is None else history.known(commits)
    lineage = Lineage({}) if history is None or not known else history.lineage(list(known.values()))
    full_names = {commit: known.get(commit, commit) for commit in commits}
    groups: dict[object, list[Mapping[str, Any]]] = {}
    for run in runs:
        commit = run["commit_sha"]
        groups.setdefault(("run", run["run_name"]) if commit is None else full_names[commit], []).append(run)
    placed = [group for group in groups if group in lineage.position]
    placed.sort(key=lambda group: lineage.position[str(group)])
    times = {group: _time(members) for group, members in groups.items()}
    others = sorted((group for group in groups if group not in lineage.position), key=times.__getitem__)
    ordered = _merged(placed, others, times)
    positions = {str(run["run_name"]): place for place, group in enumerate(ordered) for run in groups[group]}
    notes = _notes(history, lineage, placed, others, groups)
    kind, folder = ("git", history.folder) if history is not None and placed else ("time", None)
    return CommitOrder(kind, folder, tuple(notes), positions, full_names, lineage)


# Those without a time come last, by their ids.
_Time = tuple[bool, int, int]


def _time(runs: Sequence[Mapping[str, Any]]) -> _Time:
    return min(
        (run["captured_unix_ns"] is None, run["captured_unix_ns"] or 0, int(run["run_id"])) for run in runs
    )


def _merged(
    placed: Sequence[object], others: Sequence[object], times: Mapping[object, _Time]
) -> list[object]:
    """`others`, in the order of time, put into `placed`, whose order stays."""
    ordered: list[object] = []
    waiting = list(others)
    for index, group in enumerate(placed):
        # Of what is still to come, none was captured before those that go in front of it.
        later = min(times[item] for item in placed[index:])
        while waiting and times[waiting[0]] < later:
            ordered.append(waiting.pop(0))
        ordered.append(group)
    return ordered + waiting


def _notes(
    history: GitHistory | None,
    lineage: Lineage,
    placed: Sequence[object],
    others: Sequence[object],
    groups: Mapping[object, Sequence[Mapping[str, Any]]],
) -> list[str]:
    notes = []
    untimed = sum(run["captured_unix_ns"] is None for group in others for run in groups[group])
    if not placed:
        why = (
            "no git checkout knows the commits"
            if history is None
            else f"git at {history.folder} knows none of the commits"
        )
        notes.append(f"In order of capture: {why} (--git).")
    elif others:
        names = [str(run["run_name"]) for group in others for run in groups[group]]
        listed = ", ".join(names[:3]) + (f" and {len(names) - 3:,} more" if len(names) > 3 else "")
        notes.append(f"Placed by time of capture, since git does not know their commits: {listed}.")
    if untimed:
        notes.append(f"{counted(untimed, 'run')} without a time of capture: last, in order of ingest.")
    if placed:
        line = lineage.ancestors(str(placed[-1]))
        aside = sum(str(group) not in line for group in placed)
        if aside:
            notes.append(
                f"{counted(aside, 'commit')} of other lines of history than the newest: "
                "a range of git, as main~20..main, leaves them out."
            )
        if history is not None and history.is_shallow:
            notes.append("The clone is shallow: numbers of commits between may be too small.")
    return notes
