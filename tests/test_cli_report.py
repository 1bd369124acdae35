"""`tracewh report`: its formats, how it writes values, and names that would be markup or drive a terminal."""

import os
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tracewh.cli import main
from tracewh.cli.report_values import value_text
from tracewh.sql.warehouse import Warehouse

from .small_warehouse import EVIL_NAME, make_small_warehouse

HOSTILE_RUN = "<script>alert(1)</script>|`x`\x1b[31m\u202e"
HOSTILE_SCOPE = "a|b</td><img src=x onerror=alert(2)>\x07[l](http://x)"
HOSTILE_KERNEL = "ncclDevKernel_<b>\x1b]0;title\x07" + "k" * 5000
_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f\u202e]")
_ESCAPED = re.compile(r"\\[\\`*{}\[\]<>|~&#_]")


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Beside the small warehouse a run of two kernels: names of run, scope and kernel are hostile."""
    path = make_small_warehouse(tmp_path_factory.mktemp("warehouse") / "small.duckdb")
    with Warehouse.open(path, read_only=False) as opened:
        execute = opened.connection.execute
        execute(
            "INSERT INTO runs (run_id, run_name, path, commit_sha) VALUES (3, ?, '', '<i>4f2a')",
            [HOSTILE_RUN],
        )
        execute(
            "INSERT INTO captures (capture_id, run_id, artifact_id, source_kind) VALUES (3, 3, 9, 'xspace')"
        )
        execute(
            "INSERT INTO devices (device_id, run_id, hostname, device_type, device_ordinal, device_kind) "
            "VALUES (3, 3, 'a', 'GPU', 0, '<u>H200')"
        )
        op_name = f"jit(f)/jvp({HOSTILE_SCOPE})/dot"
        execute("INSERT INTO names (name_id, name) VALUES (8, ?), (9, ?)", [HOSTILE_KERNEL, op_name])
        execute(
            "INSERT INTO op_name_scopes (name_id, position, segment, scope, transforms, is_last) VALUES "
            "(9, 1, 'jit(f)', 'f', 'jit', FALSE), (9, 2, ?, ?, 'jvp', FALSE), (9, 3, 'dot', 'dot', '', TRUE)",
            [f"jvp({HOSTILE_SCOPE})", HOSTILE_SCOPE],
        )
        execute(
            "INSERT INTO op_name_classes (rule_scope, op_name_id, phase, component, component_group, "
            "is_loop_scope, is_mixed) VALUES (0, 9, 'forward', $1, $1, FALSE, FALSE)",
            [HOSTILE_SCOPE],
        )
        execute("INSERT INTO ops (capture_id, op_id, op_name_id) VALUES (3, 1, 9)")
        execute(
            "INSERT INTO device_events (capture_id, device_event_id, device_id, track_id, name_id, start_ps, "
            "end_ps, kind, role, op_id) VALUES (3, 1, 3, 5, 1, 0, 1500000000, 'kernel', 'work', 1), "
            "(3, 2, 3, 6, 8, 500000000, 2500000000, 'kernel', 'work', 1)"
        )
    os.chmod(path, 0o444)
    return path


def report(warehouse: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["report", "-w", str(warehouse), *arguments])


class Page(HTMLParser):
    """A page as its parser sees it; every element but void ones must be closed in order."""

    VOID = ("meta",)

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.cells: list[str] = []
        self.headings: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in self.VOID:
            self.open.append(tag)
        if tag == "td":
            self.cells.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "td":
            self.cells[-1] += data
        elif self.open and self.open[-1] in ("h1", "h2"):
            self.headings.append(data)


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (2322.8, "ms", "2,322.8 ms"),
        (0.04, "ms", "<0.1 ms"),
        (0.05, "ms", "0.1 ms"),
        (0.0, "ms", "0.0 ms"),
        (-0.001, "ms", ">-0.1 ms"),
        (-3.21, "ms", "-3.2 ms"),
        (0.546, "ratio", "54.6%"),
        (0.0004, "ratio", "<0.1%"),
        (-0.00001, "ratio", ">-0.1%"),
        (0.0, "ratio", "0.0%"),
        (1.0, "ratio", "100.0%"),
        (4.0893, "factor", "4.09"),
        (4.0, "factor", "4.00"),
        (0.001, "factor", "<0.01"),
        (112, "count", "112"),
        (112.0, "count", "112"),
        (1017.25, "count", "1,017.25"),
        (100.0, "count", "100"),
        (0.004, "count", "<0.01"),
        (0, "count", "0"),
        (1234567, "count", "1,234,567"),
        ("forward", None, "forward"),
        (None, "ms", ""),
        (None, None, ""),
    ],
)
def test_values(value: object, unit: str | None, text: str) -> None:
    assert value_text(value, unit) == text


def test_text(warehouse: Path) -> None:
    result = report(warehouse, "base")
    assert (result.exit_code, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert lines[:3] == ["base", "", "The run"]
    assert [line.split(maxsplit=1) for line in lines[6:7]] == [["Commit", "4f2a91c0deadbeefcafe"]]
    # Ten and twenty kernels of 400 ps on two devices are nothing in ms, and not all of the window.
    total = next(line for line in lines if line.startswith("Total summed device time"))
    assert total.split()[4:] == ["<0.1", "ms", "100.0%"]


def test_markdown_tables_have_one_shape(warehouse: Path) -> None:
    result = report(warehouse, "base", "--format", "markdown")
    assert (result.exit_code, result.stderr) == (0, "")
    text = result.stdout
    assert text.startswith(
        "# base\n\n## The run\n\n| Fact | Value |\n|---|---|\n| Commit | 4f2a91c0deadbeefcafe |\n"
    )
    for block in text.split("\n\n"):
        if block.startswith("|"):
            assert len({_ESCAPED.sub("", line).count("|") for line in block.splitlines()}) == 1


def test_html(warehouse: Path) -> None:
    result = report(warehouse, "base", "--format", "html")
    assert (result.exit_code, result.stderr) == (0, "")
    page = Page(result.stdout)
    assert page.headings[:3] == ["base", "The run", "Phases of the step"]
    assert page.cells[:2] == ["Commit", "4f2a91c0deadbeefcafe"]
    links = [value for name, value in page.attributes if name == "href"]
    assert links == [f"#{value}" for name, value in page.attributes if name == "id"]


def test_html_loads_nothing(warehouse: Path) -> None:
    for run in ("base", HOSTILE_RUN):
        text = report(warehouse, run, "--format", "html").stdout
        page = Page(text)
        names = {name for name, _ in page.attributes}
        assert names <= {"lang", "charset", "name", "content", "href", "id", "class", "style"}
        assert {"script", "img", "link", "iframe", "b", "i", "u"}.isdisjoint(page.tags)
        assert not re.search(r"url\(|@import", text)
        assert re.fullmatch(
            r"(--share: \d+\.\d\d%)*",
            "".join(value or "" for name, value in page.attributes if name == "style"),
        )


@pytest.mark.parametrize("suffix", [".html", ".HTM", ".md", ".txt"])
def test_the_suffix_chooses_the_format(warehouse: Path, tmp_path: Path, suffix: str) -> None:
    target = tmp_path / f"report{suffix}"
    result = report(warehouse, "base", "--output", str(target))
    assert (result.exit_code, result.output) == (0, "")
    starts = {".html": "<!doctype html>", ".htm": "<!doctype html>", ".md": "# base\n", ".txt": "base\n"}
    assert target.read_text(encoding="utf-8").startswith(starts[suffix.lower()])


def test_a_format_goes_before_the_suffix(warehouse: Path, tmp_path: Path) -> None:
    target = tmp_path / "report.html"
    assert report(warehouse, "base", "-o", str(target), "--format", "markdown").exit_code == 0
    assert target.read_text(encoding="utf-8").startswith("# base\n")


def test_unknown_run(warehouse: Path, tmp_path: Path) -> None:
    target = tmp_path / "report.html"
    result = report(warehouse, "nosuch", "-o", str(target))
    assert (result.exit_code, result.stdout) == (1, "")
    assert re.fullmatch(r"Error: .* has no run nosuch; its runs: base, .*\n", result.stderr)
    assert not target.exists()


@pytest.mark.parametrize("format_name", ["text", "markdown", "html"])
def test_a_run_without_device_work(warehouse: Path, format_name: str) -> None:
    result = report(warehouse, EVIL_NAME, "--format", format_name)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == (
        "Error: Run evil\\x1b[31m has no device work to report: profile it with device tracing on and ingest "
        "that; `tracewh check` says what its captures lack.\n"
    )


def test_hostile_names_in_a_terminal(warehouse: Path) -> None:
    text = report(warehouse, HOSTILE_RUN).stdout
    assert _CONTROL.search(text) is None
    assert text.startswith("<script>alert(1)</script>|`x`\\x1b[31m\\u202e\n")
    # A kernel that is in no module stands for the kind of collective.
    assert "ncclDevKernel_<b>\\x1b]0;title\\x07" + "k" * 5000 in text
    assert "a|b</td><img src=x onerror=alert(2)>\\x07[l](http://x)" in text


def test_hostile_names_in_markdown(warehouse: Path) -> None:
    text = report(warehouse, HOSTILE_RUN, "--format", "markdown").stdout
    assert _CONTROL.search(text) is None
    assert text.startswith("# \\<script\\>alert(1)\\</script\\>\\|\\`x\\`\\\\x1b\\[31m\\\\u202e\n")
    bare = _ESCAPED.sub("", text)
    assert not re.search(r"[<>`\[\]]", bare)
    for block in bare.split("\n\n"):
        if block.startswith("|"):
            assert len({line.count("|") for line in block.splitlines()}) == 1


def test_hostile_names_in_html(warehouse: Path) -> None:
    text = report(warehouse, HOSTILE_RUN, "--format", "html").stdout
    assert _CONTROL.search(text) is None
    page = Page(text)
    assert page.headings[0] == "<script>alert(1)</script>|`x`\\x1b[31m\\u202e"
    assert "a|b</td><img src=x onerror=alert(2)>\\x07[l](http://x)" in page.cells
    assert "<i>4f2a" in page.cells
    assert "1 x <u>H200" in page.cells
    # The forward kernel takes 1.5 ms, and the collective 2 ms, of which 1 ms is beside it.
    at = page.cells.index("ncclDevKernel_<b>\\x1b]0;title\\x07" + "k" * 5000)
    assert page.cells[at + 3 : at + 7] == ["1", "2.0 ms", "1.0 ms", "50.0%"]
