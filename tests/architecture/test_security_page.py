"""docs/reference/security.md names existing tests and commands."""

import re

from tests.support.source import ROOT

PAGE = (ROOT / "docs" / "reference" / "security.md").read_text()
DEFENSES = re.search(r"^## Defenses\n(.*?)^## ", PAGE, re.MULTILINE | re.DOTALL)


def test_every_defense_has_a_test() -> None:
    assert DEFENSES is not None
    rows = [row for row in DEFENSES[1].splitlines() if row.startswith("| ")][1:]
    assert len(rows) > 10
    assert [row for row in rows if "`tests/" not in row] == []


def test_every_named_command_exists() -> None:
    commands = set(re.findall(r"`make ([\w-]+)`", PAGE))
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert commands
    assert commands <= targets
