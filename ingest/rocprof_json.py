"""Reads the JSON output of rocprofv3 (`*_results.json`): each process in it as tables in the shape of rocpd.

Records keep what they say under the names of rocpd, and what has none there under its own, dotted where it is
nested. Left out is what repeats the format itself: sizes of the profiler's structs, numbers of kinds and
operations (their names stay), placeholders at the start of lists, and what counter records say of a dispatch
that is recorded.
"""

from __future__ import annotations

import re

from tracewh.ingest.capture import ProblemCounter
from tracewh.ingest.rocm_process import TableProcess
from tracewh.ingest.rocprof_json_metadata import attributes
from tracewh.ingest.rocprof_json_process import PLACES, ProcessTables
from tracewh.ingest.rocprof_json_sections import Sections, count_unsupported, read_sections
from tracewh.ingest.rocprof_json_text import JsonCursor
from tracewh.ingest.storable_text import storable

READER_VERSION = 1
_KEY = "rocprofiler-sdk-tool"
_HEAD = re.compile(rb'(\xef\xbb\xbf)?\s*\{(?s:.*)"rocprofiler-sdk-tool"\s*:')


def looks_like_json_results(head: bytes) -> bool:
    """Tell whether the first bytes of a file are those of a JSON file of rocprofv3."""
    return _HEAD.match(head) is not None


def read_processes(content: memoryview | bytes, place: str) -> list[TableProcess]:
    """Read all processes of a JSON file of rocprofv3; `place` names the file in errors.

    Memory is that of the tables and of a part of the text. Problems of a process are counted with it: those
    of the modules that read its parts, and `unsupported_section`, with its number of rows, for what has no
    table. Raises UnreadableFile for text that is no JSON, with the byte offset, or not that of rocprofv3.
    """
    cursor = JsonCursor(content, place)
    if cursor.peek() != "{":
        raise cursor.refusal("it does not begin with an object")
    is_found = False
    processes: list[TableProcess] = []
    other_keys = ProblemCounter()
    try:
        for key in cursor.members():
            if key != _KEY:
                count_unsupported(cursor, storable(key), other_keys)
                continue
            is_found = True
            # One process may stand without a list.
            elements = cursor.elements() if cursor.peek() == "[" else [None]
            processes += (_process(read_sections(cursor, ProblemCounter())) for _ in elements)
    except RecursionError:
        raise cursor.refusal("nested too deeply") from None
    if not is_found:
        raise cursor.refusal(f"it has no key {_KEY!r}")
    cursor.finish()
    for problem in other_keys.problems() if processes else []:
        processes[0].problems.add(problem.problem, problem.place, problem.detail, problem.occurrences)
    return processes


def _process(sections: Sections) -> TableProcess:
    tables = ProcessTables(sections).tables()
    return TableProcess("rocprof_json", tables, PLACES, attributes(sections), sections.problems)
