"""Packages of rocpd databases: which files an index names, and indexes that were made to do harm."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest
import yaml

from tracewh.ingest.errors import UnreadableFile
from tracewh.ingest.rocpd_package import is_package, package_files


def database(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE t (a)")
    connection.close()
    return path


def index(folder: Path, files: Any, path: str | None = ".") -> Path:
    entry = {"rocpd_package_version": "1.0", "files": files} | ({"path": path} if path else {})
    return write(folder, yaml.safe_dump({"rocprofiler-sdk": {"rocpd": entry}}))


def write(folder: Path, text: str | bytes) -> Path:
    folder.mkdir(exist_ok=True)
    target = folder / "index.yaml"
    target.write_bytes(text.encode() if isinstance(text, str) else text)
    return target


@pytest.fixture
def package(tmp_path: Path) -> Path:
    return tmp_path / "run.rpdb"


class TestFiles:
    def test_as_the_documentation_has_it(self, package: Path) -> None:
        files = [database(package / f"database{number}.db") for number in (1, 2)]
        text = """
rocprofiler-sdk:
  rocpd:
    rocpd_package_version: "1.0"
    path: "."
    files:
      - "database1.db"
      - "database2.db"
      - "database3.db"
"""
        assert package_files(write(package, text)) == (files, ["database3.db: not found"])

    def test_databases_elsewhere(self, package: Path, tmp_path: Path) -> None:
        near, far = database(tmp_path / "node0" / "a.db"), database(tmp_path / "node1" / "b.db")
        found, missing = package_files(index(package, ["../node0/a.db", str(far)]))
        assert [path.resolve() for path in found] == [near, far]
        assert missing == []

    @pytest.mark.parametrize("is_absolute", [True, False])
    def test_path_of_the_index(self, package: Path, tmp_path: Path, is_absolute: bool) -> None:
        expected = database(tmp_path / "data" / "a.db")
        found, missing = package_files(
            index(package, ["a.db"], str(expected.parent) if is_absolute else "../data")
        )
        assert [path.resolve() for path in found] == [expected]
        assert missing == []

    def test_folder_of_the_index_comes_first(self, package: Path, tmp_path: Path) -> None:
        """What was moved along with its index is not read from where it was."""
        database(tmp_path / "data" / "a.db")
        expected = database(package / "a.db")
        assert package_files(index(package, ["a.db"], "../data")) == ([expected], [])

    def test_each_file_once(self, package: Path) -> None:
        expected = database(package / "a.db")
        (package / "link.db").symlink_to(expected)
        assert package_files(index(package, ["a.db", "./a.db", "link.db", str(expected)])) == ([expected], [])

    def test_one_name_in_place_of_a_list(self, package: Path) -> None:
        expected = database(package / "a.db")
        assert package_files(index(package, "a.db")) == ([expected], [])

    def test_wildcards(self, package: Path) -> None:
        files = [database(package / "sub" / f"{number}_results.db") for number in (1, 2)]
        (package / "sub" / "3_results.db").write_text("no database")
        assert package_files(index(package, ["sub/*_results.db"])) == (files, [])
        odd = database(package / "a[1].db")
        database(package / "a1.db")
        assert package_files(index(package, ["a[1].db"])) == ([odd], [])

    def test_no_files(self, package: Path) -> None:
        assert package_files(index(package, [])) == ([], [])
        assert package_files(write(package, "rocprofiler-sdk: {rocpd: {path: .}}")) == ([], [])

    def test_what_is_a_package(self, package: Path, tmp_path: Path) -> None:
        assert not is_package(package)
        index(package, [])
        assert is_package(package)
        index(tmp_path / "other", [])
        assert not is_package(tmp_path / "other")


class TestNamesInVain:
    def test_reasons(self, package: Path, tmp_path: Path) -> None:
        (tmp_path / "secret").write_text("not for you")
        (tmp_path / "folder.db").mkdir()
        names = [
            "../secret",
            "../folder.db",
            "../nothing.db",
            7,
            None,
            ["a.db"],
            "",
            "x" * 5000,
            "a\0b",
            "*.db",
        ]
        found, missing = package_files(index(package, names))
        assert found == []
        assert [one.rpartition(": ")[2] for one in missing] == [
            "not a SQLite database",
            "no regular file",
            "not found",
            "no name of a file",
            "no name of a file",
            "no name of a file",
            "no regular file",
            "not found",
            "not found",
            "not found",
        ]

    def test_half_of_a_surrogate_pair(self, package: Path) -> None:
        text = 'rocprofiler-sdk: {rocpd: {files: ["\\ud800*.db", "\\ud800.db"]}}'
        names = ["\\ud800*.db: not found", "\\ud800.db: not found"]
        assert package_files(write(package, text)) == ([], names)

    def test_pipes_are_not_opened(self, package: Path) -> None:
        path = index(package, ["pipe.db"])
        os.mkfifo(package / "pipe.db")
        assert package_files(path) == ([], ["pipe.db: no regular file"])

    def test_wildcards_in_folders(self, package: Path) -> None:
        """They could search the whole disk."""
        database(package / "a" / "b.db")
        assert package_files(index(package, ["*/b.db", "/*/*/*.db"])) == (
            [],
            ["*/b.db: not found", "/*/*/*.db: not found"],
        )

    def test_too_many_names(self, package: Path) -> None:
        found, missing = package_files(index(package, ["a"] * 10_003))
        assert found == []
        assert len(missing) == 10_001
        assert missing[0] == "3 more names than can be read"


class TestRefusals:
    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            ("", "no index of a rocpd package"),
            ("[1, 2]", "no index of a rocpd package"),
            ("rocprofiler-sdk: 5", "no index of a rocpd package"),
            ("rocprofiler-sdk: {rocpd: [a.db]}", "no index of a rocpd package"),
            ("rocprofiler-sdk: {rocpd: {files: {a: b}}}", "no list of databases"),
            ("rocprofiler-sdk: {rocpd: {files: [a.db}", "not valid YAML"),
            ("!!python/object/apply:os.system [echo]", "not valid YAML"),
            (b"\xff\xfe\x00\xd8", "not valid YAML"),
            ("[" * 100_000, "not valid YAML"),
            ("rocprofiler-sdk: {rocpd: {files: 2026-99-99}}", "not valid YAML"),
        ],
    )
    def test_content(self, package: Path, text: str | bytes, reason: str) -> None:
        path = write(package, text)
        with pytest.raises(UnreadableFile, match=reason) as refused:
            package_files(path)
        assert str(path) in str(refused.value)

    @pytest.mark.parametrize(
        "text",
        [
            "a: &a [x, x]\n" + "".join(f"{b}: &{b} [*{a}, *{a}]\n" for a, b in zip("abcdefgh", "bcdefghi")),  # noqa: B905
            "rocprofiler-sdk: &a {rocpd: *a}",
            "a: &a [*a]",
        ],
    )
    def test_references(self, package: Path, text: str) -> None:
        with pytest.raises(UnreadableFile, match="has references"):
            package_files(write(package, text))

    def test_size(self, package: Path) -> None:
        path = write(package, "")
        with path.open("r+b") as file:
            file.truncate(1 << 40)
        with pytest.raises(UnreadableFile, match="larger than an index can be"):
            package_files(path)

    def test_no_index(self, package: Path) -> None:
        with pytest.raises(UnreadableFile, match="cannot be read"):
            package_files(package / "index.yaml")
