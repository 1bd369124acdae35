"""Which device a label of JAX means: `cuda:1`, `TPU_3` and `TFRT_CPU_0` end in the device's number."""

from __future__ import annotations

import re

_NUMBER = re.compile(r"([0-9]{1,9})$")


def device_number(label: str) -> int | None:
    """The number at the end of the label; None where it has none."""
    found = _NUMBER.search(label)
    return None if found is None else int(found[1])
