"""The type routes: creation, changes, and validation."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry

from access.models import Scope
from domain.channels import Channel
from domain.rooms import RoomKind
from domain.states import Priority
from domain.time import utc_now
from notifications.catalog import types
from notifications.catalog.plans import fallback_plan
from notifications.catalog.shipped_types import shipped_types
from notifyproject.db.collections import collection
from rooms import registry as rooms
from tests.support.clients.api import App, new_app, pages, pointers
from tests.support.mongo.query_plans import plans
from tests.support.tables import each_case

PATH = "/types/parcel_lost"
W = {"locale": "pt", "name": "lost", "language": "pt_PT"}
MINIMAL = {"name": "Parcel lost", "category": "transactional", "channels": ["email"]}
COMPLETE: dict[str, Any] = {
    "name": "Parcel lost",
    "description": "A parcel did not come.",
    "category": "alert",
    "priority": "high",
    "channels": ["in-app", "email", "push"],
    "max_retries": 2,
    "ttl_seconds": 3600,
    "on_unknown": "fail",
    "fallback_channel": "push",
    "fallback_after_seconds": 90,
    "approved_templates": [
        {"locale": "pt", "name": "lost", "language": "pt_PT", "parameters": ["parcel"]}
    ],
    "example_data": {"parcel": "77", "shop": {"city": "Porto"}},
    "sensitive_variables": ["pin", "pin", "code"],
    "is_active": True,
}


def _store_brand(client: App, fields: Any, path: str = "/design", **others: Any) -> Any:
    """Store the brand ``acme``, whatever it is now."""
    found = {each["name"]: each["revision"] for each in client.get("/design").json()["brands"]}
    brand = {"name": "acme", "revision": found.get("acme"), "brand": fields}
    return client.post(path, {"brands": [brand], **others})


def test_new_type_is_usable_at_once(app: App) -> None:
    answer = app.put(PATH, COMPLETE)
    assert answer.status_code == 201
    body = answer.json()
    expected = COMPLETE | {
        "slug": "parcel_lost",
        "channels": ["in_app", "email", "push"],
        "sensitive_variables": ["pin", "code"],
        "template_version": 0,
        "approved_templates": [
            {**template, "body": None, "button": None}
            for template in COMPLETE["approved_templates"]
        ],
    }
    assert {name: body[name] for name in expected} == expected
    assert app.get(PATH).json() == body
    kind = types.get_type("ParcelLost")
    assert kind.channels == (Channel.IN_APP, Channel.EMAIL, Channel.PUSH)
    assert (kind.priority, kind.max_retries, kind.ttl_seconds) == (Priority.HIGH, 2, 3600)
    assert kind.plan == fallback_plan(Channel.PUSH, after=timedelta(seconds=90))
    (template,) = kind.whatsapp_templates
    assert (template.name, template.language, template.parameters) == ("lost", "pt_PT", ("parcel",))


def test_omitted_fields_have_defaults(app: App) -> None:
    body = app.put(PATH, MINIMAL).json()
    assert (
        body
        | {
            "description": "",
            "priority": "normal",
            "max_retries": 3,
            "ttl_seconds": None,
            "on_unknown": "retry",
            "fallback_channel": None,
            "fallback_after_seconds": 600,
            "plan": None,
            "actions": [],
            "approved_templates": [],
            "example_data": {},
            "sensitive_variables": [],
            "is_active": True,
        }
        == body
    )


def test_all_means_every_channel(app: App) -> None:
    body = app.put(PATH, MINIMAL | {"channels": ["all"]}).json()
    assert body["channels"] == ["email", "push", "whatsapp", "in_app"]


def test_put_replaces_the_type_and_keeps_creation_time_and_template(app: App) -> None:
    made = app.put(PATH, COMPLETE).json()
    collection("notification_types").update_one(
        {"_id": "parcel_lost"}, {"$set": {"template_version": 3}}
    )
    answer = app.put(PATH, {**MINIMAL, "sensitive_variables": COMPLETE["sensitive_variables"]})
    assert (answer.status_code, answer.json()["priority"]) == (200, "normal")
    assert answer.json()["template_version"] == 3
    assert answer.json()["created_at"] == made["created_at"]
    assert answer.json()["updated_at"] >= made["updated_at"]


def test_category_finds_what_was_accepted_before_the_type_changed_it(app: App) -> None:
    app.put(PATH, MINIMAL)
    notification = {"type": "parcel_lost", "recipient": {"email": "ada@example.com"}}
    request = notification | {"content": {"subject": "Lost", "body": "Your parcel is lost."}}
    before = app.post("/notifications", request).json()["id"]
    app.put(PATH, MINIMAL | {"category": "alert"})
    after = app.post("/notifications", request).json()["id"]
    found = {
        category: [
            result["id"]
            for result in app.get("/notifications", category=category).json()["results"]
        ]
        for category in ("transactional", "alert", "marketing")
    }
    assert found == {"transactional": [before], "alert": [after], "marketing": []}


def test_variable_that_the_schema_marks_is_sensitive(db: None) -> None:
    app = new_app("security", *Scope)
    marked = {"type": "object", "properties": {"pin": {"type": "string", "x-sensitive": True}}}
    example = {"pin": "0000", "parcel": "77"}
    secret = {**MINIMAL, "schema": marked, "example_data": example, "sensitive_variables": ["key"]}
    answer = app.put(PATH, secret)
    assert (answer.status_code, answer.json()["sensitive_variables"]) == (201, ["key", "pin"])
    parts = {"default": {"subject": "Lost", "body": "{{ parcel }}: {{ pin }}"}}
    assert app.post(f"{PATH}/templates", {"parts": parts}).status_code == 201
    assert app.post(f"{PATH}/templates/versions/1/publish").status_code == 200
    accepted = app.notify(type="parcel_lost", content=..., data={"pin": "4711", "parcel": "77"})
    assert accepted.status_code == 202, accepted.content
    shown = app.get(f"/notifications/{accepted.json()['id']}").json()
    assert shown["data"] == {"pin": types.MASK, "parcel": "77"}
    (stored,) = collection("notifications").find()
    assert "4711" not in str(stored)
    # A mark is removed as a name of the list is.
    unmarked = {**secret, "schema": {"type": "object", "properties": {"pin": {"type": "string"}}}}
    assert pointers(app.put(PATH, unmarked)) == {"/confirm_not_sensitive": "confirmation_required"}
    assert app.put(PATH, {**unmarked, "confirm_not_sensitive": ["pin"]}).status_code == 200
    assert app.get(PATH).json()["sensitive_variables"] == ["key"]


@each_case(
    "schema, place",
    [
        ({"properties": {"pin-code": {"x-sensitive": True}}}, "/schema/properties/pin-code"),
        ({"additionalProperties": {"x-sensitive": True}}, "/schema/additionalProperties"),
    ],
)
def test_mark_that_names_no_variable_is_refused(
    app: App, schema: dict[str, Any], place: str
) -> None:
    answer = app.put(PATH, {**MINIMAL, "schema": {"type": "object", **schema}})
    assert (answer.status_code, pointers(answer)) == (422, {place: "invalid"})


def test_schema_that_refuses_more_is_confirmed_place_by_place(app: App) -> None:
    wide = {
        "type": "object",
        "properties": {"parcel": {"type": ["string", "integer"]}, "days": {"enum": [1, 2]}},
    }
    narrow = {
        "type": "object",
        "properties": {"parcel": {"type": "string"}, "days": {"enum": [1]}},
        "required": ["parcel"],
    }
    places = ["/schema/properties/days/enum", "/schema/properties/parcel",
              "/schema/properties/parcel/type"]  # fmt: skip
    data = {"parcel": "77"}
    assert app.put(PATH, {**MINIMAL, "schema": wide, "example_data": data}).status_code == 201
    stricter = {**MINIMAL, "schema": narrow, "example_data": data}
    answer = app.put(PATH, stricter)
    assert pointers(answer) == dict.fromkeys(places, "confirmation_required")
    assert app.get(PATH).json()["schema"] == wide
    some = {**stricter, "confirm_breaking": places[:2]}
    assert pointers(app.put(PATH, some)) == {places[2]: "confirmation_required"}
    answer = app.put(PATH, {**stricter, "confirm_breaking": places})
    assert (answer.status_code, answer.json()["schema"]) == (200, narrow)
    assert "confirm_breaking" not in answer.json()
    assert app.put(PATH, {**stricter, "schema": wide}).status_code == 200
    assert app.put(PATH, {**stricter, "schema_mode": "warn"}).status_code == 200


def test_each_place_that_refuses_more_is_confirmed_however_many(app: App) -> None:
    schema = {"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(150)}}
    app.put(PATH, {**MINIMAL, "schema": {"type": "object"}, "example_data": {}})
    stricter = {**MINIMAL, "schema": schema, "example_data": {}}
    first = list(pointers(app.put(PATH, stricter)))
    rest = list(pointers(app.put(PATH, {**stricter, "confirm_breaking": first})))
    assert (len(first), len({*first, *rest})) == (100, 150)
    assert app.put(PATH, {**stricter, "confirm_breaking": first + rest}).status_code == 200


def test_removing_a_sensitive_variable_needs_the_scope_and_its_name(db: None) -> None:
    editor = new_app("editor", Scope.TEMPLATES_WRITE)
    security = new_app("security", Scope.TEMPLATES_WRITE, Scope.TYPES_ADMIN)
    secret = {**MINIMAL, "sensitive_variables": ["code", "link"]}
    assert editor.put(PATH, secret).status_code == 201
    readable = {**MINIMAL, "sensitive_variables": ["link", "pin"], "confirm_not_sensitive": []}
    for names in ([], ["code"]):
        answer = editor.put(PATH, {**readable, "confirm_not_sensitive": names})
        assert (answer.status_code, answer.json()["code"]) == (403, "insufficient_scope")
        assert answer.json()["detail"] == "The API key needs the scope `types:admin`."
    for names in ([], ["link"]):
        answer = security.put(PATH, {**readable, "confirm_not_sensitive": names})
        assert answer.status_code == 422
        assert pointers(answer) == {"/confirm_not_sensitive": "confirmation_required"}
        assert "To confirm, name code here." in answer.json()["errors"][0]["detail"]
    assert editor.get(PATH).json()["sensitive_variables"] == ["code", "link"]
    for _ in range(2):  # A repeated request has the same outcome.
        answer = security.put(PATH, {**readable, "confirm_not_sensitive": ["code"]})
        assert answer.status_code == 200
        assert answer.json()["sensitive_variables"] == ["link", "pin"]
        assert "confirm_not_sensitive" not in answer.json()
    document = collection("notification_types").find_one({"_id": "parcel_lost"})
    assert "confirm_not_sensitive" not in document
    assert (
        editor.put(PATH, {**MINIMAL, "sensitive_variables": ["pin", "link", "a"]}).status_code
        == 200
    )
    messages = [entry.change_message for entry in LogEntry.objects.order_by("pk")]
    expected = "By client security: Changed: sensitive_variables. No longer sensitive: code."
    assert messages[1] == expected


def test_login_codes_do_not_become_readable_unnoticed(db: None) -> None:
    editor = new_app("editor", Scope.TEMPLATES_WRITE)
    body = editor.get("/types/mfa_code").json()
    derived = ("slug", "template_version", "created_at", "updated_at", "sensitive_variables")
    same = {name: value for name, value in body.items() if name not in derived}
    assert editor.put("/types/mfa_code", same).status_code == 403
    assert editor.get("/types/mfa_code").json()["sensitive_variables"] == ["code"]


def test_disabled_type_is_readable_and_not_usable(app: App) -> None:
    app.put(PATH, MINIMAL | {"is_active": False})
    assert app.get(PATH).json()["is_active"] is False
    assert pointers(app.notify(type="parcel_lost"))["/type"] == "unknown_type"


@each_case("default", shipped_types())
def test_every_shipped_type_round_trips(app: App, default: Any) -> None:
    body = app.get(f"/types/{default.slug}").json()
    assert body["name"] == default.definition.name
    derived = ("slug", "template_version", "created_at", "updated_at")
    same = {name: value for name, value in body.items() if name not in derived}
    again = app.put(f"/types/{default.slug}", same)
    assert again.status_code == 200
    assert again.json() | {"updated_at": None} == body | {"updated_at": None}


@each_case("slug", ["nope", "MfaCode", "mfa_code ", "..", "%00", "mfa_code%0a"])
def test_unknown_type_is_not_found(app: App, slug: str) -> None:
    assert app.get(f"/types/{slug}").status_code == 404


@each_case("slug", ["Parcel", "1st", "a-b", "a.b", "_a", "a%00", "\u00e4", "$where"])
def test_invalid_slug_is_refused(app: App, slug: str) -> None:
    answer = app.put(f"/types/{slug}", MINIMAL)
    assert (answer.status_code, pointers(answer)) == (422, {"": "invalid_slug"})
    assert app.put(f"/types/{'a' * 65}", MINIMAL).status_code == 404


@each_case(
    "fields, pointer, code",
    [
        ({"name": ""}, "/name", "out_of_range"),
        ({"name": "  "}, "/name", "blank"),
        ({"name": "x" * 121}, "/name", "out_of_range"),
        ({"category": "junk"}, "/category", "unknown_value"),
        ({"priority": "extreme"}, "/priority", "unknown_value"),
        ({"on_unknown": "panic"}, "/on_unknown", "unknown_value"),
        ({"channels": []}, "/channels", "no_channel"),
        ({"channels": ["pigeon"]}, "/channels/0", "unknown_channel"),
        ({"channels": ["email", "email"]}, "/channels/1", "duplicate_channel"),
        ({"max_retries": -1}, "/max_retries", "out_of_range"),
        ({"max_retries": 11}, "/max_retries", "out_of_range"),
        ({"ttl_seconds": 0}, "/ttl_seconds", "out_of_range"),
        ({"ttl_seconds": 2_592_001}, "/ttl_seconds", "out_of_range"),
        ({"fallback_channel": "pigeon"}, "/fallback_channel", "unknown_channel"),
        ({"fallback_channel": "push"}, "/fallback_channel", "not_a_channel"),
        ({"fallback_channel": "email"}, "/fallback_channel", "no_other_channel"),
        ({"fallback_after_seconds": 0}, "/fallback_after_seconds", "out_of_range"),
        (
            {"approved_templates": [{"name": "a", "language": "pt"}]},
            "/approved_templates/0/locale",
            "required",
        ),
        ({"approved_templates": [{**W, "x": 1}]}, "/approved_templates/0/x", "unknown_field"),
        (
            {"approved_templates": [{**W, "parameters": ["order"]}]},
            "/approved_templates/0/parameters/0",
            "unknown_variable",
        ),
        ({"priority": "critical", "console_send": True}, "/console_send", "critical"),
        ({"example_data": {"$where": 1}}, "/example_data/$where", "forbidden_key"),
        ({"example_data": {"a": {"b.c": 1}}}, "/example_data/a/b.c", "forbidden_key"),
        ({"example_data": {"recipient": 1}}, "/example_data/recipient", "reserved"),
        ({"example_data": {"n": 2**63}}, "/example_data/n", "integer_too_large"),
        ({"sensitive_variables": ["a b"]}, "/sensitive_variables/0", "invalid"),
        ({"sensitive_variables": ["a", 5]}, "/sensitive_variables/1", "wrong_type"),
        ({"slug": "other"}, "/slug", "unknown_field"),
        ({"template_version": 7}, "/template_version", "unknown_field"),
    ],
)
def test_invalid_field_is_refused_with_its_pointer(
    app: App, fields: dict[str, Any], pointer: str, code: str
) -> None:
    body = {name: value for name, value in {**MINIMAL, **fields}.items() if value is not ...}
    answer = app.put(PATH, body)
    assert (answer.status_code, pointers(answer)) == (422, {pointer: code})
    assert app.get(PATH).status_code == 404


def test_all_problems_are_reported_at_once(app: App) -> None:
    bad = {"name": " ", "category": "x", "priority": "y", "channels": ["z"]}
    assert set(pointers(app.put(PATH, bad))) == {"/name", "/category", "/priority", "/channels/0"}


def test_types_are_listed_by_slug(app: App) -> None:
    app.put(PATH, MINIMAL | {"is_active": False})
    found = [listed_type for page in pages(app.get, "/types", limit=5) for listed_type in page]
    slugs = [listed_type["slug"] for listed_type in found]
    assert slugs == sorted({"parcel_lost", *(default.slug for default in shipped_types())})
    listed = next(listed_type for listed_type in found if listed_type["slug"] == "parcel_lost")
    assert listed == app.get(PATH).json()


def test_types_are_read_in_the_order_of_an_index(app: App) -> None:
    with plans("notification_types") as found:
        app.get("/types", limit=3)
    (plan,) = [plan for plan in found if plan.returned == 4]
    assert plan.is_by_id
    assert plan.examined == 4
    assert not plan.sorts


def _as_sent(app: App, slug: str) -> dict[str, Any]:
    derived = ("slug", "template_version", "created_at", "updated_at")
    return {
        name: listed_type
        for name, listed_type in app.get(f"/types/{slug}").json().items()
        if name not in derived
    }


@pytest.fixture
def editor(app: App) -> App:
    return new_app("editor", Scope.TEMPLATES_WRITE)


@each_case(
    "change",
    [
        {"channels": ["in_app"]},
        {"channels": ["push"]},
        {"ttl_seconds": 1},
        {"category": "marketing"},
        {"approved_templates": []},
        {"notify_before_seconds": 60},
        {"is_active": False},
        {"priority": "normal"},
        {"schema": None},
        {
            "schema": {"type": "object", "properties": {"code": {"type": "string"}}},
            "confirm_breaking": ["/schema/properties/code/type"],
        },
        {"schema_mode": "warn"},
        {"sms": {"max_units": 1, "allow_unicode": False}},
        {
            "channels": ["email", "push"],
            "plan": {"steps": [{"channels": ["email"]}, {"channels": ["push"], "after": 60}]},
        },
        {
            "channels": ["email", "push"],
            "fallback_channel": "push",
            "fallback_after_seconds": 60,
        },
    ],
)
def test_routing_of_a_login_code_is_changed_by_types_admin_alone(
    app: App, editor: App, change: dict[str, Any]
) -> None:
    before, stored = _as_sent(app, "mfa_code"), types.read_type("mfa_code")
    assert stored is not None
    answer = editor.put("/types/mfa_code", before | change)
    assert (answer.status_code, answer.json()["code"]) == (403, "insufficient_scope")
    assert _as_sent(app, "mfa_code") == before
    assert app.put("/types/mfa_code", before | change).status_code == 200
    collection("notification_types").replace_one({"_id": "mfa_code"}, stored)
    types.invalidate_types()


@each_case(
    "fields",
    [
        {"accounts": {"email": ["sendgrid"]}},
        {"from": "Acme <hello@acme.example>"},
        {"reply_to": "eve@evil.example"},
        {"layout": "frame"},
    ],
)
def test_routing_of_a_login_code_by_its_brand_is_changed_by_types_admin_alone(
    app: App, editor: App, fields: dict[str, Any], settings: Any
) -> None:
    settings.EMAIL_SENDERS = frozenset({"@acme.example"})
    frame = "<html><body>{{ content }}<p>{{ unsubscribe_url }}</p></body></html>"
    _store_brand(app, {"name": "Acme"}, layouts=[{"name": "frame", "html": frame}])
    changed = _as_sent(app, "mfa_code") | {"brand": "acme"}
    assert app.put("/types/mfa_code", changed).status_code == 200
    for turn in ({"dry_run": True}, {}):
        answer = _store_brand(editor, {"name": "Acme", **fields}, **turn)
        assert (answer.status_code, answer.json()["code"]) == (403, "insufficient_scope")
    file = {"publish": True, "dry_run": False, "types": []}
    assert (
        _store_brand(editor, {"name": "Acme", **fields}, "/type-files", **file).status_code == 403
    )
    assert _store_brand(editor, {"name": "Acme & Sons", "footer": "Lisbon"}).status_code == 200
    assert _store_brand(app, {"name": "Acme", **fields}).status_code == 200
    assert _store_brand(editor, {"name": "Acme"}).status_code == 403, "back again"
    assert _store_brand(app, {"name": "Acme"}).status_code == 200


def test_room_of_a_login_code_is_changed_by_types_admin_alone(app: App, editor: App) -> None:
    rooms.create(
        slug="ops",
        kind=RoomKind.SLACK_BOT,
        name="Operations",
        target="C024BE91L",
        min_gap_seconds=1,
        now=utc_now(),
    )
    changed = _as_sent(app, "mfa_code") | {"room": "ops"}
    assert editor.put("/types/mfa_code", changed).status_code == 403
    assert app.put("/types/mfa_code", changed).status_code == 200


def test_disabled_sensitive_type_is_not_rerouted_before_it_is_enabled_again(app: App) -> None:
    editor = new_app("editor", Scope.TEMPLATES_WRITE)
    secret = {"example_data": {"pin": "1"}, "sensitive_variables": ["pin"]}
    assert app.put(PATH, {**MINIMAL, **secret}).status_code == 201
    assert editor.put(PATH, {**MINIMAL, **secret, "is_active": False}).status_code == 200
    assert editor.put(PATH, {**MINIMAL, **secret, "channels": ["in_app"]}).status_code == 403
    assert editor.put(PATH, {**MINIMAL, **secret}).status_code == 200


def test_rest_of_a_login_code_is_changed_without_types_admin(app: App) -> None:
    editor = new_app("editor", Scope.TEMPLATES_WRITE)
    for default in shipped_types():
        before = _as_sent(app, default.slug)
        assert editor.put(f"/types/{default.slug}", before).status_code == 200, default.slug
    change = {"name": "Code", "description": "New.", "max_retries": 1, "sensitive_variables": []}
    secret = {"example_data": {"code": "1", "pin": "2"}, "sensitive_variables": ["code", "pin"]}
    assert (
        editor.put("/types/mfa_code", _as_sent(app, "mfa_code") | change | secret).status_code
        == 200
    )


@each_case(
    "body, is_refused",
    [
        ("Your code is {{1}}.", False),
        ("Code {{1}}, see https://example.com/ now", False),
        ("See https://evil.example/{{1}} now", True),
        ("At {{1}}.evil.example now", True),
        ("See evil.example/{{ 1 }} {% now", True),
        ("Say whatsapp:{{1}} now", True),
    ],
)
def test_wording_for_whatsapp_puts_no_secret_into_a_link(
    app: App, body: str, is_refused: bool
) -> None:
    approved = {
        "locale": "en",
        "name": "lost",
        "language": "en",
        "parameters": ["pin"],
        "body": body,
    }
    secret = {"example_data": {"pin": "1"}, "sensitive_variables": ["pin"]}
    answer = app.put(PATH, {**MINIMAL, **secret, "approved_templates": [approved]})
    assert answer.status_code in ((422,) if is_refused else (200, 201)), answer.content
    if is_refused:
        assert pointers(answer) == {"/sensitive_variables": "sensitive_in_url"}
        assert "WhatsApp template lost: 'pin' is sensitive" in answer.json()["errors"][0]["detail"]


SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {"parcel": {"$ref": "#/$defs/number"}},
    "required": ["parcel"],
    "$defs": {"number": {"type": "string", "maxLength": 8}},
}
WITH_SCHEMA = MINIMAL | {"schema": SCHEMA, "example_data": {"parcel": "77"}}


def test_schema_is_stored_and_returned_with_its_keys_in_order(app: App) -> None:
    body = app.put(PATH, WITH_SCHEMA).json()
    assert list(body["schema"]) == list(SCHEMA)
    assert (body["schema"], body["schema_mode"]) == (SCHEMA, "reject")
    assert app.get(PATH).json() == body
    without = app.put(PATH, MINIMAL | {"schema_mode": "warn"}).json()
    assert (without["schema"], without["schema_mode"]) == (None, "warn")


@each_case(
    "fields, pointer, code",
    [
        ({"schema": {"type": "array"}}, "/schema/type", "unknown_value"),
        ({"schema": SCHEMA | {"oneOf": []}}, "/schema/oneOf", "unknown_field"),
        ({"schema": []}, "/schema", "wrong_type"),
        ({"schema_mode": "strict"}, "/schema_mode", "unknown_value"),
        ({"example_data": {}}, "/example_data/parcel", "required"),
        ({"example_data": {"parcel": 77}}, "/example_data/parcel", "wrong_type"),
    ],
)
def test_wrong_schema_is_refused(app: App, fields: Any, pointer: str, code: str) -> None:
    answer = app.put(PATH, WITH_SCHEMA | fields)
    assert (answer.status_code, pointers(answer)) == (422, {pointer: code})
