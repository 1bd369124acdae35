"""Compiled loops over the bytes of an XSpace: field lists, line headers, events and stats.

Every read is checked against the end of the message it is in, so no content can lead outside the buffer. The
loops know the usual encoding only. Where they meet something else - a group, a field number of 0, a number of
more than 64 bits, a message that ends inside a field - they return ODD with the place, and the caller asks
protobuf, whose word on what is valid holds.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from tracewh.ingest.xspace_space import (
    BYTES,
    COMPRESSED,
    DOUBLE,
    INT64,
    NONE,
    REF,
    STRING,
    UINT64,
)

ODD = -1
"""Instead of a count: the bytes are damaged or unusual, at the place that comes with it."""

VARINT, FIXED64, DELIMITED, FIXED32 = 0, 1, 2, 5

# Slots of the header that `scan_line` fills; 0 where the line has no such field.
(
    LINE_ID,
    LINE_TIMESTAMP_NS,
    LINE_DURATION_PS,
    LINE_DISPLAY_ID,
    LINE_NAME_START,
    LINE_NAME_END,
    LINE_DISPLAY_NAME_START,
    LINE_DISPLAY_NAME_END,
    LINE_SLOTS,
) = range(9)

_BUFFER = types.Array(types.uint8, 1, "C", readonly=True)
_INT8S, _INT64S, _BOOLS = types.int8[::1], types.int64[::1], types.boolean[::1]
_PAIR = types.UniTuple(types.int64, 2)

# What a tag must be for a field to be the one that its number means: number << 3 | wire type.
_ID = 1 << 3 | VARINT
_LINE_NAME = 2 << 3 | DELIMITED
_LINE_TIMESTAMP = 3 << 3 | VARINT
_LINE_EVENTS = 4 << 3 | DELIMITED
_LINE_DURATION = 9 << 3 | VARINT
_LINE_DISPLAY = 10 << 3 | VARINT
_LINE_DISPLAY_NAME = 11 << 3 | DELIMITED
_EVENT_OFFSET = 2 << 3 | VARINT
_EVENT_DURATION = 3 << 3 | VARINT
_EVENT_STATS = 4 << 3 | DELIMITED
_EVENT_COUNT = 5 << 3 | VARINT
_STAT_DOUBLE = DOUBLE << 3 | FIXED64
_STAT_UINT64 = UINT64 << 3 | VARINT
_STAT_INT64 = INT64 << 3 | VARINT
_STAT_STRING = STRING << 3 | DELIMITED
_STAT_BYTES = BYTES << 3 | DELIMITED
_STAT_REF = REF << 3 | VARINT
_STAT_COMPRESSED = COMPRESSED << 3 | DELIMITED
# Tag, length, tag, id of at most 8 bytes, tag, and the 8 bytes that are read of the value.
_USUAL_STAT_BYTES = 3 + 8 + 1 + 8

_HIGH_BITS = np.uint64(0x8080808080808080)
_LOW_7_OF_16, _HIGH_7_OF_16 = np.uint64(0x007F007F007F007F), np.uint64(0x7F007F007F007F00)
_LOW_14_OF_32, _HIGH_14_OF_32 = np.uint64(0x00003FFF00003FFF), np.uint64(0x3FFF00003FFF0000)
_LOW_28_OF_64, _HIGH_28_OF_64 = np.uint64(0x000000000FFFFFFF), np.uint64(0x0FFFFFFF00000000)


def _compiled(*signature):  # type: ignore[no-untyped-def]
    """Compile for these argument types once per installation; the code is kept on disk."""
    return njit(*signature, cache=True, nogil=True, boundscheck=False)


def _inlined(*signature):  # type: ignore[no-untyped-def]
    """As `_compiled`, for a step inside the loops."""
    return njit(*signature, cache=True, nogil=True, boundscheck=False, forceinline=True)


@_compiled(_PAIR(_BUFFER, types.int64, types.int64))
def _long_varint(buffer, position, end):  # type: ignore[no-untyped-def]
    """As `_varint`, byte by byte: for more than eight bytes, and at the end of the buffer."""
    if position >= end:
        return np.int64(0), np.int64(ODD)
    byte = np.uint64(buffer[position])
    position += 1
    value = byte & np.uint64(0x7F)
    shift = np.uint64(7)
    while byte & np.uint64(0x80):
        # Ten bytes hold 64 bits, the last of them one.
        if position >= end or shift > np.uint64(63):
            return np.int64(0), np.int64(ODD)
        byte = np.uint64(buffer[position])
        position += 1
        if shift == np.uint64(63) and byte > np.uint64(1):
            return np.int64(0), np.int64(ODD)
        value |= (byte & np.uint64(0x7F)) << shift
        shift += np.uint64(7)
    return np.int64(value), position


@intrinsic
def _word(typing_context, buffer, position):  # type: ignore[no-untyped-def]
    """The eight bytes at `position`, the first as the lowest; the caller has checked that they are there."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        pointer = builder.gep(array.data, [arguments[1]])
        return builder.load(builder.bitcast(pointer, ir.IntType(64).as_pointer()), align=1)

    return types.uint64(buffer, position), generate


