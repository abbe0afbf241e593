"""Accessibility violations, found by axe."""

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

REPORTED = frozenset({"moderate", "serious", "critical"})
OPTIONS = {"rules": {"target-size": {"enabled": True}}}
"""Rules that axe leaves out by default."""
_axe = Axe()


def violations(page: Page) -> list[str]:
    found = _axe.run(page, options=OPTIONS).response["violations"]
    return [
        f"{item['id']}: {node['target']} {node['failureSummary']}"
        for item in found
        if item["impact"] in REPORTED
        for node in item["nodes"]
    ]
