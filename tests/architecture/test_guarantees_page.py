"""docs/reference/guarantees.md names existing tests and fault scenarios, as security.md does."""

import re

from bench.chaos.scenarios import SCENARIOS
from tests.support.source import ROOT

PAGE = (ROOT / "docs" / "reference" / "guarantees.md").read_text()
ROWS = re.findall(r"^\| (P\d+) \| [^|]+ \| ([^|]*)\| ([^|]*)\|$", PAGE, re.MULTILINE)


def test_every_guarantee_has_a_row_with_a_test() -> None:
    assert [name for name, _, _ in ROWS] == [f"P{n}" for n in range(1, 22)]
    assert all("`tests/" in tests for _, tests, _ in ROWS)


def test_every_named_test_exists() -> None:
    pages = PAGE + (ROOT / "docs" / "reference" / "security.md").read_text()
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", pages)
    assert len(named) > 30
    missing = [
        f"{path}::{test}"
        for path, test in named
        if not re.search(rf"^def {test}\(", (ROOT / path).read_text(), re.MULTILINE)
    ]
    assert missing == []


def test_every_named_scenario_exists() -> None:
    numbers = {int(n) for _, _, runs in ROWS for n in re.findall(r"(?<![\w])\d+", runs)}
    assert numbers <= set(SCENARIOS)
