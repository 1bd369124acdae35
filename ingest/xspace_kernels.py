"""Loops over an XSpace, to be compiled: field lists, line headers, events and stats, and where stats go.

Every read is checked against the end of the buffer, so no content can lead outside of it. The loops know the
usual encoding only. Where they meet something else - a group, a field number of 0, a number of more than 64
bits, a message that ends inside a field - they report ODD with the place, and the caller asks protobuf, whose
word on what is valid holds.

The functions take addresses, as C does: `buffer` of `size` bytes, arrays of int64 unless said, and `result`
for what they return. Their numbers are int64 throughout.
"""

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from tracewh.ingest.xspace_space import BYTES, COMPRESSED, DOUBLE, NONE, STRING
from tracewh.ingest.xspace_wire import (
    DELIMITED,
    EVENT_DURATION_PS,
    EVENT_OCCURRENCES,
    EVENT_OFFSET_PS,
    EVENT_STATS,
    FIXED32,
    FIXED64,
    HEADER_DISPLAY_ID,
    HEADER_DISPLAY_NAME,
    HEADER_DURATION_PS,
    HEADER_ID,
    HEADER_NAME,
    HEADER_TIMESTAMP_NS,
    ID,
    LINE_DISPLAY_ID,
    LINE_DISPLAY_NAME,
    LINE_DURATION_PS,
    LINE_EVENTS,
    LINE_NAME,
    LINE_TIMESTAMP_NS,
    ODD,
    STAT_BYTES,
    STAT_COMPRESSED,
    STAT_DOUBLE,
    STAT_INT64,
    STAT_REF,
    STAT_STRING,
    STAT_UINT64,
    VARINT,
)

_HIGH_BITS = np.uint64(0x8080808080808080)
_LOW_7_OF_16, _HIGH_7_OF_16 = np.uint64(0x007F007F007F007F), np.uint64(0x7F007F007F007F00)
_LOW_14_OF_32, _HIGH_14_OF_32 = np.uint64(0x00003FFF00003FFF), np.uint64(0x3FFF00003FFF0000)
_LOW_28_OF_64, _HIGH_28_OF_64 = np.uint64(0x000000000FFFFFFF), np.uint64(0x0FFFFFFF00000000)
# Tag, length, tag, id of at most 8 bytes, tag, and the 8 bytes that are read of the value.
_USUAL_STAT_BYTES = 3 + 8 + 1 + 8

_inlined = njit(forceinline=True, error_model="numpy")


@intrinsic
def _word(typing_context, buffer, position):
    """The eight bytes at `position`, the first as the lowest; the caller has checked that they are there."""

    def generate(context, builder, signature, arguments):
        pointer = builder.gep(arguments[0], [arguments[1]])
        return builder.load(builder.bitcast(pointer, ir.IntType(64).as_pointer()), align=1)

    return types.uint64(buffer, position), generate


@intrinsic
def _trailing_zeros(typing_context, number):
    """How many zero bits `number`, which is not 0, ends with."""

    def generate(context, builder, signature, arguments):
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(number), generate


@_inlined
def _byte(buffer, position):
    return np.int64(buffer[position])


@_inlined
def _bytes_left(buffer, position, size):
    """As `_word`, with zeros for what lies behind the buffer."""
    if size - position >= 8:
        return _word(buffer, position)
    word = np.uint64(0)
    for index in range(size - position):
        word |= np.uint64(buffer[position + index]) << np.uint64(8 * index)
    return word


@_inlined
def _stop_length(stops):
    """Bytes of the number whose end is the lowest bit of `stops`."""
    return np.int64(_trailing_zeros(stops) >> np.uint64(3)) + 1


