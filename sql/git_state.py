"""What git says of a folder that may lie in a checkout."""

from __future__ import annotations

from pathlib import Path

from tracewh.sql.git_command import GitError, run_git


def git_head(folder: Path) -> str | None:
    """The commit that is checked out where `folder` lies; None outside of a checkout, or without git."""
    return _answer(folder, "rev-parse", "--verify", "HEAD") or None


def git_has_changes(folder: Path) -> bool | None:
    """Whether tracked files of the checkout differ from its commit; None where git cannot tell."""
    changes = _answer(folder, "status", "--porcelain", "--untracked-files=no")
    return None if changes is None else bool(changes)


def _answer(folder: Path, *arguments: str) -> str | None:
    try:
        done = run_git(folder, *arguments)
    except GitError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None
