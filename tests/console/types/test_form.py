"""Notification types in the console."""

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.admin.models import CHANGE, LogEntry
from django.forms import BaseForm
from django.test import Client
from django.utils.datastructures import MultiValueDict

from console.types.form import NOT_ALLOWED
from domain.channels import Channel
from domain.states import Priority
from domain.time import utc_now
from notifications.catalog import types
from notifications.catalog.plans import fallback_plan
from notifications.models import NotificationType
from tests.fuzz.console_forms import forms_of
from tests.support.clients.console import listed, make_staff, signed_in
from tests.support.samples import sampled
from tests.support.tables import each_case

pytestmark = pytest.mark.usefixtures("db")

LIST = "/admin/notifications/notificationtype/"
GOOD = {
    "slug": "parcel_lost",
    "name": "Parcel lost",
    "description": "A parcel did not come.",
    "is_active": "on",
    "category": "transactional",
    "priority": "high",
    "channels": ["in_app", "email"],
    "max_retries": "2",
    "ttl_seconds": "3600",
    "on_unknown": "fail",
    "plan_until": "delivered",
    "example_data": '{"parcel": "77"}',
    "sensitive_variables": "pin, code ,pin",
}


def test_new_type_is_usable_at_once(console: Client) -> None:
    assert console.post(f"{LIST}add/", GOOD).status_code == 302
    kind = types.get_type("parcel_lost")
    assert kind.channels == (Channel.EMAIL, Channel.IN_APP)
    assert (kind.priority, kind.max_retries, kind.ttl_seconds) == (Priority.HIGH, 2, 3600)
    assert kind.sensitive_variables == {"pin", "code"}
    stored = NotificationType.objects.get(pk="parcel_lost")
    assert stored.example_data == {"parcel": "77"}
    assert stored.created_at is not None


def test_concurrent_changes_of_the_category_are_all_remembered(console: Client) -> None:
    for number in range(5):
        slug = f"parcel_{number}"
        url = f"{LIST}{slug.replace('_', '_5F')}/change/"
        fields = GOOD | {"slug": slug}
        assert console.post(f"{LIST}add/", fields).status_code == 302
        start = Barrier(2)

        def by_console(url: str = url, fields: Any = fields, start: Barrier = start) -> None:
            start.wait()
            assert console.post(url, fields | {"category": "alert"}).status_code == 302

        def by_api(slug: str = slug, start: Barrier = start) -> None:
            start.wait()
            types.define_type(slug, {"category": "marketing"}, now=utc_now())

        with ThreadPoolExecutor() as pool:
            for writing in [pool.submit(by_console), pool.submit(by_api)]:
                writing.result()
        assert console.post(url, fields).status_code == 302
        stored = types.read_type(slug)
        assert stored is not None
        assert set(stored["categories"]) == {"transactional", "alert", "marketing"}


def test_optional_fields_can_be_empty(console: Client) -> None:
    less = GOOD | {"ttl_seconds": "", "example_data": "", "sensitive_variables": ""}
    assert console.post(f"{LIST}add/", less).status_code == 302
    stored = NotificationType.objects.get(pk="parcel_lost")
    assert (stored.ttl_seconds, stored.example_data, stored.sensitive_variables) == (None, {}, [])


def test_new_form_has_the_defaults_and_no_null(console: Client) -> None:
    form = console.get(f"{LIST}add/").context["adminform"].form
    shown = {name: form[name].value() for name in form.fields}
    assert shown["max_retries"] == 3
    assert shown["priority"] == "normal"
    assert shown["on_unknown"] == "retry"
    assert shown["fallback_after_seconds"] == 600
    assert shown["is_active"] is True
    assert shown["example_data"] == ""
    assert shown["approved_templates"] == []
    assert shown["sensitive_variables"] == ""


def test_json_is_shown_as_text_and_rejected_text_as_it_was_sent(console: Client) -> None:
    console.post(f"{LIST}add/", GOOD)
    page = console.get(f"{LIST}parcel_5Flost/change/")
    assert page.context["adminform"].form["example_data"].value() == '{\n  "parcel": "77"\n}'
    page = console.post(f"{LIST}add/", GOOD | {"slug": "other", "example_data": '{"parcel": '})
    assert page.context["adminform"].form["example_data"].value() == '{"parcel": '


def test_saving_empty_json_changes_nothing(console: Client) -> None:
    empty = GOOD | {"example_data": ""}
    console.post(f"{LIST}add/", empty)
    page = console.post(f"{LIST}parcel_5Flost/change/", empty | {"max_retries": "4"}, follow=True)
    assert page.status_code == 200
    (said,) = LogEntry.objects.filter(action_flag=CHANGE)
    assert said.get_change_message() == "Changed Max retries (2 → 4)."


