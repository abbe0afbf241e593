"""Template versions in the console: edit, compare, test, publish, and roll back."""

import re
from decimal import Decimal
from html import unescape
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.admin.utils import quote
from django.test import Client

from console.types.diff import LineChange, changes
from domain.channels import Channel
from domain.time import utc_now
from notifications.catalog import types
from notifications.catalog.shipped_types import ShippedType, shipped_types
from notifications.content import templates
from notifications.intake import mismatches
from notifications.models import Notification, NotificationType
from notifications.validation import FieldProblem
from notifyproject.db.collections import collection
from tests.support.clients.console import make_staff, signed_in
from tests.support.factories.templates import publish_version
from tests.support.samples import sampled
from tests.support.tables import each_case

pytestmark = pytest.mark.usefixtures("db", "broker")

LIST = "/admin/notifications/notificationtype/"
SLUG = "payment_confirmed"
VERSIONS = f"{LIST}{SLUG}/templates/"
NEW = f"{VERSIONS}new/"
TEST_SEND = {"channel": "email", "address": "ops@example.com"}
FORM = {
    "language": ["default", "pt"],
    "subject:default": "Paid: {{ amount }}",
    "body:default": "We have\r\n\r\n{{ amount }}.",
    "push:default": "",
    "subject:pt": "Pago",
    "body:pt": "Recebemos {{ amount }}.",
    "note": " Shorter ",
    "new_language": "",
}


@pytest.fixture
def viewer() -> Client:
    return signed_in(make_staff("rui", "notifications.view_notificationtype"))


def page(slug: str, number: int | None = None) -> str:
    return f"{LIST}{quote(slug)}/change/" if number is None else f"{LIST}{slug}/templates/{number}/"


def shown(client: Client, url: str) -> str:
    response = client.get(url)
    assert response.status_code == 200
    return response.content.decode()


def stored(slug: str = SLUG, **texts: str) -> int:
    parts = {"default": {"subject": "S", "body": "B", **texts}}
    version = templates.create_version(
        type_slug=slug, parts=parts, note="", created_by="app:shop", now=utc_now()
    )
    return version.number


@each_case("default", sampled(shipped_types(), each=4))
def test_page_previews_every_channel(console: Client, default: ShippedType) -> None:
    preview = console.get(page(default.slug)).context["preview"]
    assert preview.problem is None
    assert [channel.name for channel in preview.channels] == [
        *("Email", "Push", "WhatsApp", "SMS", "Room", "In-app")
    ]
    assert all(channel.subject and channel.text for channel in preview.channels)
    assert [channel.name for channel in preview.channels if channel.is_default] == [
        Channel(name).spec.label for name in default.definition.channels
    ]


def test_sms_shows_its_parts_and_what_makes_it_unicode(console: Client) -> None:
    (plain,) = [one for one in previews(console, "order_shipped") if one.name == "SMS"]
    unpriced = " Price unknown: SMS_PRICES has none for United Kingdom."
    assert (len(plain.parts), plain.note) == (1, f"1 part as GSM-7.{unpriced}")
    texts = {"default": {"sms": "\u201cOl\u00e1\u201d \u00e7 " + "a" * 66}}
    version = templates.create_version(
        type_slug="order_shipped", parts=texts, note="", created_by="maria", now=utc_now()
    )
    publish_version(type_slug="order_shipped", number=version.number, now=utc_now())
    (own,) = [one for one in previews(console, "order_shipped") if one.name == "SMS"]
    assert "".join(own.parts) == own.text
    assert own.note == (
        f"2 parts. Unicode because of \u00e1 \u00e7: 67 characters a part.{unpriced}"
    )


def test_sms_shows_its_price_at_home(console: Client, settings: Any) -> None:
    settings.SMS_COUNTRIES, settings.SMS_CURRENCY = ("PT", "GB"), "EUR"
    settings.SMS_PRICES = {"PT": Decimal("0.036")}
    (found,) = [one for one in previews(console, "order_shipped") if one.name == "SMS"]
    assert found.note == "1 part as GSM-7. About 0.036 EUR to Portugal."
    settings.SMS_PRICES = {"GB": Decimal("0.04")}
    (found,) = [one for one in previews(console, "order_shipped") if one.name == "SMS"]
    assert found.note == "1 part as GSM-7. Price unknown: SMS_PRICES has none for Portugal."


def previews(console: Client, slug: str) -> Any:
    return console.get(page(slug)).context["preview"].channels


