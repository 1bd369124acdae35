"""What the boundary of a timed step needs: an idle device, and no compilation between two of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import jax

_COMPILED = "/jax/core/compile/backend_compile_duration"


def wait_for_device() -> None:
    """Return when every array that the program holds is computed. Raises what a computation raised."""
    jax.block_until_ready(jax.live_arrays())


@dataclass
class Compilations:
    """How many programs were compiled within a `with counted_compilations()`."""

    count: int = 0


@contextmanager
def counted_compilations() -> Iterator[Compilations]:
    """Count what JAX compiles until the end of the block."""
    compilations = Compilations()

    def compiled(event: str, duration_secs: float, **kwargs: str | int) -> None:
        if event == _COMPILED:
            compilations.count += 1

    jax.monitoring.register_event_duration_secs_listener(compiled)
    try:
        yield compilations
    finally:
        jax.monitoring.unregister_event_duration_listener(compiled)
