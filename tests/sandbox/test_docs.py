"""docs/sandbox.md and the tables agree."""

import re
from pathlib import Path

from sandbox.providers.sendgrid.events import DETAILS
from sandbox.providers.sendgrid.outcomes import OUTCOMES
from sandbox.providers.sendgrid.provider import KEYS

TEXT = (Path(__file__).parents[2] / "docs" / "sandbox.md").read_text()


def rows(heading: str) -> list[tuple[str, str]]:
    """Return the two columns of the first table under a heading, without its head."""
    section = TEXT.partition(f"| {heading} |")[2].partition("\n\n")[0]
    found = re.findall(r"^\| (.+?) \| (.+?) \|$", section, re.MULTILINE)
    assert found
    return found


def test_every_magic_recipient_is_in_the_document() -> None:
    expected = [
        (", ".join(f"`{name}@`" for name in (row.name, *row.aliases)), row.says)
        for row in OUTCOMES.table
    ]
    assert rows("address") == expected


def test_every_special_key_is_in_the_document() -> None:
    documented = {key.strip("`"): answer for key, answer in rows("key")}
    assert set(documented) == set(KEYS)
    for key, (_, status, _) in KEYS.items():
        assert documented[key].startswith(f"{status}:")


def test_every_kind_of_event_is_in_the_document() -> None:
    assert [kind for kind in DETAILS if f"`{kind}`" not in TEXT] == []