def test_email_is_shown_in_a_sandboxed_frame(console: Client) -> None:
    text = shown(console, page(SLUG))
    frame = re.search(
        r'<iframe[^>]*sandbox="" referrerpolicy="no-referrer"[^>]*src="([^"]*)"', text
    )
    assert frame is not None
    policy = console.get(unescape(frame[1]))["Content-Security-Policy"]
    assert policy.startswith("sandbox; default-src 'none'; ")


def test_page_without_a_template_says_so(console: Client) -> None:
    text = shown(console, page("alert"))
    assert "This type has no template" in text
    assert "No template; content comes with the request." in text


def test_marketing_preview_has_an_unsubscribe_link(console: Client) -> None:
    assert "Unsubscribe from messages like this" in shown(console, page("marketing"))
    assert "Unsubscribe from messages like this" not in shown(console, page("alert"))


def test_page_shows_the_data_of_the_schema(console: Client) -> None:
    text = " ".join(re.sub("<[^>]*>", " ", shown(console, page("mfa_code"))).split())
    assert "of the schema; edit it below" in text
    assert (
        "code string or integer The code; a text, if it may begin with 0. Required Secret" in text
    )
    assert "expires_in string or integer Minutes for which the code is valid." in text


def test_page_counts_what_was_accepted_though_it_differs(console: Client) -> None:
    title = "Accepted, though it differs from the schema"
    assert title not in shown(console, page(SLUG))
    text = '{"type": "object", "properties": {"amount": {"type": "number"}}}'
    types.define_type(SLUG, {"schema": text, "schema_mode": "warn"}, now=utc_now())
    problem = FieldProblem("/data/amount", "wrong_type", "Expected number.")
    mismatches.count(SLUG, [[problem], [problem]])
    html = shown(console, page(SLUG))
    assert title in html
    assert re.search(r"<code>/data/amount</code></td>\s*<td class=\"number\">2</td>", html)


def test_page_shows_what_the_rules_find_in_the_published_texts(console: Client) -> None:
    assert "Worth a second look" not in shown(console, page(SLUG))
    stored(body="{{ amount }}\nhttp://example.com/a")
    assert "Worth a second look" not in shown(console, page(SLUG))
    console.post(f"{VERSIONS}1/publish/")
    html = unescape(shown(console, page(SLUG)))
    assert "Text (Default), line 2: http://example.com/a isn't https" in html
    assert "<code>insecure_link</code>" in html


def test_preview_is_in_the_selected_language(console: Client) -> None:
    text = shown(console, f"{page(SLUG)}?language=pt")
    assert "Recebemos o seu pagamento" in text
    assert 'href="?language=pt#template" class="chosen"' in text
    for language in ("xx", "", "<script>"):
        assert "Your payment of" in shown(console, f"{page(SLUG)}?language={language}")


def test_versions_are_listed_with_the_published_one(console: Client) -> None:
    stored()
    stored()
    publish_version(type_slug=SLUG, number=1, now=utc_now())
    rows = console.get(page(SLUG)).context["rows"]
    assert [row["name"] for row in rows] == ["Version 2", "Version 1", "Built-in"]
    assert [row["is_published"] for row in rows] == [False, True, False]
    assert rows[0]["by"] == "shop (client)"
    (listed,) = console.get(f"{LIST}?q={SLUG}").context["cl"].result_list
    assert listed.template_version == 1


def test_unpublished_version_is_previewed(console: Client) -> None:
    number = stored(body="New words {{ amount }}", whatsapp="*Bold* _and_ <b>")
    text = shown(console, page(SLUG, number))
    assert "New words 49.90" in text
    assert "New words {{ amount }}" in text
    assert "<strong>Bold</strong> <em>and</em> &lt;b&gt;" in text
    assert "Not published" in text
    assert "New words" not in shown(console, page(SLUG))


def test_digest_is_previewed_beside_one_message(console: Client) -> None:
    digest = {"channels": ["email"], "window": {"minutes": 30}}
    collection("notification_types").update_one({"_id": SLUG}, {"$set": {"digest": digest}})
    types.invalidate_types()
    subject = "{% if digest %}{{ digest.count }} payments{% else %}A payment{% endif %}"
    url = page(SLUG, stored(subject=subject))
    first, three = (console.get(url, query).context["preview"] for query in ({}, {"digest": 1}))
    assert {channel.subject for channel in first.channels} == {"A payment"}
    assert [(channel.name, channel.subject) for channel in three.channels] == [
        ("Email", "3 payments")
    ]
    assert console.get(f"{url}email/", {"digest": 1}).status_code == 200
    assert "A digest of three" in shown(console, url)
    assert "A digest of three" not in shown(console, page("mfa_code"))


