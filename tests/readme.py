"""The queries of the README with their outputs: `python tests/readme.py` writes the real outputs into it."""

from __future__ import annotations

import re
import shlex
import sys
import tempfile
from pathlib import Path

from click.testing import CliRunner

from tracewh.cli import main as tracewh

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
RUNS = ("h200_moe", "h200_moe_direct", "cpu_train", "rocpd_train", "rocpd_counters")

_QUERY = re.compile(r"```sql\n(?P<query>.*?)```\n```text\n(?P<output>.*?)```", re.DOTALL)
# A command whose output ends in ... is shown so far only.
_COMMAND = re.compile(
    r"```sh\ntracewh (?P<query>[^\n]*)\n```\n\n```text\n(?P<output>(?:(?!```).*\n)*?\.\.\.\n)```",
)
_SHOWN_LINES = 24
_DEMO = re.compile(
    r'<!-- command: demo -->\n```sh\n.*?tracewh sql "(?P<query>.*?)"\n```\n\n<!-- output: demo -->\n'
    r"```text\n(?P<output>.*?)```",
    re.DOTALL,
)


def run(arguments: list[str]) -> str:
    """What `tracewh ARGUMENTS` writes to standard output."""
    result = CliRunner().invoke(tracewh, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def examples(warehouse: Path, text: str) -> list[tuple[re.Match[str], str]]:
    """Each query of the README as a match with its `output`, and the real output."""
    demo = _DEMO.search(text)
    assert demo is not None
    demo_warehouse = warehouse.with_name("demo.duckdb")
    run(["ingest", "-w", str(demo_warehouse), str(ROOT / "fixtures" / "h200_moe_direct")])
    run(["ingest", "-w", str(warehouse), *(str(ROOT / "fixtures" / name) for name in RUNS)])
    found = [(demo, run(["sql", "-w", str(demo_warehouse), demo["query"]]))]
    # Metrics are computed when they are first asked for.
    run(["metrics", "-w", str(warehouse)])
    found += [(match, _beginning(warehouse, match["query"])) for match in _COMMAND.finditer(text)]
    found += [(match, run(["sql", "-w", str(warehouse), match["query"]])) for match in _QUERY.finditer(text)]
    return sorted(found, key=lambda example: example[0].start())


def _beginning(warehouse: Path, command: str) -> str:
    name, *arguments = shlex.split(command)
    lines = run([name, "-w", str(warehouse), *arguments]).splitlines()
    return "\n".join(lines[:_SHOWN_LINES]) + "\n...\n"


def main() -> None:
    """Rewrite the outputs."""
    text = README.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        for match, output in reversed(examples(Path(folder) / "readme.duckdb", text)):
            start, end = match.span("output")
            text = text[:start] + output + text[end:]
    README.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
