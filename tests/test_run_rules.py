"""Rules of a run: the `tracewh.toml` in its directory, what is wrong with one, and patterns."""

from __future__ import annotations

import re
from pathlib import Path

import duckdb
import pytest

from tracewh.ingest.errors import UnreadableFile
from tracewh.ingest.rule_patterns import anchored, pattern_fault
from tracewh.ingest.run_rules import Rule, read_rules
from tracewh.sql.ingestion import IngestOptions, RunReport, SilentProgress, ingest_path
from tracewh.sql.rules import remove_rule
from tracewh.sql.warehouse import Warehouse

from .ingest_runs import query, small_capture, write_run

RULES = b"""
[[component]]
scope = "wi_[01]"
group = "Expert MLP"
phase = "forward"
inside = "moe.*"
direct = true
priority = 7
reason = "ours"

[[phase]]
segment = "^my_opt$"
phase = "update"

[[structure]]
segment = "wrapper|shell"

[[structure]]
segment = "main"
structural = false
"""


def test_rules_of_a_file() -> None:
    assert read_rules(RULES, "x") == [
        Rule("component", "^wi_[01]$", "forward", "Expert MLP", "^moe.*$", True, True, 7, "ours"),
        Rule("phase", "^my_opt$", "update", reason="a rule of the run"),
        Rule("structure", "^(wrapper|shell)$", reason="a rule of the run"),
        Rule("structure", "^main$", is_structural=False, reason="a rule of the run"),
    ]
    assert read_rules(b"", "x") == []
    assert read_rules(b"\xef\xbb\xbf" + RULES, "x") == read_rules(RULES, "x")


BAD = {
    "[[component]\n": r": not valid TOML: .* \(at line 1, column \d+\)\. Correct the file or remove it\.",
    "\xff": r"not valid TOML",
    "component = 3": r"component is no list of rules\. Rules are \[\[component\]\], \[\[phase\]\]",
    "[[components]]\nscope = 'a'": r"components is no list of rules",
    "phase = [3]": r"\[\[phase\]\] number 1: not a table of keys and values",
    "[[phase]]\nsegment = 'a'": r"\[\[phase\]\] number 1: key 'phase' is missing",
    "[[phase]]\nsegment = 'a'\nphase = 'b'\n[[phase]]\nsegmet = 'a'": (
        r"\[\[phase\]\] number 2: key 'segmet' is not known; keys are segment, phase, priority, reason"
    ),
    "[[phase]]\nsegment = 3\nphase = 'b'": r"key 'segment' must be a text in quotes",
    "[[structure]]\nsegment = 'a'\nstructural = 1": r"key 'structural' must be true or false",
    "[[structure]]\nsegment = 'a'\npriority = true": r"key 'priority' must be a whole number",
    "[[structure]]\nsegment = 'a'\npriority = -1": r"priority -1 is not between 0 and 1,000,000",
    "[[structure]]\nsegment = '\\d'": r"number 1: pattern '\\\\d': no backslash: write \[0-9\]",
    "[[component]]\nscope = 'a'\ngroup = 'A'\ninside = '(?i)b'": r"inside '\(\?i\)b': no \(\?\.\.\.\) groups",
    "[[component]]\nscope = 'a'\ngroup = ' '": r"group is empty",
    "[[component]]\nscope = 'a'\ngroup = 'unattributed'": r"group 'unattributed' is what views say",
    f"[[structure]]\nsegment = 'a'\npriority = {'9' * 5000}": r"not valid TOML: Exceeds the limit",
    f"[[structure]]\nsegment = 'a'\npriority = 0x{'f' * 5000}": r"number 1: priority is not between 0 and",
    "[[phase]]\nsegment = 'a'\nphase = 'Backward'": r"phase 'Backward': write a lower-case word",
    "[[phase]]\nsegment = 'a'\nphase = 'communication'": r"phase 'communication' is what views say",
    "[[structure]]\nsegment = 'a'\n" * 1001: r"more than 1,000 rules\. Join patterns with \|",
}


@pytest.mark.parametrize("text", BAD, ids=lambda text: text[:40])
def test_what_is_wrong_is_named(text: str) -> None:
    with pytest.raises(UnreadableFile, match=BAD[text]) as caught:
        read_rules(text.encode("latin-1"), "x/tracewh.toml")
    assert str(caught.value).startswith("x/tracewh.toml: ")


@pytest.mark.parametrize(
    "pattern",
    [
        "", "a" * 1001, "\\d", "(?:a)", "a+?", "a*+", "[]", "[^]", "[a[b]]", "[a&&b]", "[a", "(a", "a)", "*a",
        "a{", "a{2,1}", "a{200}", "(ab){3}", "a\nb", "[z-a]", "|*",
    ],
)  # fmt: skip
def test_patterns_that_engines_read_differently_are_refused(pattern: str) -> None:
    assert pattern_fault(pattern) is not None


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        ("wi_[01]", "wi_1", "xwi_1"),
        ("^wi_[01]$", "wi_1", "wi_12"),
        ("a|bc", "bc", "ac"),
        ("^a|bc$", "a", "abc"),
        ("^(a|b)c$", "bc", "b"),
        ("x{1,3}[0-9]{2}", "xx12", "xxxx12"),
        ("jvp[(].*[)]", "jvp(layers)", "jvp(layers"),
        ("[^.]+[.]attend", "embedder.attend", "embedder"),
    ],
)
def test_patterns_match_whole_names_in_duckdb_as_in_python(pattern: str, matching: str, other: str) -> None:
    assert pattern_fault(pattern) is None
    whole = anchored(pattern)
    with duckdb.connect() as connection:
        for text, expected in ((matching, True), (other, False)):
            assert connection.execute("SELECT REGEXP_MATCHES(?, ?)", [text, whole]).fetchall() == [
                (expected,)
            ]
            assert (re.fullmatch(whole, text) is not None) is expected


