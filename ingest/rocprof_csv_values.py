"""Values of CSV cells: texts in any encoding, integers that a tool wrote as decimals, pointers as bits."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tracewh.ingest.capture import ProblemCounter
from tracewh.ingest.rocm_rows import INTEGER, REAL, TEXT

# What pandas writes for an integer in a column that has gaps, too.
_NUMBER = re.compile(r"\s*[+-]?[0-9]{1,19}(\.[0-9]{0,19})?([eE]\+?[0-9]{1,2})?\s*")
_BITS = re.compile(r"\s*(0[xX][0-9a-fA-F]{1,16}|[0-9]{1,20})\s*")


def converted(found: pa.Array, wanted: pa.DataType, place: str, problems: ProblemCounter) -> pa.Array:
    """A column as parsed in its wanted type; what does not fit becomes null and is counted at `place`."""
    if wanted == TEXT:
        encoded = found if pa.types.is_dictionary(found.type) else found.dictionary_encode()
        return pa.DictionaryArray.from_arrays(encoded.indices, _decoded(encoded.dictionary, place, problems))
    if pa.types.is_dictionary(found.type):
        texts = pa.DictionaryArray.from_arrays(found.indices, _decoded(found.dictionary, place, problems))
        if wanted == INTEGER:
            return each(texts, integer_of, INTEGER, "not_an_integer", place, problems)
        return each(texts, _number_of, REAL, "not_a_number", place, problems)
    if wanted == REAL and pc.all(pc.is_finite(found)).as_py() is False:
        rejected = found.filter(pc.invert(pc.is_finite(found)))
        problems.add("not_a_number", place, f"stored as null: '{rejected[0]}'", len(rejected))
        return pc.if_else(pc.is_finite(found), found, pa.scalar(None, REAL))
    return found


def each(
    texts: pa.DictionaryArray,
    convert: Callable[[str], Any],
    wanted: pa.DataType,
    problem: str,
    place: str,
    problems: ProblemCounter,
) -> pa.Array:
    """Convert each distinct text once; rows whose text `convert` gives None for are counted as `problem`."""
    distinct = texts.dictionary.to_pylist()
    values = pa.array([convert(text) for text in distinct], wanted)
    array = pc.take(values, texts.indices)
    rejected = array.null_count - texts.null_count
    if rejected:
        example = next(text for text, value in zip(distinct, values, strict=True) if not value.is_valid)
        problems.add(problem, place, f"stored as null: {example[:80]!r}", rejected)
    return array


def bits_of(text: str) -> int | None:
    """The bits of an unsigned number of 64 bits as a signed one; None for another text."""
    if _BITS.fullmatch(text) is None:
        return None
    number = int(text, 0) if "x" in text.lower() else int(text)
    if number >= 2**64:
        return None
    return number - 2**64 if number >= 2**63 else number


def integer_of(text: str) -> int | None:
    """The 64-bit integer that a text stands for: 12, 12.0 and 1.2e1 are one; None for another text."""
    if _NUMBER.fullmatch(text) is None:
        return None
    number = Decimal(text.strip())
    is_integer = -(2**63) <= number < 2**63 and number == number.to_integral_value()
    return int(number) if is_integer else None


def nanoseconds_of(text: str) -> int | None:
    """The time that a text stands for, which may be a mean of several, to the nearest ns.

    None for another text, and for a time whose differences need more than 64 bits.
    """
    if _NUMBER.fullmatch(text) is None:
        return None
    number = Decimal(text.strip())
    return int(number.to_integral_value()) if abs(number) < 2**61 else None


def _number_of(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    # Not a number is unequal to itself.
    return number if number == number and abs(number) != float("inf") else None


def _decoded(texts: pa.Array, place: str, problems: ProblemCounter) -> pa.Array:
    if texts.type == TEXT:
        return texts
    try:
        return texts.cast(TEXT)
    except pa.ArrowInvalid:
        found = [text.decode("utf-8", "backslashreplace") for text in texts.to_pylist()]
        wrong = [text for text, raw in zip(found, texts.to_pylist(), strict=True) if text.encode() != raw]
        problems.add("invalid_utf8", place, f"bytes kept as escapes: {wrong[0][:80]!r}", len(wrong))
        return pa.array(found, TEXT)
