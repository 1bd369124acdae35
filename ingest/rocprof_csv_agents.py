"""The agents of a process that left CSVs: from agent_info, or from what the other tables call them.

rocprofv3 writes an agent as "Agent 4", where 4 is its node (`--agent-index absolute`) or its position among
the visible nodes (`relative`), or as "GPU 0", by its position among those of its type (`type-relative`).
Older versions write the number alone.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tracewh.ingest.capture import ProblemCounter
from tracewh.ingest.rocm_rows import INTEGER, TEXT
from tracewh.ingest.rocprof_csv_tables import CsvTable
from tracewh.ingest.rocprof_csv_values import integer_of

_LABEL = re.compile(r"(?:(agent|cpu|gpu|nic)[ -]?)?(\d{1,18})", re.IGNORECASE)
_AGENT_TYPES = {
    "id": INTEGER,
    "type": TEXT,
    "absolute_index": INTEGER,
    "logical_index": INTEGER,
    "type_index": INTEGER,
    "name": TEXT,
    "model_name": TEXT,
    "vendor_name": TEXT,
    "product_name": TEXT,
    "extdata": TEXT,
}
# Columns of agent_info that have one in `info_agent`, or none at all.
_OWN_COLUMNS = {
    "guid": None,
    "processid": None,
    "nodeid": "id",
    "logicalnodeid": "logical_index",
    "agenttype": "type",
    "name": "name",
    "modelname": "model_name",
    "vendorname": "vendor_name",
    "productname": "product_name",
}


@dataclass
class AgentLabels:
    """What the tables of a process call agents: those that are known to be GPUs, and any."""

    of_gpus: set[str] = field(default_factory=set)
    any: set[str] = field(default_factory=set)

    def add(self, texts: pa.DictionaryArray, is_gpu: bool) -> None:
        """Note the labels of one column."""
        used = texts.dictionary.take(pc.unique(texts.indices).drop_null()).to_pylist()
        self.any.update(used)
        if is_gpu:
            self.of_gpus.update(used)


class Agents:
    """Rows of `info_agent`, and the id of the one that each label means.

    An id is the node where that is known, as in rocpd. Of an agent that agent_info does not have, only what
    its label says is known, and its type: GPU where it ran kernels or copies say so, else CPU.
    """

    def __init__(self, info: Sequence[CsvTable], labels: AgentLabels, problems: ProblemCounter) -> None:
        self._problems = problems
        self._rows: dict[int, dict[str, Any]] = {}
        for table in info:
            self._add_info(table)
        self._has_info = bool(self._rows)
        self._number_by_type()
        self._ids = self._resolved(labels)

    def ids(self, texts: pa.DictionaryArray, place: str) -> pa.Array:
        """Return the agent id of each label; null for none, and for what is no label, counted at `place`."""
        distinct = texts.dictionary.to_pylist()
        found = pa.array([self._ids.get(text) for text in distinct], INTEGER).take(texts.indices)
        wrong = [code for code, text in enumerate(distinct) if _is_wrong(text)]
        count = pc.sum(pc.is_in(texts.indices, value_set=pa.array(wrong, pa.int32()))).as_py()
        if count:
            detail = f"stored as null: {distinct[wrong[0]][:80]!r} names no agent"
            self._problems.add("unknown_agent", place, detail, count)
        return found

    def count_dispatches_on_cpus(self, ids: pa.Array, place: str) -> None:
        """Count the dispatches, given the agent of each, that would be on a CPU: none can be."""
        cpus = [agent for agent, row in self._rows.items() if row["type"] == "CPU"]
        is_cpu = pc.is_in(ids, value_set=pa.array(cpus, INTEGER))
        count = pc.sum(is_cpu).as_py()
        if count:
            detail = (
                f"kept as work of a CPU: agent {ids.filter(is_cpu)[0]} is one. Give the agent_info.csv of"
            )
            self._problems.add("dispatch_on_cpu", place, f"{detail} the run itself", count)

    def table(self) -> pa.Table:
        """Return `info_agent`."""
        schema = pa.schema(list(_AGENT_TYPES.items()))
        return pa.Table.from_pylist([self._rows[agent] for agent in sorted(self._rows)], schema)

    def _add_info(self, table: CsvTable) -> None:
        for row in table.table.to_pylist():
            agent = row["nodeid"]
            if agent is None or agent in self._rows:
                detail = f"row rejected: node {agent} is missing or comes again"
                self._problems.add("invalid_agent", table.file, detail)
                continue
            known = {name: row[column] for column, name in _OWN_COLUMNS.items() if name and column in row}
            said = {
                table.names[column].lower(): _number_or_text(value)
                for column, value in row.items()
                if column not in _OWN_COLUMNS and value is not None
            }
            self._rows[agent] = known | {"absolute_index": agent, "extdata": json.dumps(said)}

    def _number_by_type(self) -> None:
        counts: Counter[str] = Counter()
        for agent in sorted(self._rows):
            row = self._rows[agent]
            row["type"] = (row.get("type") or "UNKNOWN").upper()
            row["type_index"] = counts[row["type"]]
            counts[row["type"]] += 1

    def _resolved(self, labels: AgentLabels) -> dict[str, int]:
        """The id of each label; agents that are not known by then are added."""
        numbered: dict[str, int] = {}
        by_type: dict[str, tuple[str, int]] = {}
        for label in sorted(labels.any):
            if parsed := _LABEL.fullmatch(label.strip()):
                kind, number = (parsed[1] or "agent").upper(), int(parsed[2])
                if kind == "AGENT":
                    numbered[label] = number
                else:
                    by_type[label] = (kind, number)
        ids = self._by_number(numbered, labels.of_gpus)
        known = {(row["type"], row.get("type_index")): agent for agent, row in self._rows.items()}
        for label, (kind, number) in sorted(by_type.items(), key=lambda item: item[1]):
            if (kind, number) not in known:
                agent = max(self._rows, default=-1) + 1
                known[kind, number] = agent
                self._add({"id": agent, "type": kind, "type_index": number}, label)
            ids[label] = known[kind, number]
        return ids

    def _by_number(self, numbered: Mapping[str, int], of_gpus: Iterable[str]) -> dict[str, int]:
        gpus = {numbered[label] for label in of_gpus if label in numbered}
        by_node = {agent: agent for agent in self._rows}
        by_position = {
            row["logical_index"]: agent
            for agent, row in self._rows.items()
            if row.get("logical_index") is not None
        }
        # What the profiler does unless it is told otherwise comes first.
        fitting = [
            numbering
            for numbering in (by_position, by_node)
            if all(number in numbering for number in numbered.values())
            and all(self._rows[numbering[number]]["type"] == "GPU" for number in gpus)
        ]
        chosen = fitting[0] if fitting else by_node
        found = {label: chosen.get(number, number) for label, number in numbered.items()}
        if len(fitting) > 1 and any(fitting[1][number] != found[label] for label, number in numbered.items()):
            example = min(label for label, number in numbered.items() if fitting[1][number] != found[label])
            detail = f"{example!r} can be a node or a position among the visible ones, taken as the latter"
            self._problems.add("ambiguous_agent", "agent_info", detail)
        for label, agent in found.items():
            if agent not in self._rows:
                kind = "GPU" if numbered[label] in gpus else "CPU"
                self._add({"id": agent, "type": kind, "absolute_index": agent}, label)
        return found

    def _add(self, row: dict[str, Any], label: str) -> None:
        self._rows[row["id"]] = row
        if self._has_info:
            detail = f"of {label!r} only the name and the type are known: agent_info has no such agent"
            self._problems.add("missing_agent_info", "agent_info", detail)


def _is_wrong(label: str) -> bool:
    """Whether a label is neither an agent nor blank; some writers leave a quote for none."""
    text = label.strip(' "')
    return text != "" and _LABEL.fullmatch(text) is None


def _number_or_text(text: str) -> int | str:
    number = integer_of(text)
    return text if number is None else number
