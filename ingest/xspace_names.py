"""Resolves the metadata ids of one XSpace plane to rows, and their texts to ids of interned names."""

from __future__ import annotations

import zlib

import numpy as np
import pyarrow as pa

from tracewh.ingest.capture import Interner, ProblemCounter
from tracewh.ingest.xspace_space import REF, Int8Array, Int32Array, Int64Array, Mask, Plane, Stats

_MAX_DENSE_ID = 1 << 22
_GZIP_WINDOW = 31
_MAX_UNCOMPRESSED_BYTES = 64 << 20
_ALL = slice(None)


class TextReader:
    """Bytes of the file to interned text; what is not UTF-8 is repaired and counted at `place`."""

    def __init__(self, names: Interner, problems: ProblemCounter) -> None:
        self.names, self.problems, self.place = names, problems, ""

    def text_of(self, raw: bytes) -> str:
        """The text; bytes that are not UTF-8 become replacement characters."""
        try:
            return raw.decode()
        except UnicodeDecodeError:
            self.problems.add("invalid_text", self.place, f"not UTF-8, repaired: {raw[:60]!r}")
            return raw.decode("utf-8", "replace")

    def id_of(self, raw: bytes) -> int:
        """Name id of the text."""
        return self.names.id_of(self.text_of(raw))

    def ids_of(self, blobs: pa.LargeBinaryArray) -> Int64Array:
        """Name ids of many texts; each distinct one is decoded once."""
        encoded = blobs.dictionary_encode()
        ids = np.array([self.id_of(raw) for raw in encoded.dictionary.to_pylist()], np.int64)
        found: Int64Array = ids[encoded.indices.to_numpy()]
        return found

    def uncompressed(self, raw: bytes) -> bytes | None:
        """The text of a compressed string; None, counted, where it is damaged or unreasonably long."""
        try:
            inflater = zlib.decompressobj(_GZIP_WINDOW)
            text = inflater.decompress(raw, _MAX_UNCOMPRESSED_BYTES)
        except zlib.error:
            text = b""
        else:
            if inflater.eof and not inflater.unused_data:
                return text
        self.problems.add("unreadable_compressed_text", self.place, "kept as it is")
        return None


class _IdTable:
    """Rows of ids in the order in which they were given; a later one that is unknown gets a new row."""

    def __init__(self, ids: Int64Array) -> None:
        self.ids = ids
        self._index()

    def _index(self) -> None:
        ids = self.ids
        self._dense: Int32Array | None = None
        if len(ids) and ids.min() >= 0 and ids.max() < _MAX_DENSE_ID:
            self._dense = np.full(int(ids.max()) + 2, -1, np.int32)
            self._dense[ids] = np.arange(len(ids))
        self._order = np.argsort(ids, kind="stable")

    def rows(self, ids: Int64Array) -> Int32Array:
        """Row of each id; -1 where there is none."""
        if self._dense is not None:
            # The last entry stands for ids that are not there, and so are negative ones, taken as unsigned.
            beyond, unsigned = np.uint64(len(self._dense) - 1), ids.view(np.uint64)
            if len(ids) and unsigned.max() > beyond:
                ids = np.minimum(unsigned, beyond).view(np.int64)
            return self._dense.take(ids, mode="clip")
        if not len(self.ids):
            return np.full(len(ids), -1, np.int32)
        ordered = self.ids[self._order]
        position = np.minimum(np.searchsorted(ordered, ids), len(ordered) - 1)
        return np.where(ordered[position] == ids, self._order[position], -1).astype(np.int32)

    def add(self, ids: Int64Array) -> Int64Array:
        """Give each distinct one of `ids`, which are unknown, a row; returns them in that order."""
        new = np.unique(ids)
        self.ids = np.concatenate([self.ids, new])
        self._index()
        return new


