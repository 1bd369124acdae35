"""Opening a warehouse for comparisons, which read the kept metrics of runs."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from tracewh.ingest.errors import WarehouseError
from tracewh.sql.kept_metrics import keep_metrics, outdated_metrics
from tracewh.sql.view_install import outdated_views
from tracewh.sql.warehouse import Warehouse, transaction
from tracewh.views.catalog import load_views


def open_with_metrics(path: Path, on_compute: Callable[[int], None]) -> Warehouse:
    """Open a warehouse for reading, with its views and the metrics of its runs up to date.

    `on_compute` is told of how many runs metrics are computed, before that. Raises WarehouseError as
    `Warehouse.open` does, and where something is not up to date in a file that may not be written.
    """
    warehouse = Warehouse.open(path, read_only=True)
    outdated = len(outdated_metrics(warehouse.connection))
    if not outdated and not outdated_views(warehouse.connection, load_views()):
        return warehouse
    warehouse.close()
    if not os.access(path, os.W_OK):
        raise WarehouseError(
            f"{path}: metrics or views are not up to date, and the file may not be written. "
            "Compare in a copy that may."
        )
    if outdated:
        on_compute(outdated)
    with Warehouse.open(path, read_only=False) as writable, transaction(writable.connection):
        keep_metrics(writable.connection, outdated_metrics(writable.connection))
    return Warehouse.open(path, read_only=True)
