"""Loops over the pages of a SQLite database, to be compiled: leaves of a table, records, numbers in texts.

The file format is documented at sqlite.org/fileformat2.html. Every read is checked against the end of the
buffer, so no content can lead outside of it. The loops know what databases usually hold. Where they meet
something else - a page of another kind, a loop of pages, a record that is cut - they report ODD with the
place, and the caller asks SQLite, whose word on what is valid holds.

The functions take addresses, as C does: `buffer` of `size` bytes, arrays of int64 unless said, and `result`
for what they return. Their numbers are int64 throughout.
"""

import numpy as np
from numba import njit

from tracewh.ingest.sqlite_records import (
    BLOB,
    DONE,
    FLOAT,
    FULL,
    HEXADECIMAL,
    INTEGER,
    LENGTH_BITS,
    MAX_DEPTH,
    MISSING,
    NULL,
    ODD,
    OTHER_TEXT,
    SMALL_SPILL,
    TEXT,
)

_FIRST_PAGE_HEADER_BYTES = 100
_INTERIOR_PAGE, _LEAF_PAGE = 0x05, 0x0D
_INTERIOR_HEADER_BYTES, _LEAF_HEADER_BYTES = 12, 8
_MAX_VARINT_BYTES = 9
# What SQLite takes for damage: more bytes of types, or more cells for the size of a page.
_MAX_TYPES_BYTES = 98_307
_MIN_CELL_BYTES = 6
_MAX_DECIMAL_DIGITS, _MAX_HEXADECIMAL_DIGITS = 18, 16
_QUOTED_OPEN, _QUOTED_CLOSE = 0x7B, 0x7D  # { and }
_NOT_THE_SIGN, _INFINITY = 2**63 - 1, 0x7FF << 52  # among the bits of a number
_MINUS, _ZERO, _NINE, _SMALL_A, _SMALL_F, _SMALL_X = 0x2D, 0x30, 0x39, 0x61, 0x66, 0x78

_inlined = njit(forceinline=True, error_model="numpy")


@_inlined
def _two_bytes(buffer, at):
    return np.int64(buffer[at]) << 8 | np.int64(buffer[at + 1])


@_inlined
def _four_bytes(buffer, at):
    return _two_bytes(buffer, at) << 16 | _two_bytes(buffer, at + 2)


@_inlined
def _varint(buffer, at, end):
    """The number at `at` and the place after it; a place of ODD where it does not end before `end`."""
    number = np.int64(0)
    for index in range(_MAX_VARINT_BYTES):
        if at >= end:
            return number, np.int64(ODD)
        byte = np.int64(buffer[at])
        at += 1
        if index == _MAX_VARINT_BYTES - 1:
            return number << 8 | byte, at
        number = number << 7 | (byte & 0x7F)
        if byte < 0x80:
            return number, at
    return number, np.int64(ODD)


@_inlined
def _header(page, page_size):
    """Where the header of a page begins."""
    return (page - 1) * page_size + (_FIRST_PAGE_HEADER_BYTES if page == 1 else 0)


def list_leaves(buffer, size, page_size, leaves, until, stack, state):
    """List the leaf pages of a table in order, until there are `until`, as many as `leaves` has room for.

    `stack` has 2 * MAX_DEPTH numbers: the pages on the way down, at first that of the root, and the next
    child of each. `state` has the depth of that way, leaves and their rows so far, pages visited so far, and
    the status; the caller begins with 1, 0, 0, 0 and calls again while the status is FULL.
    """
    pages = size // page_size
    depth, leaf_count, row_count, visited = state[0], state[1], state[2], state[3]
    state[4] = ODD
    while depth > 0:
        page = stack[2 * depth - 2]
        if page < 1 or page > pages or visited > 2 * pages:
            return
        start = (page - 1) * page_size
        header = _header(page, page_size)
        kind, cells = np.int64(buffer[header]), _two_bytes(buffer, header + 3)
        if cells > (page_size - _LEAF_HEADER_BYTES) // _MIN_CELL_BYTES:
            return
        # Only the root of an empty table has no cells.
        if cells == 0 and (kind != _LEAF_PAGE or depth > 1):
            return
        if kind == _LEAF_PAGE:
            visited += 1
            if header + _LEAF_HEADER_BYTES + 2 * cells > start + page_size:
                return
            if leaf_count == until:
                break
            leaves[leaf_count] = page
            leaf_count += 1
            row_count += cells
            depth -= 1
            continue
        if kind != _INTERIOR_PAGE or header + _INTERIOR_HEADER_BYTES + 2 * cells > start + page_size:
            return
        child = stack[2 * depth - 1]
        if child == 0:
            visited += 1
        if child > cells:
            depth -= 1
            continue
        stack[2 * depth - 1] = child + 1
        if child == cells:
            target = header + 8
        else:
            target = start + _two_bytes(buffer, header + _INTERIOR_HEADER_BYTES + 2 * child)
        if depth == MAX_DEPTH or target + 4 > start + page_size:
            return
        stack[2 * depth], stack[2 * depth + 1] = _four_bytes(buffer, target), 0
        depth += 1
    state[0], state[1], state[2], state[3] = depth, leaf_count, row_count, visited
    state[4] = FULL if depth > 0 else DONE


