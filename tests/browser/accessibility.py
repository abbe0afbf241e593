"""Accessibility violations, found by axe."""

from typing import Literal

from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Page

from tests.browser.screen import Screen
from tests.support.samples import sampled

SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
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


def check(screen: Screen) -> None:
    """Check that the page fits and has no violation, in both sizes.

    Other runs do so in the other scheme.
    """
    for scheme in sampled(SCHEMES, each=len(SCHEMES)):
        screen.page.emulate_media(color_scheme=scheme)
        for size in screen.sizes():
            assert screen.fits_now(), (scheme, size)
            assert violations(screen.page) == [], (scheme, size)
