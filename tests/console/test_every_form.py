"""Forms of the console: an unchanged save changes nothing, and they offer what the API does."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import bson
import msgspec
import pytest
from bson import ObjectId
from django.contrib import admin
from django.contrib.admin.utils import quote
from django.contrib.auth.models import Group, Permission
from django.test import Client
from django.urls import reverse
from django_celery_beat.models import (
    IntervalSchedule,
    PeriodicTask,
)

from access.models import APIClient, Scope, StaffUser
from console.widgets.lists import ReadOnlyAdmin, never
from domain.channels import Channel
from domain.limits import Overflow
from domain.rooms import RoomKind
from domain.states import Category, Priority
from domain.time import utc_now
from monitoring.models import AlertKind, AlertRule, SavedView
from notifications.catalog import definitions, limits, types
from notifications.catalog.definitions import TypeRequest
from notifications.catalog.limits import LimitRequest
from notifications.models import Limit, NotificationType, RetentionPolicy
from notifyproject.db.collections import collection, database
from recipients.models import Suppression
from rooms import registry
from rooms.models import Room
from tests.fuzz.console_forms import Form, forms_of
from tests.support.clients.console import make_staff
from tests.support.openapi import api_operations, resolved
from tests.support.tables import each_case

pytestmark = pytest.mark.usefixtures("db", "broker")

ODD = "Zoë \"Quotes\" & <b>'1'</b> \u202eright\u202c 😀"
LONG = "supercalifragilistic" * 6
LINES = "first\n\n  second, with blanks  \n\tthird\n"
DEEP = {"z": 1, "a": {"list": [1, 2.5, None, True, "é\u2028"], "empty": {}}, "text": ODD}


def store_clients() -> None:
    now = utc_now()
    every = [scope.value for scope in Scope]
    for name, scopes in {
        ODD: every[::-1],
        LONG[:120]: [Scope.LIMITS_IGNORE.value, Scope.LIMITS_WRITE.value],
        "  blanks  ": [Scope.ADMIN.value],
        "one": [Scope.TYPES_ADMIN.value],
    }.items():
        collection("api_clients").insert_one(
            {"name": name, "scopes": scopes, "is_test": "o" in name, "is_active": name != "one"}
            | {"keys": [], "created_at": now}
        )


def store_limits() -> None:
    for number, overflow in enumerate(Overflow):
        request = LimitRequest(
            types=["payment_confirmed", "mfa_code"] if number else [],
            categories=[item.value for item in reversed(Category)] if number != 1 else [],
            channels=["whatsapp", "email"][: number + 1],
            max=number * 7 + 1,
            period_seconds=(60, 5_400, 604_799)[number],
            min_gap_seconds=(0, 61, 3_600)[number],
            overflow=overflow.value,
        )
        name = f"limit_{overflow.value}"
        limits.define_limit(name, limits.validate_limit(name, request), now=utc_now())
    NotificationType.objects.filter(pk="mfa_code").update(is_active=False)


def store_types() -> None:
    for slug, fields in {
        "everything": {
            "description": LINES,
            "category": Category.MARKETING.value,
            "priority": Priority.LOW.value,
            "max_priority": Priority.HIGH.value,
            "channels": ["in_app", "whatsapp", "push", "email"],
            "max_retries": 0,
            "ttl_seconds": 2_591_999,
            "notify_before_seconds": 86_399,
            "on_unknown": "fail",
            "plan": {
                "until": "acted",
                "steps": [
                    {"channels": ["push", "in_app"]},
                    {"channels": ["email"], "after": 61, "skip_if_late": 7},
                    {"channels": ["whatsapp"], "after": 3_601},
                ],
            },
            "digest": {
                "channels": ["email", "push"],
                "key": "z",
                "window": {"every": "week", "at": "07:05", "days": ["sun", "mon"]}
                | {"zone": "Europe/Lisbon"},
                "leading": True,
                "max_items": 7,
                "min_items": 3,
            },
            "actions": [
                {
                    "id": "a_1",
                    "label": ODD[:40],
                    "style": "danger",
                    "link": "https://a.example/?a=1&b",
                },
                {"id": "b", "label": "B", "style": "primary"},
                {"id": "c", "label": "C"},
            ],
            "approved_templates": [
                {"locale": "pt-BR", "name": "a_b", "language": "pt_BR", "parameters": ["z", "text"]}
                | {"body": "Olá {{1}}\n{{2}}."},
                {"locale": "en", "name": "c", "language": "en"},
            ],
            "example_data": DEEP,
        },
        "secret": {
            "channels": ["email"],
            "sensitive_variables": ["z", "a_b"],
            "example_data": {"z": "1", "a_b": " blanks "},
            "priority": Priority.CRITICAL.value,
            "is_active": False,
        },
        "falls_back": {
            "channels": ["push", "email"],
            "fallback_channel": "email",
            "fallback_after_seconds": 1,
            "digest": {"window": {"minutes": 30}, "sliding": True},
        },
        "over": {"digest": {"window": {"minutes": 5}, "only_over_limit": True}},
        "smallest": {},
    }.items():
        defaults = {"name": ODD[:120], "category": "transactional", "channels": ["email"]}
        request = msgspec.convert(defaults | fields, TypeRequest)
        stored = definitions.validate_type(slug, request)
        types.define_type(slug, stored, now=utc_now())


def store_rules() -> None:
    store_views()
    countable = SavedView.objects.exclude(match=None).first()
    assert countable is not None
    for number, kind in enumerate(AlertKind):
        is_failures = kind is AlertKind.FAILURES
        AlertRule.objects.create(
            name=f"{number} {ODD}"[:60],
            kind=kind.value,
            channel=Channel.IN_APP.value if is_failures else None,
            type="everything" if is_failures else None,
            view_id=countable.pk if kind is AlertKind.SAVED_VIEW else None,
            threshold=number * 13,
            window_minutes=1_440 - number,
            is_enabled=bool(number % 2),
        )


def store_views() -> None:
    for number in range(3):
        SavedView.objects.create(
            name=f"{number} {ODD}"[:60],
            owner_id=ObjectId(),
            is_shared=True,
            position=3 - number,
            list="notifications_failednotification",
            query="channel=email" if number else "channel=pigeon",
            source="notifications",
            match='{"status": "failed"}' if number else None,
        )


def store_tasks() -> None:
    now = utc_now().replace(microsecond=987_000)
    interval = IntervalSchedule.objects.create(every=7, period="microseconds")
    for name, fields in {
        "plain": {},
        ODD: {"args": '[1, "é"]', "kwargs": '{"a":  {"b": null}}'},
        "dated": {"expires": now, "start_time": now, "description": LINES},
        "once": {"one_off": True, "expire_seconds": 5, "priority": 9}
        | {"queue": "wake", "exchange": "e", "routing_key": "r", "headers": '{"a": "b"}'},
    }.items():
        PeriodicTask.objects.create(
            name=name,
            task="unknown.task",
            interval=interval,
            enabled=name != "dated",
            last_run_at=now,
            **fields,
        )


def store_retention() -> None:
    for number, policy in enumerate(RetentionPolicy.objects.order_by("pk")):
        policy.content_days = (None, 7, 30)[number % 3]
        policy.metadata_days = (365, None, 31)[number % 3]
        policy.save()


ROOM_TARGETS = {
    RoomKind.SLACK_WEBHOOK: "https://hooks.slack.com/services/T0ADA/B0ADA/x",
    RoomKind.SLACK_BOT: "C024BE91L",
    RoomKind.DISCORD: "https://discord.com/api/webhooks/223704706495545344/x",
}


def store_rooms() -> None:
    for number, (kind, target) in enumerate(ROOM_TARGETS.items()):
        registry.create(
            slug=f"room-{number}",
            name=ODD,
            kind=kind,
            target=target,
            min_gap_seconds=(0, 61, 600)[number],
            now=utc_now(),
        )


def store_staff() -> None:
    roles = [Group.objects.create(name=name) for name in (ODD, "  blanks", LONG)]
    roles[0].permissions.set(Permission.objects.order_by("?")[:9])
    roles[1].permissions.set(Permission.objects.filter(codename__startswith="add_"))
    for number, role in enumerate(roles):
        user = make_staff(f"user{number}.x+y@z", "notifications.view_notification")
        user.first_name, user.last_name = ODD[:30], "  O'Brien-Ñ "
        user.email, user.is_superuser = f"User{number}@Example.com", number == 0
        user.is_active, user.last_login = number != 1, utc_now()
        user.save()
        user.groups.set([role, roles[0]])


SCHEDULES = (PeriodicTask, IntervalSchedule)
STORED: Mapping[type[Any], Callable[[], None]] = {
    APIClient: store_clients,
    Limit: store_limits,
    NotificationType: store_types,
    AlertRule: store_rules,
    SavedView: store_views,
    PeriodicTask: store_tasks,
    IntervalSchedule: store_tasks,
    RetentionPolicy: store_retention,
    StaffUser: store_staff,
    Group: store_staff,
    Room: store_rooms,
}
"""What stores several objects of each model with a form, every field set to an unusual value."""


@pytest.fixture(autouse=True)
def clean_up() -> Iterator[None]:
    # The tests' database keeps the schedule, to which these tests add.
    tables = [model._meta.db_table for model in SCHEDULES]
    before = {
        table: [document["_id"] for document in collection(table).find({}, {"_id": 1})]
        for table in tables
    }
    yield
    for table in tables:
        collection(table).delete_many({"_id": {"$nin": before[table]}})
    limits.invalidate_limits()
    types.invalidate_types()


def editable() -> set[type[Any]]:
    return {
        model
        for model, page in admin.site._registry.items()
        if not isinstance(page, ReadOnlyAdmin) and type(page).has_change_permission is not never
    }


def test_every_model_with_a_form_has_samples() -> None:
    assert set(STORED) == editable()


@pytest.mark.parametrize("model", STORED, ids=lambda model: model.__name__)
def test_saving_an_unchanged_form_changes_nothing(console: Client, model: type[Any]) -> None:
    table = collection(model._meta.db_table)
    others = table.distinct("_id")
    STORED[model]()
    before = snapshot()
    keys = table.distinct("_id")
    for key in [key for key in keys if key not in others] or keys:
        url = reverse(
            f"admin:{model._meta.app_label}_{model._meta.model_name}_change", args=[quote(key)]
        )
        form = object_form(console, url)
        answer = console.post(url, form.values)
        assert answer.status_code == 302, (key, errors_of(answer))
    assert changes(before) == {}


def object_form(console: Client, url: str) -> Form:
    """Return the form of the object on a page: the first, as a browser sends it."""
    answer = console.get(url)
    assert answer.status_code == 200, url
    form = next(item for item in forms_of(answer, url) if item.action == url)
    form.values["_save"] = ["Save"]
    return form


def errors_of(answer: Any) -> Any:
    return dict(answer.context["adminform"].form.errors) if answer.context else answer.content


IGNORED = frozenset({"django_session", "sessions", "cache_versions"})


def snapshot() -> dict[str, dict[Any, bytes]]:
    """Return every stored document, byte for byte, besides sessions."""
    store = database()
    return {
        name: {str(document["_id"]): bson.encode(document) for document in store[name].find()}
        for name in store.list_collection_names()
        if name not in IGNORED and not name.startswith("system.")
    }


def changes(before: Mapping[str, Mapping[Any, bytes]]) -> dict[str, Any]:
    after = snapshot()
    return {
        name: {
            key: [bson.decode(item[key]) for item in (old, new) if key in item]
            for key in {*old, *new}
            if old.get(key) != new.get(key)
        }
        for name in {*before, *after}
        if (old := before.get(name, {})) != (new := after.get(name, {}))
    }


@pytest.mark.parametrize(
    ("model", "field", "texts", "other"),
    [
        (APIClient, "name", ("Mine", "Theirs"), {"is_active": False}),
        (Limit, "max", ("5", 9), {"types": []}),
        (NotificationType, "name", ("Mine", "Theirs"), {"max_retries": 1}),
        (AlertRule, "threshold", ("77", 78), {"window_minutes": 9}),
        (RetentionPolicy, "content_days", ("14", 15), {"metadata_days": 200}),
        (Group, "name", ("Mine", "Theirs"), {}),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else None,
)
def test_of_two_tabs_neither_undoes_the_other(
    console: Client, model: type[Any], field: str, texts: tuple[str, Any], other: dict[str, Any]
) -> None:
    STORED[model]()
    (mine, theirs), table = texts, collection(model._meta.db_table)
    stored = table.find_one({}, sort=[("_id", -1)])
    assert stored is not None
    name = f"admin:{model._meta.app_label}_{model._meta.model_name}_change"
    url = reverse(name, args=[quote(stored["_id"])])
    form = object_form(console, url)
    table.update_one({"_id": stored["_id"]}, {"$set": other})
    form.values[field] = [mine]
    assert console.post(url, form.values).status_code == 302
    after = table.find_one({"_id": stored["_id"]})
    assert after is not None
    assert str(after[field]) == mine
    assert {item: after[item] for item in other} == other, "what another tab saved stays"
    # Both change the same field: the second is told, and may insist.
    form = object_form(console, url)
    table.update_one({"_id": stored["_id"]}, {"$set": {field: theirs}})
    form.values[field] = [mine + "1"]
    answer = console.post(url, form.values)
    assert "It is now: " + str(theirs) in str(errors_of(answer)[field])
    again = next(item for item in forms_of(answer, url) if item.action == url)
    assert console.post(url, {**again.values, "_save": ["Save"]}).status_code == 302
    insisted = table.find_one({"_id": stored["_id"]})
    assert insisted is not None
    assert str(insisted[field]) == mine + "1"


def test_role_keeps_permissions_that_its_form_does_not_offer_to_others(console: Client) -> None:
    store_staff()
    role = Group.objects.get(name="  blanks")
    before = set(role.permissions.values_list("pk", flat=True))
    url = reverse("admin:auth_group_change", args=[role.pk])
    form = object_form(console, url)
    console.post(url, {**form.values, "name": ["Renamed"]})
    role.refresh_from_db()
    assert role.name == "Renamed"
    assert set(role.permissions.values_list("pk", flat=True)) == before


ADDED: Mapping[type[Any], Mapping[str, list[str]]] = {
    APIClient: {"name": ["Shop 2"], "scopes": [Scope.ADMIN.value]},
    Limit: {"name": ["weekly"], "max": ["1"]},
    NotificationType: {"slug": ["new_one"], "name": ["New"], "category": ["alert"]}
    | {"channels": ["email"]},
    AlertRule: {"name": ["New"], "threshold": ["1"]},
    PeriodicTask: {"name": ["New"], "task": ["a.b"], "enabled": []},
    IntervalSchedule: {"every": ["3"]},
    Suppression: {"address": ["ada@example.com"]},
    StaffUser: {"username": ["new"], "password1": ["s3cret-enough-9"]}
    | {"password2": ["s3cret-enough-9"]},
    Group: {"name": ["New"]},
}
"""What a user must enter. Everything else is sent as the form shows it at first."""


@pytest.mark.parametrize("model", ADDED, ids=lambda model: model.__name__)
def test_new_form_is_accepted_as_it_is_shown(console: Client, model: type[Any]) -> None:
    Group.objects.create(name="Helpers")
    schedule = IntervalSchedule.objects.create(every=5, period="days")
    entered = dict(ADDED[model])
    if model is StaffUser:
        entered["groups"] = [str(Group.objects.get(name="Helpers").pk)]
    if model is PeriodicTask:
        entered["interval"] = [str(schedule.pk)]
    url = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_add")
    form = object_form(console, url)
    assert set(entered) <= set(form.values), "the form has these fields"
    answer = console.post(url, {**form.values, **entered})
    assert answer.status_code == 302, errors_of(answer)


def test_new_type_and_limit_have_the_defaults_of_the_api(console: Client) -> None:
    for model, slug, defaults in (
        (
            NotificationType,
            "new_one",
            definitions.validate_type(
                "new_one", TypeRequest(name="New", category="alert", channels=["email"])
            ),
        ),
        (
            Limit,
            "weekly",
            limits.validate_limit("weekly", LimitRequest(max=1, period_seconds=604_800)),
        ),
    ):
        url = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_add")
        console.post(url, {**object_form(console, url).values, **ADDED[model]})
        stored = collection(model._meta.db_table).find_one({"_id": slug})
        assert stored is not None
        assert {name: stored.get(name) or None for name in defaults} == {
            name: value or None for name, value in defaults.items()
        }


API_FORMS: Mapping[str, tuple[type[Any], str]] = {
    "putLimit": (Limit, "limit_later"),
    "putType": (NotificationType, "secret"),
    "putSuppression": (Suppression, ""),
}
"""Operations that store an object, its model, and the key of one whose form is complete."""
LEFT_OUT: Mapping[tuple[str, str], str] = {
    ("putLimit", "in_app"): "the API refuses it: in-app is never limited",
    ("putLimit", "room"): "the API refuses it: rooms are never limited",
    ("putType", "all"): "a short form of all channels, each of which has a box",
}
"""Values of the API that a form leaves out, and why."""
ENUMS: Mapping[tuple[type[Any], str], set[str]] = {
    (APIClient, "scopes"): {scope.value for scope in Scope},
    (AlertRule, "kind"): {kind.value for kind in AlertKind},
    (AlertRule, "channel"): {channel.value for channel in Channel},
    (Limit, "overflow"): {item.value for item in Overflow},
}


@each_case("operation", API_FORMS)
def test_form_offers_every_field_and_value_of_the_api(console: Client, operation: str) -> None:
    model, key = API_FORMS[operation]
    if key:
        STORED[model]()
    body = api_operations()[operation]["requestBody"]["content"]["application/json"]["schema"]
    fields = fields_of_form(console, model, key)
    for name, described in resolved(body)["properties"].items():
        if name in definitions.OF_MANAGEMENT:
            continue  # Only a push changes them
        assert name in fields, f"{model.__name__} has no field for {name}"
        offered = choices_of(fields[name])
        if offered is not None:
            wanted = values_of(described) - offered
            assert {item for item in wanted if (operation, item) not in LEFT_OUT} == set(), name
        for bound, own in (("minimum", "min_value"), ("maximum", "max_value")):
            limit = bound_of(described, bound)
            if limit is not None and hasattr(fields[name], own):
                assert getattr(fields[name], own) == limit, (name, bound)


@each_case("model, field", ENUMS)
def test_form_offers_every_value(console: Client, model: type[Any], field: str) -> None:
    assert choices_of(fields_of_form(console, model, "")[field]) >= ENUMS[model, field]


def fields_of_form(console: Client, model: type[Any], key: str) -> Mapping[str, Any]:
    name = f"admin:{model._meta.app_label}_{model._meta.model_name}"
    url = reverse(f"{name}_change", args=[quote(key)]) if key else reverse(f"{name}_add")
    found: Mapping[str, Any] = console.get(url).context["adminform"].form.fields
    return found


def values_of(schema: Any) -> set[str]:
    """Return the values of an enum, also of a list's items, without null."""
    schema = resolved(schema)
    parts = [schema.get("items"), *schema.get("anyOf", ()), *schema.get("oneOf", ())]
    inner = [values_of(part) for part in parts if part]
    return {value for value in schema.get("enum", ()) if value is not None}.union(*inner)


def bound_of(schema: Any, bound: str) -> Any:
    schema = resolved(schema)
    inner = [bound_of(part, bound) for part in schema.get("anyOf", ())]
    return next((item for item in (schema.get(bound), *inner) if item is not None), None)


def choices_of(field: Any) -> set[str] | None:
    """Return the values that a field offers; None if it isn't a choice."""
    offered = getattr(field, "choices", None)
    return None if offered is None else {str(value) for value, _ in offered}
