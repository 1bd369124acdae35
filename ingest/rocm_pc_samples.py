"""Sampled program counters of a ROCm process, as rows of pc_samples."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tracewh.ingest.event_stats import intern
from tracewh.ingest.rocm_devices import Agents
from tracewh.ingest.rocm_facts import Clock, read_facts
from tracewh.ingest.rocm_owners import Owners
from tracewh.ingest.rocm_rows import Rows
from tracewh.ingest.rocm_source import Source, empty_as_null, zero_as_null

_MAPPED = (
    *(
        "timestamp",
        "agent_id",
        "dispatch_id",
        "correlation_id",
        "exec",
        "code_object_id",
        "code_object_offset",
    ),
    *("wave_in_group", "instruction_id", "comment_id", "sampling_method", "wave_issued", "instruction_type"),
    *("stall_reason", "wave_count", "exec_mask", "instruction", "instruction_comment"),
)


@dataclass
class PcSamples:
    """Makes the rows of pc_samples; `owners` get the event of each."""

    source: Source
    agents: Agents
    owners: Owners

    def rows(self, clock: Clock | None) -> Iterator[tuple[str, pa.Table]]:
        """Return the rows by table, some at a time."""
        first = 0
        tables = (read_facts(self.source, base, clock) for base in ("gpu_pc_sample", "pc_sampling"))
        for facts in chain.from_iterable(tables):
            rows = facts.rows
            ids = pa.array(np.arange(first, first + len(facts)))
            self.owners.claim(rows.integers("event_id"))
            first += len(facts)
            agent_ids = rows.integers("agent_id")
            self.source.positions("info_agent", agent_ids, f"{rows.place}.agent_id")
            columns = {
                "pc_sample_id": ids,
                "sampling_method": rows.texts("sampling_method").cast(pa.string()),
                "sample_ps": facts.start_ps,
                "device_index": self.agents.indices(agent_ids),
                "dispatch_id": rows.integers("dispatch_id"),
                "correlation_id": pc.coalesce(facts.stack_ids, zero_as_null(rows.integers("correlation_id"))),
                "execution_mask": pc.coalesce(rows.integers("exec"), rows.integers("exec_mask")),
                "code_object_id": rows.integers("code_object_id"),
                "code_object_offset_bytes": rows.integers("code_object_offset"),
                "wave_in_group": rows.integers("wave_in_group"),
                "instruction_name_id": self._name_ids(rows, "instruction_id", "instruction"),
                "comment_name_id": self._name_ids(rows, "comment_id", "instruction_comment"),
                "was_issued": pc.not_equal(rows.integers("wave_issued"), 0),
                "instruction_type": rows.texts("instruction_type").cast(pa.string()),
                "stall_reason": rows.texts("stall_reason").cast(pa.string()),
                "wave_count": rows.integers("wave_count"),
            }
            self.source.add_fact_stats("pc_sample", ids, rows, _MAPPED)
            yield "pc_samples", pa.table(columns)
            yield "event_stats", self.source.stats.take()

    def _name_ids(self, rows: Rows, id_column: str, text_column: str) -> pa.Array:
        """Name ids of texts that rows refer to, or have in place."""
        texts = self.source.texts(rows.integers(id_column), f"{rows.place}.{id_column}")
        return intern(self.source.names, pc.coalesce(texts, empty_as_null(rows.texts(text_column))))
