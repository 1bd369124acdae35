"""The protobuf messages of an XSpace, declared from the published field numbers.

Text fields are declared as bytes: files hold names that are not UTF-8, which a string field would refuse.
"""

from tracewh.ingest.protobuf_messages import message_classes

MESSAGES = message_classes(
    "tracewh.xspace",
    {
        "XSpace": {
            "planes": (1, "repeated XPlane"),
            "errors": (2, "repeated bytes"),
            "warnings": (3, "repeated bytes"),
            "hostnames": (4, "repeated bytes"),
        },
        "XPlane": {
            "id": (1, "int64"),
            "name": (2, "bytes"),
            "lines": (3, "repeated XLine"),
            "event_metadata": (4, "repeated EventMetadataEntry"),
            "stat_metadata": (5, "repeated StatMetadataEntry"),
            "stats": (6, "repeated XStat"),
        },
        "EventMetadataEntry": {"key": (1, "int64"), "value": (2, "XEventMetadata")},
        "StatMetadataEntry": {"key": (1, "int64"), "value": (2, "XStatMetadata")},
        "XLine": {
            "id": (1, "int64"),
            "name": (2, "bytes"),
            "timestamp_ns": (3, "int64"),
            "events": (4, "repeated XEvent"),
            "duration_ps": (9, "int64"),
            "display_id": (10, "int64"),
            "display_name": (11, "bytes"),
        },
        "XEvent": {
            "metadata_id": (1, "int64"),
            "offset_ps": (2, "oneof int64"),
            "duration_ps": (3, "int64"),
            "stats": (4, "repeated XStat"),
            "num_occurrences": (5, "oneof int64"),
        },
        "XStat": {
            "metadata_id": (1, "int64"),
            "double_value": (2, "oneof double"),
            "uint64_value": (3, "oneof uint64"),
            "int64_value": (4, "oneof int64"),
            "str_value": (5, "oneof bytes"),
            "bytes_value": (6, "oneof bytes"),
            "ref_value": (7, "oneof uint64"),
            "compressed_str_value": (8, "oneof bytes"),
        },
        "XEventMetadata": {
            "id": (1, "int64"),
            "name": (2, "bytes"),
            "metadata": (3, "bytes"),
            "display_name": (4, "bytes"),
            "stats": (5, "repeated XStat"),
            "child_id": (6, "repeated int64"),
        },
        "XStatMetadata": {"id": (1, "int64"), "name": (2, "bytes"), "description": (3, "bytes")},
    },
)

# Protobuf calls a longer message corrupt, which it is not.
MAX_MESSAGE_BYTES = 2**31 - 1