def test_template_text_is_escaped(console: Client) -> None:
    script = "<script>alert(1)</script>"
    number = stored(subject=script, body=script, push=script, whatsapp=f"*{script}*")
    assert script not in shown(console, page(SLUG, number))
    assert script not in shown(console, NEW)


def test_unrenderable_version_says_why(console: Client) -> None:
    number = stored(body="{{ amount }}")
    NotificationType.objects.filter(pk=SLUG).update(example_data={})
    text = shown(console, page(SLUG, number))
    assert "The template needs the variable &#x27;amount&#x27;." in text


def test_slug_with_underscores_is_linked(console: Client) -> None:
    fields = {"name": "New fade", "description": "", "category": "alert", "priority": "normal"}
    fields |= {"channels": ["email"], "max_retries": 3, "on_unknown": "retry", "is_active": True}
    fields |= {"example_data": {}, "sensitive_variables": []}
    types.define_type("new_fade", fields, now=utc_now())
    stored("new_fade", body="Faded")
    text = shown(console, page("new_fade"))
    assert f"{LIST}new_fade/templates/1/" in text
    assert f"{page('new_fade')}#template" in shown(console, page("new_fade", 1))


def test_new_version_starts_with_the_published_text(console: Client) -> None:
    form = console.get(NEW).context["form"]
    assert [section.name for section in form.sections()] == ["Default", "Portuguese"]
    assert form.parts["default"]["subject"] == "Payment confirmed: {{ video_title }}"
    publish_version(type_slug=SLUG, number=stored(subject="Mine"), now=utc_now())
    parts = console.get(NEW).context["form"].parts
    assert parts["default"]["subject"] == "Mine"
    # The files' HTML was written for another body: nobody gets it any more.
    assert "email_html" not in parts["default"]


def test_new_version_is_stored_unpublished(console: Client) -> None:
    response = console.post(NEW, FORM)
    assert response["Location"] == page(SLUG, 1)
    version = templates.get_version(type_slug=SLUG, number=1)
    assert version is not None
    assert version.parts == {
        "default": {"subject": "Paid: {{ amount }}", "body": "We have\n\n{{ amount }}."},
        "pt": {"subject": "Pago", "body": "Recebemos {{ amount }}."},
    }
    assert (version.note, version.created_by) == ("Shorter", "staff:maria")
    assert types.get_template_version(SLUG) == 0
    assert LogEntry.objects.get().get_change_message() == "Saved version 1 of the template."


def test_new_version_names_what_is_worth_a_second_look(console: Client) -> None:
    texts = FORM | {
        "body:default": "Paid {{ amount }}.\r\nSee http://example.com/paid",
        "body:pt": "",
    }
    answer = console.post(NEW, texts, follow=True)
    saved, *findings = map(str, answer.context["messages"])
    assert saved == "Version 1 saved. Publish it to use it."
    assert findings == [
        (
            "Text (Default), line 2: http://example.com/paid isn't https: it can be read and "
            "changed on its way."
        ),
        "Text (Portuguese): pt has no such text: that of the default language is used.",
    ]


def test_language_is_added_and_another_removed(console: Client) -> None:
    more = {"new_language": "es", "subject:": "Pagado", "body:": "Tenemos {{ amount }}."}
    console.post(NEW, FORM | more | {"subject:pt": "", "body:pt": " "})
    version = templates.get_version(type_slug=SLUG, number=1)
    assert version is not None
    assert set(version.parts) == {"default", "es"}


@each_case(
    "fields, problem",
    [
        ({"body:pt": "a\r\n{{ tip }}"}, "Line 2: The type&#x27;s example data has no &#x27;tip"),
        ({"subject:default": "{% if %}"}, "Line 1: Missing expression."),
        ({"body:default": "{{ amount | shout }}"}, "Unknown filter &#x27;shout&#x27;."),
        ({"new_language": "PT", "body:": "x"}, "Expected default, or a language such as pt"),
        ({"new_language": "pt", "body:": "x"}, "The language pt already exists."),
        ({"body:": "x"}, "Enter the code of the new language"),
        ({"note": "x" * 201}, "The note exceeds 200 characters."),
        (
            dict.fromkeys(("subject:default", "subject:pt", "body:default", "body:pt"), ""),
            "At least one part is required.",
        ),
    ],
)
def test_invalid_version_is_explained_and_keeps_the_form(
    console: Client, fields: dict[str, str], problem: str
) -> None:
    response = console.post(NEW, FORM | fields)
    assert response.status_code == 200
    text = response.content.decode()
    assert problem in text
    for value in fields.values():
        if len(value) < 50:
            assert value.replace("\r\n", "\n") in text
    assert templates.list_versions(type_slug=SLUG, limit=9) == []


