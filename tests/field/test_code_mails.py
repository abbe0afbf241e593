"""Mails and messages with a code, written as services and their template kits write them."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

from notifications.catalog.shipped_types import shipped_types
from notifications.content import exposure
from notifications.content.engine import HTML_ENVIRONMENT, TEXT_ENVIRONMENT
from notifications.content.linting import lint_template
from tests.support.tables import each_case

CODE_TYPE = next(type_ for type_ in shipped_types() if type_.slug == "mfa_code")
DATA = {
    **CODE_TYPE.definition.example_data,
    "app": "Shop",
    "support": "help@shop.example",
    "login": "https://shop.example/login",
    "ip": "192.0.2.7",
    "device": "Firefox on Linux",
    "user": {"name": "Ada", "email": "ada@example.com"},
    "when": "2026-12-01T09:00:00Z",
    "locale": "en",
}
WRITTEN = re.findall(
    r"^=== (\w+) (\S+)(?: refused: (.+))?\n((?:(?!===).*\n?)+)",
    Path(__file__).with_name("code_mails.txt").read_text(),
    re.MULTILINE,
)
"""The part, who writes so, what an author is told to change, and the source."""


@each_case("part, address, told, source", WRITTEN)
def test_message_with_a_code_is_accepted_or_says_what_to_change(
    part: str, address: str, told: str, source: str
) -> None:
    found = lint_template(
        name="mfa_code",
        parts={"default": {part: source}},
        example_data=DATA,
        sensitive=frozenset(CODE_TYPE.definition.sensitive_variables),
    )
    if told:
        assert told in found[0].reason, address
    else:
        assert [item.place for item in found] == [], address


ROOT = Path(__file__).parents[2]
SHIPPED = [*(ROOT / "templates" / "notifications").glob("[a-z]*/**/*.*")]
WORDINGS = ROOT / "sandbox" / "providers" / "whatsapp" / "approved_templates.json"
EXPANDED = re.compile(r"\{% render |\| t\b")
PLACEHOLDER = re.compile(r"\{\{(\d+)\}\}")


def ordinary() -> Iterator[tuple[str, bool]]:
    """The templates of the project, and whether they are HTML."""
    for path in SHIPPED:
        yield path.read_text(), path.suffix == ".html"
    for load in json.loads(WORDINGS.read_text()):
        for part in load["components"]:
            yield PLACEHOLDER.sub(r"{{ v\1 }}", part.get("text", "")), False
    for page in (ROOT / "docs").rglob("*.md"):
        blocks = page.read_text().split("```")[1::2]
        # Partials and translations are expanded before a template is parsed.
        yield from (
            (text[7:], False)
            for text in blocks
            if text.startswith("liquid\n") and EXPANDED.search(text) is None
        )


def test_any_variable_of_an_ordinary_template_may_be_sensitive() -> None:
    # The start and the end of an alert decide whether the other one is written, with a colon.
    decided = {"maintenance_start", "maintenance_end"}
    checked = set()
    for source, is_html in ordinary():
        bound = (HTML_ENVIRONMENT if is_html else TEXT_ENVIRONMENT).from_string(source)
        names = {*bound.analyze(include_partials=False).globals} - {"recipient"}
        for name in names - decided:
            found = exposure.find_exposed(
                bound,
                sensitive=frozenset([name]),
                example=dict.fromkeys(names, "482913"),
                is_html=is_html,
            )
            assert found == [], (name, source)
            checked.add(name)
    assert checked > {"code", "order_id", "v1", "document"}