@_inlined
def _joined(word, stops):
    """The number in `word` that ends with the lowest bit of `stops`: the seven bits of each byte together.

    There is no branch on its length, which the processor could not foresee. Without a stop it is all of them.
    """
    word &= stops ^ (stops - np.uint64(1))
    word = (word & _LOW_7_OF_16) | (word & _HIGH_7_OF_16) >> np.uint64(1)
    word = (word & _LOW_14_OF_32) | (word & _HIGH_14_OF_32) >> np.uint64(2)
    return np.int64((word & _LOW_28_OF_64) | (word & _HIGH_28_OF_64) >> np.uint64(4))


@_inlined
def _varint(buffer, position, end, size):
    """The number at `position` as 64 bits, and what follows it; ODD as the second where it is none."""
    word = _bytes_left(buffer, position, size)
    stops = ~word & _HIGH_BITS
    if stops:
        after = position + _stop_length(stops)
        return _joined(word, stops), after if after <= end else np.int64(ODD)
    if end - position < 9:
        return np.int64(0), np.int64(ODD)
    value = _joined(word, np.uint64(0)) | (_byte(buffer, position + 8) & 0x7F) << 56
    if _byte(buffer, position + 8) < 0x80:
        return value, position + 9
    # Ten bytes hold 64 bits, the last of them one.
    if end - position < 10 or _byte(buffer, position + 9) > 1:
        return np.int64(0), np.int64(ODD)
    return value | _byte(buffer, position + 9) << 63, position + 10


@_inlined
def _tag(buffer, position, end, size):
    """The tag at `position`, and what follows it; ODD as the second where it is none."""
    if position < end and _byte(buffer, position) < 0x80:
        tag, after = _byte(buffer, position), position + 1
    else:
        tag, after = _varint(buffer, position, end, size)
    if after == ODD or tag < 8 or tag >= 1 << 32 or after - position > 5:
        return np.int64(0), np.int64(ODD)
    return tag, after


@_inlined
def _payload(buffer, position, end, size):
    """Start and end of a delimited payload whose length is at `position`; ODD as the end where it is none."""
    length, start = _varint(buffer, position, end, size)
    if start == ODD or start - position > 5 or length > end - start:
        return np.int64(0), np.int64(ODD)
    return start, start + length


@_inlined
def _skip(buffer, position, end, size, tag):
    """What follows the payload of a field; ODD where it does not end before `end`."""
    wire_type = tag & 7
    if wire_type == VARINT:
        return _varint(buffer, position, end, size)[1]
    if wire_type == DELIMITED:
        return _payload(buffer, position, end, size)[1]
    width = 8 if wire_type == FIXED64 else 4
    if wire_type not in (FIXED64, FIXED32) or width > end - position:
        return np.int64(ODD)
    return position + width


@_inlined
def _read_stat(
    buffer, size, position, end, owner, row, blobs,
    owners, stat_ids, value_types, values, blob_starts, blob_ends,
):  # fmt: skip
    """Read the XStat in buffer[position:end] to `row`; returns (number of blobs or ODD, place)."""
    stat_id = np.int64(0)
    value_type = np.int64(NONE)
    value = np.int64(0)
    blob_start = np.int64(0)
    while position < end:
        tag, after = _tag(buffer, position, end, size)
        if after == ODD:
            return np.int64(ODD), position
        if tag == ID:
            stat_id, after = _varint(buffer, after, end, size)
        elif tag in (STAT_UINT64, STAT_INT64, STAT_REF):
            value, after = _varint(buffer, after, end, size)
            value_type = tag >> 3
        elif tag == STAT_DOUBLE:
            if end - after < 8:
                return np.int64(ODD), position
            value = np.int64(_word(buffer, after))
            value_type = np.int64(DOUBLE)
            after += 8
        elif tag in (STAT_STRING, STAT_BYTES, STAT_COMPRESSED):
            blob_start, after = _payload(buffer, after, end, size)
            value = after
            value_type = tag >> 3
        else:
            after = _skip(buffer, after, end, size, tag)
        if after == ODD:
            return np.int64(ODD), position
        position = after
    if value_type in (STRING, BYTES, COMPRESSED):
        blob_starts[blobs] = blob_start
        blob_ends[blobs] = value
        value = blobs
        blobs += 1
    owners[row] = owner
    stat_ids[row] = stat_id
    value_types[row] = value_type
    values[row] = value
    return blobs, position


