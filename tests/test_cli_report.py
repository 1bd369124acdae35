"""`tracewh report`: its formats, how it writes values, and names that would be markup or drive a terminal."""

import os
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tracewh.cli import main
from tracewh.cli.report_values import table_formats
from tracewh.cli.table import Style
from tracewh.sql.run_report import ReportColumn, ReportTable, report_tables
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
        self.paragraphs: list[str] = []
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
        elif tag == "p":
            self.paragraphs.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "td":
            self.cells[-1] += data
        elif self.open and self.open[-1] == "p":
            self.paragraphs[-1] += data
        elif self.open and self.open[-1] in ("h1", "h2"):
            self.headings.append(data)


def texts(unit: str | None, *values: object) -> list[str]:
    """How a column of these values is written."""
    table = ReportTable("", "", (ReportColumn("", unit),), tuple((value,) for value in values))
    (form,) = table_formats(table)
    return [form.text(value) for value in values]


@pytest.mark.parametrize(
    ("unit", "values", "written"),
    [
        ("ms", [2322.8, 9.24, 0.05, 0.0], ["2,322.8 ms", "9.2 ms", "0.1 ms", "0.0 ms"]),
        # Four digits of the largest, one of the smallest; six at most.
        ("ms", [2.8951, 0.8, -0.02], ["2.895 ms", "0.800 ms", "-0.020 ms"]),
        ("ms", [45.937, 0.0014], ["45.937 ms", "0.001 ms"]),
        ("ms", [45.937, 0.00001], ["45.9370 ms", "<0.0001 ms"]),
        ("ms", [26689.04, 0.04], ["26,689.0 ms", "<0.1 ms"]),
        ("ms", [0.802, 0.0054], ["802.0 µs", "5.4 µs"]),
        ("ms", [0.0000004], ["0.0004 µs"]),
        ("ms", [0.0], ["0.0 ms"]),
        ("ms", [], []),
        ("ms", [1.0, None], ["1.000 ms", ""]),
        ("ratio", [0.546, 0.0004, 1.0, 0.0], ["54.6%", "<0.1%", "100.0%", "0.0%"]),
        ("ratio", [0.02, -0.0001], ["2.0%", "-0.0%"]),
        ("ratio", [0.0000231, -0.0000231], ["0.002%", "-0.002%"]),
        ("ratio", [0.0042], ["0.42%"]),
        ("factor", [4.0893, 4.0, 0.001], ["4.09", "4.00", "<0.01"]),
        ("count", [112, 1234567, 0], ["112", "1,234,567", "0"]),
        ("count", [112.0], ["112"]),
        ("count", [1186.8333, 474.5, 6.0], ["1,186.8", "474.5", "6.0"]),
        ("count", [17.0, 0.125, 0.004], ["17.00", "0.12", "<0.01"]),
        (None, ["forward", None], ["forward", ""]),
    ],
)
def test_values(unit: str | None, values: list[object], written: list[str]) -> None:
    assert texts(unit, *values) == written


def test_times_of_a_table_have_one_unit() -> None:
    columns = (ReportColumn("a", "ms"), ReportColumn("b", "ms"), ReportColumn("n", "count"))
    forms = table_formats(ReportTable("", "", columns, ((0.25, 2.5, 3),)))
    assert [form.text(value) for form, value in zip(forms, (0.25, 2.5, 3), strict=True)] == [
        "0.250 ms",
        "2.500 ms",
        "3",
    ]
    assert [form.heading("x") for form in forms] == ["x", "x", "x"]


def test_the_unit_of_many_times_stands_in_their_headings() -> None:
    columns = tuple(ReportColumn(name, "ms") for name in "abc")
    forms = table_formats(ReportTable("", "", columns, ((0.2, 0.3, 0.4),)))
    assert [form.heading("x") for form in forms] == ["x (µs)"] * 3
    assert forms[0].text(0.2) == "200.0"


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("reduce-scatter", "reduce-scatter"),
        ("ncclDevKernel_Generic_1(ncclDevKernelArgsStorage<4096ul>)", "ncclDevKernel_Generic_1…"),
        ("void gemm<float, 128>(gemm<float, 128>::Params)", "gemm…"),
        ("(anonymous namespace)::copy<int>(int)", "(anonymous namespace)::copy…"),
        # c++filt: ncclDevKernel_Generic_1(ncclDevKernelArgsStorage<4096ul>), and a::b::kernel<int>(int)
        ("_Z23ncclDevKernel_Generic_124ncclDevKernelArgsStorageILm4096EE", "ncclDevKernel_Generic_1…"),
        ("_ZN1a1b6kernelIiEEvT_", "kernel…"),
        ("_Z99short", "_Z99short"),
        ("_Z" + "9" * 5000, "_Z" + "9" * 37 + "…"),
        ("k" * 39, "k" * 39),
        ("k" * 41, "k" * 39 + "…"),
        ("<b>", "<b>"),
    ],
)
def test_kernels(name: str, short: str) -> None:
    assert texts("kernel", name) == [short]


