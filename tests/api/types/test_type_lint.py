"""``POST /type-files/lint``, and schemas that break what was published."""

from typing import Any

import pytest

from access.models import Scope
from domain import type_rules
from domain.type_rules import Finding
from notifyproject.db.collections import collection
from tests.api.types.test_type_files import PARCEL, outcomes, push, read, sent
from tests.support.clients.api import App, new_app, pointers
from tests.support.tables import each_case

STRICT = {"type": "object", "properties": {"parcel": {"type": "string"}}, "required": ["parcel"]}


EXPOSING: dict[str, Any] = {
    **PARCEL,
    "definition": {
        **PARCEL["definition"],
        "sensitive_variables": ["parcel"],
        "approved_templates": [
            {
                "locale": "pt",
                "name": "lost",
                "language": "pt_PT",
                "parameters": ["parcel"],
                "body": "At {{1}}.example.com now",
            }
        ],
    },
    "parts": {},
}
"""Its texts are those of the channel's provider."""


def lint(app: App, *each: dict[str, Any]) -> list[tuple[str, str, int | None]]:
    answer = app.post("/type-files/lint", {"types": list(each)})
    assert answer.status_code == 200, answer.content
    return [(found["code"], found["pointer"], found["line"]) for found in answer.json()["findings"]]


def with_parts(body: str, **definition: Any) -> dict[str, Any]:
    return {
        **PARCEL,
        "definition": {**PARCEL["definition"], **definition},
        "parts": {"default": {"subject": "Lost", "body": body}},
    }


def test_finding_names_its_type_place_and_page(app: App) -> None:
    before = collection("notification_types").count_documents({})
    answer = app.post(
        "/type-files/lint", {"types": [PARCEL | {"slug": "a"}, with_parts("A\nhttp://b.example/c")]}
    )
    assert answer.json()["findings"] == [
        {
            "type": "parcel_lost",
            "code": "insecure_link",
            "pointer": "/types/1/parts/default/body",
            "line": 2,
            "detail": "http://b.example/c isn't https: it can be read and changed on its way.",
            "docs": "docs/reference/lint.md#insecure_link",
        }
    ]
    assert collection("notification_types").count_documents({}) == before


@each_case(
    "file, code, pointer, line",
    [
        (with_parts("A\n{{ parcl }}"), "unknown_variable", "/parts/default/body", 2),
        (with_parts("{{ 'a' | nope }}"), "unknown_filter", "/parts/default/body", 1),
        (with_parts("{% if %}"), "syntax", "/parts/default/body", 1),
        (
            with_parts("{{ note }}", example_data={"parcel": "7", "note": "N"}),
            *("unknown_variable", "/parts/default/body", 1),
        ),
        (PARCEL | {"slug": "order_shipped", "parts": {}}, "required", "/parts", None),
        (EXPOSING, "sensitive_in_url", "/definition/sensitive_variables", None),
    ],
)
def test_what_a_push_refuses_is_found(
    app: App, file: dict[str, Any], code: str, pointer: str, line: int | None
) -> None:
    assert lint(app, file) == [(code, f"/types/0{pointer}", line)]


def test_refused_definition_hides_no_findings_of_others(app: App) -> None:
    wrong = with_parts("A", channels=["fax"])
    assert lint(app, wrong, with_parts("A http://b.example") | {"slug": "a"}) == [
        ("unknown_channel", "/types/0/definition/channels/0", None),
        ("insecure_link", "/types/1/parts/default/body", 1),
    ]


@each_case(
    "file, code, pointer",
    [
        ({"slug": "a"}, "required", "/definition"),
        ({"slug": "a", "definition": []}, "wrong_type", "/definition"),
        (PARCEL | {"slug": "a", "parts": {"pt": {"fax": "A"}}}, "unknown_field", "/parts/pt/fax"),
        (PARCEL | {"slug": "a", "more": 1}, "unknown_field", "/more"),
        (with_parts("A\0") | {"slug": "a"}, "nul_character", "/parts/default/body"),
    ],
)
def test_wrong_structure_hides_no_findings_of_others(
    app: App, file: dict[str, Any], code: str, pointer: str
) -> None:
    assert lint(app, file, with_parts("A http://b.example")) == [
        (code, f"/types/0{pointer}", None),
        ("insecure_link", "/types/1/parts/default/body", 1),
    ]


