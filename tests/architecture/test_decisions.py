"""docs/decisions: each page has a date and a status, and the index lists them."""

import re
from datetime import datetime
from pathlib import Path

import pytest

from tests.support.source import ROOT

FOLDER = ROOT / "docs" / "decisions"
PAGES = {int(path.name[:4]): path for path in sorted(FOLDER.glob("[0-9]*.md"))}
LINK = r"\[\d+\]\(\d{4}-[\w-]+\.md\)"
HEAD = re.compile(
    r"# (?P<number>\d+)\. (?P<title>.+)\n\n"
    r"Date: (?P<date>\w+ \d+, \d{4})\. "
    rf"Status: (?P<status>accepted|accepted, amended by {LINK}|superseded by {LINK})\.\n\n"
    r"## "
)


def test_pages_are_numbered_without_a_gap() -> None:
    assert list(PAGES) == list(range(1, len(PAGES) + 1))
    assert len(list(FOLDER.glob("[0-9]*.md"))) == len(PAGES)


@pytest.mark.parametrize("number", PAGES)
def test_page_begins_with_its_number_date_and_status(number: int) -> None:
    head = HEAD.match(PAGES[number].read_text(encoding="utf-8"))
    assert head is not None
    assert int(head["number"]) == number
    datetime.strptime(head["date"], "%B %d, %Y")
    for later, page in re.findall(r"\[(\d+)\]\(([\w.-]+)\)", head["status"]):
        assert int(later) > number
        assert PAGES[int(later)].name == page


def test_index_lists_each_page_with_its_date_and_status() -> None:
    assert index() in Path(FOLDER, "README.md").read_text(encoding="utf-8"), f"write:\n{index()}"


def index() -> str:
    """Return the rows of the index, from the heads of the pages."""
    rows = []
    for number, page in PAGES.items():
        head = HEAD.match(page.read_text(encoding="utf-8"))
        assert head is not None
        status = re.sub(r"\[(\d+)\]\([^)]*\)", r"\1", head["status"])
        title = f"[{head['title']}]({page.name})"
        rows.append(f"| {number} | {title} | {head['date']} | {status} |\n")
    return "".join(rows)
