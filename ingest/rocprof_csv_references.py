"""What the facts of CSVs refer to: texts, threads, queues, streams; and which rows belong together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tracewh.ingest.rocm_process import Strings
from tracewh.ingest.rocm_rows import INTEGER, TEXT
from tracewh.ingest.shared_rows import Column, distinct_rows


class References:
    """Collects what the facts of one process refer to, as tables of rocpd."""

    def __init__(self) -> None:
        self._strings = Strings()
        self._used: dict[str, set[int]] = {"queue": set(), "stream": set(), "thread": set()}

    def strings(self, texts: pa.DictionaryArray) -> pa.Array:
        """The string id of each text."""
        return self._strings.ids(texts.dictionary).take(texts.indices)

    def string(self, text: str, count: int) -> pa.Array:
        """The string id of one text, for each of `count` rows."""
        return pa.repeat(self._strings.ids(pa.array([text], TEXT))[0], count)

    def texts(self, ids: pa.Array) -> pa.Array:
        """The text of each string id."""
        return self._strings.table().column("string").combine_chunks().take(ids)

    def used(self, kind: str, ids: pa.Array) -> pa.Array:
        """The ids of queues, streams or threads as they are, noted."""
        self._used[kind].update(pc.unique(ids).drop_null().to_pylist())
        return ids

    def tables(self) -> dict[str, pa.Table]:
        """The reference tables, with a row for all that was noted."""
        threads = pa.array(sorted(self._used["thread"]), INTEGER)
        return {
            "string": self._strings.table(),
            "info_queue": self._named("queue"),
            "info_stream": self._named("stream"),
            "info_thread": pa.table({"id": threads, "tid": threads}),
        }

    def _named(self, kind: str) -> pa.Table:
        ids, word = sorted(self._used[kind]), kind.capitalize()
        names = [f"{word} {number}" if number else f"Default {word}" for number in ids]
        return pa.table({"id": pa.array(ids, INTEGER), "name": pa.array(names, TEXT)})


def present(columns: Mapping[str, pa.Array]) -> pa.Table:
    """The columns as a table, without those that are null in every row: the format lacks them."""
    rows = max(map(len, columns.values()))
    return pa.table(
        {name: values for name, values in columns.items() if values.null_count < rows or not rows}
    )


def matches(keys: Sequence[pa.Array], among: Sequence[pa.Array]) -> pa.Array:
    """The first position in the columns `among` with the values of each row of the columns `keys`.

    It is null where there is none, and where a value of the row is.
    """
    count = len(among[0])
    together = [pa.concat_arrays([there, here]) for there, here in zip(among, keys, strict=True)]
    codes, first = distinct_rows([Column.of(column) for column in together])
    found = first[codes[count:]]
    is_valid = np.logical_and.reduce([np.asarray(key.is_valid()) for key in keys])
    return pa.array(found, INTEGER, mask=(found >= count) | ~is_valid)
