"""The template version routes, with hostile templates."""

from typing import Any

import pytest
from django.test import Client

from domain.time import utc_now
from notifications.catalog import types
from notifications.content import templates
from notifyproject.db.collections import collection
from tests.support.clients.api import Answer, App, pages, pointers, request
from tests.support.clients.console import make_staff, signed_in
from tests.support.factories.templates import publish_version
from tests.support.tables import each_case

PATH = "/types/payment_confirmed/templates"
PARTS = {
    "default": {"subject": "Paid: {{ amount }}", "body": "We have {{ amount }}."},
    "pt": {"subject": "Pago: {{ amount }}", "body": "Recebemos {{ amount }}."},
}


def create(app: App, parts: Any = PARTS, *, path: str = PATH, **fields: Any) -> Answer:
    return app.post(path, {"parts": parts, **fields})


def publish(app: App, number: int | str, *, path: str = PATH) -> Answer:
    return app.post(f"{path}/versions/{number}/publish")


def notified(app: App, **fields: Any) -> dict[str, Any]:
    answer = app.notify(**fields)
    assert answer.status_code == 202
    content: dict[str, Any] = answer.json()["content"]
    return content


def test_version_is_created_and_published(app: App) -> None:
    answer = create(app, note="Shorter")
    assert answer.status_code == 201
    version = answer.json()
    assert (
        version
        | {
            "type": "payment_confirmed",
            "number": 1,
            "is_published": False,
            "parts": PARTS,
            "note": "Shorter",
            "created_by": "app:app",
            "published_at": None,
        }
        == version
    )
    assert answer["Location"] == f"/api/v1{PATH}/versions/1"
    assert app.get(f"{PATH}/versions/1").json() == version

    assert notified(app)["template_version"] == 0
    published = publish(app, 1)
    assert published.status_code == 200
    assert published.json()["is_published"]
    assert published.json()["published_at"]
    assert app.get("/types/payment_confirmed").json()["template_version"] == 1

    content = notified(app)
    assert (content["subject"], content["body"]) == ("Paid: 49.90", "We have 49.90.")
    assert (content["template_id"], content["template_version"]) == ("payment_confirmed", 1)
    person = {"email": "ada@example.com", "locale": "pt-BR"}
    assert notified(app, recipient=person)["subject"] == "Pago: 49.90"


def test_accepted_notification_keeps_its_version(app: App) -> None:
    create(app)
    publish(app, 1)
    accepted = app.notify().json()["id"]
    publish(app, 0)
    assert app.get(f"/notifications/{accepted}").json()["content"]["template_version"] == 1
    assert notified(app)["subject"] == "Payment confirmed: Sunrise"


def test_named_template_uses_its_published_version(app: App) -> None:
    create(app)
    publish(app, 1)
    named = notified(app, type="new_sale", content={"template_id": "payment_confirmed"})
    assert (named["subject"], named["template_version"]) == ("Paid: 49.90", 1)


def test_type_without_files_uses_a_published_version(app: App) -> None:
    path = "/types/alert/templates"
    parts = {"default": {"subject": "Look out", "body": "Something is up."}}
    assert create(app, parts, path=path).status_code == 201
    assert pointers(app.notify(type="alert")) == {"/content/body": "required"}
    publish(app, 1, path=path)
    assert notified(app, type="alert")["body"] == "Something is up."
    assert publish(app, 0, path=path).status_code == 404


def test_variable_missing_for_the_published_version_is_reported(app: App) -> None:
    types.define_type("payment_confirmed", {"schema": ""}, now=utc_now())
    create(app, {"default": {"whatsapp": "{{ amount }}", "body": "{{ order_id }}"}})
    publish(app, 1)
    data = {"order_id": 1, "video_title": "Sunrise"}
    assert app.notify(data=data, channels=["email"]).status_code == 202
    to_phone = {"recipient": {"phone": "+351912345678"}, "channels": ["whatsapp"]}
    assert pointers(app.notify(data=data, **to_phone)) == {"/data/amount": "missing_variable"}


def test_list_ends_with_the_shipped_version(app: App) -> None:
    for _ in range(3):
        create(app)
    publish(app, 2)
    body = app.get(PATH).json()
    assert [v["number"] for v in body["results"]] == [3, 2, 1, 0]
    assert [v["is_published"] for v in body["results"]] == [False, True, False, False]
    shipped = body["results"][-1]
    assert shipped["parts"]["default"]["subject"] == "Payment confirmed: {{ video_title }}"
    assert (shipped["created_at"], shipped["created_by"]) == (None, None)
    assert (body["next"], body["previous"]) == (None, None)


