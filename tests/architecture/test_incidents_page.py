"""docs/guides/incidents.md has a section for each alert rule that is shipped."""

import re

from monitoring.alert_rules import SHIPPED_RULES
from tests.support.source import ROOT

PAGE = (ROOT / "docs" / "guides" / "incidents.md").read_text()
SECTIONS = dict(re.findall(r"^## (.+)\n((?:(?!## ).*\n)*)", PAGE, re.MULTILINE))
OTHERS = {"First look", "Without an alert"}


def test_each_shipped_rule_has_symptom_check_and_action() -> None:
    assert SECTIONS.keys() - OTHERS == {name for _, name, _, _ in SHIPPED_RULES}
    for name in SECTIONS.keys() - OTHERS:
        for part in ("Symptom", "Check", "Action"):
            assert f"- **{part}:**" in SECTIONS[name], name
