"""What every test has."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tracewh.sql.warehouse import Warehouse

_open = Warehouse.open.__func__


@pytest.fixture(scope="session")
def empty_warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse without runs."""
    path = tmp_path_factory.mktemp("empty") / "empty.duckdb"
    warehouse = Warehouse.open(path, read_only=False)
    # It is to stay, without a run.
    warehouse._is_new = False
    warehouse.close()
    return path


@pytest.fixture(autouse=True, scope="module")
def new_warehouses_are_copies(request: pytest.FixtureRequest, empty_warehouse: Path) -> Iterator[None]:
    """Views take more than a second to install: but for the tests of that, a new file is a copy."""

    def open_copy(
        cls: type[Warehouse], path: str | Path, read_only: bool = True, *more: Any, **named: Any
    ) -> Warehouse:
        path = Path(path)
        is_new = not read_only and not path.exists() and path.absolute().parent.is_dir()
        if is_new:
            shutil.copy(empty_warehouse, path)
        warehouse = _open(cls, path, read_only, *more, **named)
        warehouse._is_new = warehouse._is_new or is_new
        return warehouse

    with pytest.MonkeyPatch.context() as patch:
        if not request.module.__name__.endswith(("test_warehouse", "test_ingest_clients")):
            patch.setattr(Warehouse, "open", classmethod(open_copy))
        yield