def test_template_and_preview_precede_the_settings(console: Client) -> None:
    page = console.get(f"{LIST}order_5Fshipped/change/").content.decode()
    template, settings = page.index('id="template-title"'), page.index('id="id_name"')
    assert template < settings


TEMPLATE = {
    "approved_templates-0-locale": "pt",
    "approved_templates-0-name": "lost",
    "approved_templates-0-language": "pt_PT",
    "approved_templates-0-parameters": "parcel",
}
BAD = [
    ("slug", "Parcel", "Must be 1 to 64 lower-case letters"),
    ("slug", "../etc", "Must be 1 to 64 lower-case letters"),
    ("slug", "mfa_code", "A type with this slug already exists."),
    ("slug", "a" * 65, "at most 64 characters"),
    ("channels", [], "This field is required."),
    ("channels", ["pigeon"], "is not one of the available choices"),
    ("priority", "extreme", "is not one of the available choices"),
    ("category", "junk", "is not one of the available choices"),
    ("on_unknown", "panic", "is not one of the available choices"),
    ("max_retries", "-1", "greater than or equal to 0"),
    ("max_retries", "11", "less than or equal to 10"),
    ("ttl_seconds", "0", "Expected 1 second to 30 days."),
    ("ttl_seconds", "2592001", "Expected 1 second to 30 days."),
    ("example_data", "[1]", "Enter an object, such as"),
    ("example_data", "{", "Enter a valid JSON."),
    ("sensitive_variables", "a b", "Not a valid variable name: a b."),
    ("description", "x" * 2_001, "at most 2000 characters"),
    ("example_data", '{"recipient": 1}', "At recipient: Reserved for the recipient."),
    ("example_data", '{"$where": 1}', "At $where: A key is empty, begins with $"),
    ("example_data", '{"n": NaN}', "At n: NaN and Infinity are not JSON."),
    ("example_data", '{"n": 9223372036854775808}', "At n: An integer has at most 64 bits."),
    ("fallback_channel", "push", "Must be one of the type&#x27;s channels."),
    ("fallback_channel", "email", "No other channel that can fail"),
    ("fallback_channel", "pigeon", "is not one of the available choices"),
    ("fallback_after_seconds", "0", "Expected 1 second to 30 days."),
]


@pytest.fixture
def form_class(console: Client) -> type[BaseForm]:
    return type(console.get(f"{LIST}add/").context["adminform"].form)


@each_case("field, value, problem", BAD)
def test_invalid_field_is_refused(
    form_class: type[BaseForm], field: str, value: Any, problem: str
) -> None:
    sent = GOOD | {field: value}
    lists = {name: each if isinstance(each, list) else [each] for name, each in sent.items()}
    form = form_class(MultiValueDict(lists))
    assert not form.is_valid()
    assert problem in str(form.errors)


def test_refused_form_is_shown_and_stores_nothing(console: Client) -> None:
    before = NotificationType.objects.count()
    response = console.post(f"{LIST}add/", GOOD | {"max_retries": "-1"})
    assert response.status_code == 200
    assert "greater than or equal to 0" in response.content.decode()
    assert NotificationType.objects.count() == before


def test_slug_cannot_change(console: Client) -> None:
    console.post(f"{LIST}add/", GOOD)
    url = f"{LIST}parcel_lost/change/"
    assert 'name="slug"' not in console.get(url).content.decode()
    assert 'value="pin, code"' in console.get(url).content.decode()
    response = console.post(url, GOOD | {"slug": "other", "name": "Lost parcel"})
    assert response.status_code == 302
    assert NotificationType.objects.get(pk="parcel_lost").name == "Lost parcel"
    assert not NotificationType.objects.filter(pk="other").exists()


def test_removing_a_sensitive_variable_asks_for_a_confirmation(console: Client) -> None:
    console.post(f"{LIST}add/", GOOD)
    url = f"{LIST}parcel_lost/change/"
    assert "confirm_not_sensitive" not in console.get(f"{LIST}add/").content.decode()
    assert 'name="confirm_not_sensitive"' in console.get(url).content.decode()
    fewer = {name: value for name, value in GOOD.items() if name != "slug"}
    fewer |= {"sensitive_variables": "pin"}
    response = console.post(url, fewer)
    assert response.status_code == 200
    assert "Turn this on to remove a sensitive variable" in response.content.decode()
    assert types.get_type("parcel_lost").sensitive_variables == {"pin", "code"}
    assert console.post(url, fewer | {"confirm_not_sensitive": "on"}).status_code == 302
    assert types.get_type("parcel_lost").sensitive_variables == {"pin"}
    entry = LogEntry.objects.latest("pk")
    assert "Make removed variables readable" in entry.get_change_message()


