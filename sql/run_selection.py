"""Which runs a selector means: names, commits, labels, baselines, and revisions of git.

A selector is one of

    hist_01, hist_0[1-6], base*    the name of a run, or a pattern of names
    4f2a91c                        a commit, or at least four of its first digits
    branch=main                    a label and its value
    main                           a baseline
    main, HEAD~2, main~5..main     a revision or range of a git checkout

or several of them, separated by commas. `run:`, `commit:`, `label:`, `baseline:` and `git:` in front say of
which kind it is.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tracewh.ingest.errors import TracewhError
from tracewh.sql.git_command import GitError
from tracewh.sql.git_history import GitHistory, find_history
from tracewh.sql.listing import did_you_mean, records
from tracewh.sql.warehouse import Warehouse

KINDS = ("run", "commit", "label", "baseline", "git")
"""What a selector may be of, in the order in which meanings are listed."""
SHOWN_SHA = 12
_RUNS = "SELECT run_id, run_name, commit_sha FROM main.runs ORDER BY run_id"
_LABELS = "SELECT label || '=' || value AS name, run_id FROM main.run_labels ORDER BY name, run_id"
_BASELINES = "SELECT baseline AS name, run_id FROM main.baselines ORDER BY name, run_id"
_PREFIX = re.compile(r"[0-9a-fA-F]{4,64}")
_ONLY_GIT = re.compile(r"\.\.|[~^]|@\{|^@$|^HEAD$")
_MOST_LISTED = 8


class SelectionError(TracewhError):
    """A selector means no run, or different sets of runs."""


@dataclass(frozen=True)
class RunSelection:
    """The runs that a selector means.

    Runs of a git range come in the order of its commits, and else in that in which they were ingested.
    `commits` are those of the runs that have one. `description` is for people.
    """

    selector: str
    description: str
    run_ids: tuple[int, ...]
    run_names: tuple[str, ...]
    commits: tuple[str, ...]


def select_runs(warehouse: Warehouse, selector: str, *, repository: Path | None) -> RunSelection:
    """The runs that `selector` means; git is asked at `repository`, or else in the current directory.

    Without a `repository`, that holds only where the checkout knows a commit of the warehouse. Raises
    SelectionError, and GitError where git is needed and cannot tell.
    """
    return Selectors(warehouse, repository).select([selector])


def shared_runs(one: RunSelection, other: RunSelection) -> tuple[str, ...]:
    """Names of the runs that are in both selections, which says nothing of a difference."""
    return tuple(name for name in one.run_names if name in other.run_names)


@dataclass(frozen=True)
class _Meaning:
    """What a selector is as one of the KINDS; `runs` is empty where it names something without runs."""

    kind: str
    text: str
    runs: tuple[int, ...]
    description: str


class Selectors:
    """What selectors mean in one warehouse, beside one checkout."""

    def __init__(self, warehouse: Warehouse, repository: Path | None) -> None:
        """Raises GitError where `repository` is no checkout."""
        self._warehouse = warehouse
        found = records(warehouse, _RUNS)
        self._names = {int(run["run_id"]): str(run["run_name"]) for run in found}
        self._commits = {int(run["run_id"]): str(run["commit_sha"]) for run in found if run["commit_sha"]}
        self._groups = {"label": self._grouped(_LABELS), "baseline": self._grouped(_BASELINES)}
        # A folder that is given is checked now, also where no selector needs git.
        self._given = None if repository is None else GitHistory(repository)

    @cached_property
    def history(self) -> GitHistory | None:
        """The git checkout, if there is one that is of use."""
        return self._given or find_history(dict.fromkeys(self._commits.values()))

    def select(self, selectors: Sequence[str]) -> RunSelection:
        """The union of what `selectors` mean, each run once. Raises SelectionError and GitError."""
        meanings = [meaning for selector in selectors for meaning in self._parts(selector)]
        run_ids = tuple(dict.fromkeys(run for meaning in meanings for run in meaning.runs))
        described = list(dict.fromkeys(meaning.description for meaning in meanings))
        union = f"{counted(len(run_ids), 'run')} of {', '.join(selectors)}"
        return RunSelection(
            ",".join(selectors),
            described[0] if len(described) == 1 else union,
            run_ids,
            tuple(self._names[run] for run in run_ids),
            tuple(dict.fromkeys(self._commits[run] for run in run_ids if run in self._commits)),
        )

    def all_runs(self) -> RunSelection:
        """Every run of the warehouse."""
        return RunSelection(
            "*",
            "all runs",
            tuple(self._names),
            tuple(self._names.values()),
            tuple(dict.fromkeys(self._commits.values())),
        )

    def _grouped(self, query: str) -> dict[str, tuple[int, ...]]:
        groups: dict[str, list[int]] = {}
        for record in records(self._warehouse, query):
            groups.setdefault(record["name"], []).append(int(record["run_id"]))
        return {name: tuple(runs) for name, runs in groups.items()}

    def _parts(self, selector: str) -> list[_Meaning]:
        # A name may have commas of its own.
        if "," not in selector or selector in self._known_names() or self._typed(selector):
            return [self._meaning(selector)]
        parts = [part.strip() for part in selector.split(",")]
        if not all(parts):
            raise SelectionError(f"{selector!r} has an empty part between its commas.")
        return [self._meaning(part) for part in parts]

    def _typed(self, selector: str) -> bool:
        """Whether a selector with commas is, as a whole, the typed spelling of something that is there."""
        kind, _, text = selector.partition(":")
        return (kind == "run" and text in self._names.values()) or text in self._groups.get(kind, ())

    def _meaning(self, selector: str) -> _Meaning:
        if not selector.strip():
            raise SelectionError("An empty selector means no run.")
        kind, colon, text = selector.partition(":")
        if colon and kind in KINDS and selector not in self._known_names():
            typed = self._find(kind, text)
            found = [] if typed is None else [typed]
        else:
            kind, text = "", selector
            found = self._meanings(selector)
        if not found:
            raise SelectionError(self._nothing(selector, text, kind))
        meant = [meaning for meaning in found if meaning.runs]
        if not meant:
            raise SelectionError(f"{self._warehouse.path} has {found[0].description}.")
        if len({frozenset(meaning.runs) for meaning in meant}) > 1:
            listed = [f"{meaning.kind}:{meaning.text} ({meaning.description})" for meaning in meant]
            raise SelectionError(f"{selector} means several things: write {' or '.join(listed)}.")
        return meant[0]

    def _meanings(self, selector: str) -> list[_Meaning]:
        """What a selector may be; where it is nothing, and that because of an error, the error."""
        found = []
        errors = []
        for kind in KINDS:
            try:
                meaning = self._find(kind, selector)
            except (SelectionError, GitError) as error:
                # Most words are no revision, which needs no word.
                if kind != "git" or _ONLY_GIT.search(selector):
                    errors.append(error)
            else:
                found += [] if meaning is None else [meaning]
        if errors and not found:
            raise errors[0]
        return found

    def _find(self, kind: str, text: str) -> _Meaning | None:
        if kind == "run":
            return self._run(text)
        if kind == "commit":
            return self._commit(text)
        if kind == "git":
            return self._revision(text)
        return self._group(kind, text)

    def _run(self, text: str) -> _Meaning | None:
        exact = tuple(run for run, name in self._names.items() if name == text)
        if exact:
            return _Meaning("run", text, exact, f"run {text}")
        runs = tuple(run for run, name in self._names.items() if fnmatch.fnmatchcase(name, text))
        return _Meaning("run", text, runs, f"{counted(len(runs), 'run')} {text}") if runs else None

    def _commit(self, text: str) -> _Meaning | None:
        commits = set(self._commits.values())
        if text not in commits:
            if not _PREFIX.fullmatch(text):
                return None
            commits = {commit for commit in commits if commit.lower().startswith(text.lower())}
            if not commits:
                return None
            if len(commits) > 1:
                shown = ", ".join(sorted(commits)[:_MOST_LISTED])
                raise SelectionError(f"{text} is the beginning of {len(commits)} commits: {shown}.")
            (text,) = commits
        runs = self._of_commits([text])
        return _Meaning("commit", text, runs, f"{counted(len(runs), 'run')} of commit {text[:SHOWN_SHA]}")

    def _group(self, kind: str, text: str) -> _Meaning | None:
        runs = self._groups[kind].get(text)
        if runs is None:
            return None
        return _Meaning(kind, text, runs, f"{counted(len(runs), 'run')} of {kind} {text}")

    def _revision(self, text: str) -> _Meaning:
        history = self.history
        if history is None:
            raise SelectionError(
                f"{text} is asked of git, and the current directory is in no checkout that knows a commit of "
                f"{self._warehouse.path}. Name one with --git."
            )
        commits = history.commits(text)
        written: dict[str, list[str]] = {}
        for commit, full in history.known(dict.fromkeys(self._commits.values())).items():
            written.setdefault(full, []).append(commit)
        tested = [commit for commit in commits if commit in written]
        runs = self._of_commits(commit for full in tested for commit in written[full])
        detail = (
            commits[0][:SHOWN_SHA]
            if len(commits) == 1
            else f"{len(tested)} of {counted(len(commits), 'commit')}"
        )
        return _Meaning("git", text, runs, f"{counted(len(runs), 'run')} of git {text} ({detail})")

    def _of_commits(self, commits: Iterable[str]) -> tuple[int, ...]:
        runs: dict[str, list[int]] = {}
        for run, commit in self._commits.items():
            runs.setdefault(commit, []).append(run)
        return tuple(run for commit in commits for run in runs.get(commit, ()))

    def _known_names(self) -> list[str]:
        return [*self._names.values(), *self._groups["label"], *self._groups["baseline"]]

    def _nothing(self, selector: str, text: str, kind: str) -> str:
        """What to say of a selector that means nothing, of a kind or at all: what there is instead."""
        path = self._warehouse.path
        if not self._names:
            return f"{path}: {selector} means nothing, since there is no run. `tracewh ingest` loads some."
        names = self._names_of(kind) if kind else self._known_names()
        what = f"no {kind}" if kind else "no run, commit, label or baseline"
        if not kind and self.history is not None:
            what += f", and no revision of git at {self.history.folder}"
        start = f"{path}: {text} is {what}"
        if len(names) <= _MOST_LISTED:
            return f"{start}; there is {', '.join(names) or 'none'}."
        return f"{start}; {did_you_mean(text, names, _LISTED_BY.get(kind, '`tracewh ls` lists the runs'))}"

    def _names_of(self, kind: str) -> list[str]:
        if kind == "run":
            return list(self._names.values())
        if kind == "commit":
            return [commit[:SHOWN_SHA] for commit in dict.fromkeys(self._commits.values())]
        return list(self._groups.get(kind, ()))


_LISTED_BY = {
    "label": "`tracewh ls RUN` lists the labels of a run",
    "baseline": "`tracewh baseline ls` lists the baselines",
}


def counted(number: int, noun: str) -> str:
    """`1 run`, `2 runs`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
