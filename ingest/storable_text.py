"""Text that a warehouse can hold, of text that may come from bytes that are no UTF-8."""

from __future__ import annotations


def storable(text: str) -> str:
    r"""Return text that UTF-8 can hold: wrong bytes, read as lone surrogates, as \x.., others as \u...."""
    try:
        text.encode()
    except UnicodeEncodeError:
        try:
            return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
        except UnicodeEncodeError:
            return text.encode("utf-8", "backslashreplace").decode()
    return text
