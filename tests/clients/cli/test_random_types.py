"""Random types and designs through the command: pulled, pushed, and pulled again: no difference."""

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from domain.states import Category, SchemaMode
from notifications.catalog import designs, types
from notifications.catalog.designs import Palette
from notifyproject.db.collections import collection
from tests.clients.cli.test_command import Notify
from tests.support.clients.api import App

CASES = int(os.environ.get("RANDOM_TYPES", "8"))
"""The proof has 1,000: ``RANDOM_TYPES=1000``."""
SLUGS = [f"random_{number}" for number in range(8)]
"""Types that go through the command together, since each of its calls reads all types there are."""
SUFFIXES = (".yaml", "schema.json", ".html", ".txt")
LINES = st.text(
    st.characters(exclude_categories=["C", "Zl", "Zp"], exclude_characters="{}<>&"), max_size=30
)
NAMES = LINES.map(str.strip).filter(bool)
TEXTS = st.lists(
    LINES
    | st.sampled_from(
        ["", "{{ word }}", "no", "1e5", "a: b", "# x", " - y", "~", "'", "\t", "\xa0"]
    ),
    min_size=1,
    max_size=4,
).map("\n".join)
MARKUP = TEXTS.map("<p>{}</p>".format)
KINDS: dict[str, st.SearchStrategy[Any]] = {
    "string": LINES,
    "integer": st.integers(-(2**53), 2**53),
    "number": st.floats(-1e9, 1e9) | st.integers(-5, 5),
    "boolean": st.booleans(),
    "null": st.none(),
    "array": st.lists(LINES | st.integers(0, 9), max_size=3),
    "object": st.dictionaries(
        # Others are refused, and Hypothesis knows of __proto__.
        LINES.filter(
            lambda name: name[:1] not in {"", "$"} and "." not in name and name != "__proto__"
        ),
        LINES,
        max_size=2,
    ),
}


@st.composite
def definitions(draw: st.DrawFn) -> dict[str, Any]:
    """A definition without defaults, of which each part may be there."""
    variables = draw(st.lists(st.sampled_from(["amount", "days", "no", "pin"]), unique=True))
    kinds = {"word": "string"} | {
        name: draw(st.sampled_from([*KINDS]), label=name) for name in variables
    }
    properties: dict[str, Any] = {}
    for name, kind in kinds.items():
        properties[name] = {"type": kind} | draw(
            st.fixed_dictionaries(
                {}, optional={"description": TEXTS, "x-sensitive": st.just(name == "pin")}
            )
        )
    schema = st.fixed_dictionaries(
        {"type": st.just("object"), "properties": st.just(properties)},
        optional={
            "required": st.just([*kinds]),
            "additionalProperties": st.just(False),
            "title": LINES,
        },
    )
    optional: dict[str, st.SearchStrategy[Any]] = {
        "description": TEXTS.filter(bool),
        "priority": st.sampled_from(["low", "high"]),
        "max_priority": st.just("high"),
        "max_retries": st.integers(0, 2),
        "ttl_seconds": st.integers(1, 86_400),
        "on_unknown": st.just("fail"),
        "fallback_after_seconds": st.integers(1, 599),
        "sms": st.just({"max_units": 5, "allow_unicode": True}),
        "actions": st.just([{"id": "no", "label": "No", "style": "danger"}]),
        "schema": schema,
        "schema_mode": st.sampled_from([SchemaMode.WARN.value, SchemaMode.OFF.value]),
        "sensitive_variables": st.just(["days"]),
        "console_send": st.just(True),
        "managed_by": st.just("console"),
        "is_active": st.just(False),
    }
    return draw(
        st.fixed_dictionaries(
            {
                "name": NAMES,
                "category": st.sampled_from([category.value for category in Category]),
                "channels": st.lists(
                    st.sampled_from(["email", "push", "in_app"]), min_size=1, unique=True
                ),
                # A body may be the word alone, and may not be blank.
                "example_data": st.fixed_dictionaries(
                    {name: KINDS[kind] for name, kind in kinds.items()} | {"word": NAMES}
                ),
            },
            optional=optional,
        )
    )


PARTS = st.dictionaries(
    st.sampled_from(["default", "pt", "pt-BR", "zh-Hant"]),
    st.fixed_dictionaries(
        {"subject": NAMES, "body": TEXTS.filter(str.strip)},
        optional={"email_html": MARKUP, "push": TEXTS.filter(str.strip)},
    ),
    max_size=3,
).map(lambda parts: parts if "default" in parts else {})


TYPES = st.tuples(definitions(), PARTS)