def test_text(warehouse: Path) -> None:
    result = report(warehouse, "base")
    assert (result.exit_code, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert lines[:3] == ["base", "", "The run"]
    assert [line.split(maxsplit=1) for line in lines[6:7]] == [["Commit", "4f2a91c0deadbeefcafe"]]
    # Ten and twenty kernels of 400 ps: 6 ns on each of two devices.
    total = next(line for line in lines if line.startswith("Total summed device time"))
    assert total.split()[4:] == ["0.0060", "µs", "100.0%"]
    assert lines[-2:] == [
        "What makes numbers of a run wrong or easily misread:",
        f"  tracewh check -w {warehouse} base",
    ]


def test_a_run_without_steps_tells_of_captures(warehouse: Path) -> None:
    with Warehouse.open(warehouse, read_only=True) as opened:
        tables = {table.title: table for table in report_tables(opened, HOSTILE_RUN)}
        assert "The steps" not in tables
        assert ("Means are of", "the whole capture: there is no complete step") in tables["The run"].rows
        # Nothing worked on the one step that is annotated.
        told = {table.title: table for table in report_tables(opened, "base")}
        assert told["The steps"].rows == (
            ("7", 0, "left out: no device worked on it", "step annotation train"),
        )
    assert tables["Phases of the capture"].note.startswith("Summed durations of device events")
    for table in tables.values():
        words = " ".join([table.title, table.note, *(column.heading for column in table.columns)])
        assert re.search("step", words, re.IGNORECASE) is None
    assert "Runs a capture" in [column.heading for column in tables["Collectives"].columns]


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
    assert page.headings[:4] == ["base", "The run", "The steps", "Phases of the capture"]
    assert page.paragraphs[-1] == "What makes numbers of a run wrong or easily misread: tracewh check base"
    assert page.cells[:2] == ["Commit", "4f2a91c0deadbeefcafe"]
    links = [value for name, value in page.attributes if name == "href"]
    assert links == [f"#{value}" for name, value in page.attributes if name == "id"]


def test_html_loads_nothing(warehouse: Path) -> None:
    for run in ("base", HOSTILE_RUN):
        text = report(warehouse, run, "--format", "html").stdout
        page = Page(text)
        names = {name for name, _ in page.attributes}
        assert names <= {"lang", "charset", "name", "content", "href", "id", "class", "style", "title"}
        assert {"script", "img", "link", "iframe", "b", "i", "u"}.isdisjoint(page.tags)
        assert not re.search(r"url\(|@import", text)
        assert re.fullmatch(
            r"(--share: \d+\.\d\d%)*",
            "".join(value or "" for name, value in page.attributes if name == "style"),
        )


@pytest.mark.parametrize("suffix", [".html", ".HTM", ".md", ".txt", ""])
def test_the_suffix_chooses_the_format(warehouse: Path, tmp_path: Path, suffix: str) -> None:
    target = tmp_path / f"report{suffix}"
    result = report(warehouse, "base", "--output", str(target))
    assert (result.exit_code, result.output) == (0, "")
    starts = {
        ".html": "<!doctype html>",
        ".htm": "<!doctype html>",
        ".md": "# base\n",
        ".txt": "base\n",
        "": "base\n",
    }
    assert target.read_text(encoding="utf-8").startswith(starts[suffix.lower()])


def test_a_suffix_of_another_format_is_refused(warehouse: Path, tmp_path: Path) -> None:
    target = tmp_path / "report.pdf"
    result = report(warehouse, "base", "--output", str(target))
    assert (result.exit_code, result.stdout) == (2, "")
    assert "report.pdf has no suffix of a format: .htm, .html, .markdown, .md, .text, .txt." in result.stderr
    assert not target.exists()
    assert report(warehouse, "base", "--output", str(target), "--format", "html").exit_code == 0
    assert target.read_text(encoding="utf-8").startswith("<!doctype html>")


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
        "Error: There is no report: run evil\\x1b[31m has no device work, only what describes the run: the "
        "tables artifacts and run_params have it. For a report profile it with device tracing on, "
        "and ingest that.\n"
    )


