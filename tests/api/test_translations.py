"""Translations of a design, and the notifications that show them."""

from typing import Any

from bson import ObjectId

from notifyproject.db.collections import collection
from tests.api.test_design import accept, change, define, put, send
from tests.support.clients.api import App, pointers
from tests.support.fakes.provider import ScriptedProvider
from tests.support.tables import each_case

TEXTS = {"order": {"items": "{count, plural, one {# item} other {# items}} for {name}"}}
POLISH = {"order": {"items": "{count, plural, one {# rzecz} few {# rzeczy} other {# rzeczy}}"}}
PARTS = {"subject": "Order", "body": "{{ 'order.items' | t: count: count, name: name }}"}
EXAMPLE = {"name": "Ada", "count": 2}


def texts(name: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "texts": content, **more}


def revision(app: App, name: str) -> str:
    found = {each["name"]: each["revision"] for each in app.get("/design").json()["translations"]}
    return str(found[name])


def body(app: App, locale: str | None = None, **data: Any) -> str:
    found = accept(
        app,
        content=...,
        data=EXAMPLE | data,
        recipient={"email": "ada@example.com", **({"locale": locale} if locale else {})},
    )
    return str(found["content"]["body"])


def test_message_is_in_the_language_of_its_recipient(app: App) -> None:
    put(app, translations=[texts("default", TEXTS), texts("pl", POLISH)])
    define(app, PARTS, example_data=EXAMPLE)
    assert body(app) == "2 items for Ada"
    assert body(app, "pl-PL", count=1) == "1 rzecz"
    assert body(app, "pl", count=5) == "5 rzeczy"
    assert body(app, "de", count=1) == "1 item for Ada"


def test_translations_are_shown_as_they_were_given(app: App) -> None:
    shown = put(app, translations=[texts("pl", POLISH), texts("default", TEXTS)])
    assert [each["name"] for each in shown["translations"]] == ["default", "pl"]
    assert [each["texts"] for each in shown["translations"]] == [TEXTS, POLISH]
    assert put(app, translations=[texts("pl", POLISH)])["number"] == shown["number"]
    answer = change(app, translations=[texts("pl", TEXTS)])
    assert (answer.status_code, pointers(answer)) == (409, {"/translations/0/revision": "changed"})


def test_accepted_message_keeps_its_texts(app: App, fcm: ScriptedProvider) -> None:
    put(app, translations=[texts("default", TEXTS)])
    define(app, PARTS, example_data=EXAMPLE)
    first = accept(app, content=..., data=EXAMPLE, recipient={"email": "ada@example.com"})
    changed = {"order": {"items": "Other {count} {name}"}}
    put(app, translations=[texts("default", changed, revision=revision(app, "default"))])
    (message,) = send(first, by=fcm)
    assert "2 items for Ada" in message.text
    assert body(app) == "Other 2 Ada"


def test_email_of_a_translation_from_right_to_left_is_turned(
    app: App, fcm: ScriptedProvider
) -> None:
    arabic = {"order": {"items": "{count, plural, other {# عناصر}}"}}
    put(app, translations=[texts("default", TEXTS), texts("ar", arabic)])
    define(app, PARTS, example_data=EXAMPLE)
    recipient = {"email": "ada@example.com", "locale": "ar-EG"}
    found = accept(app, content=..., data=EXAMPLE, recipient=recipient)
    (message,) = send(found, by=fcm)
    assert 'dir="rtl"' in message.html
    assert 'lang="ar"' in message.html


@each_case(
    "name, content, place, code",
    [
        ("english", {"a": "b"}, "/name", "invalid_locale"),
        ("pl", {"a b": "c"}, "/texts/a b", "invalid_name"),
        ("pl", {"a": {"b": 1}}, "/texts/a/b", "wrong_type"),
        ("pl", {"a": {"b": "l'{name}"}}, "/texts/a/b", "invalid_message"),
        ("pl", {"a": "{n, plural, one {#}}"}, "/texts/a", "invalid_message"),
    ],
)
def test_faulty_translation_is_refused_with_its_pointer(
    app: App, name: str, content: Any, place: str, code: str
) -> None:
    answer = change(app, translations=[texts(name, content)])
    assert answer.status_code == 422
    assert pointers(answer) == {f"/translations/0{place}": code}


