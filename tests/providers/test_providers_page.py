"""docs/reference/providers.md matches the code."""

import re
from pathlib import Path

import pytest
from django.conf import settings

from delivery.circuit_breaker import MIN_FAILURES, MIN_PERCENT
from domain.retry import MAX_OUTAGE, OUTAGE_DELAY, OUTAGE_MAX_DELAY
from notifyproject.settings.environment import Environment
from providers import http
from providers.response_rules import ResponseKind
from recipients.suppressions import MAX_SOFT_BOUNCES
from tests.providers.contract.providers import SUBJECTS
from tests.support.docs_pages.providers import spans, tables

PAGE = Path(settings.BASE_DIR, "docs", "reference", "providers.md").read_text(encoding="utf-8")
GUIDE = Path(settings.BASE_DIR, "docs", "guides", "channels.md").read_text(encoding="utf-8")


def section(heading: str) -> str:
    found = re.search(rf"^#+ {re.escape(heading)}\n(.*?)(?=^#|\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert found, heading
    return found[1]


@pytest.mark.parametrize("heading", tables())
def test_table_matches_the_code(heading: str) -> None:
    rows = [line for line in section(heading).splitlines(keepends=True) if line.startswith("|")]
    assert "".join(rows) == tables()[heading]


def test_every_class_is_explained() -> None:
    rows = re.findall(r"^\| ([^|]+) \|", section("Response classes"), re.MULTILINE)
    assert rows[:7] == ["class", "accepted", *ResponseKind]


def test_every_named_variable_exists() -> None:
    named = set(re.findall(r"`([A-Z]+_[A-Z_]+)[`=]", PAGE + GUIDE))
    assert named <= set(Environment.__struct_fields__)


def test_every_provider_is_on_the_page() -> None:
    for name in ("SendGrid", "SMTP", "Firebase", "WhatsApp", "In-app"):
        assert name in PAGE
    assert len(SUBJECTS) == 5


def test_numbers_match_the_code() -> None:
    assert f"{MIN_FAILURES} such in a minute, if they are half of all" in PAGE
    assert MIN_PERCENT == 50
    waits = (OUTAGE_DELAY.seconds, OUTAGE_MAX_DELAY.seconds // 60, MAX_OUTAGE.days)
    assert waits == (30, 15, 3)
    assert f"{waits[0]} s, 1, 2 … {waits[1]} min, for three days at most" in PAGE
    assert f"after {http.TOTAL_TIMEOUT:.0f} seconds it is over" in PAGE
    assert MAX_SOFT_BOUNCES == 3
    assert PAGE.count("three times in a row") == 1


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ((429,), "429"),
        (range(300, 400), "300 to 399"),
        ((1, 2, 5), "1, 2, 5"),
        ((131051, 131052, 131053), "131051 to 131053"),
        ((*range(300, 302), 401, 403, 404, 405), "300, 301, 401, 403 to 405"),
    ],
)
def test_numbers_are_written_as_ranges(numbers: range, text: str) -> None:
    assert spans(numbers) == text
