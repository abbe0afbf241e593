"""Template versions in the console: edited, compared, tested, published, rolled back."""

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.admin.utils import quote
from django.test import Client

from console.types.diff import LineChange, changes
from domain.time import utc_now
from notifications.catalog import types
from notifications.catalog.default_types import DEFAULT_TYPES, DefaultType
from notifications.content import templates
from notifications.models import Notification, NotificationType
from notifyproject.db.collections import collection
from tests.support.clients.console import make_staff, signed_in

pytestmark = pytest.mark.usefixtures("db", "broker")


LIST = "/admin/notifications/notificationtype/"

SLUG = "payment_confirmed"

NEW = f"{LIST}{SLUG}/templates/new/"

SENT = {
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
def looker() -> Client:
    """Give a client of somebody who may look at types, and do nothing."""
    return signed_in(make_staff("rui", "notifications.view_notificationtype"))


def page(slug: str, number: int | None = None) -> str:
    """Return the address of a type's page, or of one of its versions'."""
    return f"{LIST}{quote(slug)}/change/" if number is None else f"{LIST}{slug}/templates/{number}/"


def shown(client: Client, url: str) -> str:
    response = client.get(url)
    assert response.status_code == 200
    return response.content.decode()


def stored(slug: str = SLUG, **texts: str) -> int:
    """Store a version and return its number."""
    parts = {"default": {"subject": "S", "body": "B", **texts}}
    version = templates.create_version(
        type_slug=slug, parts=parts, note="", created_by="app:shop", now=utc_now()
    )
    return version.number


@pytest.mark.parametrize("default", DEFAULT_TYPES, ids=lambda default: default.slug)
def test_every_types_page_shows_what_it_says_on_every_channel(
    console: Client, default: DefaultType
) -> None:
    preview = console.get(page(default.slug)).context["preview"]
    assert preview.problem is None
    assert [one.name for one in preview.channels] == ["Email", "Push", "WhatsApp", "In-app"]
    assert all(one.subject and one.text for one in preview.channels)
    assert [one.channel for one in preview.channels if one.is_default] == [
        channel.value for channel in default.channels
    ]


def test_a_mail_is_shown_in_a_frame_that_runs_nothing(console: Client) -> None:
    text = shown(console, page(SLUG))
    assert 'sandbox="" referrerpolicy="no-referrer"' in text
    assert "default-src &#x27;none&#x27;" in text or "default-src &#39;none&#39;" in text


def test_a_type_without_a_template_says_so(console: Client) -> None:
    text = shown(console, page("alert"))
    assert "This type has no template" in text
    assert "No template; content comes with the request." in text


def test_news_have_a_way_out(console: Client) -> None:
    assert "Unsubscribe from messages like this" in shown(console, page("marketing"))
    assert "Unsubscribe from messages like this" not in shown(console, page("alert"))


def test_a_page_is_in_the_language_that_is_chosen(console: Client) -> None:
    text = shown(console, f"{page(SLUG)}?language=pt")
    assert "Recebemos o seu pagamento" in text
    assert 'href="?language=pt#template" class="chosen"' in text
    for language in ("xx", "", "<script>"):
        assert "Your payment of" in shown(console, f"{page(SLUG)}?language={language}")


def test_the_versions_are_listed_with_the_published_one(console: Client) -> None:
    stored()
    stored()
    templates.publish_version(type_slug=SLUG, number=1, now=utc_now())
    rows = console.get(page(SLUG)).context["rows"]
    assert [row["name"] for row in rows] == ["Version 2", "Version 1", "Built-in"]
    assert [row["is_published"] for row in rows] == [False, True, False]
    assert rows[0]["by"] == "shop (client)"
    (listed,) = console.get(f"{LIST}?q={SLUG}").context["cl"].result_list
    assert listed.template_version == 1


def test_a_version_is_shown_before_it_is_published(console: Client) -> None:
    number = stored(body="New words {{ amount }}", whatsapp="*Bold* _and_ <b>")
    text = shown(console, page(SLUG, number))
    assert "New words 49.90" in text
    assert "New words {{ amount }}" in text
    assert "<strong>Bold</strong> <em>and</em> &lt;b&gt;" in text
    assert "Not published" in text
    assert "New words" not in shown(console, page(SLUG))


def test_what_stands_in_a_template_is_text_in_the_console(console: Client) -> None:
    script = "<script>alert(1)</script>"
    number = stored(subject=script, body=script, push=script, whatsapp=f"*{script}*")
    assert script not in shown(console, page(SLUG, number))
    assert script not in shown(console, NEW)


def test_a_version_that_cannot_be_shown_any_more_says_why(console: Client) -> None:
    number = stored(body="{{ amount }}")
    NotificationType.objects.filter(pk=SLUG).update(example_data={})
    text = shown(console, page(SLUG, number))
    assert "The template needs the variable &#x27;amount&#x27;." in text


def test_a_slug_may_have_underscores_anywhere(console: Client) -> None:
    types.define_type(
        "new_fade",
        {
            "name": "New fade",
            "description": "",
            "category": "alert",
            "priority": "normal",
            "channels": ["email"],
            "max_retries": 3,
            "on_unknown": "retry",
            "example_data": {},
            "sensitive_variables": [],
            "is_active": True,
        },
        now=utc_now(),
    )
    stored("new_fade", body="Faded")
    text = shown(console, page("new_fade"))
    assert f"{LIST}new_fade/templates/1/" in text
    assert f"{page('new_fade')}#template" in shown(console, page("new_fade", 1))


def test_a_new_version_starts_with_what_is_said_now(console: Client) -> None:
    form = console.get(NEW).context["form"]
    assert [section.name for section in form.sections()] == ["Default", "Portuguese"]
    assert form.parts["default"]["subject"] == "Payment confirmed: {{ video_title }}"
    templates.publish_version(type_slug=SLUG, number=stored(subject="Mine"), now=utc_now())
    parts = console.get(NEW).context["form"].parts
    assert parts["default"]["subject"] == "Mine"
    # The files' HTML was written for another body: nobody gets it any more.
    assert "email_html" not in parts["default"]


def test_a_version_is_stored_and_used_by_nobody_yet(console: Client) -> None:
    response = console.post(NEW, SENT)
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


def test_a_language_is_added_and_one_is_taken_out(console: Client) -> None:
    more = {"new_language": "es", "subject:": "Pagado", "body:": "Tenemos {{ amount }}."}
    console.post(NEW, SENT | more | {"subject:pt": "", "body:pt": " "})
    version = templates.get_version(type_slug=SLUG, number=1)
    assert version is not None
    assert set(version.parts) == {"default", "es"}


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"body:pt": "a\r\n{{ tip }}"}, "Line 2: The type&#x27;s example data has no &#x27;tip"),
        ({"subject:default": "{% if %}"}, "Line 1: Missing expression."),
        ({"body:default": "{{ amount | shout }}"}, "Unknown filter &#x27;shout&#x27;."),
        ({"new_language": "PT", "body:": "x"}, "Expected default, or a language such as pt"),
        ({"new_language": "pt", "body:": "x"}, "The language pt already exists."),
        ({"body:": "x"}, "Enter the code of the new language"),
        ({"note": "x" * 201}, "The note exceeds 200 characters."),
        (
            {
                f"{part}:{language}": ""
                for part in ("subject", "body")
                for language in SENT["language"]
            },
            "At least one part is required.",
        ),
    ],
)
def test_what_is_wrong_stands_in_the_form_and_nothing_is_lost(
    console: Client, fields: dict[str, str], problem: str
) -> None:
    response = console.post(NEW, SENT | fields)
    assert response.status_code == 200
    text = response.content.decode()
    assert problem in text
    for value in fields.values():
        if len(value) < 50:
            assert value.replace("\r\n", "\n") in text
    assert templates.list_versions(type_slug=SLUG, limit=9) == []