class PlaneNames:
    """Names of the event and stat metadata of one plane, as columns by row.

    Ids without metadata get a row when they are met, and are named by their number.
    """

    def __init__(self, plane: Plane, texts: TextReader) -> None:
        self.texts = texts
        metadata = plane.event_metadata
        self._events, self._stats = _IdTable(metadata.ids), _IdTable(np.array([*plane.stat_names], np.int64))
        self._known_events, self._known_stats = len(metadata.ids), len(plane.stat_names)
        self.metadata_name_ids = np.array([texts.id_of(name) for name in metadata.names], np.int64)
        shown = [texts.id_of(display_name) if display_name else -1 for display_name in metadata.display_names]
        self.display_name_ids = np.array(shown, np.int64)
        self.stat_names = [texts.text_of(name) for name in plane.stat_names.values()]
        self._stat_name_ids = np.array([texts.names.id_of(name) for name in self.stat_names], np.int64)

    @property
    def metadata_ids(self) -> Int64Array:
        """Id in the file of each row of event metadata."""
        return self._events.ids

    @property
    def event_name_ids(self) -> Int64Array:
        """By row of event metadata: the name that events are known by."""
        return np.where(self.display_name_ids < 0, self.metadata_name_ids, self.display_name_ids)

    def event_rows(self, metadata_ids: Int64Array) -> Int32Array:
        """Row of the metadata of each event."""
        rows = self._events.rows(metadata_ids)
        if len(rows) and rows.min() < 0:
            word = "event metadata"
            new = self._events.add(metadata_ids[rows < 0])
            self.metadata_name_ids = np.concatenate([self.metadata_name_ids, self._numbered(word, new)])
            self.display_name_ids = np.concatenate([self.display_name_ids, np.full(len(new), -1)])
            rows = self._events.rows(metadata_ids)
        if len(self._events.ids) > self._known_events:
            self._count_missing("event metadata", metadata_ids, rows >= self._known_events)
        return rows

    def stat_rows(self, stat_ids: Int64Array) -> Int32Array:
        """Row of each stat metadata id, whether of a stat or of a reference."""
        rows = self._stats.rows(stat_ids)
        if len(rows) and rows.min() < 0:
            new = self._stats.add(stat_ids[rows < 0])
            self.stat_names.extend(f"stat {stat_id}" for stat_id in new.tolist())
            self._stat_name_ids = np.concatenate([self._stat_name_ids, self._numbered("stat", new)])
            rows = self._stats.rows(stat_ids)
        return rows

    def stat_name_ids_of(self, stat_ids: Int64Array) -> Int64Array:
        """Name id of each stat metadata id, whether of a stat or of a reference."""
        # Before the names are looked at, as ids without metadata get theirs here.
        rows = self.stat_rows(stat_ids)
        return self._stat_name_ids.take(rows)

    def text_ids(self, value_type: Int8Array, value: Int64Array, blobs: pa.LargeBinaryArray) -> Int64Array:
        """Name ids of stats that are strings or references, of these types and values."""
        is_ref = value_type == REF
        if is_ref.all():
            return self.stat_name_ids_of(value)
        result = np.empty(len(value), np.int64)
        result[is_ref] = self.stat_name_ids_of(value[is_ref])
        result[~is_ref] = self.texts.ids_of(blobs.take(pa.array(value[~is_ref])))
        return result

    def count_missing(self, stats: Stats, chosen: Int64Array | slice = _ALL) -> None:
        """Count the chosen stats, and references, without metadata; their names were asked for before."""
        if len(self._stats.ids) == self._known_stats:
            return
        references = stats.value[chosen][stats.value_type[chosen] == REF]
        for ids in (stats.stat_id[chosen], references):
            self._count_missing("stat metadata", ids, self._stats.rows(ids) >= self._known_stats)

    def _count_missing(self, word: str, ids: Int64Array, is_missing: Mask) -> None:
        if is_missing.any():
            numbers, counts = np.unique(ids[is_missing], return_counts=True)
            for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
                self.texts.problems.add("missing_metadata", self.texts.place, f"no {word} {number}", count)

    def _numbered(self, word: str, ids: Int64Array) -> Int64Array:
        return np.array([self.texts.names.id_of(f"{word} {number}") for number in ids.tolist()], np.int64)
