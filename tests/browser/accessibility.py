"""Accessibility violations, found by axe."""

from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Page

REPORTED = frozenset({"moderate", "serious", "critical"})
OPTIONS = {
    # A rule that axe leaves out by default.
    "rules": {"target-size": {"enabled": True}},
    # Else axe describes each element that passes, too.
    "resultTypes": ["violations"],
}
RUN = "options => axe.run(options).then(({ violations }) => violations)"
REPEATED_IDS = """
() => [...document.querySelectorAll("[id]")].map((element) => element.id)
  .filter((id, index, ids) => ids.indexOf(id) !== index)
"""
"""What axe leaves to a person: a label of such an ID is that of another element."""


def violations(page: Page) -> list[str]:
    if page.evaluate("() => !window.axe"):
        page.evaluate(AXE_SCRIPT)
    return [
        *(f"repeated ID: {name}" for name in page.evaluate(REPEATED_IDS)),
        *(
            f"{item['id']}: {node['target']} {node['failureSummary']}"
            for item in page.evaluate(RUN, OPTIONS)
            if item["impact"] in REPORTED
            for node in item["nodes"]
        ),
    ]