def test_change_that_breaks_a_published_template_is_refused(app: App) -> None:
    put(app, translations=[texts("default", TEXTS), texts("pl", POLISH)])
    define(app, PARTS, example_data=EXAMPLE)
    for name, content in (
        ("default", {"order": {"title": "A"}}),
        ("default", None),
        ("pl", {"order": {"items": "{nam}"}}),
    ):
        given = texts(name, content, revision=revision(app, name))
        answer = change(app, translations=[given])
        assert answer.status_code == 422, (name, content)
        (error,) = answer.json()["errors"]
        assert (error["pointer"], error["code"]) == ("/translations/0", "in_use")
        assert error["detail"].startswith("The type parcel can't use it: body, default, line 1: ")
    put(app, translations=[texts("pl", None, revision=revision(app, "pl"))])
    assert body(app, "pl") == "2 items for Ada"


def test_type_without_translations_has_no_look(app: App) -> None:
    put(app, translations=[texts("default", TEXTS)])
    define(app, {"subject": "A", "body": "B {{ name }}"})
    found = accept(app, content=..., recipient={"email": "ada@example.com"})
    stored = collection("notifications").find_one({"_id": ObjectId(found["id"])})
    assert stored is not None
    assert "look" not in stored["content"]


def test_translation_takes_no_code_into_a_request(app: App) -> None:
    put(app, translations=[texts("default", {"code": "Code:", "link": "Ask"})])
    parts = {"subject": "Code", "body": "{{ 'code' | t }}{{ code }}"}
    define(app, parts, example_data={"code": "123456"}, sensitive_variables=["code"])
    answer = change(app, translations=[texts("pl", {"code": "https://example.com/?c="})])
    assert pointers(answer) == {"/translations/0": "in_use"}
    assert "Translated into pl: 'code' is sensitive" in answer.json()["errors"][0]["detail"]
    html = (
        "<html><body>{{ content }}<p><a href=\"{{ 'link' | t: code: subject }}\">Ask</a></p>"
        '{% if unsubscribe_url %}<a href="{{ unsubscribe_url }}">Stop</a>{% endif %}</body></html>'
    )
    layouts = [{"name": "main", "html": html}]
    put(app, layouts=layouts)
    answer = change(app, translations=[texts("pl", {"link": "https://example.com/{code}"})])
    (error,) = answer.json()["errors"]
    assert error["pointer"] == "/translations/0"
    assert error["detail"].startswith("The layout main renders it: ")
    assert "'subject' may have a login code" in error["detail"]


def test_draft_whose_key_is_gone_is_not_published(app: App) -> None:
    put(app, translations=[texts("default", TEXTS)])
    define(app, PARTS, example_data=EXAMPLE)
    file = {"default": {**PARTS, "body": "{{ 'order.itms' | t: count: count, name: name }}"}}
    answer = app.post("/types/parcel/templates", {"parts": file})
    assert answer.status_code == 422
    assert "Did you mean 'order.items'?" in answer.json()["errors"][0]["detail"]
    other = {**TEXTS, "bye": "Bye"}
    put(app, translations=[texts("default", other, revision=revision(app, "default"))])
    file = {"default": {**PARTS, "body": "{{ 'bye' | t }}"}}
    assert app.post("/types/parcel/templates", {"parts": file}).status_code == 201
    put(app, translations=[texts("default", TEXTS, revision=revision(app, "default"))])
    answer = app.post("/types/parcel/templates/versions/2/publish", {})
    assert answer.status_code == 422
    assert "no translation 'bye'" in answer.content.decode()
