"""Costs against those that a TPU's own compiler wrote beside its ops."""

from __future__ import annotations

from pathlib import Path

import pytest

import tracewh

from .ingest_runs import query

CAPTURE = Path(__file__).parents[2] / "shared" / "data" / "xspace" / "xprof-tpu_inference_2.xplane.pb"

OPS = """
    WITH stated AS (
        SELECT s.capture_id, s.owner_id AS event_metadata_id,
            max(coalesce(s.int_value, s.double_value)) FILTER (n.name = 'flops') AS flops,
            max(coalesce(s.int_value, s.double_value)) FILTER (n.name = 'bytes_accessed') AS bytes
        FROM event_stats AS s JOIN names AS n ON n.name_id = s.stat_name_id
        WHERE s.owner = 'event_metadata' GROUP BY ALL
    )
    SELECT DISTINCT i.opcode, m.module_name, h.name, stated.flops, stated.bytes, c.flops, c.bytes_accessed
    FROM device_events AS e
    JOIN stated USING (capture_id, event_metadata_id)
    JOIN ops AS o USING (capture_id, op_id)
    JOIN names AS h ON h.name_id = o.hlo_op_name_id
    JOIN hlo_programs AS p ON p.capture_id = o.capture_id AND p.program_id = o.program_id
    JOIN hlo_modules AS m USING (module_id)
    JOIN hlo_instructions AS i ON i.module_id = p.module_id AND i.name_id = o.hlo_op_name_id
    JOIN hlo_costs AS c ON c.module_id = i.module_id AND c.instruction_id = i.instruction_id
    WHERE e.role = 'work' AND stated.flops IS NOT NULL
"""


@pytest.mark.skipif(not CAPTURE.exists(), reason="the public captures are not on this machine")
def test_flops_and_bytes_are_those_of_the_compiler(tmp_path: Path) -> None:
    tracewh.ingest_run(CAPTURE, warehouse=tmp_path / "tpu.duckdb")
    rows = query(tmp_path / "tpu.duckdb", OPS)
    assert {opcode for opcode, *_ in rows} >= {"fusion", "all-reduce", "copy-start"}
    for opcode, _, _, stated_flops, stated_bytes, flops, accessed in rows:
        assert flops == stated_flops
        # Of an asynchronous copy a TPU counts what it moves, XLA's rules its operands and results.
        if not opcode.startswith("copy-"):
            assert accessed == pytest.approx(stated_bytes, rel=1e-6)  # 512 bytes more for a padded index