def test_pages_are_complete_in_both_directions(app: App) -> None:
    for _ in range(5):
        create(app)
    for limit in (1, 2, 3, 5):
        found = [item["number"] for page in pages(app.get, PATH, limit=limit) for item in page]
        assert found == [5, 4, 3, 2, 1, 0]


@each_case(
    "parts, pointer, code, detail",
    [
        ({}, "/parts", "required", "At least one part"),
        ([], "/parts", "wrong_type", "Expected `object`"),
        ({"default": "x"}, "/parts/default", "wrong_type", "Expected `object`"),
        ({"default": {"body": ""}}, "/parts/default/body", "blank", "not be blank"),
        ({"a/b~": {"body": "x"}}, "/parts/a~1b~0", "invalid_locale", "such as pt"),
        ({"default": {"body": "a\n{% if %}"}}, "/parts/default/body", "syntax", "Line 2: "),
        ({"default": {"body": "a\x00"}}, "/parts/default/body", "nul_character", "NUL"),
    ],
)
def test_invalid_template_is_refused_with_its_line(
    app: App, parts: Any, pointer: str, code: str, detail: str
) -> None:
    answer = create(app, parts)
    assert answer.status_code == 422
    (error,) = answer.json()["errors"]
    assert (error["pointer"], error["code"]) == (pointer, code)
    assert detail in error["detail"]
    assert collection("template_versions").count_documents({}) == 0


def test_all_template_problems_are_reported(app: App) -> None:
    parts = {
        "default": {"subject": "{{ tip }}", "body": "{% nope %}"},
        "pt": {"push": "{{ amount | shout }}"},
    }
    assert pointers(create(app, parts)) == {
        "/parts/default/subject": "unknown_variable",
        "/parts/default/body": "syntax",
        "/parts/pt/push": "unknown_filter",
    }
    wrong = {"default": {"subject": 5}, "pt": {"fax": "x"}}
    assert set(pointers(create(app, wrong))) == {"/parts/default/subject", "/parts/pt/fax"}


def test_type_without_files_needs_subject_and_body(app: App) -> None:
    answer = create(app, {"pt": {"body": "Ol\u00e1"}}, path="/types/alert/templates")
    assert pointers(answer) == {
        "/parts/default/subject": "required",
        "/parts/default/body": "required",
    }


def test_invalid_body_is_refused(app: App) -> None:
    assert pointers(create(app, note="x" * 201)) == {"/note": "out_of_range"}
    assert pointers(app.post(PATH, {"note": "x"})) == {"/parts": "required"}
    assert pointers(create(app, published=True)) == {"/published": "unknown_field"}
    large = b'{"parts": {"default": {"body": "' + b"x" * 300_000 + b'"}}}'
    assert app.send(PATH, large).status_code == 413


def test_publish_needs_an_existing_version(app: App) -> None:
    create(app)
    for number in ("2", "999999", "x", "-1", "1000000", "%00"):
        assert publish(app, number).status_code == 404
        assert app.get(f"{PATH}/versions/{number}").status_code == 404
    assert pointers(app.post(f"{PATH}/versions/1/publish", {"force": True})) == {
        "/force": "unknown_field"
    }
    assert app.post(f"{PATH}/versions/1/publish", {}).status_code == 200
    assert app.get(f"{PATH}/versions/1/publish").status_code == 405


@each_case("slug", ["nope", "..", "PaymentConfirmed"])
def test_unknown_type_has_no_templates(app: App, slug: str) -> None:
    path = f"/types/{slug}/templates"
    assert app.get(path).status_code == 404
    assert create(app, path=path).status_code == 404
    assert publish(app, 0, path=path).status_code == 404


NESTED = "<p>\n" + "<div>" * 13_000


@pytest.fixture
def stored(app: App) -> None:
    """Publish a version that the API would refuse."""
    templates.create_version(
        type_slug="payment_confirmed",
        parts={"default": {"subject": "S", "body": "Hello", "email_html": NESTED}},
        note="",
        created_by="app:shop",
        now=utc_now(),
    )
    publish_version(type_slug="payment_confirmed", number=1, now=utc_now())


def test_preview_shows_the_problem_of_a_stored_hostile_template(app: App, stored: None) -> None:
    answer = app.post("/notifications/preview", request(channels=["in_app"], user_id="ada"))
    assert answer.status_code == 200
    channels = {channel["channel"]: channel for channel in answer.json()["channels"]}
    assert "200 levels" in channels["email"]["problem"]
    assert channels["in_app"]["text"] == "Hello"


def test_mail_of_a_stored_hostile_template_is_refused(app: App, stored: None) -> None:
    answer = app.notify(channels=["email"])
    assert answer.status_code == 422
    (error,) = answer.json()["errors"]
    assert error["code"] == "too_complex"
    assert "200 levels" in error["detail"]