@intrinsic
def _byte(typing_context, buffer, position):  # type: ignore[no-untyped-def]
    """The byte at `position`, as int64; the caller has checked that it is there."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        return builder.zext(builder.load(builder.gep(array.data, [arguments[1]])), ir.IntType(64))

    return types.int64(buffer, position), generate


@intrinsic
def _trailing_zeros(typing_context, number):  # type: ignore[no-untyped-def]
    """How many zero bits `number`, which is not 0, ends with."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(number), generate


@_inlined(types.int64(types.uint64))
def _stop_length(stops):  # type: ignore[no-untyped-def]
    """Bytes of the number whose end is the lowest bit of `stops`."""
    return np.int64(_trailing_zeros(stops) >> np.uint64(3)) + 1


@_inlined(types.int64(types.uint64, types.uint64))
def _joined(word, stops):  # type: ignore[no-untyped-def]
    """The number in `word` that ends with the lowest bit of `stops`: the seven bits of each byte together.

    There is no branch on its length, which the processor could not foresee.
    """
    word &= stops ^ (stops - np.uint64(1))
    word = (word & _LOW_7_OF_16) | (word & _HIGH_7_OF_16) >> np.uint64(1)
    word = (word & _LOW_14_OF_32) | (word & _HIGH_14_OF_32) >> np.uint64(2)
    return np.int64((word & _LOW_28_OF_64) | (word & _HIGH_28_OF_64) >> np.uint64(4))


@_inlined(_PAIR(_BUFFER, types.int64, types.int64))
def _varint(buffer, position, end):  # type: ignore[no-untyped-def]
    """The number at `position` as 64 bits, and what follows it; ODD as the second where it is none."""
    if len(buffer) - position >= 8:
        word = _word(buffer, position)
        stops = ~word & _HIGH_BITS
        if stops:
            after = position + _stop_length(stops)
            return _joined(word, stops), after if after <= end else np.int64(ODD)
    return _long_varint(buffer, position, end)


@_inlined(_PAIR(_BUFFER, types.int64, types.int64))
def _tag(buffer, position, end):  # type: ignore[no-untyped-def]
    """The tag at `position`, and what follows it; ODD as the second where it is none."""
    if position < end and buffer[position] < 0x80:
        tag, after = np.int64(buffer[position]), position + 1
    else:
        tag, after = _varint(buffer, position, end)
    if after == ODD or tag < 8 or tag >= 1 << 32 or after - position > 5:
        return np.int64(0), np.int64(ODD)
    return tag, after


@_inlined(types.int64(_BUFFER, types.int64, types.int64, types.int64))
def _skip(buffer, position, end, tag):  # type: ignore[no-untyped-def]
    """What follows the payload of a field; ODD where it does not end before `end`."""
    wire_type = tag & 7
    if wire_type == VARINT:
        return _varint(buffer, position, end)[1]
    if wire_type == DELIMITED:
        length, position = _varint(buffer, position, end)
        if position == ODD or length < 0 or length > end - position:
            return np.int64(ODD)
        return position + length
    width = 8 if wire_type == FIXED64 else 4
    if wire_type not in (FIXED64, FIXED32) or width > end - position:
        return np.int64(ODD)
    return position + width