@_inlined
def _record(source, at, end, origin, columns, column_count, row, capacity, values, kinds, seen):
    """Decode the record at `at` into row `row`; places of texts count from `origin`. Whether it is sound."""
    header_bytes, types = _varint(source, at, end)
    if types < 0 or header_bytes < 1 or header_bytes > _MAX_TYPES_BYTES or at + header_bytes > end:
        return False
    types_end = at + header_bytes
    body = types_end
    for column in range(column_count):
        slot = columns[2 * column]
        if types >= types_end:
            if slot >= 0:
                kinds[slot * capacity + row] = MISSING
                seen[slot] |= 1 << MISSING
            continue
        code, types = _varint(source, types, types_end)
        if types < 0 or code < 0 or code == 10 or code == 11:
            return False
        length = np.int64(0)
        if code >= 12:
            length = (code - 12) >> 1
        elif code <= 4:
            length = code
        elif code == 5:
            length = np.int64(6)
        elif code <= 7:
            length = np.int64(8)
        if body + length > end:
            return False
        if slot >= 0:
            cell = slot * capacity + row
            if code >= 12:
                if length >> LENGTH_BITS:
                    return False
                is_empty_json = (
                    columns[2 * column + 1] != 0
                    and code & 1 != 0
                    and length == 2
                    and source[body] == _QUOTED_OPEN
                    and source[body + 1] == _QUOTED_CLOSE
                )
                values[cell] = (body + origin) << LENGTH_BITS | length
                kinds[cell] = NULL if is_empty_json else TEXT if code & 1 else BLOB
            elif code == 0:
                values[cell] = 0
                kinds[cell] = NULL
            elif code >= 8:
                values[cell] = code - 8
                kinds[cell] = INTEGER
            else:
                number = np.int64(source[body])
                if number >= 0x80 and code != 7:
                    number -= 0x100
                for index in range(1, length):
                    number = number << 8 | np.int64(source[body + index])
                values[cell] = number
                kinds[cell] = INTEGER
                if code == 7:
                    # What is not a number is no value for SQLite.
                    kinds[cell] = NULL if number & _NOT_THE_SIGN > _INFINITY else FLOAT
            seen[slot] |= 1 << np.int64(kinds[cell])
        body += length
    # The values of a record end where it does.
    return types < types_end or (types == types_end and body == end)


@_inlined
def _gather(buffer, size, page_size, usable, at, local, payload, spill, used):
    """Copy a payload that goes on in overflow pages to `spill`. Whether it could be followed to its end."""
    for index in range(local):
        spill[used + index] = buffer[at + index]
    done, page = local, _four_bytes(buffer, at + local)
    while done < payload:
        start = (page - 1) * page_size
        if page < 1 or start + page_size > size:
            return False
        piece = min(payload - done, usable - 4)
        for index in range(piece):
            spill[used + done + index] = buffer[start + 4 + index]
        done += piece
        page = _four_bytes(buffer, start)
    return True


