"""What git says of a folder that may lie in a checkout."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

_TIMEOUT_S = 10


def git_head(folder: Path) -> str | None:
    """The commit that is checked out where `folder` lies; None outside of a checkout, or without git."""
    return _git(folder, "rev-parse", "--verify", "HEAD") or None


def git_has_changes(folder: Path) -> bool | None:
    """Whether tracked files of the checkout differ from its commit; None where git cannot tell."""
    changes = _git(folder, "status", "--porcelain", "--untracked-files=no")
    return None if changes is None else bool(changes)


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
            # Else `status` would write to the user's checkout, and hold its lock.
            env=os.environ | {"GIT_OPTIONAL_LOCKS": "0"},
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