def list_fields(
    buffer, size, start, end, merged_tag, max_merged, room, tags, tag_starts, starts, ends, counts, result
):  # fmt: skip
    """List the fields of the message in buffer[start:end]; result is (count, place).

    `tag_starts` are where the fields begin, `starts` and `ends` what their payloads span, without a length.
    Up to `max_merged` fields with `merged_tag` that follow each other are one entry, its payload the fields
    themselves; `counts` tells how many there are. Entries beyond the first `room` are counted only.
    """
    count = np.int64(0)
    in_run = np.int64(0)
    position = start
    while position < end:
        tag, after = _tag(buffer, position, end, size)
        payload_end = np.int64(ODD)
        if after != ODD:
            payload_end = _skip(buffer, after, end, size, tag)
        if payload_end == ODD:
            count = np.int64(ODD)
            break
        if tag == merged_tag and 0 < in_run < max_merged:
            in_run += 1
        else:
            in_run = np.int64(1) if tag == merged_tag else np.int64(0)
            if count < room:
                tags[count] = tag
                tag_starts[count] = position
                starts[count] = after
                if tag == merged_tag:
                    starts[count] = position
                elif tag & 7 == DELIMITED:
                    starts[count] = _varint(buffer, after, end, size)[1]
            count += 1
        if count <= room:
            ends[count - 1] = payload_end
            counts[count - 1] = max(in_run, np.int64(1))
        position = payload_end
    result[0] = count
    result[1] = position


def scan_line(buffer, size, start, end, max_events, max_bytes, header, room, part_ends, part_events, result):
    """Read the header of the XLine in buffer[start:end] and cut its events into parts.

    A part has at most `max_events` events and, unless it is a single one, at most `max_bytes` bytes; result
    is (number of parts, place, number of events). After `room` parts it stops: it can be called again with
    the place as the start.
    """
    parts = np.int64(0)
    events = np.int64(0)
    in_part = np.int64(0)
    part_start = start
    position = start
    is_odd = False
    while position < end:
        tag, after = _tag(buffer, position, end, size)
        if after == ODD:
            is_odd = True
            break
        if tag == LINE_EVENTS:
            after = _payload(buffer, after, end, size)[1]
            if in_part and (in_part == max_events or after - part_start > max_bytes):
                part_ends[parts] = position
                part_events[parts] = in_part
                parts += 1
                part_start = position
                in_part = np.int64(0)
                if parts == room:
                    break
            in_part += 1
            # A damaged one is not counted: the events before it are.
            events += after != ODD
        elif tag in (LINE_NAME, LINE_DISPLAY_NAME):
            slot = HEADER_NAME if tag == LINE_NAME else HEADER_DISPLAY_NAME
            name_start, after = _payload(buffer, after, end, size)
            header[slot] = name_start
            header[slot + 1] = after
        elif tag in (ID, LINE_TIMESTAMP_NS, LINE_DURATION_PS, LINE_DISPLAY_ID):
            value, after = _varint(buffer, after, end, size)
            if tag == ID:
                header[HEADER_ID] = value
            elif tag == LINE_TIMESTAMP_NS:
                header[HEADER_TIMESTAMP_NS] = value
            elif tag == LINE_DURATION_PS:
                header[HEADER_DURATION_PS] = value
            else:
                header[HEADER_DISPLAY_ID] = value
        else:
            after = _skip(buffer, after, end, size, tag)
        if after == ODD:
            is_odd = True
            break
        position = after
    if in_part and not is_odd:
        part_ends[parts] = position
        part_events[parts] = in_part
        parts += 1
    result[0] = np.int64(ODD) if is_odd else parts
    result[1] = position
    result[2] = events