def test_version_is_published_and_withdrawn(console: Client) -> None:
    number = stored()
    response = console.post(f"{page(SLUG, number)}publish/", follow=True)
    assert "Version 1 published. New notifications use it." in response.content.decode()
    assert types.get_template_version(SLUG) == 1
    console.post(f"{page(SLUG, 0)}publish/")
    assert types.get_template_version(SLUG) == 0
    messages = [entry.get_change_message() for entry in LogEntry.objects.order_by("id")]
    assert messages == [f"Published {name} of the template." for name in ("version 1", "built-in")]


def test_version_beside_a_wording_that_makes_a_link_of_a_secret_is_not_published(
    console: Client,
) -> None:
    number = stored()
    body = "See evil.example/{{1}} now"
    wording = {"locale": "en", "name": "a", "language": "en", "parameters": ["pin"], "body": body}
    collection("notification_types").update_one(
        {"_id": SLUG}, {"$set": {"sensitive_variables": ["pin"], "approved_templates": [wording]}}
    )
    response = console.post(f"{page(SLUG, number)}publish/", follow=True)
    text = unescape(response.content.decode())
    assert f"Version {number} can't be published. whatsapp, en: WhatsApp template a: 'pin'" in text
    assert types.get_template_version(SLUG) == 0


def test_saving_a_type_keeps_the_published_version(console: Client) -> None:
    number = stored()
    form = console.get(page(SLUG)).context["adminform"].form
    data = {name: value for name, value in form.initial.items() if value is not None}
    publish_version(type_slug=SLUG, number=number, now=utc_now())
    emptied = {"example_data": "{}", "schema": "", "approved_templates": "[]"}
    response = console.post(page(SLUG), data | {"name": "Paid", **emptied})
    assert response.status_code == 302
    assert NotificationType.objects.get(pk=SLUG).name == "Paid"
    assert types.get_template_version(SLUG) == number


def test_unknown_version_is_neither_shown_nor_published(console: Client) -> None:
    for url in (page(SLUG, 7), page("nope", 1), f"{LIST}nope/templates/new/"):
        assert console.get(url).status_code == 302
    for url in (f"{page(SLUG, 7)}publish/", f"{page('nope', 0)}publish/"):
        assert console.post(url).status_code == 302
    assert types.get_template_version(SLUG) == 0
    assert console.get(f"{LIST}{quote('nope')}/change/").status_code == 302


def test_viewer_cannot_change_templates(viewer: Client) -> None:
    number = stored()
    assert "New version" not in shown(viewer, page(SLUG))
    assert "Publish</button>" not in shown(viewer, page(SLUG, number))
    assert viewer.get(NEW).status_code == 403
    assert viewer.post(NEW, FORM).status_code == 403
    assert viewer.post(f"{page(SLUG, number)}publish/").status_code == 403
    assert types.get_template_version(SLUG) == 0


def test_types_require_the_view_permission(support: Client) -> None:
    assert support.get(page(SLUG, 0)).status_code == 403
    assert support.get(page(SLUG)).status_code == 403


def publish(number: int) -> None:
    publish_version(type_slug=SLUG, number=number, now=utc_now())


def test_diff_marks_added_removed_and_kept_lines() -> None:
    before = {"default": {"body": "Hello\nYou paid.\nBye", "push": "Same"}}
    after = {"default": {"body": "Hello\nWe have it.\nBye", "push": "Same"}, "pt": {"push": "Olá"}}
    body, push = changes(before, after)
    assert (body.language, body.label) == ("Default", "Text")
    assert [(line.change, line.text) for line in body.lines] == [
        (LineChange.KEPT, "Hello"),
        (LineChange.REMOVED, "You paid."),
        (LineChange.ADDED, "We have it."),
        (LineChange.KEPT, "Bye"),
    ]
    assert (push.language, push.label) == ("Portuguese", "Push")
    assert [(line.change, line.text) for line in push.lines] == [(LineChange.ADDED, "Olá")]


def test_diff_of_a_long_text_shows_the_surroundings_of_a_change() -> None:
    lines = [f"Line {number}" for number in range(30)]
    before = {"default": {"body": "\n".join(lines)}}
    after = {"default": {"body": "\n".join([*lines[:20], "New", *lines[20:]])}}
    ((change),) = changes(before, after)
    kept = [LineChange.KEPT] * 2
    expected = [LineChange.OMITTED, *kept, LineChange.ADDED, *kept]
    assert [line.change for line in change.lines] == expected


