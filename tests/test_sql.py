"""Every tests/sql/**/*.test file, each on a new warehouse in memory with all packaged views."""

from pathlib import Path

import duckdb
import pytest

from tracewh.sql.schema_files import create_schema
from tracewh.sql.view_install import install_views
from tracewh.views.catalog import load_views

from .sqllogic import run_file

FOLDER = Path(__file__).parent / "sql"


@pytest.mark.parametrize(
    "path", sorted(FOLDER.rglob("*.test")), ids=lambda path: str(path.relative_to(FOLDER))
)
def test_sql(path: Path) -> None:
    with duckdb.connect() as connection:
        create_schema(connection)
        install_views(connection, load_views())
        run_file(path, connection)