def test_new_type_gets_a_schema_of_its_example_data(console: Client) -> None:
    assert console.post(f"{LIST}add/", GOOD).status_code == 302
    derived = NotificationType.objects.get(pk="parcel_lost").schema
    assert json.loads(derived)["properties"] == {"parcel": {"type": "string"}}
    unchecked = GOOD | {"slug": "unchecked", "schema_mode": "off"}
    empty = GOOD | {"slug": "empty", "example_data": ""}
    for fields in (unchecked, empty):
        assert console.post(f"{LIST}add/", fields).status_code == 302
        assert NotificationType.objects.get(pk=fields["slug"]).schema == ""
    # Whoever removes it from a type meant it.
    without = {name: value for name, value in GOOD.items() if name != "slug"} | {"schema": ""}
    assert console.post(f"{LIST}parcel_lost/change/", without).status_code == 302
    assert NotificationType.objects.get(pk="parcel_lost").schema == ""


def test_variable_that_the_schema_marks_stays_sensitive(console: Client) -> None:
    schema = '{"type": "object", "properties": {"key": {"x-sensitive": true}}}'
    console.post(f"{LIST}add/", GOOD | {"schema": schema})
    assert types.get_type("parcel_lost").sensitive_variables == {"pin", "code", "key"}
    url = f"{LIST}parcel_lost/change/"
    assert 'value="pin, code, key"' in console.get(url).content.decode()
    fewer = {name: value for name, value in GOOD.items() if name != "slug"}
    fewer |= {"schema": schema, "sensitive_variables": "pin, code"}
    assert console.post(url, fewer).status_code == 302
    assert types.get_type("parcel_lost").sensitive_variables == {"pin", "code", "key"}


def test_variable_that_a_later_schema_marks_becomes_sensitive(console: Client) -> None:
    console.post(f"{LIST}add/", GOOD | {"schema": '{"type": "object"}'})
    fields = {name: value for name, value in GOOD.items() if name != "slug"}
    fields["schema"] = '{"type": "object", "properties": {"key": {"x-sensitive": true}}}'
    url = f"{LIST}parcel_5Flost/change/"
    assert console.post(url, fields).status_code == 302
    assert types.get_type("parcel_lost").sensitive_variables == {"pin", "code", "key"}


def test_schema_that_refuses_more_asks_for_a_confirmation(console: Client) -> None:
    console.post(f"{LIST}add/", GOOD | {"schema": '{"type": "object"}'})
    url = f"{LIST}parcel_lost/change/"
    assert "confirm_breaking" not in console.get(f"{LIST}add/").content.decode()
    assert 'name="confirm_breaking"' in console.get(url).content.decode()
    schema = '{"type": "object", "properties": {"days": {"type": "integer"}}, "required": ["days"]}'
    stricter = {name: value for name, value in GOOD.items() if name != "slug"}
    stricter |= {"schema": schema, "example_data": '{"days": 3}'}
    answer = console.post(url, stricter)
    errors = answer.context["adminform"].form.errors
    assert errors["confirm_breaking"] == ["Turn this on to refuse more."]
    assert [text.partition(": ")[0] for text in errors["schema"]] == [
        "At properties/days",
        "At properties/days/type",
    ]
    assert console.post(url, stricter | {"confirm_breaking": "on"}).status_code == 302
    stored = NotificationType.objects.get(pk="parcel_lost")
    assert json.loads(stored.schema)["required"] == ["days"]


def test_viewer_is_not_asked_for_the_confirmation(console: Client) -> None:
    console.post(f"{LIST}add/", GOOD)
    viewer = signed_in(make_staff("eva", "notifications.view_notificationtype"))
    page = viewer.get(f"{LIST}parcel_lost/change/")
    assert page.status_code == 200
    assert "confirm_not_sensitive" not in page.content.decode()