@_inlined
def _cell(
    buffer, size, page_size, usable, start, at, columns, column_count, row, capacity, values, kinds, seen,
    rowids, spill, spill_size, used,
):  # fmt: skip
    """Decode the cell at `at` into row `row`. Returns the status and how much of `spill` is used."""
    page_end = start + usable
    first = at
    payload, at = _varint(buffer, at, page_end)
    # SQLite reads a length of nine bytes in its own way.
    if at < 0 or payload < 0 or payload > size or at - first == _MAX_VARINT_BYTES:
        return np.int64(ODD), used
    rowid, at = _varint(buffer, at, page_end)
    if at < 0:
        return np.int64(ODD), used
    rowids[row] = rowid
    limit = usable - 35
    if payload <= limit:
        if at + payload > page_end:
            return np.int64(ODD), used
        sound = _record(
            buffer, at, at + payload, np.int64(0), columns, column_count, row, capacity, values, kinds, seen
        )
        return np.int64(DONE) if sound else np.int64(ODD), used
    least = (usable - 12) * 32 // 255 - 23
    local = least + (payload - least) % (usable - 4)
    if local > limit:
        local = least
    if at + local + 4 > page_end:
        return np.int64(ODD), used
    if used + payload > spill_size:
        return np.int64(SMALL_SPILL), used + payload
    if not _gather(buffer, size, page_size, usable, at, local, payload, spill, used):
        return np.int64(ODD), used
    # The place of a text in `spill` counts from the end of the buffer on.
    sound = _record(
        spill, used, used + payload, size, columns, column_count, row, capacity, values, kinds, seen
    )
    return np.int64(DONE) if sound else np.int64(ODD), used + payload


def read_leaves(
    buffer, size, page_size, usable, leaves, leaf_count, first_leaf, columns, column_count, capacity, values,
    kinds, seen, rowids, spill, spill_size, result,
):  # fmt: skip
    """Decode whole leaves from `first_leaf` on for as long as their rows fit.

    `columns` has for each column of a record its slot, -1 for none, and whether it is JSON, whose empty
    object counts as null. `values` and `kinds` have `capacity` cells for each slot,
    `seen` the kinds in each slot, a bit for each. result: status, rows, next leaf,
    bytes of `spill` that are used or needed.
    """
    row, leaf, used = np.int64(0), first_leaf, np.int64(0)
    status = np.int64(DONE)
    while leaf < leaf_count and status == DONE:
        page = leaves[leaf]
        start, header = (page - 1) * page_size, _header(page, page_size)
        cells = _two_bytes(buffer, header + 3)
        if row + cells > capacity:
            status = np.int64(FULL) if row > 0 else np.int64(ODD)
            break
        for cell in range(cells):
            at = start + _two_bytes(buffer, header + _LEAF_HEADER_BYTES + 2 * cell)
            status, used = _cell(
                buffer, size, page_size, usable, start, at, columns, column_count, row + cell, capacity,
                values, kinds, seen, rowids, spill, spill_size, used,
            )  # fmt: skip
            if status != DONE:
                break
        if status == DONE:
            row += cells
            leaf += 1
    result[0], result[1], result[2], result[3] = status, row, leaf, used


@_inlined
def _rowid_of(buffer, page_size, usable, page, cell):
    """Row id of a cell of a leaf; -1 and False where it cannot be read."""
    start = (page - 1) * page_size
    at = start + _two_bytes(buffer, _header(page, page_size) + _LEAF_HEADER_BYTES + 2 * cell)
    end = start + usable
    _, at = _varint(buffer, at, end)
    if at < 0:
        return np.int64(-1), False
    rowid, at = _varint(buffer, at, end)
    return rowid, at >= 0


def first_rowids(buffer, page_size, usable, leaves, leaf_count, rowids, result):
    """First row id of each leaf, where row ids ascend all along. result: status."""
    result[0] = ODD
    before = np.int64(-(2**63))
    rowids[0] = before
    for leaf in range(leaf_count):
        page = leaves[leaf]
        for cell in range(_two_bytes(buffer, _header(page, page_size) + 3)):
            rowid, is_read = _rowid_of(buffer, page_size, usable, page, cell)
            if not is_read or rowid < before or (rowid == before and leaf + cell > 0):
                return
            if cell == 0:
                rowids[leaf] = rowid
            before = rowid
    result[0] = DONE