def test_a_version_is_published_and_taken_back(console: Client) -> None:
    number = stored()
    response = console.post(f"{page(SLUG, number)}publish/", follow=True)
    assert "Version 1 published. New notifications use it." in response.content.decode()
    assert types.get_template_version(SLUG) == 1
    console.post(f"{page(SLUG, 0)}publish/")
    assert types.get_template_version(SLUG) == 0
    messages = [entry.get_change_message() for entry in LogEntry.objects.order_by("id")]
    assert messages == [
        "Published version 1 of the template.",
        "Published built-in of the template.",
    ]


def test_saving_a_type_leaves_what_was_published_meanwhile(console: Client) -> None:
    """The form was opened before; its own fields are stored and nothing else."""
    number = stored()
    form = console.get(page(SLUG)).context["adminform"].form
    data = {name: value for name, value in form.initial.items() if value is not None}
    templates.publish_version(type_slug=SLUG, number=number, now=utc_now())
    response = console.post(page(SLUG), data | {"name": "Paid", "example_data": "{}"})
    assert response.status_code == 302
    assert NotificationType.objects.get(pk=SLUG).name == "Paid"
    assert types.get_template_version(SLUG) == number


def test_there_must_be_something_to_show_and_to_publish(console: Client) -> None:
    for url in (page(SLUG, 7), page("nope", 1), f"{LIST}nope/templates/new/"):
        assert console.get(url).status_code == 302
    for url in (f"{page(SLUG, 7)}publish/", f"{page('nope', 0)}publish/"):
        assert console.post(url).status_code == 302
    assert console.get(f"{page(SLUG, 0)}publish/").status_code == 405
    assert types.get_template_version(SLUG) == 0
    assert console.get(f"{LIST}{quote('nope')}/change/").status_code == 302


def test_who_may_look_may_not_change(looker: Client) -> None:
    number = stored()
    assert "New version" not in shown(looker, page(SLUG))
    assert "Publish</button>" not in shown(looker, page(SLUG, number))
    assert looker.get(NEW).status_code == 403
    assert looker.post(NEW, SENT).status_code == 403
    assert looker.post(f"{page(SLUG, number)}publish/").status_code == 403
    assert types.get_template_version(SLUG) == 0


