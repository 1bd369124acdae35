"""Device time that can be summed."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

#: Nothing that a device does takes this long: 2.5 hours.
LONGEST_PS = 2**53
# Half of what BIGINT picoseconds hold: 53 days of all streams together.
_MOST_PS = 2**62
# Sums are taken in coarser units, so that they hold whatever a file states.
_UNIT_BITS = 20

IMPOSSIBLE = "a duration of over 2.5 hours, or one with which that of all is over 53 days; it is not counted"


class DeviceTime:
    """The time of a capture's device events so far."""

    def __init__(self) -> None:
        self._total = 0

    def takes(self, duration_ps: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Which of the next events can be counted: no view's sum of their times is more than BIGINT holds."""
        is_short = duration_ps <= LONGEST_PS
        units = np.where(is_short, duration_ps, 0) >> _UNIT_BITS
        fits = is_short & (self._total + np.cumsum(units) <= _MOST_PS >> _UNIT_BITS)
        self._total += int(units[fits].sum())
        return fits
