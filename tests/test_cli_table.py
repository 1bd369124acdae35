"""Aligned text tables."""

import io

import pytest

from tracewh.cli.table import ROWS_MEASURED, Header, Style, is_whole, printable, write_table

NAME_AND_COUNT = [Header("name"), Header("count", is_number=True)]


def table(headers: list[Header], rows: list[tuple[str | None, ...]], style: Style | None = None) -> list[str]:
    stream = io.StringIO()
    assert write_table(headers, rows, stream, style or Style()) == len(rows)
    return stream.getvalue().splitlines()


def test_numbers_are_right_aligned_and_text_left() -> None:
    assert table(NAME_AND_COUNT, [("gemm", "5"), ("copy kernel", "1000000")]) == [
        "name           count",
        "-----------  -------",
        "gemm               5",
        "copy kernel  1000000",
    ]


def test_null_is_told_from_empty() -> None:
    assert table([Header("a"), Header("b")], [(None, "x"), ("", "y")])[2:] == ["NULL  x", "      y"]


def test_no_rows() -> None:
    assert table(NAME_AND_COUNT, []) == ["name  count", "----  -----"]


def test_nothing_is_cut_without_a_width() -> None:
    long = "k" * 5000
    assert table([Header("a"), Header("b")], [(long, "x")])[2] == f"{long}  x"


def test_a_terminal_cuts_text_and_never_numbers() -> None:
    rows: list[tuple[str | None, ...]] = [("x" * 100, "1" * 15)]
    lines = table(NAME_AND_COUNT, rows, Style(width=40))
    assert lines[2] == "x" * 22 + "…  " + "1" * 15
    assert all(len(line) <= 40 for line in lines)


def test_the_widest_text_is_narrowed_first() -> None:
    headers = [Header("a"), Header("b")]
    assert table(headers, [("x" * 100, "y" * 13)], Style(width=40))[2] == "x" * 24 + "…  " + "y" * 13


def test_rows_that_cannot_fit_become_records() -> None:
    headers = [Header(f"column_{number}", is_number=True) for number in range(6)]
    row: tuple[str | None, ...] = ("1", None, "3", "4", "5", "6")
    assert table(headers, [row, row], Style(width=40))[:4] == [
        "-- row 1",
        "column_0  1",
        "column_1  NULL",
        "column_2  3",
    ]


def test_a_title_of_two_lines_is_one_line_of_a_record() -> None:
    headers = [Header("run\nname"), *[Header("n", is_number=True)] * 6]
    assert table(headers, [("a", *["1" * 9] * 6)], Style(width=40))[:3] == [
        "-- row 1",
        "run name  a",
        f"n         {'1' * 9}",
    ]


def test_rows_after_the_measured_ones_are_whole() -> None:
    rows: list[tuple[str | None, ...]] = [("a", "1")] * ROWS_MEASURED + [("b" * 70, "123456")]
    assert table(NAME_AND_COUNT, rows, Style(width=60))[-1] == "b" * 70 + "  123456"


def test_wrapped_text_keeps_every_word() -> None:
    lines = table(
        [Header("a"), Header("b")], [("id", "one two three four five six")], Style(width=16, wrap=True)
    )
    assert lines[2:] == ["id  one two", "    three four", "    five six"]


def test_words_stay_whole_where_there_is_room() -> None:
    headers = [Header("op"), Header("component"), Header("n", is_number=True)]
    rows: list[tuple[str | None, ...]] = [("reduce-scatter", "post attention norm and more", "1" * 9)]
    style = Style(width=40, wrap=True)
    # Of 40 characters 9 are for the number, 4 between: by halves the operation would be broken at 13.
    assert is_whole(headers, rows, style)
    assert table(headers, rows, style)[2:] == [
        "reduce-scatter  post           111111111",
        "                attention",
        "                norm and more",
    ]


def test_the_longest_word_is_broken_first() -> None:
    headers = [Header("op"), Header("component")]
    rows: list[tuple[str | None, ...]] = [("ncclDevKernel_Generic_1", "unattributed")]
    style = Style(width=30, wrap=True)
    assert not is_whole(headers, rows, style)
    assert table(headers, rows, style)[2:] == ["ncclDevKernel_Ge  unattributed", "neric_1"]


def test_line_breaks_stay_inside_their_column() -> None:
    assert table([Header("plan"), Header("n", is_number=True)], [("+--+\n|  |   \n+--+", "1")])[2:] == [
        "+--+  1",
        "|  |",
        "+--+",
    ]


def test_wide_characters_take_two_cells() -> None:
    assert table([Header("a"), Header("b")], [("日本", "x"), ("abcd", "y")])[2:] == ["日本  x", "abcd  y"]


def test_colors_do_not_shift_columns() -> None:
    plain = table(NAME_AND_COUNT, [("a", None)])
    colored = table(NAME_AND_COUNT, [("a", None)], Style(width=80, color=True))
    assert "\x1b[2mNULL\x1b[0m" in colored[2]
    assert [
        line.replace("\x1b[1m", "").replace("\x1b[2m", "").replace("\x1b[0m", "") for line in colored
    ] == plain


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("bell\x07", "bell\\x07"),
        ("tab\there", "tab\\there"),
        ("right\u202eto left", "right\\u202eto left"),
        ("two\nlines", "two\nlines"),
        ("größer → 日本", "größer → 日本"),
    ],
)
def test_control_characters_are_shown_not_sent(text: str, shown: str) -> None:
    assert printable(text) == shown