def stored(warehouse: Path) -> list[tuple[object, ...]]:
    return query(
        warehouse,
        "SELECT run_name, kind, pattern, vocabulary FROM ("
        "SELECT run_id, 'phase' AS kind, pattern, vocabulary FROM phase_rules UNION ALL "
        "SELECT run_id, 'structure', pattern, vocabulary FROM scope_rules UNION ALL "
        "SELECT run_id, 'component', pattern, vocabulary FROM component_rules) JOIN runs USING (run_id) "
        "ORDER BY 1, 2, 3",
    )


def report_of(warehouse: Path, run: Path, force: bool = False) -> RunReport:
    with Warehouse.open(warehouse, read_only=False) as opened:
        return ingest_path(opened, run, IngestOptions(force=force), SilentProgress())


def ingest(warehouse: Path, run: Path, force: bool = False) -> dict[str, tuple[str, str | None]]:
    report = report_of(warehouse, run, force)
    return {artifact.path: (artifact.status, artifact.detail) for artifact in report.artifacts}


def test_a_run_brings_its_rules_and_takes_them_away(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", {"a.xplane.pb": small_capture()})
    rules = run / "tracewh.toml"
    rules.write_bytes(RULES)
    warehouse = tmp_path / "w.duckdb"
    assert ingest(warehouse, run)["tracewh.toml"] == ("loaded", None)
    expected = [
        ("run", "component", "^wi_[01]$", "user"),
        ("run", "phase", "^my_opt$", "user"),
        ("run", "structure", "^(wrapper|shell)$", "user"),
        ("run", "structure", "^main$", "user"),
    ]
    assert stored(warehouse) == expected
    assert query(warehouse, "SELECT kind, reader FROM artifacts WHERE path = 'tracewh.toml'") == [
        ("rules", "run_metadata")
    ]
    # Again, and by force, they are there once.
    assert ingest(warehouse, run)["tracewh.toml"][0] == "already there"
    assert ingest(warehouse, run, force=True)["tracewh.toml"][0] == "loaded"
    assert stored(warehouse) == expected
    # The rules of a changed file take their place.
    rules.write_text("[[phase]]\nsegment = 'other'\nphase = 'update'\n")
    ingest(warehouse, run)
    assert stored(warehouse) == [("run", "phase", "^other$", "user")]
    shipped = "SELECT COUNT(*) FROM phase_rules WHERE run_id IS NULL"
    assert query(warehouse, shipped) == [(4,)]
    with Warehouse.open(warehouse, read_only=False) as opened:
        opened.remove_run("run")
    assert stored(warehouse) == []
    assert query(warehouse, "SELECT COUNT(*) FROM phase_rules") == query(warehouse, shipped) == [(4,)]


def test_damaged_rules_are_rejected_and_the_run_is_not(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", {"a.xplane.pb": small_capture()})
    (run / "tracewh.toml").write_text("[[phase]]\nsegment = 'a'\n")
    outcome = ingest(tmp_path / "w.duckdb", run)
    status, detail = outcome.pop("tracewh.toml")
    assert [other for other, _ in outcome.values()] == ["loaded"]
    assert status == "rejected"
    assert detail is not None
    assert detail.endswith("tracewh.toml: [[phase]] number 1: key 'phase' is missing. Correct it.")
    assert query(tmp_path / "w.duckdb", "SELECT problem FROM ingest_problems") == [("unreadable_file",)]


def test_rules_go_with_their_file(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", {"a.xplane.pb": small_capture()}, {"tracewh.toml": RULES.decode()})
    warehouse = tmp_path / "w.duckdb"
    assert report_of(warehouse, run).warnings == []
    of_rules = "SELECT status FROM artifacts WHERE kind = 'rules' ORDER BY artifact_id"
    # A file that is rejected leaves those that it had before, and says so each time.
    (run / "tracewh.toml").write_text("[[phase]]\nsegment = 'a'\n")
    for _ in range(2):
        report = report_of(warehouse, run)
        assert report.warnings == ["the rules that tracewh.toml had before stay, since it is rejected"]
        assert len(stored(warehouse)) == 4
        assert query(warehouse, of_rules) == [("loaded",), ("rejected",)]
    (run / "tracewh.toml").unlink()
    # A part of the run does not tell what has become of the rest.
    for part in (run / "profile", run / "profile" / "a.xplane.pb"):
        assert report_of(warehouse, part).warnings == []
        assert len(stored(warehouse)) == 4
    assert report_of(warehouse, run).warnings == ["the rules of tracewh.toml, which is gone, are dropped"]
    assert stored(warehouse) == query(warehouse, of_rules) == []
    assert query(warehouse, "SELECT COUNT(*) FROM ingest_problems") == [(0,)]
    assert report_of(warehouse, run).warnings == []


def test_a_removed_rule_is_back_with_its_file(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", {"a.xplane.pb": small_capture()}, {"tracewh.toml": RULES.decode()})
    warehouse = tmp_path / "w.duckdb"
    report_of(warehouse, run)
    (run / "tracewh.toml").unlink()
    with Warehouse.open(warehouse, read_only=False) as opened:
        remove_rule(opened, 1001)
    assert len(stored(warehouse)) == 3
    (run / "tracewh.toml").write_bytes(RULES)
    assert ingest(warehouse, run)["tracewh.toml"] == ("loaded", None)
    assert len(stored(warehouse)) == 4