@each_case(
    "body, code, pointer",
    [
        ({"types": []}, "out_of_range", "/types"),
        ({"types": 5}, "wrong_type", "/types"),
        ({"types": [5]}, "wrong_type", "/types/0"),
        ({"types": [PARCEL], "more": 1}, "unknown_field", "/more"),
        ({"types": [PARCEL, PARCEL]}, "duplicate", "/types/1/slug"),
        ({"types": [PARCEL | {"slug": 5}]}, "wrong_type", "/types/0/slug"),
        ({"types": [PARCEL | {"slug": "a\0"}]}, "nul_character", "/types/0/slug"),
        ({"types": [{"more": 1}]}, "required", "/types/0/slug"),
    ],
)
def test_wrong_list_is_refused(app: App, body: dict[str, Any], code: str, pointer: str) -> None:
    answer = app.post("/type-files/lint", body)
    assert (answer.status_code, pointers(answer)) == (422, {pointer: code})


def test_rule_that_fails_hides_no_findings_of_others(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = type_rules.find

    def fail_once(definition: Any, parts: Any, *, published: Any) -> list[Finding]:
        if definition["name"] == "Defect":
            raise TypeError
        return rules(definition, parts, published=published)

    monkeypatch.setattr(type_rules, "find", fail_once)
    failing = with_parts("A", name="Defect") | {"slug": "a"}
    assert lint(app, failing, with_parts("A http://b.example")) == [
        ("insecure_link", "/types/1/parts/default/body", 1)
    ]


def test_shipped_types_have_no_findings(app: App) -> None:
    assert lint(app, *map(sent, read(app).values())) == []


def test_key_needs_the_scope(db: None) -> None:
    reader = new_app("reader", Scope.NOTIFICATIONS_READ)
    assert reader.post("/type-files/lint", {"types": [PARCEL]}).status_code == 403


def test_schema_that_breaks_the_published_one_is_confirmed(app: App) -> None:
    push(app, PARCEL)
    stricter = sent(read(app)["parcel_lost"], schema=STRICT)
    place = "/types/0/definition/schema/properties/parcel"
    assert lint(app, stricter) == [("breaking_schema", place, None)]
    assert pointers(push(app, stricter)) == {place: "confirmation_required"}
    assert pointers(push(app, stricter, dry_run=True)) == {place: "confirmation_required"}
    own = {
        **stricter["definition"],
        "confirm_breaking": [place.removeprefix("/types/0/definition")],
    }
    assert pointers(push(app, {**stricter, "definition": own})) == {place: "confirmation_required"}
    assert outcomes(push(app, stricter, publish=False)) == ["changed"]
    assert pointers(push(app, stricter, confirm_breaking=["other"])) == {
        "/confirm_breaking/0": "unknown_type"
    }
    assert outcomes(push(app, stricter, confirm_breaking=["parcel_lost"])) == ["changed"]
    assert outcomes(push(app, stricter)) == ["unchanged"]


def test_first_schema_that_refuses_is_confirmed(app: App) -> None:
    first = with_parts("A", schema={"type": "object", "properties": {"parcel": {"type": "string"}}})
    assert lint(app, first) == []
    definition = {k: v for k, v in PARCEL["definition"].items() if k != "schema"}
    push(app, {**first, "definition": definition})
    file = sent(read(app)["parcel_lost"], **first["definition"])
    place = "/types/0/definition/schema/properties/parcel/type"
    assert lint(app, file) == [("breaking_schema", place, None)]
    assert pointers(push(app, file)) == {place: "confirmation_required"}


@pytest.mark.parametrize(("before", "after"), [("warn", "reject"), ("off", "reject")])
def test_schema_breaks_once_it_refuses(app: App, before: str, after: str) -> None:
    push(app, with_parts("A", schema=STRICT, schema_mode=before))
    file = read(app)["parcel_lost"]
    assert outcomes(push(app, sent(file, schema_mode="off"))) in (["changed"], ["unchanged"])
    refusing = sent(read(app)["parcel_lost"], schema_mode=after)
    assert set(pointers(push(app, refusing)).values()) == {"confirmation_required"}