def read_events(
    buffer, size, start, end,
    event_room, metadata_ids, offsets, durations, is_count, occurrences,
    stat_room, owners, stat_ids, value_types, values, blob_starts, blob_ends,
    result,
):  # fmt: skip
    """Read the events among the fields in buffer[start:end]; result is (events, place, stats, blobs).

    `is_count` and `value_types` are int8. More events or stats than there is room for are ODD.
    """
    events = np.int64(0)
    stats = np.int64(0)
    blobs = np.int64(0)
    position = start
    odd_at = np.int64(ODD)
    while position < end:
        tag, after = _tag(buffer, position, end, size)
        if after == ODD:
            odd_at = position
            break
        if tag != LINE_EVENTS:
            after = _skip(buffer, after, end, size, tag)
            if after == ODD:
                odd_at = position
                break
            position = after
            continue
        inner, event_end = _payload(buffer, after, end, size)
        if event_end == ODD or events >= event_room:
            odd_at = position
            break
        metadata_id = np.int64(0)
        offset = np.int64(0)
        duration = np.int64(0)
        counted = np.int64(0)
        occurrence = np.int64(0)
        while inner < event_end:
            # The usual stat: a length of one byte, an id, one number or one short text, and no more.
            if (
                _byte(buffer, inner) == EVENT_STATS
                and size - inner >= _USUAL_STAT_BYTES
                and stats < stat_room
            ):
                length = _byte(buffer, inner + 1)
                stat_end = inner + 2 + length
                word = _word(buffer, inner + 3)
                stops = ~word & _HIGH_BITS
                if length < 0x80 and stat_end <= event_end and _byte(buffer, inner + 2) == ID and stops:
                    place = inner + 3 + _stop_length(stops)
                    stat_ids[stats] = _joined(word, stops)
                    tag = _byte(buffer, place)
                    word = _word(buffer, place + 1)
                    after = np.int64(ODD)
                    value = blobs
                    if tag in (STAT_REF, STAT_INT64, STAT_UINT64):
                        stops = ~word & _HIGH_BITS
                        value = _joined(word, stops)
                        if stops:
                            after = place + 1 + _stop_length(stops)
                    elif tag == STAT_DOUBLE:
                        value = np.int64(word)
                        after = place + 9
                    elif tag == STAT_STRING:
                        after = place + 2 + np.int64(word & np.uint64(0xFF))
                        blob_starts[blobs] = place + 2
                        blob_ends[blobs] = after
                    # A length of two bytes or a number of nine leads elsewhere than to the end.
                    if after == stat_end:
                        owners[stats] = events
                        value_types[stats] = tag >> 3
                        values[stats] = value
                        stats += 1
                        if tag == STAT_STRING:
                            blobs += 1
                        inner = stat_end
                        continue
            tag, after = _tag(buffer, inner, event_end, size)
            if after == ODD:
                odd_at = inner
                break
            if tag == EVENT_STATS:
                stat_start, after = _payload(buffer, after, event_end, size)
                if after == ODD or stats >= stat_room:
                    odd_at = inner
                    break
                blobs, place = _read_stat(
                    buffer, size, stat_start, after, events, stats, blobs,
                    owners, stat_ids, value_types, values, blob_starts, blob_ends,
                )  # fmt: skip
                if blobs == ODD:
                    odd_at = place
                    break
                stats += 1
            elif tag == ID:
                metadata_id, after = _varint(buffer, after, event_end, size)
            elif tag == EVENT_OFFSET_PS:
                offset, after = _varint(buffer, after, event_end, size)
                counted = np.int64(0)
                occurrence = np.int64(0)
            elif tag == EVENT_DURATION_PS:
                duration, after = _varint(buffer, after, event_end, size)
            elif tag == EVENT_OCCURRENCES:
                occurrence, after = _varint(buffer, after, event_end, size)
                counted = np.int64(1)
                offset = np.int64(0)
            else:
                after = _skip(buffer, after, event_end, size, tag)
            if after == ODD:
                odd_at = inner
                break
            inner = after
        if odd_at != ODD:
            break
        metadata_ids[events] = metadata_id
        offsets[events] = offset
        durations[events] = duration
        is_count[events] = counted
        occurrences[events] = occurrence
        events += 1
        position = event_end
    result[0] = events if odd_at == ODD else np.int64(ODD)
    result[1] = position if odd_at == ODD else odd_at
    result[2] = stats
    result[3] = blobs