def test_console_shows_a_stored_hostile_template(app: App, stored: None) -> None:
    looker: Client = signed_in(make_staff("rui", "notifications.view_notificationtype"))
    for page in ("payment_5Fconfirmed/change/", "payment_confirmed/templates/1/"):
        shown: Any = looker.get(f"/admin/notifications/notificationtype/{page}")
        assert shown.status_code == 200
        assert "Hello" in shown.content.decode()


LEAK = "{% assign t = token | base64_encode %}See https://example.com/{{ t }}"
RESET = {"name": "Reset", "category": "transactional", "channels": ["email"]}


def test_variable_in_a_url_never_becomes_sensitive(app: App) -> None:
    """In any order: variable, version, publication, and a return to an older version."""
    path, templates_path = "/types/reset_link", "/types/reset_link/templates"
    fields = {**RESET, "example_data": {"token": "abc123"}}
    assert app.put(path, fields).status_code == 201
    for body in (LEAK, "Your token: {{ token }}"):
        parts = {"default": {"subject": "S", "body": body}}
        assert create(app, parts, path=templates_path).status_code == 201
    assert publish(app, 1, path=templates_path).status_code == 200
    refused = app.put(path, {**fields, "sensitive_variables": ["token"]})
    assert (refused.status_code, pointers(refused)) == (
        422,
        {"/sensitive_variables": "sensitive_in_url"},
    )
    assert "body, default, line 1: 'token' is sensitive" in refused.json()["errors"][0]["detail"]
    assert app.get(path).json()["sensitive_variables"] == []

    assert publish(app, 2, path=templates_path).status_code == 200
    assert app.put(path, {**fields, "sensitive_variables": ["token"]}).status_code == 200
    rollback = publish(app, 1, path=templates_path)
    assert (rollback.status_code, pointers(rollback)) == (
        422,
        {"/parts/default/body": "sensitive_in_url"},
    )
    assert app.get(path).json()["template_version"] == 2


class TestDraftOnWhatHasChangedSince:
    """A version is stored as it was checked, and may be published much later."""

    def test_partial_that_needs_more_now(self, app: App) -> None:
        self.store(app, partials=self.partial("{{ amount }}"))
        create(app, {"default": {"subject": "Paid", "body": "{% render 'total' %}"}})
        self.store(app, partials=self.partial("{{ amount }} {{ currency }}"))
        answer = publish(app, 1)
        assert answer.status_code == 422
        assert pointers(answer) == {"/parts/default/body": "unknown_variable"}
        assert answer.json()["errors"][0]["detail"] == (
            "Line 1: The type's example data has no 'currency'. (With the partial 'total'.)"
        )
        assert types.get_template_version("payment_confirmed") == 0
        self.store(app, partials=self.partial("{{ amount }}"))
        assert publish(app, 1).status_code == 200

    def test_translation_that_is_gone(self, app: App) -> None:
        texts = {"name": "default", "texts": {"paid": "Paid", "other": "Other"}}
        self.store(app, translations=texts)
        create(app, {"default": {"subject": "{{ 'paid' | t }}", "body": "Paid"}})
        self.store(app, translations=texts | {"texts": {"other": "Other"}})
        assert pointers(publish(app, 1)) == {"/parts/default/subject": "unknown_translation"}

    def test_variable_that_the_type_no_longer_has(self, app: App) -> None:
        create(app)
        definition = {"name": "Paid", "category": "transactional", "channels": ["email"]}
        assert app.put("/types/payment_confirmed", definition).status_code == 200
        assert set(pointers(publish(app, 1)).values()) == {"unknown_variable"}

    def partial(self, text: str) -> dict[str, Any]:
        return {"name": "total", "texts": {"default": {"text": text}}}

    def store(self, app: App, **items: dict[str, Any]) -> None:
        for kind, item in items.items():
            present = {e["name"]: e["revision"] for e in app.get("/design").json()[kind]}
            change = {**item, "revision": present.get(item["name"])}
            answer = app.post("/design", {kind: [change]})
            assert answer.status_code == 200, answer.content


def test_write_that_others_always_precede_is_a_conflict(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(app)
    definition = {"name": "Paid", "category": "transactional", "channels": ["email"]}
    stale = types.read_type("payment_confirmed")
    assert app.put("/types/payment_confirmed", definition).status_code == 200
    monkeypatch.setattr(types, "read_type", lambda _slug: stale)
    for answer in (app.put("/types/payment_confirmed", definition), publish(app, 1)):
        assert (answer.status_code, answer.json()["code"]) == (409, "version_conflict")
    assert types.get_template_version("payment_confirmed") == 0
