"""Cleaning and truncation of rendered text."""

from hypothesis import given
from hypothesis import strategies as st

from notifications.content.text import (
    clean_line,
    paragraphs,
    truncate_words,
    without_blank_lines,
    without_invisible,
)
from tests.support.tables import each_case


@each_case(
    "text, clean",
    [
        ("  two \n words\t\r\n", "two words"),
        ("\u202eHello\u202c", "Hello"),
        ("\u2066Hello\u2069", "Hello"),
        ("\u200eHello\u200f\u061c", "Hello"),
        ("He\u200bl\u2060lo\ufeff", "Hello"),
        ("\U0001f469\u200d\U0001f467", "\U0001f469\u200d\U0001f467"),
        ("\u0646\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",) * 2,
        ("e\u0301",) * 2,
        ("", ""),
    ],
)
def test_line_loses_invisible_characters(text: str, clean: str) -> None:
    assert clean_line(text) == clean


@given(st.text(max_size=60))
def test_cleaning_is_idempotent(text: str) -> None:
    line = clean_line(text)
    assert "\n" not in line
    assert "\r" not in line
    assert without_invisible(line) == line


@each_case(
    "text, limit, short",
    [
        ("", 5, ""),
        ("fits", 4, "fits"),
        ("one two three", 13, "one two three"),
        ("one two three", 12, "one two\u2026"),
        ("one two three", 8, "one two\u2026"),
        ("one two three", 7, "one\u2026"),
        ("one, two", 5, "one,\u2026"),
        ("one  two", 6, "one\u2026"),
        ("one\ntwo", 6, "one\u2026"),
        ("Donaudampfschiff", 8, "Donauda\u2026"),
        ("a Donaudampfschiff", 8, "a\u2026"),
        # Combined characters are kept together.
        ("abce\u0301f", 5, "abc\u2026"),
        ("ab\U0001f469\u200d\U0001f467 cd", 5, "ab\u2026"),
        ("ab\U0001f44d\U0001f3fd cd", 4, "ab\u2026"),
        # https://github.com/nodemailer/nodemailer/issues/1505: flags, of two letters or of tags.
        ("\U0001f1f5\U0001f1f9" * 4, 6, "\U0001f1f5\U0001f1f9" * 2 + "\u2026"),
        ("\U0001f1f5\U0001f1f9" * 4, 7, "\U0001f1f5\U0001f1f9" * 3 + "\u2026"),
        ("a\U0001f1f5\U0001f1f9b", 3, "a\u2026"),
        ("ab\U0001f3f4\U000e0067\U000e0062\U000e007f cd", 5, "ab\u2026"),
        ("a1\ufe0f\u20e3b", 4, "a\u2026"),
        ("ab\U0001f3f3\ufe0f\u200d\U0001f308 cd", 6, "ab\u2026"),
    ],
)
def test_long_text_is_cut_after_a_word(text: str, limit: int, short: str) -> None:
    assert truncate_words(text, limit=limit) == short


@given(st.text(max_size=60), st.integers(1, 40))
def test_truncated_text_is_within_the_limit(text: str, limit: int) -> None:
    short = truncate_words(text, limit=limit)
    assert len(short) <= limit
    assert short == text or text.startswith(short.removesuffix("\u2026"))


def test_blank_lines_are_removed() -> None:
    assert without_blank_lines("\n one\n\n \ntwo\nthree\n") == "one\ntwo\nthree"


def test_paragraphs_are_separated_by_blank_lines() -> None:
    assert paragraphs("one\ntwo\n \nthree") == [["one", "two"], ["three"]]
