"""Types with their texts as one value: revisions, conflicts, and sets that are stored together."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from threading import Barrier
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry

from access.models import Scope
from domain.time import utc_now
from notifications.catalog import types
from notifications.catalog.definitions import MAX_ACTIONS, TRANSIENT, TypeRequest
from notifications.catalog.shipped_types import shipped_types
from notifications.content import pushes, templates, type_files
from notifications.documents.catalog import EmergencyChangeDocument
from notifyproject.db.collections import collection
from tests.support.clients.api import Answer, App, new_app, pages, pointers
from tests.support.factories.templates import publish_version
from tests.support.mongo.ending_writes import Ended, ending
from tests.support.tables import each_case

PATH = "/type-files"
PARCEL: dict[str, Any] = {
    "slug": "parcel_lost",
    "definition": {
        "name": "Parcel lost",
        "category": "transactional",
        "channels": ["email"],
        "example_data": {"parcel": "77"},
        "schema": {"type": "object", "properties": {"parcel": {"type": "string"}}},
    },
    "parts": {"default": {"subject": "Lost: {{ parcel }}", "body": "We are sorry."}},
}


def read(app: App) -> dict[str, dict[str, Any]]:
    return {each["slug"]: each for each in app.get(PATH, limit=100).json()["results"]}


def push(app: App, *each: dict[str, Any], publish: bool = True, **fields: Any) -> Answer:
    return app.post(PATH, {"types": list(each), "publish": publish, **fields})


def sent(file: dict[str, Any], **definition: Any) -> dict[str, Any]:
    """Return a type as it was read, to send it again with changed fields."""
    return {
        "slug": file["slug"],
        "revision": file["revision"],
        "definition": {**file["definition"], **definition},
        "parts": file["parts"],
    }


def outcomes(answer: Answer) -> list[str]:
    assert answer.status_code == 200, answer.content
    return [result["outcome"] for result in answer.json()["results"]]


def stored_type(slug: str) -> Any:
    return collection("notification_types").find_one({"_id": slug})


def stored_types() -> list[Any]:
    return list(collection("notification_types").find().sort("_id", 1))


def test_definitions_have_no_defaults_and_make_the_same_type(app: App) -> None:
    found = read(app)
    assert list(found) == [shipped.slug for shipped in shipped_types()]
    before = stored_types()
    for slug, file in found.items():
        body = app.get(f"/types/{slug}").json()
        assert {name: body[name] for name in file["definition"]}["name"] == body["name"]
        assert None not in file["definition"].values()
        assert file["parts"] == templates.shipped_texts(slug)
    assert set(outcomes(push(app, *map(sent, found.values())))) == {"unchanged"}
    assert stored_types() == before


def test_types_are_read_in_pages(app: App) -> None:
    found = [each["slug"] for page in pages(app.get, PATH, limit=5) for each in page]
    assert found == [shipped.slug for shipped in shipped_types()]


def test_every_field_of_a_type_is_in_its_definition(app: App) -> None:
    definition = {
        **PARCEL["definition"],
        "description": "A parcel did not come.",
        "priority": "high",
        "max_priority": "high",
        "channels": ["email", "push", "in_app"],
        "room": None,
        "max_retries": 1,
        "ttl_seconds": 3600,
        "notify_before_seconds": 7200,
        "on_unknown": "fail",
        "fallback_channel": None,
        "fallback_after_seconds": 90,
        "plan": {
            "until": "read",
            "steps": [
                {"channels": ["push"], "after": 0},
                {"channels": ["email"], "after": 60, "skip_if_late": 30},
            ],
        },
        "digest": {"window": {"minutes": 5}},
        "approval": {"above": 500},
        "sms": {"max_units": 2, "allow_unicode": True},
        "actions": [{"id": "ok", "label": "OK"}],
        "approved_templates": [
            {"locale": "pt", "name": "lost", "language": "pt_PT", "parameters": ["parcel"]}
        ],
        "example_data": {"parcel": "77", "note": None},
        "schema_mode": "warn",
        "brand": "acme",
        "layout": "main",
        "console_send": True,
        "managed_by": "code",
        "repository": "https://git.example.com/acme/notify",
        "sensitive_variables": [],
        "is_active": False,
    }
    design = {
        "layouts": [
            {"name": "main", "html": "<html><body>{{ content }}{{ unsubscribe_url }}</body></html>"}
        ],
        "brands": [{"name": "acme", "brand": {"name": "Acme"}}],
    }
    assert app.post("/design", design).status_code == 200
    assert definition.keys() == set(TypeRequest.__struct_fields__) - TRANSIENT
    assert outcomes(push(app, {**PARCEL, "definition": definition})) == ["created"]
    file = read(app)["parcel_lost"]
    assert definition.keys() - file["definition"].keys() == {
        *("fallback_channel", "room", "sensitive_variables")
    }
    assert file["definition"]["example_data"] == {"parcel": "77", "note": None}
    body = app.get("/types/parcel_lost").json()
    assert outcomes(push(app, sent(file))) == ["unchanged"]
    assert app.get("/types/parcel_lost").json() == body


def test_push_settles_what_staff_changed_in_an_emergency(app: App) -> None:
    """Also one that changes nothing more, since the files have taken it over."""
    by_code = {"managed_by": "code", "repository": "https://git.example.com/acme/notify"}
    file = {**PARCEL, "definition": PARCEL["definition"] | by_code}
    assert outcomes(push(app, file)) == ["created"]
    pulled = read(app)["parcel_lost"]
    assert pulled["emergency_changes"] == []
    parts = {"default": {"subject": "Found", "body": "We found it."}}
    assert app.post("/types/parcel_lost/templates", {"parts": parts}).status_code == 201
    emergency: EmergencyChangeDocument = {
        "reason": "The text is wrong.",
        "by": "staff:ana",
        "at": datetime(2026, 11, 29, 1, 0, tzinfo=UTC),
    }
    publish_version(type_slug="parcel_lost", number=2, now=utc_now(), emergency=emergency)
    assert push(app, sent(pulled)).status_code == 409
    file = read(app)["parcel_lost"]
    assert file["emergency_changes"] == [
        {"reason": "The text is wrong.", "by": "staff:ana", "at": "2026-11-29T01:00:00Z"}
    ]
    assert outcomes(push(app, sent(file), publish=False)) == ["unchanged"]
    assert outcomes(push(app, sent(file), dry_run=True)) == ["unchanged"]
    assert read(app)["parcel_lost"] == file
    assert outcomes(push(app, sent(file))) == ["unchanged"]
    assert read(app)["parcel_lost"] == {**file, "emergency_changes": []}
    (kept,) = stored_type("parcel_lost")["emergency_changes"]
    assert kept.keys() == {"reason", "by", "at", "pushed_at"}


def test_sensitive_variable_is_in_the_files_where_it_was_given(app: App) -> None:
    """In the schema or in the list: a push changes neither, and both take effect."""
    schema = {"type": "object", "properties": {"parcel": {"x-sensitive": True}}}
    listed = {**PARCEL["definition"], "schema": schema, "sensitive_variables": ["pin"]}
    file = {**PARCEL, "definition": listed}
    assert outcomes(push(app, file)) == ["created"]
    assert read(app)["parcel_lost"]["definition"] == listed
    assert app.get("/types/parcel_lost").json()["sensitive_variables"] == ["pin", "parcel"]
    assert outcomes(push(app, sent(read(app)["parcel_lost"]))) == ["unchanged"]
    answer = push(app, sent(read(app)["parcel_lost"], schema={"type": "object"}))
    assert pointers(answer) == {
        "/types/0/definition/confirm_not_sensitive": "confirmation_required"
    }
    exposed = {"default": {"subject": "Lost", "body": "At {{ parcel }}.example.com now"}}
    answer = push(app, {**sent(read(app)["parcel_lost"]), "parts": exposed})
    assert list(pointers(answer).values()) == ["sensitive_in_url"]


def test_large_number_of_the_example_data_is_read(app: App) -> None:
    definition = {**PARCEL["definition"], "example_data": {"parcel": "77", "number": 2**40}}
    assert outcomes(push(app, {**PARCEL, "definition": definition})) == ["created"]
    assert read(app)["parcel_lost"]["definition"]["example_data"]["number"] == 2**40


def test_new_type_is_used_at_once_with_its_texts(app: App) -> None:
    answer = push(app, PARCEL)
    assert (outcomes(answer), answer.json()["is_published"]) == (["created"], True)
    (result,) = answer.json()["results"]
    file = read(app)["parcel_lost"]
    assert (file["revision"], file["version"]) == (result["revision"], 1)
    assert (file["definition"], file["parts"]) == (PARCEL["definition"], PARCEL["parts"])
    assert pointers(app.notify(type="parcel_lost", content=..., data={"parcel": 77})) == {
        "/data/parcel": "wrong_type"
    }
    sent_one = app.notify(type="parcel_lost", content=..., data={"parcel": "77"})
    assert sent_one.json()["content"]["subject"] == "Lost: 77"
    messages = [entry.change_message for entry in LogEntry.objects.order_by("pk")]
    assert [message.partition(": ")[2] for message in messages] == [
        "Template version 1 created.",
        "Created. Template version 1 published.",
    ]


def test_repeated_set_has_no_effect(app: App) -> None:
    push(app, PARCEL)
    before, versions = stored_types(), list(collection("template_versions").find())
    assert outcomes(push(app, PARCEL)) == ["unchanged"]
    assert (stored_types(), list(collection("template_versions").find())) == (before, versions)


def test_types_that_a_set_does_not_name_stay(app: App) -> None:
    before = stored_types()
    push(app, PARCEL)
    assert [each for each in stored_types() if each["_id"] != "parcel_lost"] == before


def test_set_without_publication_changes_nothing_that_is_sent(app: App) -> None:
    push(app, PARCEL)
    file = read(app)["parcel_lost"]
    changed = {**sent(file, name="Gone"), "parts": {"default": {"subject": "S", "body": "B"}}}
    for _ in range(2):
        answer = push(app, changed, publish=False)
        assert (outcomes(answer), answer.json()["is_published"]) == (["changed"], False)
        assert answer.json()["results"][0]["version"] == 2
        assert read(app)["parcel_lost"] == file
    assert outcomes(push(app, changed)) == ["changed"]
    published = read(app)["parcel_lost"]
    assert (published["version"], published["definition"]["name"]) == (2, "Gone")
    assert published["revision"] == answer.json()["results"][0]["revision"]


def test_earlier_texts_are_published_again_without_a_new_version(app: App) -> None:
    file = read(app)["order_shipped"]
    changed = {**sent(file), "parts": {"default": {"subject": "S", "body": "B"}}}
    assert outcomes(push(app, changed)) == ["changed"]
    again = {**sent(read(app)["order_shipped"]), "parts": file["parts"]}
    assert outcomes(push(app, again)) == ["changed"]
    assert read(app)["order_shipped"] == file
    assert collection("template_versions").count_documents({}) == 1


def test_dry_run_says_what_would_happen(app: App) -> None:
    before = stored_types()
    answer = push(app, PARCEL, dry_run=True)
    assert (outcomes(answer), answer.json()["is_published"]) == (["created"], False)
    assert answer.json()["results"][0]["version"] is None
    assert (stored_types(), collection("template_versions").count_documents({})) == (before, 0)


def test_change_by_staff_since_the_revision_is_a_conflict(app: App) -> None:
    push(app, PARCEL)
    file = read(app)["parcel_lost"]
    types.define_type("parcel_lost", {"name": "By staff"}, now=utc_now())
    other = {**PARCEL, "slug": "parcel_found"}
    answer = push(app, other, sent(file, name="By code"))
    assert (answer.status_code, answer.json()["code"]) == (409, "revision_conflict")
    assert pointers(answer) == {"/types/1/revision": "changed"}
    assert app.get("/types/parcel_found").status_code == 404
    assert read(app)["parcel_lost"]["definition"]["name"] == "By staff"
    without = {**PARCEL, "definition": {**PARCEL["definition"], "name": "By code"}}
    assert push(app, without).status_code == 409


def test_all_problems_of_a_set_are_named_and_nothing_is_stored(app: App) -> None:
    before = stored_types()
    wrong_text = {"default": {"subject": "{{ parcl }}", "body": "B"}, "PT": {"body": "B"}}
    answer = push(
        app,
        PARCEL,
        {**PARCEL, "slug": "b", "definition": {**PARCEL["definition"], "channels": ["fax"]}},
        {**PARCEL, "slug": "c", "parts": {"default": wrong_text["default"]}},
    )
    assert answer.status_code == 422
    assert pointers(answer) == {
        "/types/1/definition/channels/0": "unknown_channel",
        "/types/2/parts/default/subject": "unknown_variable",
    }
    assert (stored_types(), collection("template_versions").count_documents({})) == (before, 0)
    assert pointers(push(app, PARCEL, PARCEL)) == {"/types/1/slug": "duplicate"}


def test_shipped_texts_are_not_removed(app: App) -> None:
    file = read(app)["payment_confirmed"]
    for parts in ({}, {"default": {}}):
        answer = push(app, sent(file) | {"parts": parts})
        assert pointers(answer) == {"/types/0/parts": "required"}
    assert read(app)["payment_confirmed"] == file


def test_type_without_texts_is_stored(app: App) -> None:
    push(app, PARCEL)
    assert outcomes(push(app, sent(read(app)["parcel_lost"]) | {"parts": {}})) == ["changed"]
    file = read(app)["parcel_lost"]
    assert (file["parts"], file["version"]) == ({}, 0)
    assert outcomes(push(app, sent(file))) == ["unchanged"]


def test_type_whose_version_is_gone_does_not_hide_the_others(app: App) -> None:
    push(app, PARCEL)
    collection("template_versions").delete_many({})
    found = read(app)
    assert (len(found), found["parcel_lost"]["parts"]) == (len(shipped_types()) + 1, {})


@each_case(
    "definition, text, code",
    [
        ({"sms": {"max_units": 1}}, "x" * 161, "too_long"),
        ({"sms": {"allow_unicode": False}}, "Olá, não há ã", "unicode"),
        ({"category": "marketing"}, "New parcels.", "opt_out_missing"),
        ({"category": "marketing"}, "New parcels. Reply STOP to opt out.", None),
    ],
)
def test_texts_are_checked_by_the_definition_beside_them(
    app: App, definition: dict[str, Any], text: str, code: str | None
) -> None:
    texts = PARCEL["parts"]["default"] | {"sms": text}
    changed = {
        **PARCEL,
        "definition": {**PARCEL["definition"], "channels": ["sms"], **definition},
        "parts": {"default": texts},
    }
    answer = push(app, changed, dry_run=True)
    if code is None:
        assert outcomes(answer) == ["created"]
    else:
        assert pointers(answer) == {"/types/0/parts/default/sms": code}


def test_secret_in_a_link_of_an_approved_template_is_refused(app: App) -> None:
    secret = {"example_data": {"parcel": "77"}, "sensitive_variables": ["parcel"]}
    approved = {
        "locale": "en",
        "name": "lost",
        "language": "en",
        "parameters": ["parcel"],
        "body": "At {{1}}.example.com now",
    }
    definition = {**PARCEL["definition"], **secret, "approved_templates": [approved]}
    refused = {"/types/0/definition/sensitive_variables": "sensitive_in_url"}
    assert pointers(push(app, {**PARCEL, "definition": definition})) == refused


def test_weakened_type_needs_the_scope(db: None) -> None:
    editor = new_app("editor", Scope.TEMPLATES_WRITE)
    security = new_app("security", Scope.TEMPLATES_WRITE, Scope.TYPES_ADMIN)
    file = read(editor)["mfa_code"]
    weaker = sent(file, priority="normal")
    assert push(editor, weaker).status_code == 403
    assert push(editor, weaker, dry_run=True).status_code == 403
    readable = sent(file, sensitive_variables=[])
    assert pointers(push(security, readable)) == {
        "/types/0/definition/confirm_not_sensitive": "confirmation_required"
    }
    readable["definition"]["confirm_not_sensitive"] = ["code"]
    assert outcomes(push(security, readable)) == ["changed"]
    assert "confirm_not_sensitive" not in read(security)["mfa_code"]["definition"]


def test_end_at_any_write_leaves_all_old_or_all_new(app: App) -> None:
    """Before each write of a publication and after it: the commit is the one that counts."""
    wanted = {"default": {"subject": "New", "body": "New."}}

    def prepared(turn: str) -> list[dict[str, Any]]:
        sets = [{**PARCEL, "slug": f"{slug}_{turn}"} for slug in ("a", "b")]
        push(app, *sets)
        files = read(app)
        changed = [{**sent(files[each["slug"]], name="New"), "parts": wanted} for each in sets]
        return [*changed, {**PARCEL, "slug": f"c_{turn}", "parts": wanted}]

    def published(sets: list[dict[str, Any]]) -> list[bool]:
        files = read(app)
        found = [files.get(each["slug"]) for each in sets]
        return [file is not None and file["parts"] == wanted for file in found]

    clean = prepared("clean")
    with ending.at(None):
        assert outcomes(push(app, *clean)) == ["changed", "changed", "created"]
    writes = ending.count
    assert writes > 2 * len(clean)
    states: list[bool] = []
    for number in range(writes):
        for is_before in (True, False):
            sets = prepared(f"{number}_{'before' if is_before else 'after'}")
            with ending.at(number, is_before=is_before), pytest.raises(Ended):
                push(app, *sets)
            found = published(sets)
            assert len(set(found)) == 1, (number, is_before, found)
            states.append(found[0])
            assert push(app, *sets).status_code == 200
            assert published(sets) == [True] * len(sets)
    # All old until one moment, all new from then on.
    assert states == sorted(states)
    assert set(states) == {False, True}


def test_of_two_sets_at_once_one_wins_whole(app: App) -> None:
    sets = [{**PARCEL, "slug": slug} for slug in ("a", "b")]
    for turn in range(5):
        files = read(app)
        start = Barrier(2)

        def write(name: str, files: Any = files, start: Barrier = start) -> int:
            own = [
                {**each, "definition": {**each["definition"], "name": name},
                 "revision": files[each["slug"]]["revision"] if each["slug"] in files else None}
                for each in sets
            ]  # fmt: skip
            start.wait()
            return push(app, *own).status_code

        names = [f"first {turn}", f"second {turn}"]
        with ThreadPoolExecutor(2) as pool:
            statuses = list(pool.map(write, names))
        assert sorted(statuses) == [200, 409]
        winner = names[statuses.index(200)]
        after = read(app)
        assert {after[each["slug"]]["definition"]["name"] for each in sets} == {winner}


def test_changes_that_were_planned_are_not_written_over_later_ones(app: App) -> None:
    push(app, PARCEL)
    new = type_files.NewContent(
        slug="parcel_lost",
        definition=TypeRequest(name="Code", category="alert", channels=["email"]),
        parts=PARCEL["parts"],
        replaces=read(app)["parcel_lost"]["revision"],
    )
    without = type_files.NewContent(**{**_fields(new), "parts": {}})
    planned = pushes.plan([without], [])
    types.define_type("parcel_lost", {"name": "Staff"}, now=utc_now() + timedelta(seconds=1))
    with pytest.raises(pushes.PushConflictError):
        pushes.publish(planned, created_by="app:a", now=utc_now())
    assert read(app)["parcel_lost"]["definition"]["name"] == "Staff"


def _fields(new: type_files.NewContent) -> dict[str, Any]:
    return {name: getattr(new, name) for name in ("slug", "definition", "parts", "replaces")}


def test_type_of_a_newer_version_is_read_and_used(app: App) -> None:
    push(app, PARCEL)
    action = {"id": "ok", "label": "OK", "style": "loud", "link": None, "icon": "x"}
    newer = {
        "schema_mode": "ask",
        "on_unknown": "ask",
        "actions": [action | {"id": f"a{number}"} for number in range(MAX_ACTIONS + 1)],
        "plan": {
            "until": "answered",
            "steps": [
                {"channels": ["email"], "after": 0, "via": "x"},
                {"channels": ["push"], "after": 60},
            ],
        },
        "digest": {
            "channels": ["email"],
            "key": None,
            "window": {"every": "month"},
            "leading": False,
            "sliding": False,
            "max_items": 10,
            "min_items": 2,
            "only_over_limit": False,
        },
        "sms": {"max_units": 2, "allow_unicode": True, "sender": "x"},
        "colour": "red",
    }
    collection("notification_types").update_one({"_id": "parcel_lost"}, {"$set": newer})
    types.invalidate_types()
    answer = app.notify(type="parcel_lost", content=..., data={"parcel": 77})
    assert answer.status_code == 202
    assert [warning["pointer"] for warning in answer.json()["warnings"]] == ["/data/parcel"]
    for path in (PATH, "/types", "/types/parcel_lost"):
        assert app.get(path).status_code == 200, path
