"""Gathers rows of several tables and hands them on in batches that DuckDB stores well."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

# The size of DuckDB's row groups: a batch of another size splits them, at twice the cost.
BATCH_ROWS = 122_880
# What DuckDB handles at a time.
_SMALL_CHUNK_ROWS = 2048


class Batches:
    """Rows on their way to the warehouse, by table; chunks of one table may have different columns."""

    def __init__(self) -> None:
        self._chunks: dict[str, list[pa.Table]] = {}
        self._counts: dict[str, int] = {}

    def add(self, table: str, rows: pa.Table) -> None:
        """Add rows; none is fine."""
        if rows.num_rows:
            self._chunks.setdefault(table, []).append(rows)
            self._counts[table] = self._counts.get(table, 0) + rows.num_rows

    def full(self) -> Iterator[tuple[str, pa.Table]]:
        """Take the batches that are full."""
        for table, count in self._counts.items():
            if count >= BATCH_ROWS:
                yield from self._take(table, count // BATCH_ROWS)

    def rest(self) -> Iterator[tuple[str, pa.Table]]:
        """Take what is left."""
        yield from self.full()
        for table, count in self._counts.items():
            if count:
                yield from self._take(table, 1)

    def _take(self, table: str, batches: int) -> Iterator[tuple[str, pa.Table]]:
        chunks = self._chunks[table]
        rows = pa.concat_tables(chunks, promote_options="default")
        # Many small chunks are dearer than a copy.
        if len(chunks) * _SMALL_CHUNK_ROWS > rows.num_rows:
            rows = rows.combine_chunks()
        for number in range(batches):
            yield table, rows.slice(number * BATCH_ROWS, BATCH_ROWS)
        rest = rows.slice(batches * BATCH_ROWS)
        self._chunks[table] = [rest] if rest.num_rows else []
        self._counts[table] = rest.num_rows
