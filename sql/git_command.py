"""Running git on a folder that others filled: it reads, and executes nothing that the folder asks for."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tracewh.ingest.errors import TracewhError

_TIMEOUT_S = 20
# A configuration may name programs to run.
_SETTINGS = ("-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}")
# These would make git read another repository than that of the folder.
_ELSEWHERE = ("GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY")
_ENVIRONMENT = {
    # Else `status` would write to the user's checkout, and hold its lock.
    "GIT_OPTIONAL_LOCKS": "0",
    # What a partial clone lacks is missing, and not fetched.
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}


class GitError(TracewhError):
    """A folder is no checkout, git is missing, or it knows no such revision."""


def run_git(folder: Path, *arguments: str, given: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run git on `folder` with `given` as its input; its exit status is the caller's to judge.

    Raises GitError where git cannot be started or takes too long.
    """
    inherited = {name: value for name, value in os.environ.items() if name not in _ELSEWHERE}
    try:
        return subprocess.run(
            ["git", "-C", str(folder), *_SETTINGS, *arguments],
            input="" if given is None else given,
            capture_output=True,
            encoding="utf-8",
            errors="surrogateescape",
            timeout=_TIMEOUT_S,
            check=False,
            env=inherited | _ENVIRONMENT,
        )
    except FileNotFoundError as error:
        raise GitError("There is no git to ask. Install it, or name runs and commits instead.") from error
    except (OSError, ValueError) as error:
        raise GitError(f"{folder}: git cannot be asked ({error}).") from error
    except subprocess.TimeoutExpired as error:
        raise GitError(
            f"{folder}: `git {arguments[0]}` took more than {_TIMEOUT_S} s. Name runs or commits instead."
        ) from error
