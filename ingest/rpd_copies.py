"""Copies and fills of an RPD trace: their names, sizes, addresses and the GPUs at both ends."""

from __future__ import annotations

import re
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from tracewh.ingest.rocm_rows import INTEGER, TEXT, Rows
from tracewh.ingest.rpd_file import RpdFile, Texts, without_nothing
from tracewh.ingest.rpd_places import Strides, stream_ids

_NULL = pa.scalar(None, INTEGER)
_FILL = re.compile("fill|memset", re.IGNORECASE)
_TO_HOST = re.compile("device_?to_?host", re.IGNORECASE)
_ON_DEVICE = re.compile("device_?to_?device", re.IGNORECASE)
_DIRECTION = re.compile("(host|device)_?to_?(host|device)", re.IGNORECASE)
_H2H, _H2D, _D2H, _D2D = (
    f"MEMORY_COPY_{source}_TO_{target}"
    for source, target in (("HOST", "HOST"), ("HOST", "DEVICE"), ("DEVICE", "HOST"), ("DEVICE", "DEVICE"))
)
# What `kind` means depends on the tracer's source, which the names of its own calls tell.
_HIP_KINDS = {0: _H2H, 1: _H2D, 2: _D2H, 3: _D2D}
_KINDS_OF_SOURCE = {
    # A string id.
    "RocprofDataSource::": {},
    # A HipCopyKindExt: each direction as buffer, rectangle and image.
    "ClrDataSource::": {number: (_H2D, _D2H, _D2D)[(number - 1) // 3] for number in range(1, 10)},
}
#: The tracer writes what is the source into the columns of the target, and the other way round: its
#: columns by what they hold.
TRUE_NAMES = {"src": "dst", "dst": "src", "srcDevice": "dstDevice", "dstDevice": "srcDevice"}
# The tracer writes 32 bits; a product of more could leave 64.
_TOO_LARGE = 2**31
_PEER_COPY = "hipMemcpyPeer"
_USED = {
    "api_ptr_id",
    "stream",
    "size",
    "width",
    "height",
    "kind",
    "src",
    "dst",
    "srcDevice",
    "dstDevice",
    "sync",
    "pinned",
}


def is_fill(text: str) -> bool:
    """Whether the type of an operation says that it sets memory."""
    return _FILL.search(text) is not None


def kinds_of(texts: Texts, call_names: pa.Array) -> dict[int, str]:
    """Return what the numbers in the column `kind` mean, from the names of all calls (positions of texts)."""
    for source, kinds in _KINDS_OF_SOURCE.items():
        if texts.test(call_names, partial(_starts_with, source)).any():
            return kinds
    return _HIP_KINDS


def copy_columns(
    file: RpdFile,
    copies: Rows,
    descriptions: pa.Array,
    types: pa.Array,
    gpus: pa.Array,
    call_names: pa.Array,
    kinds: dict[int, str],
    strides: Strides,
) -> dict[str, pa.Array]:
    """Return what copies have beyond the columns of every operation.

    `copies` has of each copy its row of rocpd_copyapi, or nulls. `descriptions`, `types` and `call_names`
    are positions of texts.
    """
    texts = file.texts
    names = _names(texts, copies, descriptions, types, kinds)
    usual = pa.scalar(texts.position("MEMORY_COPY"), INTEGER)
    is_named_by_type = pc.equal(names, types)
    is_told = pc.or_(pc.equal(descriptions, names), pc.invert(texts.named(descriptions).is_valid()))
    source, target = (copies.integers(TRUE_NAMES[end]) for end in ("srcDevice", "dstDevice"))
    is_known = pc.or_(pc.not_equal(source, 0), pc.not_equal(target, 0))
    source_agents, target_agents = _agents(texts, names, gpus, call_names, source, target, strides)
    width, height = copies.integers("width"), copies.integers("height")
    is_product = pc.less(pc.max_element_wise(width, height, skip_nulls=False), _TOO_LARGE)
    columns = {
        "event.category_id": pc.if_else(is_named_by_type, usual, types),
        "name_id": names,
        "stream_id": stream_ids(copies),
        "src_agent_id": source_agents,
        "dst_agent_id": target_agents,
        "src_address": without_nothing(copies.texts(TRUE_NAMES["src"])),
        "dst_address": without_nothing(copies.texts(TRUE_NAMES["dst"])),
        # The width of a copy of rows is in bytes.
        "size": pc.coalesce(
            copies.integers("size"), pc.if_else(is_product, pc.multiply(width, height), _NULL)
        ),
        "width": width,
        "height": height,
        "description": pc.if_else(is_told, pa.scalar(None, TEXT), texts.at(descriptions)),
        "src_device": pc.if_else(is_known, source, _NULL),
        "dst_device": pc.if_else(is_known, target, _NULL),
        "sync": without_nothing(copies.integers("sync")),
        "pinned": without_nothing(copies.integers("pinned")),
    }
    is_direct = pa.array(texts.test(names, partial(_matches, _DIRECTION)))
    if kinds:
        columns["kind"] = pc.if_else(is_direct, _NULL, copies.integers("kind"))
    for name in copies.table.column_names:
        if name not in _USED:
            columns[name] = without_nothing(copies.table.column(name).combine_chunks())
    return columns


def _names(
    texts: Texts, copies: Rows, descriptions: pa.Array, types: pa.Array, kinds: dict[int, str]
) -> pa.Array:
    """The type where it tells what is done, else what does, else the type."""

    def telling(text: str) -> bool:
        return is_fill(text) or _DIRECTION.search(text) is not None

    by_type, by_description = (
        pc.if_else(pa.array(texts.test(where, telling)), where, _NULL) for where in (types, descriptions)
    )
    known = pa.array(list(kinds), INTEGER)
    named = pa.array([texts.position(name) for name in kinds.values()], INTEGER)
    by_kind = named.take(pc.index_in(copies.integers("kind"), value_set=known))
    by_kind = pc.if_else(copies.integers("kind").is_valid(), by_kind, _NULL)
    return pc.coalesce(by_type, by_description, by_kind, types)


def _agents(
    texts: Texts,
    names: pa.Array,
    gpus: pa.Array,
    call_names: pa.Array,
    source: pa.Array,
    target: pa.Array,
    strides: Strides,
) -> tuple[pa.Array, pa.Array]:
    """The GPUs at both ends; null for the host, and for the other GPU where nothing tells it."""
    to_host, on_device = (
        pa.array(texts.test(names, partial(_matches, pattern))) for pattern in (_TO_HOST, _ON_DEVICE)
    )
    is_peer = pc.and_(on_device, pa.array(texts.test(call_names, lambda name: name.startswith(_PEER_COPY))))
    # Calls name GPUs of their own node.
    first = pc.multiply(pc.divide(gpus, strides.gpu), strides.gpu) if strides.gpu else pa.scalar(0, INTEGER)
    sources = pc.if_else(is_peer, pc.add(first, source), pc.if_else(to_host, gpus, _NULL))
    targets = pc.if_else(is_peer, pc.add(first, target), pc.if_else(to_host, _NULL, gpus))
    return sources, targets


def _matches(pattern: re.Pattern[str], text: str) -> bool:
    return pattern.search(text) is not None


def _starts_with(start: str, text: str) -> bool:
    return text.startswith(start)
