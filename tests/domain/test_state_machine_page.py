"""docs/state_machine.md says what the code does."""

import re
from pathlib import Path

import pytest
from django.conf import settings

from domain.states import TRANSITIONS, DeliveryStatus, NotificationStatus

PAGE = Path(settings.BASE_DIR, "docs", "state_machine.md").read_text(encoding="utf-8")
NOWHERE = "\N{EN DASH}"


def steps() -> dict[str, str]:
    """Return the rows of the table of steps."""
    table = PAGE.partition("| from | to |")[2].partition("\n\n")[0]
    rows = (line.strip("|").split("|") for line in table.splitlines() if line.startswith("| "))
    return {before.strip(): after.strip() for before, after in rows}


@pytest.mark.parametrize("status", list(DeliveryStatus))
def test_page_lists_every_transition(status: DeliveryStatus) -> None:
    after = steps()[status]
    written = set() if after == NOWHERE else set(after.split(", "))
    assert written == {one.value for one in TRANSITIONS[status]}


def test_diagram_has_only_listed_transitions() -> None:
    arrows = re.findall(r"^    (\w+) --> (\w+)", PAGE, re.MULTILINE)
    assert len(arrows) > 10
    for before, after in arrows:
        assert DeliveryStatus(after) in TRANSITIONS[DeliveryStatus(before)]


@pytest.mark.parametrize("status", list(NotificationStatus))
def test_page_explains_every_overall_status(status: NotificationStatus) -> None:
    assert re.search(rf"^\| {status.value} \|", PAGE, re.MULTILINE)
