"""Bytes and arrays between pages that nobody may touch: a read or write beside them ends the process."""

from __future__ import annotations

import ctypes
import mmap

import numpy as np
import numpy.typing as npt

_PROT_NONE = 0
_LIBC = ctypes.CDLL(None, use_errno=True)


class GuardedMemory:
    """Room for `size` bytes with a guard page on each side."""

    def __init__(self, size: int) -> None:
        inner = max(-(-size // mmap.PAGESIZE), 1) * mmap.PAGESIZE
        self._map = mmap.mmap(-1, inner + 2 * mmap.PAGESIZE)
        whole = np.frombuffer(self._map, np.uint8)
        start = whole.ctypes.data
        for page in (start, start + mmap.PAGESIZE + inner):
            if _LIBC.mprotect(ctypes.c_void_p(page), ctypes.c_size_t(mmap.PAGESIZE), _PROT_NONE):
                raise OSError(ctypes.get_errno(), "mprotect")
        self._inner = whole[mmap.PAGESIZE : mmap.PAGESIZE + inner]

    def at_end(self, data: bytes) -> npt.NDArray[np.uint8]:
        """The bytes, the last of them just before the page behind."""
        place = self._inner[len(self._inner) - len(data) :]
        place[:] = np.frombuffer(data, np.uint8)
        return place

    def at_start(self, data: bytes) -> npt.NDArray[np.uint8]:
        """The bytes, the first of them just behind the page in front."""
        place = self._inner[: len(data)]
        place[:] = np.frombuffer(data, np.uint8)
        return place

    def array(self, count: int, dtype: npt.DTypeLike) -> npt.NDArray[np.generic]:
        """An array that ends just before the page behind."""
        size = count * np.dtype(dtype).itemsize
        # A slice would do, but that of no bytes begins where the whole does.
        return np.ndarray((count,), dtype, self._map, mmap.PAGESIZE + len(self._inner) - size)
