"""Opening a DuckDB file that another process may hold."""

from __future__ import annotations

import re
import time
from pathlib import Path

import duckdb

from tracewh.ingest.errors import WarehouseError

_RETRY_SECONDS = 0.1
# Files stay readable for DuckDB clients from this version on, whichever wrote them.
_STORAGE_VERSION = "v1.2.0"
_LOCK_HOLDER = re.compile(r"lock is held in (.+?)(?: by user (\S+))?\. ", re.DOTALL)


def connect(path: Path, read_only: bool, wait_seconds: float) -> duckdb.DuckDBPyConnection:
    """Open the file, waiting while another process holds it. Raises WarehouseError."""
    config: dict[str, str | bool | int | float | list[str]] = {}
    if not read_only:
        config["storage_compatibility_version"] = _STORAGE_VERSION
    deadline = time.monotonic() + wait_seconds
    while True:
        try:
            connection = duckdb.connect(str(path), read_only=read_only, config=config)
        except duckdb.ConnectionException as error:
            raise WarehouseError(
                f"{path}: this process has it open in another mode. Close that handle first."
            ) from error
        except duckdb.Error as error:
            holder = _LOCK_HOLDER.search(str(error))
            if holder is None and "Permission denied" in str(error):
                raise WarehouseError(f"{path}: permission denied. Choose another place with -w.") from error
            if holder is None:
                raise WarehouseError(
                    f"{path}: not a warehouse ({reason(error)}). Choose another file with -w."
                ) from error
            if time.monotonic() >= deadline:
                user = f" of user {holder[2]}" if holder[2] else ""
                raise WarehouseError(
                    f"{path}: held by {holder[1]}{user} for over {wait_seconds:g} s. "
                    "Wait until it ends, or close it."
                ) from error
        else:
            if not read_only:
                # Run lengths save nothing over bit packing here, and trying them costs a sixth of each load.
                connection.execute("SET disabled_compression_methods = 'rle'")
            return connection
        time.sleep(_RETRY_SECONDS)


def reason(error: duckdb.Error) -> str:
    """The database's message without the advice and stack that may follow it."""
    return str(error).strip()