@settings(
    max_examples=-(-CASES // len(SLUGS)),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(drawn=st.lists(TYPES, min_size=len(SLUGS), max_size=len(SLUGS)))
def test_pull_after_push_is_the_same_byte_for_byte(
    app: App, drawn: list[tuple[dict[str, Any], dict[str, dict[str, str]]]]
) -> None:
    new = [
        {"slug": slug, "definition": definition, "parts": parts}
        for slug, (definition, parts) in zip(SLUGS, drawn, strict=True)
    ]
    _forget()
    answer = app.post("/type-files", {"types": new, "publish": True})
    assert answer.status_code == 200, answer.content
    with TemporaryDirectory() as first, TemporaryDirectory() as second:
        pulled = _pulled(first, app, *SLUGS)
        revisions = _revisions(app)
        assert (pulled("push", "--publish"), pulled.out) == (0, "")
        # A server without the types gets the same ones of the files.
        _forget()
        assert pulled("push", "--publish", "--force") == 0, pulled.out
        assert _revisions(app) == revisions
        assert _texts(_pulled(second, app, *SLUGS)) == _texts(pulled)
        before = pulled.files()
        assert (pulled("pull", *SLUGS), pulled.out, pulled.files()) == (0, "", before)


COLOURS = st.integers(0, 0xFFFFFF).map("#{:06x}".format)
PALETTES = st.fixed_dictionaries({}, optional=dict.fromkeys(Palette.__struct_fields__, COLOURS))
BRANDS = st.fixed_dictionaries(
    {"name": NAMES},
    optional={
        "footer": st.lists(NAMES, max_size=3).map("\n".join),
        "layout": st.just("random"),
        "reply_to": st.just("Help <help@example.com>"),
        "colours": st.fixed_dictionaries({}, optional={"light": PALETTES, "dark": PALETTES}),
        "logo": st.fixed_dictionaries(
            {"url": st.just("https://cdn.example.com/a.png")},
            optional={"width": st.integers(16, 480), "dark_url": st.none()},
        ),
    },
)
PARTIALS = st.dictionaries(
    st.sampled_from(["default", "pt", "pt-BR", "zh-Hant"]),
    st.fixed_dictionaries({"text": TEXTS.filter(str.strip)})
    | st.fixed_dictionaries({"html": MARKUP}, optional={"text": TEXTS.filter(str.strip)}),
    min_size=1,
    max_size=3,
)
LAYOUTS = (
    st.lists(LINES | st.just("{{ brand.name }}"), max_size=3)
    .map("\n".join)
    .map(
        "<html>\n<body>{}\n<div>{{{{ content }}}}</div><p>{{% if unsubscribe_url %}}"
        "<a href='{{{{ unsubscribe_url }}}}'>Stop</a>{{% endif %}}</p></body></html>".format
    )
)


@settings(
    max_examples=CASES, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(brand=BRANDS, partial=PARTIALS, layout=LAYOUTS)
def test_pull_after_push_of_a_design_is_the_same_byte_for_byte(
    app: App, brand: dict[str, Any], partial: dict[str, Any], layout: str
) -> None:
    body = {
        "brands": [{"name": "random", "brand": brand}],
        "partials": [{"name": "random", "texts": partial}],
        "layouts": [{"name": "random", "html": layout}],
    }
    answer = app.post("/design", body)
    assert answer.status_code == 200, answer.content
    keys = [f"{kind}/random" for kind in body]
    with TemporaryDirectory() as first, TemporaryDirectory() as second:
        pulled = _pulled(first, app, *keys)
        assert (pulled("push", "--publish"), pulled.out) == (0, "")
        collection("designs").delete_many({})
        designs.invalidate()
        assert (pulled("push", "--publish"), pulled("push", "--publish", "--force")) == (3, 0)
        assert app.get("/design").json() == answer.json()
        assert _texts(_pulled(second, app, *keys)) == _texts(pulled)
        before = pulled.files()
        assert (pulled("pull", *keys), pulled.out, pulled.files()) == (0, "", before)
        assert (pulled("diff", "--exit-code"), pulled.out) == (0, "")
    collection("designs").delete_many({})
    designs.invalidate()


def _pulled(folder: str, app: App, *keys: str) -> Notify:
    notify = Notify(Path(folder), app)
    assert notify("pull", *keys) == 0, notify.err
    return notify


def _texts(notify: Notify) -> dict[str, bytes]:
    return {name: text for name, text in notify.files().items() if name.endswith(SUFFIXES)}


def _revisions(app: App) -> dict[str, str]:
    found = app.get("/type-files", limit=100).json()["results"]
    return {each["slug"]: each["revision"] for each in found if each["slug"] in SLUGS}


def _forget() -> None:
    collection("notification_types").delete_many({"_id": {"$in": SLUGS}})
    collection("template_versions").delete_many({"type": {"$in": SLUGS}})
    types.invalidate_types()
