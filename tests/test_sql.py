"""Every tests/sql/**/*.test file, each on a new warehouse in memory with all packaged views."""

from pathlib import Path

import pytest

from .live_views import live_warehouse
from .sqllogic import run_file

FOLDER = Path(__file__).parent / "sql"


@pytest.mark.parametrize(
    "path", sorted(FOLDER.rglob("*.test")), ids=lambda path: str(path.relative_to(FOLDER))
)
def test_sql(path: Path) -> None:
    with live_warehouse() as connection:
        run_file(path, connection)
