"""The wire format of an XSpace as numbers: what the compiled loops and their callers agree on."""

from tracewh.ingest.xspace_space import BYTES, COMPRESSED, DOUBLE, INT64, REF, STRING, UINT64

VARINT, FIXED64, DELIMITED, FIXED32 = 0, 1, 2, 5

ODD = -1
"""Instead of a count: the bytes are damaged or unusual, at the place that comes with it."""

# What the tag of a field must be for it to be the one that its number means: number << 3 | wire type.
SPACE_PLANES, SPACE_ERRORS, SPACE_WARNINGS, SPACE_HOSTNAMES = (
    number << 3 | DELIMITED for number in (1, 2, 3, 4)
)
PLANE_LINES = 3 << 3 | DELIMITED
PLANE_STATS = 6 << 3 | DELIMITED
ID = 1 << 3 | VARINT
LINE_NAME = 2 << 3 | DELIMITED
LINE_TIMESTAMP_NS = 3 << 3 | VARINT
LINE_EVENTS = 4 << 3 | DELIMITED
LINE_DURATION_PS = 9 << 3 | VARINT
LINE_DISPLAY_ID = 10 << 3 | VARINT
LINE_DISPLAY_NAME = 11 << 3 | DELIMITED
EVENT_OFFSET_PS = 2 << 3 | VARINT
EVENT_DURATION_PS = 3 << 3 | VARINT
EVENT_STATS = 4 << 3 | DELIMITED
EVENT_OCCURRENCES = 5 << 3 | VARINT
STAT_DOUBLE = DOUBLE << 3 | FIXED64
STAT_UINT64 = UINT64 << 3 | VARINT
STAT_INT64 = INT64 << 3 | VARINT
STAT_STRING = STRING << 3 | DELIMITED
STAT_BYTES = BYTES << 3 | DELIMITED
STAT_REF = REF << 3 | VARINT
STAT_COMPRESSED = COMPRESSED << 3 | DELIMITED

# Slots of the header that `scan_line` fills; 0 where the line has no such field. A name is its start and end.
(
    HEADER_ID,
    HEADER_TIMESTAMP_NS,
    HEADER_DURATION_PS,
    HEADER_DISPLAY_ID,
    HEADER_NAME,
    HEADER_NAME_END,
    HEADER_DISPLAY_NAME,
    HEADER_DISPLAY_NAME_END,
    HEADER_SLOTS,
) = range(9)

RESULT_SLOTS = 4
