"""The history that a git checkout knows: which commit a revision is, and in which order commits came."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tracewh.sql.git_command import GitError, run_git

_RANGE = re.compile(r"(?P<first>.*?)(?P<dots>\.{2,3})(?P<last>.*)", re.DOTALL)
_SHA = re.compile(r"[0-9a-f]{4,64}")


class GitHistory:
    """The commits of one checkout, or of a bare repository, at `folder`."""

    def __init__(self, folder: Path) -> None:
        """Raises GitError where `folder` is not in a repository, or git is missing or refuses it."""
        self.folder = folder
        if not folder.is_dir():
            raise GitError(f"{folder}: no such directory. Name a git checkout with --git.")
        self._run(
            "rev-parse", "--git-dir", failure="no git checkout that can be read, so name another with --git"
        )

    def known(self, commits: Iterable[str]) -> dict[str, str]:
        """The full names of those of `commits` that the repository has; hexadecimal prefixes may do."""
        asked = [commit for commit in commits if _SHA.fullmatch(commit.lower())]
        if not asked:
            return {}
        lines = "".join(f"{commit}^{{commit}}\n" for commit in asked)
        answers = self._run("cat-file", "--batch-check=%(objectname)", given=lines).splitlines()
        return {
            commit: answer
            for commit, answer in zip(asked, answers, strict=True)
            # Of one that is missing or ambiguous, git repeats the question. A branch may have such a name.
            if _SHA.fullmatch(answer) and answer.startswith(commit.lower())
        }

    def commits(self, revision: str) -> list[str]:
        """The commits of a range, oldest first, or the one that a single revision is.

        `a..b` and `a...b` mean what they mean to git, and a missing side is HEAD. Raises GitError where a
        side is no commit, and where a shallow clone lacks a part of the range.
        """
        found = _RANGE.fullmatch(revision)
        if found is None:
            return [self._commit(revision)]
        first, last = (self._commit(found[side] or "HEAD") for side in ("first", "last"))
        lines = self._run(
            "rev-list", "--topo-order", "--reverse", "--parents", f"{first}{found['dots']}{last}"
        )
        listed = [line.split() for line in lines.splitlines()]
        if self.is_shallow and any(len(line) == 1 for line in listed):
            raise GitError(
                f"{self.folder}: a shallow clone, whose history ends within {revision}. "
                "Fetch the rest with `git fetch --unshallow`."
            )
        return [line[0] for line in listed]

    def lineage(self, commits: Sequence[str]) -> Lineage:
        """How `commits`, by their full names, come from each other."""
        unique = list(dict.fromkeys(commits))
        # What all of them come from, and what that comes from, is of no interest.
        bases = self._found("merge-base", "--all", "--octopus", *unique).split() if unique else []
        lines = [*unique, *(f"^{base}^@" for base in bases)]
        text = self._run(
            "rev-list", "--topo-order", "--reverse", "--parents", "--stdin", given="\n".join([*lines, ""])
        )
        return Lineage({words[0]: tuple(words[1:]) for words in map(str.split, text.splitlines())})

    @cached_property
    def is_shallow(self) -> bool:
        """Whether the clone ends at some depth."""
        return self._run("rev-parse", "--is-shallow-repository").strip() == "true"

    def _commit(self, revision: str) -> str:
        if revision.startswith("-") or "\n" in revision or "\0" in revision:
            raise GitError(f"{revision!r} is no revision of git.")
        text = self._found("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
        if not _SHA.fullmatch(text):
            hint = (
                "the clone is shallow, `git fetch --unshallow` brings the rest"
                if self.is_shallow
                else "`git log --oneline` lists its commits"
            )
            raise GitError(f"{self.folder}: git knows no commit {revision}; {hint}.")
        return text

    def _run(self, *arguments: str, given: str | None = None, failure: str = "git cannot tell") -> str:
        """What git writes. Raises GitError where it fails."""
        done = run_git(self.folder, *arguments, given=given)
        if done.returncode != 0:
            reason = done.stderr.strip().partition("\n")[0].removeprefix("fatal: ")
            raise GitError(f"{self.folder}: {failure} ({reason or 'no reason given'}).")
        return done.stdout

    def _found(self, *arguments: str) -> str:
        """What git writes, or '' where it finds nothing."""
        done = run_git(self.folder, *arguments)
        return done.stdout.strip() if done.returncode == 0 else ""


@dataclass(frozen=True)
class Lineage:
    """Commits with their parents, oldest first, as far back as they have no common ancestor."""

    parents: dict[str, tuple[str, ...]]

    @cached_property
    def position(self) -> dict[str, int]:
        """Where each commit stands: parents before children, and one line of history after the other."""
        return {commit: number for number, commit in enumerate(self.parents)}

    def ancestors(self, commit: str) -> set[str]:
        """The commit and all that it comes from."""
        found: set[str] = set()
        waiting = [commit]
        while waiting:
            item = waiting.pop()
            if item in found or item not in self.parents:
                continue
            found.add(item)
            waiting.extend(self.parents[item])
        return found


def find_history(commits: Iterable[str]) -> GitHistory | None:
    """The history of the checkout that the current directory is in, if it knows one of `commits`."""
    try:
        history = GitHistory(Path.cwd())
        return history if history.known(commits) else None
    except (GitError, OSError):
        return None