@_inlined(_PAIR(_BUFFER, types.int64, types.int64))
def _payload(buffer, position, end):  # type: ignore[no-untyped-def]
    """Start and end of a delimited payload whose length is at `position`; ODD as the end where it is none."""
    length, start = _varint(buffer, position, end)
    if start == ODD or length < 0 or length > end - start:
        return np.int64(0), np.int64(ODD)
    return start, start + length


@_compiled(_PAIR(_BUFFER, types.int64, types.int64, _INT64S, _INT64S, _INT64S, _INT64S))
def list_fields(buffer, start, end, tags, tag_starts, starts, ends):  # type: ignore[no-untyped-def]
    """List the fields of the message in buffer[start:end]; returns (count, place).

    `tag_starts` are where the fields begin, `starts` and `ends` what their payloads span, without a length.
    Fields beyond the length of the arrays are counted only.
    """
    count = np.int64(0)
    position = start
    while position < end:
        tag, after = _tag(buffer, position, end)
        if after == ODD:
            return np.int64(ODD), position
        payload_end = _skip(buffer, after, end, tag)
        if payload_end == ODD:
            return np.int64(ODD), position
        if count < len(tags):
            tags[count] = tag
            tag_starts[count] = position
            starts[count] = after
            if tag & 7 == DELIMITED:
                starts[count] = _varint(buffer, after, end)[1]
            ends[count] = payload_end
        count += 1
        position = payload_end
    return count, position


@_compiled(
    types.UniTuple(types.int64, 3)(
        _BUFFER, types.int64, types.int64, types.int64, types.int64, _INT64S, _INT64S, _INT64S
    )
)
def scan_line(buffer, start, end, max_events, max_bytes, header, part_ends, part_events):  # type: ignore[no-untyped-def]
    """Read the header of the XLine in buffer[start:end] and cut its events into parts.

    A part has at most `max_events` events and, unless it is a single one, at most `max_bytes` bytes. Returns
    (number of parts, place, number of events); `part_ends` must have room for
    (end - start) // max_bytes + (end - start) // (2 * max_events) + 2 of each kind of part, twice that in all.
    """
    parts = np.int64(0)
    events = np.int64(0)
    in_part = np.int64(0)
    part_start = start
    position = start
    while position < end:
        tag, after = _tag(buffer, position, end)
        if after == ODD:
            return np.int64(ODD), position, events
        if tag == _LINE_EVENTS:
            payload_start, payload_end = _payload(buffer, after, end)
            if payload_end == ODD:
                return np.int64(ODD), position, events
            if in_part and (in_part == max_events or payload_end - part_start > max_bytes):
                part_ends[parts] = position
                part_events[parts] = in_part
                parts += 1
                part_start = position
                in_part = np.int64(0)
            in_part += 1
            events += 1
            position = payload_end
            continue
        if tag in (_LINE_NAME, _LINE_DISPLAY_NAME):
            payload_start, payload_end = _payload(buffer, after, end)
            if payload_end == ODD:
                return np.int64(ODD), position, events
            slot = LINE_NAME_START if tag == _LINE_NAME else LINE_DISPLAY_NAME_START
            header[slot] = payload_start
            header[slot + 1] = payload_end
            position = payload_end
            continue
        if tag in (_ID, _LINE_TIMESTAMP, _LINE_DURATION, _LINE_DISPLAY):
            value, payload_end = _varint(buffer, after, end)
            if payload_end == ODD:
                return np.int64(ODD), position, events
            if tag == _ID:
                header[LINE_ID] = value
            elif tag == _LINE_TIMESTAMP:
                header[LINE_TIMESTAMP_NS] = value
            elif tag == _LINE_DURATION:
                header[LINE_DURATION_PS] = value
            else:
                header[LINE_DISPLAY_ID] = value
            position = payload_end
            continue
        payload_end = _skip(buffer, after, end, tag)
        if payload_end == ODD:
            return np.int64(ODD), position, events
        position = payload_end
    if in_part:
        part_ends[parts] = position
        part_events[parts] = in_part
        parts += 1
    return parts, position, events


