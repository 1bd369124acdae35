"""Git repositories for tests: commits by short names, on lines of history that merge."""

from __future__ import annotations

import os
import shutil
import subprocess
from itertools import count
from pathlib import Path

import pytest

# As a user without any configuration, whose commits are the same each time.
_CONFIG = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")


class Repository:
    """A new repository at `folder`, on branch main; `commits` has the full name of each commit."""

    def __init__(self, folder: Path) -> None:
        if shutil.which("git") is None:
            pytest.skip("git is not installed")
        folder.mkdir(parents=True)
        self.folder = folder
        self.commits: dict[str, str] = {}
        self._minutes = count()
        self.git("init", "--quiet")
        self.git("symbolic-ref", "HEAD", "refs/heads/main")

    def git(self, *arguments: str) -> str:
        date = f"{1_714_557_600 + 60 * next(self._minutes)} +0000"
        done = subprocess.run(
            ["git", "-C", str(self.folder), *_CONFIG, *arguments],
            env=os.environ
            | {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date, "GIT_CONFIG_GLOBAL": os.devnull},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    def commit(self, *names: str) -> None:
        """Empty commits, one on the other."""
        for name in names:
            self.git("commit", "--quiet", "--allow-empty", "-m", name)
            self.commits[name] = self.git("rev-parse", "HEAD")

    def merge(self, branch: str, name: str) -> None:
        self.git("merge", "--quiet", "--no-ff", "-m", name, branch)
        self.commits[name] = self.git("rev-parse", "HEAD")
