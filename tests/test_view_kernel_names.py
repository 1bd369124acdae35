"""v1._stable_kernel_names against the three forms in which rocprofv3 itself writes each kernel's name."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from .live_views import live_warehouse

TRACE = Path(__file__).parents[1].parent / "shared" / "data" / "rocprof" / "TraceLens-908_results.json.gz"
FORMS = ("formatted_kernel_name", "demangled_kernel_name", "truncated_kernel_name")


@pytest.mark.skipif(not TRACE.is_file(), reason="the folder of public test files is not here")
def test_names_of_a_code_object_of_pytorch() -> None:
    with gzip.open(TRACE) as file:
        (tool,) = json.load(file)["rocprofiler-sdk-tool"]
    symbols = [[symbol[form] for form in FORMS] for symbol in tool["kernel_symbols"]]
    assert len(symbols) == 9889
    with live_warehouse() as connection:
        connection.execute(
            "INSERT INTO main.names (name_id, name) SELECT row_number() OVER (), name "
            "FROM (SELECT DISTINCT unnest(?) AS name)",
            [[name for names in symbols for name in names]],
        )
        rows = connection.execute(
            "SELECT n.name, s.plain_name, s.stable_name "
            "FROM v1._stable_kernel_names AS s JOIN main.names AS n USING (name_id)"
        ).fetchall()
    plain = {name: plain_name for name, plain_name, _ in rows}
    stable = {name: stable_name for name, _, stable_name in rows}
    # The profiler's formatted name is the demangled one without .kd; its truncated name keeps .kd where it
    # has nothing to take away.
    wrong = [
        (formatted, demangled, truncated)
        for formatted, demangled, truncated in symbols
        if plain[demangled] != formatted
        or plain[formatted] != formatted
        or {stable[formatted], stable[demangled], stable[truncated]} != {truncated.removesuffix(".kd")}
    ]
    assert wrong == []
