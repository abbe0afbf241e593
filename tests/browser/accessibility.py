"""Accessibility violations, found by axe."""

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

SERIOUS = frozenset({"serious", "critical"})
_axe = Axe()


def violations(page: Page, *, impacts: frozenset[str] = SERIOUS) -> list[str]:
    found = _axe.run(page).response["violations"]
    return [
        f"{one['id']}: {node['target']} {node['failureSummary']}"
        for one in found
        if one["impact"] in impacts
        for node in one["nodes"]
    ]