@_inlined(
    _PAIR(
        _BUFFER, types.int64, types.int64, types.int64, types.int64, types.int64,
        _INT64S, _INT64S, _INT8S, _INT64S, _INT64S, _INT64S,
    )
)  # fmt: skip
def _read_stat(  # type: ignore[no-untyped-def]
    buffer, position, end, owner, row, blobs, owners, stat_ids, value_types, values, blob_starts, blob_ends
):
    """Read the XStat in buffer[position:end] to `row`; returns (number of blobs, place or ODD)."""
    stat_id = np.int64(0)
    value_type = np.int8(NONE)
    value = np.int64(0)
    blob_start = np.int64(0)
    blob_end = np.int64(0)
    while position < end:
        tag, after = _tag(buffer, position, end)
        if after == ODD:
            return np.int64(ODD), position
        if tag == _ID:
            stat_id, after = _varint(buffer, after, end)
        elif tag == _STAT_UINT64 or tag == _STAT_INT64 or tag == _STAT_REF:
            value, after = _varint(buffer, after, end)
            value_type = np.int8(tag >> 3)
        elif tag == _STAT_DOUBLE:
            if end - after < 8:
                return np.int64(ODD), position
            bits = np.uint64(0)
            for byte in range(8):
                bits |= np.uint64(buffer[after + byte]) << np.uint64(8 * byte)
            value = np.int64(bits)
            value_type = np.int8(DOUBLE)
            after += 8
        elif tag == _STAT_STRING or tag == _STAT_BYTES or tag == _STAT_COMPRESSED:
            blob_start, after = _payload(buffer, after, end)
            blob_end = after
            value_type = np.int8(tag >> 3)
        else:
            after = _skip(buffer, after, end, tag)
        if after == ODD:
            return np.int64(ODD), position
        position = after
    if value_type == STRING or value_type == BYTES or value_type == COMPRESSED:
        blob_starts[blobs] = blob_start
        blob_ends[blobs] = blob_end
        value = blobs
        blobs += 1
    owners[row] = owner
    stat_ids[row] = stat_id
    value_types[row] = value_type
    values[row] = value
    return blobs, position


@_compiled(
    types.UniTuple(types.int64, 4)(
        _BUFFER, types.int64, types.int64,
        _INT64S, _INT64S, _INT64S, _BOOLS, _INT64S,
        _INT64S, _INT64S, _INT8S, _INT64S, _INT64S, _INT64S,
    )
)  # fmt: skip
def read_events(  # type: ignore[no-untyped-def]
    buffer, position, end,
    metadata_ids, offsets, durations, is_count, occurrences,
    owners, stat_ids, value_types, values, blob_starts, blob_ends,
):  # fmt: skip
    """Read the events among the fields in buffer[position:end]; returns (events, stats, blobs, place).

    The arrays must have room for all events and stats: where they have not, it is ODD.
    """
    events = np.int64(0)
    stats = np.int64(0)
    blobs = np.int64(0)
    room = len(owners)
    while position < end:
        tag, after = _tag(buffer, position, end)
        if after == ODD:
            return np.int64(ODD), stats, blobs, position
        if tag != _LINE_EVENTS:
            after = _skip(buffer, after, end, tag)
            if after == ODD:
                return np.int64(ODD), stats, blobs, position
            position = after
            continue
        inner, event_end = _payload(buffer, after, end)
        if event_end == ODD or events >= len(metadata_ids):
            return np.int64(ODD), stats, blobs, position
        metadata_id = np.int64(0)
        offset = np.int64(0)
        duration = np.int64(0)
        counted = False
        occurrence = np.int64(0)
        while inner < event_end:
            # The usual stat: a length of one byte, an id, one number or one short text, and no more.
            if (
                _byte(buffer, inner) == _EVENT_STATS
                and len(buffer) - inner >= _USUAL_STAT_BYTES
                and stats < room
            ):
                length = _byte(buffer, inner + 1)
                stat_end = inner + 2 + length
                word = _word(buffer, inner + 3)
                stops = ~word & _HIGH_BITS
                if length < 0x80 and stat_end <= event_end and _byte(buffer, inner + 2) == _ID and stops:
                    place = inner + 3 + _stop_length(stops)
                    stat_ids[stats] = _joined(word, stops)
                    tag = _byte(buffer, place)
                    word = _word(buffer, place + 1)
                    if tag == _STAT_REF or tag == _STAT_INT64 or tag == _STAT_UINT64:
                        stops = ~word & _HIGH_BITS
                        value = _joined(word, stops)
                        after = place + 1 + _stop_length(stops) if stops else np.int64(ODD)
                    elif tag == _STAT_DOUBLE:
                        value = np.int64(word)
                        after = place + 9
                    elif tag == _STAT_STRING:
                        after = place + 2 + np.int64(word & np.uint64(0xFF))
                        value = blobs
                        blob_starts[blobs] = place + 2
                        blob_ends[blobs] = after
                    else:
                        after = np.int64(ODD)
                    # A length of two bytes or a number of ten leads elsewhere than to the end.
                    if after == stat_end:
                        owners[stats] = events
                        value_types[stats] = tag >> 3
                        values[stats] = value
                        stats += 1
                        blobs += tag == _STAT_STRING
                        inner = stat_end
                        continue
            tag, after = _tag(buffer, inner, event_end)
            if after == ODD:
                return np.int64(ODD), stats, blobs, inner
            if tag == _EVENT_STATS:
                stat_start, after = _payload(buffer, after, event_end)
                if after == ODD or stats >= room:
                    return np.int64(ODD), stats, blobs, inner
                blobs, place = _read_stat(
                    buffer, stat_start, after, events, stats, blobs,
                    owners, stat_ids, value_types, values, blob_starts, blob_ends,
                )  # fmt: skip
                if blobs == ODD:
                    return np.int64(ODD), stats, blobs, place
                stats += 1
            elif tag == _ID:
                metadata_id, after = _varint(buffer, after, event_end)
            elif tag == _EVENT_OFFSET:
                offset, after = _varint(buffer, after, event_end)
                counted = False
                occurrence = np.int64(0)
            elif tag == _EVENT_DURATION:
                duration, after = _varint(buffer, after, event_end)
            elif tag == _EVENT_COUNT:
                occurrence, after = _varint(buffer, after, event_end)
                counted = True
                offset = np.int64(0)
            else:
                after = _skip(buffer, after, event_end, tag)
            if after == ODD:
                return np.int64(ODD), stats, blobs, inner
            inner = after
        metadata_ids[events] = metadata_id
        offsets[events] = offset
        durations[events] = duration
        is_count[events] = counted
        occurrences[events] = occurrence
        events += 1
        position = event_end
    return events, stats, blobs, position