PLAN = {
    "plan-0-channels": ["in_app"],
    "plan-1-channels": ["email"],
    "plan-1-after": "2",
    "plan-1-after_unit": "3600",
    "plan_until": "read",
    "ttl_seconds": "86400",
}
WEAKER = [
    ("category", {"category": "marketing"}),
    ("channels", {"channels": ["in_app"]}),
    ("ttl_seconds", {"ttl_seconds": "1"}),
    ("notify_before_seconds", {"notify_before_seconds": "90"}),
    ("fallback_channel", {"channels": ["email", "push"], "fallback_channel": "push"}),
    ("fallback_after_seconds", {"fallback_after_seconds": "7"}),
    ("approved_templates", {"approved_templates-0-name": "other"}),
    ("plan", PLAN | {"channels": ["in_app", "email"], "ttl_seconds_unit": "1"}),
    ("priority", {"priority": "high"}),
    ("is_active", {"is_active": []}),
    ("sensitive_variables", {"sensitive_variables": "", "confirm_not_sensitive": "on"}),
]


def test_critical_type_is_weakened_with_a_permission_of_its_own_alone(console: Client) -> None:
    editing = [f"notifications.{text}_notificationtype" for text in ("view", "change")]
    editor = signed_in(make_staff("ivo", *editing))
    admin_ = signed_in(make_staff("ana", *editing, "notifications.weaken_notificationtype"))
    url = f"{LIST}mfa_code/change/"
    before = NotificationType.objects.filter(pk="mfa_code").values().get()
    form = next(
        candidate for candidate in forms_of(editor.get(url), url) if candidate.action == url
    )
    for field, change in WEAKER:
        answer = editor.post(url, form.values | change)
        assert answer.status_code == 200, field
        errors = answer.context["adminform"].form.errors
        assert NOT_ALLOWED in errors.get(field, ""), (field, errors)
    assert NotificationType.objects.filter(pk="mfa_code").values().get() == before
    assert editor.post(url, form.values | {"name": "Code", "max_retries": "1"}).status_code == 302
    for field, change in sampled(WEAKER, each=4):
        answer = admin_.post(url, form.values | change)
        errors = answer.context["adminform"].form.errors if answer.context else {}
        assert NOT_ALLOWED not in str(errors), field
    disabled = types.read_type("mfa_code")
    assert disabled is not None


def test_type_without_a_secret_is_rerouted_by_whoever_may_edit_it(console: Client) -> None:
    editing = [f"notifications.{text}_notificationtype" for text in ("view", "change")]
    editor = signed_in(make_staff("ivo", *editing))
    url = f"{LIST}order_shipped/change/"
    form = next(
        candidate for candidate in forms_of(editor.get(url), url) if candidate.action == url
    )
    answer = editor.post(url, form.values | {"channels": ["email"], "ttl_seconds": "3600"})
    assert answer.status_code == 302


def test_disabled_type_is_unknown(console: Client) -> None:
    console.post(f"{LIST}add/", GOOD)
    form = {name: value for name, value in GOOD.items() if name not in ("slug", "is_active")}
    console.post(f"{LIST}parcel_lost/change/", form)
    with pytest.raises(types.UnknownTypeError):
        types.get_type("parcel_lost")


def test_type_cannot_be_deleted(console: Client) -> None:
    assert console.post(f"{LIST}mfa_code/delete/", {"post": "yes"}).status_code == 403
    assert NotificationType.objects.filter(pk="mfa_code").exists()


def test_list_shows_the_maximum_of_attempts(console: Client) -> None:
    rows = console.get(f"{LIST}?q=mfa").context["cl"]
    (row,) = rows.result_list
    assert row.pk == "mfa_code"
    assert rows.model_admin.max_attempts(row) == 3


def test_fallback_channel_and_whatsapp_templates_are_stored(console: Client) -> None:
    channels = {"channels": ["email", "push"], "fallback_channel": "email"}
    assert console.post(f"{LIST}add/", GOOD | channels | TEMPLATE).status_code == 302
    kind = types.get_type("parcel_lost")
    assert kind.plan == fallback_plan(Channel.EMAIL, after=timedelta(minutes=10))
    assert [template.language for template in kind.whatsapp_templates] == ["pt_PT"]
    assert kind.whatsapp_templates[0].parameters == ("parcel",)


ACTION = {"actions-0-label": "Yes", "actions-0-id": "yes", "actions-0-style": "primary"}
DAILY = {"digest-mode": "day", "digest-at": "18:00", "digest-zone": "Europe/Lisbon"}
INNER = [
    (PLAN | {"plan-1-after": "40", "plan-1-after_unit": "86400"}, "plan", "Expected 0 seconds to"),
    ({"plan-0-channels": ["email"]}, "plan", "Enter at least two steps."),
    (PLAN | {"plan-1-channels": ["push"]}, "plan", "Step 2, channels"),
    (ACTION | {"actions-0-id": "A b"}, "actions", "starting with a letter: A b"),
    ({"actions-2-label": "Only a label"}, "actions", "This field is required."),
    (ACTION | {"actions-0-link": "no link"}, "actions", "no blanks"),
    (DAILY | {"digest-at": "25:00"}, "digest", "At"),
    (DAILY | {"digest-zone": "Mars"}, "digest", "Zone"),
    ({"digest-mode": "minutes"}, "digest", "minutes"),
    (TEMPLATE | {"approved_templates-0-parameters": "order"}, "approved_templates", "order"),
    (TEMPLATE | {"approved_templates-0-name": ""}, "approved_templates", "This field is required."),
]


