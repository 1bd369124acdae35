"""Which runs a selector means."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tracewh.sql.git_command import GitError
from tracewh.sql.git_history import GitHistory
from tracewh.sql.run_selection import RunSelection, SelectionError, select_runs, shared_runs
from tracewh.sql.warehouse import Warehouse

from .git_repositories import Repository
from .metric_rows import add_run

A1, A2, B1 = "abcd1" + 35 * "0", "abcd2" + 35 * "0", "beef" + 36 * "1"


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """c1 - c2 - c3 - merge - c5 on main, with s1 - s2 on side from c2 to the merge."""
    made = Repository(tmp_path / "checkout")
    made.commit("c1", "c2")
    made.git("branch", "side")
    made.commit("c3")
    made.git("checkout", "--quiet", "side")
    made.commit("s1", "s2")
    made.git("checkout", "--quiet", "main")
    made.merge("side", "merge")
    made.commit("c5")
    return made


@pytest.fixture
def warehouse(tmp_path: Path) -> Iterator[Warehouse]:
    with Warehouse.open(tmp_path / "w.duckdb", read_only=False) as opened:
        yield opened


@pytest.fixture
def plain(warehouse: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Warehouse:
    """Runs hist_01 .. hist_03, base/x, beef and a,b, outside of any checkout."""
    for run_id, (name, commit) in enumerate(
        [("hist_01", A1), ("hist_02", A2), ("hist_03", B1), ("base/x", B1), ("beef", None), ("a,b", "v1.0")],
        start=1,
    ):
        add_run(warehouse.connection, run_id, name, commit)
    warehouse.connection.execute(
        "INSERT INTO main.run_labels VALUES (1, 'branch', 'main'), (3, 'branch', 'main'), "
        "(2, 'note', 'a=b,c')"
    )
    warehouse.connection.execute("INSERT INTO main.baselines VALUES ('good', 1), ('good', 2), ('hist_03', 4)")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    return warehouse


@pytest.fixture
def tested(warehouse: Warehouse, repository: Repository) -> Warehouse:
    """Runs of all commits but c3, ingested newest first; two of s1."""
    for run_id, name in enumerate(["c5", "merge", "s2", "s1", "c2", "c1"], start=1):
        add_run(warehouse.connection, run_id, f"run_{name}", repository.commits[name])
    add_run(warehouse.connection, 7, "run_s1_again", repository.commits["s1"][:12].upper())
    return warehouse


def select(warehouse: Warehouse, selector: str, repository: Path | None = None) -> RunSelection:
    return select_runs(warehouse, selector, repository=repository)


@pytest.mark.parametrize(
    ("selector", "runs"),
    [
        ("hist_01", [1]),
        ("hist_0[1-2]", [1, 2]),
        ("hist*", [1, 2, 3]),
        ("base*", [4]),
        ("*", [1, 2, 3, 4, 5, 6]),
        ("run:hist_0?", [1, 2, 3]),
        (A1, [1]),
        ("abcd1", [1]),
        ("ABCD2", [2]),
        ("commit:beef", [3, 4]),
        ("v1.0", [6]),
        ("branch=main", [1, 3]),
        ("label:branch=main", [1, 3]),
        ("note=a=b,c", [2]),
        ("label:note=a=b,c", [2]),
        ("good", [1, 2]),
        ("baseline:good", [1, 2]),
        ("baseline:hist_03", [4]),
        ("run:hist_03", [3]),
        ("hist_02,hist_01", [2, 1]),
        ("hist_02, good,beef1", [2, 1, 3, 4]),
        ("a,b", [6]),
        ("run:a,b", [6]),
        ("run:hist_01,abcd2", [1, 2]),
    ],
)
def test_selectors(plain: Warehouse, selector: str, runs: list[int]) -> None:
    assert list(select(plain, selector).run_ids) == runs


def test_a_selection_tells_what_it_is(plain: Warehouse) -> None:
    assert select(plain, "beef1") == RunSelection(
        "beef1", "2 runs of commit beef11111111", (3, 4), ("hist_03", "base/x"), (B1,)
    )
    assert select(plain, "hist_01").description == "run hist_01"
    assert select(plain, "hist*").description == "3 runs hist*"
    assert select(plain, "branch=main").description == "2 runs of label branch=main"
    assert select(plain, "good").description == "2 runs of baseline good"
    union = select(plain, "good,hist_02,run:beef")
    assert (union.description, union.run_ids) == ("3 runs of good,hist_02,run:beef", (1, 2, 5))
    assert union.commits == (A1, A2)


def test_names_that_mean_different_runs_are_refused(plain: Warehouse) -> None:
    with pytest.raises(SelectionError) as error:
        select(plain, "hist_03")
    assert str(error.value) == (
        "hist_03 means several things: write run:hist_03 (run hist_03) or baseline:hist_03 "
        "(1 run of baseline hist_03)."
    )
    with pytest.raises(SelectionError, match=r"beef means several things: write run:beef .* or commit:beef"):
        select(plain, "beef")
    plain.connection.execute("UPDATE main.baselines SET run_id = 3 WHERE baseline = 'hist_03'")
    assert select(plain, "hist_03").run_ids == (3,)


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        ("abcd", f"abcd is the beginning of 2 commits: {A1}, {A2}."),
        ("hist_04", "hist_04 is no run, commit, label or baseline; did you mean "),
        ("abc", "abc is no run, commit, label or baseline; "),
        ("run:good", "good is no run; there is hist_01, hist_02, hist_03, base/x, beef, a,b."),
        ("baseline:gold", "gold is no baseline; there is good, hist_03."),
        ("label:branch=dev", "branch=dev is no label; there is branch=main, note=a=b,c."),
        ("commit:1234567", "1234567 is no commit; there is abcd10000000, abcd20000000, beef11111111, v1.0."),
        ("", "An empty selector means no run."),
        ("hist_01,", "'hist_01,' has an empty part between its commas."),
        (
            "main~5..main",
            "main~5..main is asked of git, and the current directory is in no checkout that knows",
        ),
        ("git:good", "good is asked of git, and the current directory"),
    ],
)
def test_what_means_nothing(plain: Warehouse, selector: str, message: str) -> None:
    with pytest.raises(SelectionError) as error:
        select(plain, selector)
    assert message in str(error.value)


def test_an_empty_warehouse(warehouse: Warehouse) -> None:
    with pytest.raises(SelectionError, match="base means nothing, since there is no run"):
        select(warehouse, "base")


def test_shared_runs(plain: Warehouse) -> None:
    assert shared_runs(select(plain, "good"), select(plain, "branch=main")) == ("hist_01",)
    assert shared_runs(select(plain, "hist_01"), select(plain, "hist_02")) == ()


@pytest.mark.parametrize(
    ("selector", "runs"),
    [
        ("main", ["c5"]),
        ("HEAD~1", ["merge"]),
        ("HEAD~1^2", ["s2"]),
        ("git:side", ["s2"]),
        ("side~1", ["s1", "s1_again"]),
        ("c_tag", ["c1"]),
        ("main~1..main", ["c5"]),
        ("HEAD~1..", ["c5"]),
        ("c_tag..side", ["c2", "s1", "s1_again", "s2"]),
        # c3 is not reachable from side, and has no run.
        ("side..main", ["merge", "c5"]),
        ("main~2...side", ["s1", "s1_again", "s2"]),
        ("git:side~2..side,c_tag", ["s1", "s1_again", "s2", "c1"]),
    ],
)
def test_revisions(tested: Warehouse, repository: Repository, selector: str, runs: list[str]) -> None:
    repository.git("tag", "c_tag", repository.commits["c1"])
    selection = select(tested, selector, repository.folder)
    assert list(selection.run_names) == [f"run_{name}" for name in runs]


def test_a_range_comes_in_the_order_of_its_commits(tested: Warehouse, repository: Repository) -> None:
    selection = select(tested, "main~3..main", repository.folder)
    # Lines of history are not mixed, and git has the merged one before or after c3, which has no run.
    assert selection.run_names == ("run_s1", "run_s1_again", "run_s2", "run_merge", "run_c5")
    assert selection.description == "5 runs of git main~3..main (4 of 5 commits)"
    assert selection.commits[2:] == tuple(repository.commits[name] for name in ("s2", "merge", "c5"))


def test_the_current_directory_counts_where_it_knows_a_commit(
    tested: Warehouse, repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    below = repository.folder / "below"
    below.mkdir()
    monkeypatch.chdir(below)
    assert select(tested, "HEAD").run_names == ("run_c5",)
    other = Repository(tmp_path / "other")
    other.commit("x")
    monkeypatch.chdir(other.folder)
    with pytest.raises(SelectionError, match="HEAD is asked of git"):
        select(tested, "HEAD")
    with pytest.raises(SelectionError, match=r"has 0 runs of git HEAD \("):
        select(tested, "HEAD", other.folder)


def test_a_branch_called_as_a_baseline(tested: Warehouse, repository: Repository) -> None:
    tested.connection.execute("INSERT INTO main.baselines VALUES ('main', 1)")
    assert select(tested, "main", repository.folder).run_names == ("run_c5",)
    tested.connection.execute("INSERT INTO main.baselines VALUES ('main', 2)")
    with pytest.raises(
        SelectionError, match=r"write baseline:main \(2 runs .* or git:main \(1 run of git main"
    ):
        select(tested, "main", repository.folder)
    # A revision without runs is no other meaning.
    tested.connection.execute("INSERT INTO main.baselines VALUES ('c3', 1)")
    repository.git("branch", "c3", repository.commits["c3"])
    assert select(tested, "c3", repository.folder).run_names == ("run_c5",)


@pytest.mark.parametrize(
    "revision", ["--all", "-n1", "git:--output=x", "main\n--all", "main\0", "^main", "main:x"]
)
def test_what_is_no_revision_is_refused(tested: Warehouse, repository: Repository, revision: str) -> None:
    with pytest.raises((SelectionError, GitError)):
        select(tested, revision, repository.folder)
    assert not (repository.folder / "x").exists()


def test_a_revision_that_is_not_there(tested: Warehouse, repository: Repository) -> None:
    with pytest.raises(GitError, match="git knows no commit HEAD~99; `git log --oneline` lists its commits"):
        select(tested, "HEAD~99..HEAD", repository.folder)
    with pytest.raises(
        SelectionError, match="nowhere is no run, commit, label or baseline, and no revision of git"
    ):
        select(tested, "nowhere", repository.folder)
    with pytest.raises(GitError, match="git knows no commit nowhere"):
        select(tested, "git:nowhere", repository.folder)


def test_a_shallow_clone_says_so(tested: Warehouse, repository: Repository, tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    repository.git("clone", "--quiet", "--depth", "2", f"file://{repository.folder}", str(clone))
    assert select(tested, "HEAD~1..HEAD", clone).run_names == ("run_c5",)
    with pytest.raises(GitError, match="the clone is shallow, `git fetch --unshallow` brings the rest"):
        select(tested, "HEAD~4..HEAD", clone)
    # The oldest commit has a parent that is not there.
    subprocess.run(
        ["git", "-C", str(clone), "fetch", "-q", "--depth", "1", "origin", repository.commits["c1"]],
        check=True,
    )
    with pytest.raises(GitError, match="a shallow clone, whose history ends within FETCH_HEAD"):
        select(tested, "FETCH_HEAD..HEAD", clone)


def test_a_folder_that_is_no_checkout(plain: Warehouse, tmp_path: Path) -> None:
    with pytest.raises(GitError, match="no git checkout that can be read"):
        select(plain, "hist_01", tmp_path)
    with pytest.raises(GitError, match="no such directory"):
        select(plain, "hist_01", tmp_path / "none")


def test_without_git(plain: Warehouse, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert select(plain, "hist_01").run_ids == (1,)
    with pytest.raises(SelectionError, match="is asked of git"):
        select(plain, "HEAD~1")
    with pytest.raises(GitError, match="no git to ask"):
        select(plain, "hist_01", tmp_path)


def test_nothing_of_a_checkout_is_executed(tested: Warehouse, repository: Repository, tmp_path: Path) -> None:
    trap = tmp_path / "trap.sh"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/sprung\n", encoding="utf-8")
    trap.chmod(0o755)
    for name in ("core.fsmonitor", "core.sshCommand", "core.pager", "diff.external", "core.gitProxy"):
        repository.git("config", name, str(trap))
    hooks = repository.folder / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    for hook in ("post-index-change", "reference-transaction", "fsmonitor-watchman"):
        (hooks / hook).symlink_to(trap)
    # A commit that a partial clone lacks would be fetched.
    repository.git("config", "remote.origin.url", f"ext::{trap}")
    repository.git("config", "remote.origin.promisor", "true")
    repository.git("config", "protocol.ext.allow", "always")
    add_run(tested.connection, 8, "elsewhere", 40 * "d")
    assert select(tested, "main~2..main", repository.folder).run_ids == (3 + 1, 7, 3, 2, 1)
    assert not (tmp_path / "sprung").exists()


def test_another_repository_in_the_environment(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Repository(tmp_path / "other")
    other.commit("x")
    monkeypatch.setenv("GIT_DIR", str(other.folder / ".git"))
    assert GitHistory(repository.folder).commits("HEAD") == [repository.commits["c5"]]


def test_lineage_begins_where_all_of_it_comes_from(repository: Repository) -> None:
    commits = repository.commits
    lineage = GitHistory(repository.folder).lineage([commits["c5"], commits["s1"], commits["c3"]])
    # c2 is the youngest that all three come from.
    assert set(lineage.parents) == {commits[name] for name in ("c2", "c3", "s1", "s2", "merge", "c5")}
    position = lineage.position
    for commit, parents in lineage.parents.items():
        assert all(position[parent] < position[commit] for parent in parents if parent in position)
    assert lineage.ancestors(commits["merge"]) == set(lineage.parents) - {commits["c5"]}
    assert lineage.ancestors(commits["s2"]) == {commits[name] for name in ("c2", "s1", "s2")}


def test_lineage_without_a_common_ancestor(repository: Repository) -> None:
    repository.git("checkout", "--quiet", "--orphan", "new")
    repository.commit("o1")
    lineage = GitHistory(repository.folder).lineage([repository.commits["c2"], repository.commits["o1"]])
    assert set(lineage.parents) == {repository.commits[name] for name in ("c1", "c2", "o1")}
