"""docs/reference/settings.md lists every environment variable with its default."""

import re

import msgspec

from notifyproject.settings.environment import BASE_DIR, Environment

PAGE = (BASE_DIR / "docs" / "reference" / "settings.md").read_text(encoding="utf-8")


def test_every_variable_is_there_once_with_its_default() -> None:
    rows = re.findall(r"^\| `([A-Z_]+)` \| (.*?) ?\| ", PAGE, re.MULTILINE)
    defaults = {field.name: str(field.default) for field in msgspec.structs.fields(Environment)}
    assert dict(rows) == defaults
    assert len(rows) == len(defaults)