@pytest.mark.parametrize(
    ("insertion", "told"),
    [
        (
            "INSERT INTO host_events (capture_id, host_event_id, track_id, name_id, start_ps, end_ps) "
            "VALUES (3, 1, 1, 1, 0, 1)",
            "has host events, and no device work: the table host_events has them.",
        ),
        (
            "INSERT INTO hlo_programs (capture_id, program_id, module_id, artifact_id) VALUES (3, 1, 1, 1)",
            "has HLO programs, and no device work: `tracewh hlo` shows them.",
        ),
        (
            "INSERT INTO kernel_metrics (capture_id, metric_group, metric_name, value_name) "
            "VALUES (3, 'L2', 'hits', 'Avg')",
            "has metrics of kernels, and no trace of a step: the table kernel_metrics has them.",
        ),
        (
            "INSERT INTO device_events (capture_id, device_event_id, device_id, track_id, name_id, start_ps, "
            "end_ps, kind, role) VALUES (3, 1, 1, 0, 1, 0, 1, 'kernel', 'serialized')",
            "has counter passes, whose kernels ran one by one, and no trace of a step: v1.kernel_counters "
            "has what they count.",
        ),
    ],
)
def test_what_a_run_without_device_work_has_instead(tmp_path: Path, insertion: str, told: str) -> None:
    path = make_small_warehouse(tmp_path / "small.duckdb")
    with Warehouse.open(path, read_only=False) as opened:
        opened.connection.execute(
            "INSERT INTO captures (capture_id, run_id, artifact_id, source_kind) VALUES (3, 2, 9, 'xspace')"
        )
        opened.connection.execute(insertion)
    result = report(path, EVIL_NAME)
    assert (result.exit_code, result.stdout) == (1, "")
    assert told in result.stderr


def test_no_word_is_broken_on_a_narrow_terminal(warehouse: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("report", "table"):
        monkeypatch.setattr(
            f"tracewh.cli.{module}.style_for", lambda stream, *, wrap=False: Style(80, wrap=wrap)
        )
    for run in ("base", HOSTILE_RUN):
        text = report(warehouse, run).stdout
        assert "-- row" not in text
        devices = text[text.index("\nDevices\n") :].split("\n\n")[1].splitlines()
        assert max(map(len, devices)) <= 80
        assert {"Device", "Captures"} <= set(devices[0].split())
    # Both devices are GPU 0: of process 0 and of process 1.
    assert "GPU 0 of process 1" in report(warehouse, "base").stdout


def test_hostile_names_in_a_terminal(warehouse: Path) -> None:
    text = report(warehouse, HOSTILE_RUN).stdout
    assert _CONTROL.search(text) is None
    assert text.startswith("<script>alert(1)</script>|`x`\\x1b[31m\\u202e\n")
    # A kernel that is in no module stands for the kind of collective.
    assert "ncclDevKernel_…" in text
    assert "a|b</td><img src=x onerror=alert(2)>\\x07[l](http://x)" in text


def test_hostile_names_in_markdown(warehouse: Path) -> None:
    text = report(warehouse, HOSTILE_RUN, "--format", "markdown").stdout
    assert _CONTROL.search(text) is None
    assert text.startswith("# \\<script\\>alert(1)\\</script\\>\\|\\`x\\`\\\\x1b\\[31m\\\\u202e\n")
    text, _, check = text.rpartition("\n    ")
    # Code, which is read as it stands.
    assert check == "tracewh check $'<script>alert(1)</script>|`x`\\u001b[31m\\u202e'\n"
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
    at = page.cells.index("ncclDevKernel_…")
    assert page.cells[at + 3 : at + 7] == ["1", "2.000 ms", "1.000 ms", "50.0%"]
    assert ("title", "ncclDevKernel_<b>\\x1b]0;title\\x07" + "k" * 5000) in page.attributes
