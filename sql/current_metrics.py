"""Opening a warehouse for comparisons, which read the kept metrics of runs."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from tracewh.sql.kept_metrics import keep_metrics, outdated_metrics
from tracewh.sql.warehouse import Warehouse, transaction


def open_with_metrics(path: Path, on_compute: Callable[[int], None]) -> Warehouse:
    """Open a warehouse for reading, with the metrics of its runs computed where they are not up to date.

    `on_compute` is told of how many runs, before that. A file that may not be written is opened as it is:
    v1.metrics says what is not current. Raises WarehouseError as `Warehouse.open` does.
    """
    warehouse = Warehouse.open(path, read_only=True)
    outdated = outdated_metrics(warehouse.connection)
    if not outdated or not os.access(path, os.W_OK):
        return warehouse
    warehouse.close()
    on_compute(len(outdated))
    with Warehouse.open(path, read_only=False) as writable, transaction(writable.connection):
        keep_metrics(writable.connection, outdated_metrics(writable.connection))
    return Warehouse.open(path, read_only=True)
