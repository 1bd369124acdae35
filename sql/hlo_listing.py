"""The HLO programs of a run, their ops, and one instruction with all that is known of it, as records."""

from __future__ import annotations

import difflib

from tracewh.ingest.errors import WarehouseError
from tracewh.sql.listing import Record, records
from tracewh.sql.warehouse import Warehouse

_CAPTURES = """
    SELECT c.capture_id FROM main.captures AS c JOIN main.runs AS r USING (run_id) WHERE r.run_name = $1
"""
# What a collective moves in memory says nothing about its link: v1.collectives has its rates.
_RATES = """
    CASE WHEN cost_rule <> 'collective' THEN flops_per_s END AS flops_per_s,
    CASE WHEN cost_rule <> 'collective' THEN bytes_per_s END AS bytes_per_s
"""
_PROGRAMS = f"""
    WITH measured AS (
        SELECT capture_id, program_id, max(device_ps) AS device_ps, max(program_runs) AS program_runs
        FROM (SELECT capture_id, program_id, device_id, sum(sum_ps) AS device_ps,
                     max(program_runs) AS program_runs
              FROM v1._op_runs WHERE capture_id IN ({_CAPTURES}) GROUP BY ALL)
        GROUP BY ALL
    ),
    peaks AS (
        SELECT p.capture_id, p.program_id, s.bytes AS peak_bytes
        FROM main.hlo_programs AS p JOIN v1._static_memory AS s USING (module_id)
        WHERE s.kind = 'peak' AND s.memory_space = 0 AND p.capture_id IN ({_CAPTURES})
    )
    SELECT p.capture_id AS capture, p.program_id AS program, p.module_name AS module,
           p.instruction_count AS instructions, p.flops, p.bytes_accessed, k.peak_bytes,
           m.program_runs AS runs, m.device_ps::BIGINT AS device_ps
    FROM v1.program_costs AS p
    LEFT JOIN measured AS m USING (capture_id, program_id)
    LEFT JOIN peaks AS k USING (capture_id, program_id)
    WHERE p.capture_id IN ({_CAPTURES})
    ORDER BY m.device_ps DESC NULLS LAST, p.flops DESC, p.capture_id, p.program_id
"""
_OPS = f"""
    SELECT capture_id AS capture, device_ordinal AS device, program_id AS program, hlo_op AS op, opcode,
           executions, union_ps, {_RATES}, launch_phase AS phase, component
    FROM v1.op_stats WHERE capture_id IN ({_CAPTURES})
    QUALIFY row_number() OVER (
        PARTITION BY capture_id, program_id, hlo_op ORDER BY union_ps DESC, device_ordinal) = 1
    ORDER BY union_ps DESC, capture_id, program_id, hlo_op
    LIMIT $2
"""
_NAMELESS = f"""
    SELECT coalesce(sum(end_ps - start_ps) FILTER (attribution_source = 'none'), 0)
               / sum(end_ps - start_ps) AS share
    FROM v1._event_ops WHERE event_class <> 'copy' AND capture_id IN ({_CAPTURES})
"""
_INSTRUCTIONS = f"""
    WITH measured AS (
        SELECT program_id, sum(sum_ps) AS device_ps
        FROM v1.op_stats WHERE hlo_op = $2 AND capture_id IN ({_CAPTURES}) GROUP BY ALL
    ),
    found AS (SELECT DISTINCT program_id, module_id FROM main.hlo_programs WHERE capture_id IN ({_CAPTURES}))
    SELECT n.name AS op, p.program_id AS program, m.module_name AS module, i.module_id, i.instruction_id,
           i.computation_id, i.opcode, i.shape, o.name AS op_name, i.fusion_kind, i.custom_call_target,
           i.source_file, i.source_line, i.backend_config, k.computation_name AS computation,
           k.computation_role AS role, k.executions AS executions_per_run, k.trip_count, c.flops,
           c.transcendentals, c.bytes_accessed, c.cost_rule, c.cost_note, g.collective_kind, g.payload_bytes,
           g.group_size
    FROM found AS p
    JOIN main.hlo_modules AS m USING (module_id)
    JOIN main.hlo_instructions AS i USING (module_id)
    JOIN main.names AS n ON n.name_id = i.name_id
    JOIN main.hlo_computations AS k USING (module_id, computation_id)
    LEFT JOIN measured AS t USING (program_id)
    LEFT JOIN main.names AS o ON o.name_id = i.op_name_id
    LEFT JOIN main.hlo_costs AS c USING (module_id, instruction_id)
    LEFT JOIN main.hlo_collectives AS g USING (module_id, instruction_id)
    WHERE n.name = $2 AND (p.program_id = $3 OR $3 IS NULL)
    ORDER BY t.device_ps DESC NULLS LAST, p.program_id, p.module_id
"""
_MEASURED = f"""
    SELECT capture_id AS capture, device_ordinal AS device, executions, kernel_count AS kernels, union_ps,
           {_RATES}
    FROM v1.op_stats
    WHERE capture_id IN ({_CAPTURES}) AND hlo_op = $2 AND program_id = $3
    ORDER BY capture_id, device_ordinal
"""
_OPERANDS = """
    SELECT e.operand_index AS "index", n.name AS op, i.opcode, i.shape
    FROM main.hlo_operands AS e
    JOIN main.hlo_instructions AS i
        ON i.module_id = e.module_id AND i.instruction_id = e.operand_instruction_id
    JOIN main.names AS n USING (name_id)
    WHERE e.module_id = $1 AND e.instruction_id = $2 ORDER BY e.operand_index
"""
_USERS = """
    SELECT n.name AS op, i.opcode, i.shape
    FROM main.hlo_instructions AS i JOIN main.names AS n USING (name_id)
    WHERE i.module_id = $1 AND i.instruction_id IN (
        SELECT instruction_id FROM main.hlo_operands
        WHERE module_id = $1 AND operand_instruction_id = $2)
    ORDER BY i.position, n.name
"""
_CALLED = """
    SELECT k.computation_name AS computation, k.computation_role AS role, n.name AS op, i.opcode, i.shape,
           o.name AS op_name
    FROM main.hlo_calls AS c
    JOIN main.hlo_computations AS k USING (module_id, computation_id)
    JOIN main.hlo_instructions AS i
        ON i.module_id = k.module_id AND i.computation_id = k.computation_id
    JOIN main.names AS n ON n.name_id = i.name_id
    LEFT JOIN main.names AS o ON o.name_id = i.op_name_id
    WHERE c.module_id = $1 AND c.instruction_id = $2 ORDER BY c.call_index, i.position
"""
_CALLERS = """
    SELECT DISTINCT n.name AS op, i.opcode, i.shape
    FROM main.hlo_calls AS c
    JOIN main.hlo_instructions AS i USING (module_id, instruction_id)
    JOIN main.names AS n USING (name_id)
    WHERE c.module_id = $1 AND c.computation_id = $2 ORDER BY n.name
"""
_FRAMES = """
    WITH RECURSIVE frames AS (
        SELECT f.stack_frame_id, f.parent_frame_id, f.source_file, f.function_name, f.source_line, 0 AS depth
        FROM main.hlo_stack_frames AS f
        JOIN main.hlo_instructions AS i USING (module_id, stack_frame_id)
        WHERE f.module_id = $1 AND i.instruction_id = $2
        UNION
        SELECT f.stack_frame_id, f.parent_frame_id, f.source_file, f.function_name, f.source_line,
               d.depth + 1
        FROM frames AS d JOIN main.hlo_stack_frames AS f ON f.stack_frame_id = d.parent_frame_id
        WHERE f.module_id = $1 AND d.depth < 200
    )
    SELECT source_file, source_line, function_name FROM frames ORDER BY depth
"""
_NAMES = f"""
    SELECT DISTINCT n.name
    FROM main.hlo_programs AS p
    JOIN main.hlo_instructions AS i USING (module_id)
    JOIN main.names AS n USING (name_id)
    WHERE p.capture_id IN ({_CAPTURES}) AND (p.program_id = $2 OR $2 IS NULL)
"""


