"""How commits are written where there is little room."""

from __future__ import annotations

from collections.abc import Iterable

SHORT_SHA = 12


def short_commits(commits: Iterable[str]) -> dict[str, str]:
    """The first digits of each commit, as many as it takes to tell them apart."""
    unique = set(commits)
    length = SHORT_SHA
    while len({commit[:length] for commit in unique}) < len(unique):
        length += 1
    return {commit: commit[:length] for commit in unique}