def read_stats(
    buffer, size, start, end,
    stat_tag, room, owners, stat_ids, value_types, values, blob_starts, blob_ends,
    result,
):  # fmt: skip
    """Read the stats, of owner 0, among the fields in buffer[start:end]; result as of `read_events`."""
    stats = np.int64(0)
    blobs = np.int64(0)
    position = start
    odd_at = np.int64(ODD)
    while position < end:
        tag, after = _tag(buffer, position, end, size)
        if after == ODD:
            odd_at = position
            break
        payload_end = np.int64(ODD)
        if tag == stat_tag:
            stat_start, payload_end = _payload(buffer, after, end, size)
            if payload_end != ODD and stats < room:
                blobs, place = _read_stat(
                    buffer, size, stat_start, payload_end, np.int64(0), stats, blobs,
                    owners, stat_ids, value_types, values, blob_starts, blob_ends,
                )  # fmt: skip
                if blobs == ODD:
                    odd_at = place
                    break
                stats += 1
            else:
                payload_end = np.int64(ODD)
        else:
            payload_end = _skip(buffer, after, end, size, tag)
        if payload_end == ODD:
            odd_at = position
            break
        position = payload_end
    result[0] = np.int64(0) if odd_at == ODD else np.int64(ODD)
    result[1] = position if odd_at == ODD else odd_at
    result[2] = stats
    result[3] = blobs


def count_stats(buffer, size, start, end, result):
    """Count the fields of the events in buffer[start:end] up to the first damage: no fewer than the stats."""
    fields = np.int64(0)
    position = start
    while position < end:
        tag, after = _tag(buffer, position, end, size)
        if after == ODD:
            break
        payload_end = _skip(buffer, after, end, size, tag)
        if payload_end == ODD:
            break
        if tag == LINE_EVENTS:
            inner = _payload(buffer, after, end, size)[0]
            while inner < payload_end:
                tag, after = _tag(buffer, inner, payload_end, size)
                if after == ODD:
                    break
                inner = _skip(buffer, after, payload_end, size, tag)
                if inner == ODD:
                    break
                fields += 1
        position = payload_end
    result[0] = fields


def copy_spans(buffer, count, starts, ends, target):
    """Copy the `count` spans buffer[starts[i]:ends[i]] one after the other to the bytes at `target`."""
    position = np.int64(0)
    row = np.int64(0)
    while row < count:
        source = starts[row]
        while source < ends[row]:
            target[position] = buffer[source]
            position += 1
            source += 1
        row += 1


def place_stats(
    count, events, slots, owners, value_types, values, row_of, placed_types, placed_values, last
):  # fmt: skip
    """Put `count` stats where the row of their column crosses their owner, those of column 0 or less nowhere.

    `slots` has the columns, `row_of` the row of each, of `events` places. Of the stats of one owner for one
    column the last is placed; the others get column 0. `last` starts with -1 for each column. `slots`,
    `value_types` and `placed_types` are int8.
    """
    for stat in range(count):
        column = np.int64(slots[stat])
        if column > 0:
            owner = owners[stat]
            before = last[column]
            if before >= 0 and owners[before] == owner:
                slots[before] = 0
            last[column] = stat
            place = row_of[column] * events + owner
            placed_types[place] = value_types[stat]
            placed_values[place] = values[stat]