def test_equal_texts_have_no_diff() -> None:
    assert changes({"default": {"body": "A\n"}}, {"default": {"body": "A"}}) == []


def test_version_is_compared_with_the_published_one(console: Client) -> None:
    publish(stored(push="Old"))
    page = console.get(f"{VERSIONS}{stored(push='New')}/")
    assert page.context["differences"]["from"] == "version 1"
    text = page.content.decode()
    assert "<del>Old</del>" in text
    assert "<ins>New</ins>" in text


def test_published_version_is_compared_with_its_predecessor(console: Client) -> None:
    publish(stored(push="Old"))
    assert console.get(f"{VERSIONS}1/").context["differences"]["from"] == "built-in"
    publish(0)
    assert console.get(f"{VERSIONS}0/").context["differences"] == {}


def test_test_send_uses_the_unpublished_version_and_example_data(console: Client) -> None:
    number = stored(body="We have {{ amount }}.")
    answer = console.post(f"{VERSIONS}{number}/try/", TEST_SEND, follow=True)
    assert "Test sent" in answer.content.decode()
    notification = Notification.objects.get()
    assert (notification.type, notification.channels, notification.recipient.email) == (
        SLUG,
        ["email"],
        "ops@example.com",
    )
    assert (notification.content.template_version, notification.content.body) == (
        number,
        "We have 49.90.",
    )
    assert types.get_template_version(SLUG) == 0
    (line,) = LogEntry.objects.all()
    assert line.change_message == f"Sent a test of version 1 by Email: {notification.pk}."


def test_test_send_is_in_the_selected_language(console: Client) -> None:
    console.post(f"{VERSIONS}0/try/", TEST_SEND | {"language": "pt"})
    assert "Recebemos" in Notification.objects.get().content.body


@each_case(
    "channel, address", [("email", "nobody"), ("in_app", "ada"), ("", ""), ("whatsapp", "12")]
)
def test_test_send_to_an_invalid_address_is_refused(
    console: Client, channel: str, address: str
) -> None:
    form = {"channel": channel, "address": address}
    answer = console.post(f"{VERSIONS}0/try/", form, follow=True)
    assert "Test not sent" in answer.content.decode()
    assert collection("notifications").count_documents({}) == 0


def test_test_send_of_an_unknown_version_is_refused(console: Client) -> None:
    answer = console.post(f"{VERSIONS}7/try/", TEST_SEND, follow=True)
    assert "Version not found." in answer.content.decode()


def test_test_send_requires_its_permission(viewer: Client) -> None:
    assert "Send test" not in viewer.get(f"{VERSIONS}0/").content.decode()
    assert viewer.post(f"{VERSIONS}0/try/").status_code == 403


def test_older_version_is_rolled_back_to(console: Client) -> None:
    stored()
    publish(stored())
    stored()
    rows = console.get("/admin/notifications/notificationtype/payment_5Fconfirmed/change/")
    labels = {row["name"]: row["publish_label"] for row in rows.context["rows"]}
    newer = dict.fromkeys(("Version 3", "Version 2"), "Publish")
    assert labels == newer | dict.fromkeys(("Version 1", "Built-in"), "Roll back")
    console.post(f"{VERSIONS}1/publish/")
    assert types.get_template_version(SLUG) == 1


class TestOthersAreFasterEachTime:
    """What is stored is never what the form or the button was checked with."""

    @pytest.fixture(autouse=True)
    def _stale(self, console: Client, monkeypatch: pytest.MonkeyPatch) -> None:
        stored()
        stale = types.read_type(SLUG)
        types.define_type(SLUG, {"description": "By another."}, now=utc_now())
        monkeypatch.setattr(types, "read_type", lambda _slug: stale)

    def test_publication_says_so(self, console: Client) -> None:
        shown = console.post(f"{page(SLUG, 1)}publish/", follow=True).content.decode()
        assert "Not published. Others changed the same at the same time. Try again." in shown
        assert types.get_template_version(SLUG) == 0

    def test_form_says_so(self, console: Client) -> None:
        form = console.get(page(SLUG)).context["adminform"].form
        data = {name: value for name, value in form.initial.items() if value is not None}
        data |= {"name": "New", "example_data": "{}", "schema": "", "approved_templates": "[]"}
        shown = console.post(page(SLUG), data, follow=True).content.decode()
        assert "Not saved. Others changed the same at the same time. Try again." in shown
        assert types.get_type(SLUG).name != "New"
