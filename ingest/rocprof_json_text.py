"""Walks JSON text of any size: large objects and lists member by member, what is in them decoded at once."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from typing import Any

from tracewh.ingest.errors import UnreadableFile

_WINDOW_BYTES = 1 << 20
# An error this close to the end of the window may be one of the cut, not of the text: no literal and no
# escape is longer.
_LONGEST_TOKEN = 16
# Decoded, a value takes some fifty times its text.
_LONGEST_VALUE = 1 << 26
_SPACE = re.compile(r"[ \t\n\r]*")


class JsonCursor:
    """A position in JSON text, of which only a window is decoded at a time.

    Whoever iterates `members` or `elements` reads the value of each before the next. Bytes that are not UTF-8
    become lone surrogates within strings. All methods raise UnreadableFile, with the byte offset, where the
    text is no JSON.
    """

    def __init__(self, content: memoryview | bytes, place: str, window_bytes: int = _WINDOW_BYTES) -> None:
        self._content, self._place, self._window_bytes = memoryview(content), place, window_bytes
        self._bytes_read = len(codecs.BOM_UTF8) if bytes(self._content[:3]) == codecs.BOM_UTF8 else 0
        self._to_text = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._decode = json.JSONDecoder(strict=False).raw_decode
        self._text, self._at = "", 0
        self._byte_of_text = self._bytes_read
        self._characters_dropped = 0

    @property
    def characters_read(self) -> int:
        """How much of the text lies before this position."""
        return self._characters_dropped + self._at

    def peek(self) -> str:
        """Return the first character of what comes next; '' at the end of the text."""
        while True:
            if self._at < len(self._text) and self._text[self._at] > " ":
                return self._text[self._at]
            match = _SPACE.match(self._text, self._at)
            self._at = match.end() if match else self._at
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._extend():
                return ""

    def value(self) -> Any:
        """Return the next value, decoded. Numbers keep all their digits; NaN and Infinity are numbers."""
        self.peek()
        while True:
            try:
                found, end = self._decode(self._text, self._at)
            except json.JSONDecodeError as error:
                is_cut = error.msg.startswith("Unterminated string") or (
                    error.pos >= len(self._text) - _LONGEST_TOKEN
                )
                if is_cut and len(self._text) - self._at > _LONGEST_VALUE:
                    raise self._refusal_at("a value is larger than any of a profile", self._at) from None
                if not (is_cut and self._extend()):
                    raise self._refusal_at(error.msg, error.pos) from None
                continue
            except RecursionError:
                raise self._refusal_at("nested too deeply", self._at) from None
            except ValueError:
                # What is left is Python's limit, against numbers that take long to convert.
                raise self._refusal_at("an integer has thousands of digits", self._at) from None
            # A number may go on after the window: what is left of it there has no digit, as in 1 of 1e+2.
            if len(self._text) - end > len("e+") or not self._extend():
                self._at = end
                return found

    def members(self) -> Iterator[str]:
        """Read an object: yield each key; its value is next."""
        for _ in self._parts("{", "}"):
            if self.peek() != '"':
                raise self._refusal_at("a key in double quotes is missing", self._at)
            key = self.value()
            self._take(":")
            yield key

    def elements(self) -> Iterator[None]:
        """Read a list: yield once for each element, which is next."""
        return self._parts("[", "]")

    def finish(self) -> None:
        """Require that only white space is left."""
        if self.peek():
            raise self._refusal_at("more text after the end of the document", self._at)

    def refusal(self, reason: str) -> UnreadableFile:
        """Return the error that says why the text is not what it should be at this position."""
        return self._error(reason, self._at)

    def _parts(self, opening: str, closing: str) -> Iterator[None]:
        self._take(opening)
        if self.peek() == closing:
            self._at += 1
            return
        while True:
            yield
            mark = self.peek()
            if mark not in (",", closing):
                raise self._refusal_at(f"',' or '{closing}' is missing", self._at)
            self._at += 1
            if mark == closing:
                return

    def _take(self, mark: str) -> None:
        if self.peek() != mark:
            raise self._refusal_at(f"'{mark}' is missing", self._at)
        self._at += 1

    def _extend(self) -> bool:
        """Decode more text, dropping what lies before this position; False where there is no more."""
        if self._bytes_read >= len(self._content):
            return False
        kept = self._text[self._at :]
        self._byte_of_text += len(_encoded(self._text[: self._at]))
        self._characters_dropped += self._at
        # Doubling keeps the time for one huge value linear.
        size = max(self._window_bytes, len(kept))
        piece = bytes(self._content[self._bytes_read : self._bytes_read + size])
        self._bytes_read += len(piece)
        is_last = self._bytes_read >= len(self._content)
        self._text, self._at = kept + self._to_text.decode(piece, is_last), 0
        return True

    def _refusal_at(self, reason: str, at: int) -> UnreadableFile:
        is_end = at >= len(self._text) and self._bytes_read >= len(self._content)
        return self._error("the text ends too early" if is_end else reason, at)

    def _error(self, reason: str, at: int) -> UnreadableFile:
        byte = self._byte_of_text + len(_encoded(self._text[:at]))
        return UnreadableFile(
            f"{self._place}: no JSON output of rocprofv3, at byte {byte}: {reason}. Copy the file again, or "
            f"profile again and let the profiler finish."
        )


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