def test_who_may_not_look_at_types_sees_nothing(support: Client) -> None:
    assert support.get(page(SLUG, 0)).status_code == 403
    assert support.get(page(SLUG)).status_code == 403


PAGE = f"/admin/notifications/notificationtype/{SLUG}/templates/"


def stored_body(**texts: str) -> int:
    """Store a version and return its number."""
    parts = {"default": {"body": "Paid.", **texts}}
    version = templates.create_version(
        type_slug=SLUG, parts=parts, note="", created_by="app:shop", now=utc_now()
    )
    return version.number


def publish(number: int) -> None:
    templates.publish_version(type_slug=SLUG, number=number, now=utc_now())


def test_lines_are_added_removed_and_kept() -> None:
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


def test_a_long_text_is_shown_around_what_changed() -> None:
    lines = [f"Line {number}" for number in range(30)]
    before = {"default": {"body": "\n".join(lines)}}
    after = {"default": {"body": "\n".join([*lines[:20], "New", *lines[20:]])}}
    ((change),) = changes(before, after)
    assert [line.change for line in change.lines] == [
        *(
            LineChange.OMITTED,
            LineChange.KEPT,
            LineChange.KEPT,
            LineChange.ADDED,
            LineChange.KEPT,
            LineChange.KEPT,
        )
    ]


def test_the_same_texts_do_not_differ() -> None:
    assert changes({"default": {"body": "A\n"}}, {"default": {"body": "A"}}) == []


def test_a_version_is_compared_with_the_published_one(console: Client) -> None:
    publish(stored_body(push="Old"))
    page = console.get(f"{PAGE}{stored_body(push='New')}/")
    assert page.context["differences"]["from"] == "version 1"
    text = page.content.decode()
    assert "<del>Old</del>" in text
    assert "<ins>New</ins>" in text


def test_the_published_one_is_compared_with_the_one_before_it(console: Client) -> None:
    publish(stored_body(push="Old"))
    assert console.get(f"{PAGE}1/").context["differences"]["from"] == "built-in"
    publish(0)
    assert console.get(f"{PAGE}0/").context["differences"] == {}


def test_an_unpublished_version_is_sent_with_the_types_example(console: Client) -> None:
    number = stored_body(body="We have {{ amount }}.")
    answer = console.post(
        f"{PAGE}{number}/try/", {"channel": "email", "address": "ops@example.com"}, follow=True
    )
    assert "Test sent" in answer.content.decode()
    one = Notification.objects.get()
    assert (one.type, one.channels, one.recipient.email) == (SLUG, ["email"], "ops@example.com")
    assert (one.content.template_version, one.content.body) == (number, "We have 49.90.")
    assert types.get_template_version(SLUG) == 0
    (line,) = LogEntry.objects.all()
    assert line.change_message == f"Sent a test of version 1 by Email: {one.pk}."


def test_a_test_is_in_the_language_that_is_looked_at(console: Client) -> None:
    sent = {"channel": "email", "address": "ops@example.com", "language": "pt"}
    console.post(f"{PAGE}0/try/", sent)
    assert "Recebemos" in Notification.objects.get().content.body


@pytest.mark.parametrize(
    ("channel", "address"), [("email", "nobody"), ("in_app", "ada"), ("", ""), ("whatsapp", "12")]
)
def test_nothing_is_sent_to_what_is_no_address(console: Client, channel: str, address: str) -> None:
    sent = {"channel": channel, "address": address}
    answer = console.post(f"{PAGE}0/try/", sent, follow=True)
    assert "Test not sent" in answer.content.decode()
    assert collection("notifications").count_documents({}) == 0


def test_a_version_that_is_not_there_is_not_sent(console: Client) -> None:
    sent = {"channel": "email", "address": "ops@example.com"}
    answer = console.post(f"{PAGE}7/try/", sent, follow=True)
    assert "Version not found." in answer.content.decode()


def test_who_may_not_send_tests_is_offered_none() -> None:
    looker = signed_in(make_staff("rui", "notifications.view_notificationtype"))
    assert "Send test" not in looker.get(f"{PAGE}0/").content.decode()
    assert looker.post(f"{PAGE}0/try/").status_code == 403


def test_an_older_version_is_gone_back_to(console: Client) -> None:
    stored_body()
    publish(stored_body())
    stored_body()
    rows = console.get("/admin/notifications/notificationtype/payment_5Fconfirmed/change/")
    words = {row["name"]: row["publish_label"] for row in rows.context["rows"]}
    assert words == {
        "Version 3": "Publish",
        "Version 2": "Publish",
        "Version 1": "Roll back",
        "Built-in": "Roll back",
    }
    console.post(f"{PAGE}1/publish/")
    assert types.get_template_version(SLUG) == 1
