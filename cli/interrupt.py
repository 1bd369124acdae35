"""Ctrl-C while DuckDB works."""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


@contextmanager
def interruptible(connection: DuckDBPyConnection) -> Iterator[None]:
    """While the block runs, Ctrl-C stops the query of `connection` at once. Main thread only.

    DuckDB asks for signals only between its tasks, and one task of a large join lasts minutes. The
    interpreter writes each signal to a socket as it arrives; a thread reads it and interrupts the query.
    """
    signals, inbox = socket.socketpair()
    inbox.setblocking(False)

    def watch() -> None:
        while number := signals.recv(1):
            if number[0] == signal.SIGINT:
                connection.interrupt()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    previous = signal.set_wakeup_fd(inbox.fileno(), warn_on_full_buffer=False)
    try:
        yield
    finally:
        signal.set_wakeup_fd(previous)
        inbox.close()
        watcher.join()
        signals.close()