def test_plan_digest_and_actions_are_entered_as_fields(console: Client) -> None:
    not_sensitive = {"sensitive_variables": "", "priority": "normal"}
    digest = DAILY | {"digest-channels": ["email"], "digest-min_items": "3"}
    answer = console.post(f"{LIST}add/", GOOD | not_sensitive | PLAN | ACTION | digest)
    assert answer.status_code == 302, answer.context["adminform"].form.errors
    stored = NotificationType.objects.get(pk="parcel_lost")
    assert stored.plan == {
        "until": "read",
        "steps": [
            {"channels": ["in_app"], "after": 0},
            {"channels": ["email"], "after": 7_200},
        ],
    }
    assert stored.actions == [{"id": "yes", "label": "Yes", "style": "primary", "link": None}]
    assert stored.digest["window"] == {
        "minutes": None,
        "every": "day",
        "at": "18:00",
        "days": [],
        "zone": "Europe/Lisbon",
    }
    assert (stored.digest["min_items"], stored.digest["max_items"]) == (3, 20)


@each_case("given, field, problem", INNER)
def test_wrong_input_within_a_field_is_marked(
    console: Client, given: dict[str, Any], field: str, problem: str
) -> None:
    page = console.post(f"{LIST}add/", GOOD | {"sensitive_variables": ""} | given)
    assert page.status_code == 200
    text = page.content.decode()
    form = page.context["adminform"].form
    assert field in form.errors
    shown = "".join(str(error) for error in form.errors[field])
    marked = text.count('class="structure-error"')
    assert problem.lower() in shown.lower() or problem in text
    assert marked or "Enter" in shown, "the input has the error, too"
    for name, value in given.items():
        if isinstance(value, str) and value and not name.endswith(("style", "mode", "unit")):
            assert f'value="{value}"' in text, "what was entered stays"


def test_type_is_found_by_parts_of_its_name_and_slug(console: Client) -> None:
    for text in ("Login", "login co", "mfa", "CODE", "a_co"):
        assert "mfa_code" in listed(console, f"{LIST}?q={text}"), text
    assert listed(console, f"{LIST}?q=nothing") == []


def test_list_says_which_types_have_no_template(console: Client) -> None:
    NotificationType.objects.create(slug="bare", name="Bare", category="alert", channels=["email"])
    rows = {row.pk: row for row in console.get(LIST).context["cl"].result_list}
    page = admin.site._registry[NotificationType]
    assert page.template(rows["bare"]) == "None"
    assert page.template(rows["mfa_code"]) == "Built-in"


def test_schema_is_entered_as_text(console: Client) -> None:
    schema = '{"type": "object", "properties": {"parcel": {"type": "string"}}}'
    url = f"{LIST}parcel_5Flost/change/"
    assert console.post(f"{LIST}add/", GOOD | {"schema": schema}).status_code == 302
    kind = types.get_type("parcel_lost")
    assert kind.schema is not None
    assert list(kind.schema.find_mismatches({"parcel": 77})) != []
    shown = console.get(url).context["adminform"].form
    assert shown["schema"].value().startswith('{\n  "type": "object"')
    answer = console.post(url, {**GOOD, "schema": schema, "schema_mode": "off"})
    assert answer.status_code == 302
    assert types.get_type("parcel_lost").schema is None
    latest = LogEntry.objects.order_by("pk").last()
    assert latest is not None
    assert "schema" in latest.get_change_message()


@each_case(
    "schema, problem",
    [
        ("{", "Enter a valid JSON."),
        ("[]", "Enter an object"),
        ('{"type": "object", "not": {}}', "At not: Not in the schema."),
        ('{"type": "object", "required": ["days"]}', "At days: Required."),
    ],
)
def test_wrong_schema_is_refused(console: Client, schema: str, problem: str) -> None:
    answer = console.post(f"{LIST}add/", GOOD | {"schema": schema})
    assert answer.status_code == 200
    assert problem in answer.content.decode()