@_compiled(
    types.UniTuple(types.int64, 3)(
        _BUFFER, _INT64S, _INT64S, _INT64S, _INT64S, _INT8S, _INT64S, _INT64S, _INT64S
    )
)
def read_stats(  # type: ignore[no-untyped-def]
    buffer, starts, ends, owners, stat_ids, value_types, values, blob_starts, blob_ends
):
    """Read the XStat messages between `starts` and `ends`, all of owner 0; returns (stats, blobs, place)."""
    blobs = np.int64(0)
    for row in range(len(starts)):
        blobs, place = _read_stat(
            buffer, starts[row], ends[row], np.int64(0), np.int64(row), blobs,
            owners, stat_ids, value_types, values, blob_starts, blob_ends,
        )  # fmt: skip
        if blobs == ODD:
            return np.int64(ODD), blobs, place
    return np.int64(len(starts)), blobs, np.int64(0)


@_compiled(types.int64(_BUFFER, types.int64, types.int64))
def most_stats(buffer, position, end):  # type: ignore[no-untyped-def]
    """An upper bound of the stats of the events among the fields in buffer[position:end]."""
    stats = np.int64(0)
    while position < end:
        tag, after = _tag(buffer, position, end)
        if after == ODD:
            return stats
        inner, payload_end = np.int64(0), _skip(buffer, after, end, tag)
        if payload_end == ODD:
            return stats
        if tag == _LINE_EVENTS:
            inner, _ = _payload(buffer, after, end)
            while inner < payload_end:
                tag, after = _tag(buffer, inner, payload_end)
                if after == ODD:
                    return stats
                inner = _skip(buffer, after, payload_end, tag)
                if inner == ODD:
                    return stats
                stats += 1
        position = payload_end
    return stats


@_compiled(types.void(_BUFFER, _INT64S, _INT64S, types.uint8[::1]))
def copy_spans(buffer, starts, ends, target):  # type: ignore[no-untyped-def]
    """Copy buffer[starts[i]:ends[i]] one after the other to `target`, which has room for all."""
    position = 0
    for row in range(len(starts)):
        for source in range(starts[row], ends[row]):
            target[position] = buffer[source]
            position += 1