def find_rows(
    buffer, size, page_size, usable, leaves, leaf_count, firsts, wanted, count, columns, column_count, values,
    kinds, seen, rowids, spill, spill_size, result,
):  # fmt: skip
    """Decode the rows with the `wanted` row ids; the `rowids` of those that are not there are no such number.

    Row ids that follow each other are found fast. result: status, rows, -, bytes of `spill` used or needed.
    """
    used, leaf, cell = np.int64(0), np.int64(0), np.int64(0)
    status = np.int64(DONE)
    for row in range(count):
        target = wanted[row]
        rowids[row] = ~target
        if leaf_count == 0:
            continue
        is_here = firsts[leaf] <= target and (leaf + 1 == leaf_count or target < firsts[leaf + 1])
        if not is_here:
            low, high = np.int64(0), leaf_count
            while high - low > 1:
                middle = (low + high) >> 1
                if firsts[middle] <= target:
                    low = middle
                else:
                    high = middle
            leaf, cell = low, np.int64(0)
        page = leaves[leaf]
        start, header = (page - 1) * page_size, _header(page, page_size)
        cells = _two_bytes(buffer, header + 3)
        found = np.int64(-1)
        # Mostly the row after the last one that was asked for.
        if cell < cells:
            rowid, is_read = _rowid_of(buffer, page_size, usable, page, cell)
            if is_read and rowid == target:
                found = cell
        if found < 0:
            low, high = np.int64(0), cells
            while high - low > 0:
                middle = (low + high) >> 1
                rowid, is_read = _rowid_of(buffer, page_size, usable, page, middle)
                if not is_read:
                    status = np.int64(ODD)
                    break
                if rowid == target:
                    found = middle
                    break
                if rowid < target:
                    low = middle + 1
                else:
                    high = middle
        if status == DONE and found >= 0:
            at = start + _two_bytes(buffer, header + _LEAF_HEADER_BYTES + 2 * found)
            status, used = _cell(
                buffer, size, page_size, usable, start, at, columns, column_count, row, count, values, kinds,
                seen, rowids, spill, spill_size, used,
            )  # fmt: skip
            cell = found + 1
        if status != DONE:
            break
    result[0], result[1], result[2], result[3] = status, count, 0, used


def measure_texts(values, kinds, count, wanted_kind, offsets):
    """Offsets of texts (or blobs) laid end to end: one more than there are cells; others are empty."""
    total = np.int64(0)
    for row in range(count):
        offsets[row] = total
        if kinds[row] == wanted_kind:
            total += values[row] & ((1 << LENGTH_BITS) - 1)
    offsets[count] = total


def copy_texts(buffer, size, spill, values, kinds, count, wanted_kind, offsets, data):
    """Copy the texts (or blobs) of `measure_texts` to `data`, bytes."""
    for row in range(count):
        if kinds[row] == wanted_kind:
            length = values[row] & ((1 << LENGTH_BITS) - 1)
            place, target = values[row] >> LENGTH_BITS, offsets[row]
            if place < size:
                for index in range(length):
                    data[target + index] = buffer[place + index]
            else:
                for index in range(length):
                    data[target + index] = spill[place - size + index]


def read_numbers(data, offsets, count, values, kinds):
    """Tell the texts that are numbers in their usual form: decimal, or hexadecimal with 0x.

    A number written in another way, as with zeros in front, is left a text, since its text would be lost.
    """
    for row in range(count):
        at, end = offsets[row], offsets[row + 1]
        kinds[row] = OTHER_TEXT
        is_negative = at < end and data[at] == _MINUS
        first = at + 1 if is_negative else at
        digits = end - first
        if digits < 1:
            continue
        number = np.int64(0)
        if digits > 2 and not is_negative and data[at] == _ZERO and data[at + 1] == _SMALL_X:
            digits -= 2
            first += 2
            is_usual = digits <= _MAX_HEXADECIMAL_DIGITS and (digits == 1 or data[first] != _ZERO)
            if is_usual:
                for index in range(first, end):
                    byte = np.int64(data[index])
                    if _ZERO <= byte <= _NINE:
                        number = number << 4 | (byte - _ZERO)
                    elif _SMALL_A <= byte <= _SMALL_F:
                        number = number << 4 | (byte - _SMALL_A + 10)
                    else:
                        is_usual = False
                        break
            if is_usual:
                values[row] = number
                kinds[row] = HEXADECIMAL
            continue
        is_usual = digits <= _MAX_DECIMAL_DIGITS and (
            data[first] != _ZERO or (digits == 1 and not is_negative)
        )
        if is_usual:
            for index in range(first, end):
                byte = np.int64(data[index])
                if byte < _ZERO or byte > _NINE:
                    is_usual = False
                    break
                number = number * 10 + (byte - _ZERO)
        if is_usual:
            values[row] = -number if is_negative else number
            kinds[row] = INTEGER