def programs(warehouse: Warehouse, run: str) -> list[Record]:
    """The programs of a run, those with most device time first.

    `flops`, `bytes_accessed` and `peak_bytes` are of one run of the program on one device; `runs` and
    `device_ps`, the summed time of its ops, those of the device where that is most.
    """
    return records(warehouse, _PROGRAMS, run)


def ops(warehouse: Warehouse, run: str, limit: int) -> list[Record]:
    """The `limit` ops with most device time, each on the device where it takes most.

    Collectives have no `flops_per_s` and `bytes_per_s`.
    """
    return records(warehouse, _OPS, run, limit)


def nameless_share(warehouse: Warehouse, run: str) -> float:
    """Share of the run's device time without copies whose events name no op; 0 without such time."""
    (record,) = records(warehouse, _NAMELESS, run)
    return float(record["share"] or 0)


def instructions(warehouse: Warehouse, run: str, op: str, program: int | None) -> list[Record]:
    """Instructions of that name in the programs of a run, each with what is around it.

    Beside the columns of the instruction a record has lists of records: `measured` per capture and device,
    `operands`, `users`, `called` (the instructions of the computations that it calls), `callers` (what runs
    the computation that it is in) and `stack` (frames of the Python source, innermost first). Raises
    WarehouseError, with names that are near, where there is none.
    """
    # As HLO text writes it.
    op = op.removeprefix("%")
    found = records(warehouse, _INSTRUCTIONS, run, op, program)
    if not found:
        known = [record["name"] for record in records(warehouse, _NAMES, run, program)]
        near = difflib.get_close_matches(op, known, 3, 0.5)
        hint = f"Near: {', '.join(near)}." if near else f"`tracewh hlo {run}` lists ops."
        where = f"program {program} of run {run}" if program is not None else f"run {run}"
        raise WarehouseError(f"{warehouse.path}: no HLO op {op} in {where}. {hint}")
    for record in found:
        module, key = record.pop("module_id"), record.pop("instruction_id")
        record["measured"] = records(warehouse, _MEASURED, run, op, record["program"])
        record["operands"] = records(warehouse, _OPERANDS, module, key)
        record["users"] = records(warehouse, _USERS, module, key)
        record["called"] = records(warehouse, _CALLED, module, key)
        record["callers"] = records(warehouse, _CALLERS, module, record.pop("computation_id"))
        record["stack"] = records(warehouse, _FRAMES, module, key)
    return found
