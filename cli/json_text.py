"""JSON text of the values of a result row, which Python's json module either refuses or rounds."""

from __future__ import annotations

import json
import math
from datetime import date, datetime, time
from decimal import Decimal


def json_text(value: object) -> str:
    """The JSON text of a value.

    Integers and decimals keep every digit, NaN and infinity become null, bytes hexadecimal text, and a type
    that JSON lacks its own text.
    """
    if value is None:
        return "null"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else "null"
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, bytes):
        return f'"{value.hex()}"'
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key_text(key)}: {json_text(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple) and not hasattr(value, "_fields"):
        return "[" + ", ".join(map(json_text, value)) + "]"
    if isinstance(value, datetime | date | time):
        return f'"{value.isoformat()}"'
    return json.dumps(str(value), ensure_ascii=False)


def _key_text(key: object) -> str:
    text = json_text(key)
    return text if text.startswith('"') else json.dumps(text)
