"""One message that a member of staff sends from the console."""

import html
import json
import re
from typing import Any
from urllib.parse import urlencode

import pytest
from django.test import Client

from access.clients import registry
from access.models import Scope, StaffUser
from domain.time import utc_now
from notifications.catalog import types
from notifications.store.search_keys import source_key
from notifyproject.db.collections import collection
from tests.support.clients.console import make_staff, register_ada, signed_in
from tests.support.factories import notifications as factories
from tests.support.tables import each_case

pytestmark = pytest.mark.usefixtures("db", "broker")

START = "/admin/send/"
SHIPPED = f"{START}order_shipped/"
OFFERED = f"{START}recipients/offered/"
TO_ADA = {"recipient": "ada", "data:order": "1042", "when": "now", "zone": "utc"}


@pytest.fixture
def clara(db: None) -> Client:
    """Return a client of support, as its role has it."""
    names = ("notifications.send_one", "notifications.view_notification")
    others = ("recipients.view_recipient", "notifications.correct_address")
    return signed_in(make_staff("clara", *names, *others))


@pytest.fixture(autouse=True)
def _type(db: None) -> None:
    allow("order_shipped")
    register_ada()


def allow(slug: str, **fields: Any) -> None:
    types.store_type(slug, {"console_send": True, **fields}, now=utc_now())
    types.invalidate_types()


def opened(client: Client, url: str = SHIPPED) -> str:
    """Open the form of a type. Return its URL, which has the key."""
    answer = client.get(url)
    assert answer.status_code == 302, answer.content
    return str(answer["Location"])


def text_of(answer: Any) -> str:
    return " ".join(answer.content.decode().split())


def previewed(client: Client, url: str, **values: str) -> dict[str, str]:
    """Preview a message. Return the inputs of its confirmation."""
    answer = client.post(url, TO_ADA | values)
    page = answer.content.decode()
    assert "What the recipient gets" in page, text_of(answer)
    inputs = re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)">', page)
    return {name: html.unescape(value) for name, value in inputs} | {"step": "send"}


def sent() -> list[Any]:
    return list(collection("notifications").find().sort("_id", 1))


def test_a_message_is_previewed_and_sent(clara: Client) -> None:
    assert "Order shipped" in text_of(clara.get(START))
    url = opened(clara)
    form = text_of(clara.get(url))
    assert 'placeholder="12345"' in form, "the type's example"
    confirmed = previewed(clara, url)
    assert sent() == [], "nothing is sent before the confirmation"
    answer = clara.post(url, confirmed)
    (document,) = sent()
    assert answer["Location"] == f"/admin/notifications/notification/{document['_id']}/change/"
    assert document["client_id"] == registry.find_client("console")
    staff = StaffUser.objects.get(username="clara")
    assert document["source"] == str(staff.pk)
    assert (document["user_id"], document["data"]) == ("ada", {"order": "1042"})
    (entry,) = collection("django_admin_log").find()
    assert (entry["user_id"], entry["object_id"]) == (staff.pk, str(document["_id"]))
    assert entry["change_message"] == "Sent from the console."


def test_it_is_found_by_who_sent_it(clara: Client, console: Client) -> None:
    url = opened(clara)
    clara.post(url, previewed(clara, url))
    clara_id = str(StaffUser.objects.get(username="clara").pk)
    (document,) = sent()
    assert source_key(document["client_id"], clara_id) in document["search_keys"]
    listing = "/admin/notifications/notification/"
    found = console.get(f"{listing}?sent_by={clara_id}").context["cl"].result_list
    assert [row.pk for row in found] == [document["_id"]]
    maria_id = str(StaffUser.objects.get(username="maria").pk)
    assert not list(console.get(f"{listing}?sent_by={maria_id}").context["cl"].result_list)
    page = text_of(console.get(f"{listing}{document['_id']}/change/"))
    assert "<dt>Sent by</dt><dd>clara</dd>" in page


def test_a_repeated_confirmation_sends_one(clara: Client) -> None:
    url = opened(clara)
    confirmed = previewed(clara, url)
    again = previewed(clara, url)
    places = {clara.post(url, values)["Location"] for values in (confirmed, again, confirmed)}
    assert len(sent()) == len(places) == 1
    assert collection("django_admin_log").count_documents({}) == 1


def test_a_form_that_was_used_sends_another_message_only_after_a_preview(clara: Client) -> None:
    url = opened(clara)
    clara.post(url, previewed(clara, url))
    other = previewed(clara, url, **{"data:order": "7"})
    answer = clara.post(url, other)
    (first,) = sent()
    page = text_of(answer)
    assert f"/admin/notifications/notification/{first['_id']}/change/" in page
    assert 'value="7"' in page, "nothing typed is lost"
    new = re.search(r'action="(\?key=[^"]+)"', page)
    assert new is not None
    assert new[1] not in url
    fresh = SHIPPED + new[1]
    clara.post(fresh, previewed(clara, fresh, **{"data:order": "7"}))
    assert [document["data"]["order"] for document in sent()] == ["1042", "7"]


def test_an_old_key_and_that_of_another_user_are_replaced(
    clara: Client, console: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = opened(clara)
    assert "Preview it again" in text_of(console.post(url, TO_ADA | {"step": "send"}))
    confirmed = previewed(clara, url)
    monkeypatch.setattr("console.sending.page.KEY_LIFETIME", -1)
    assert "Preview it again" in text_of(clara.post(url, confirmed))
    assert sent() == []
    assert clara.get(url).status_code == 302, "a form with an old key opens with a new one"


def test_a_later_message_is_scheduled(clara: Client) -> None:
    url = opened(clara)
    later = {"when": "later", "at": "2027-01-02T09:30"}
    clara.post(url, previewed(clara, url, **later))
    (document,) = sent()
    assert f"{document['scheduled_at']:%Y-%m-%d %H:%M}" == "2027-01-02 09:30"


def test_a_later_message_is_scheduled_on_the_recipients_clock(clara: Client) -> None:
    collection("recipients").update_one({"_id": "ada"}, {"$set": {"timezone": "America/New_York"}})
    url = opened(clara)
    later = {"when": "later", "at": "2027-01-02T09:30", "zone": "recipient"}
    clara.post(url, previewed(clara, url, **later))
    assert f"{sent()[0]['scheduled_at']:%H:%M}" == "14:30"


@each_case(
    "values, words",
    [
        ({"recipient": ""}, "Enter a user ID, a name, an email address, or a phone number."),
        ({"recipient": "nobody-we-know"}, "No recipient matches"),
        ({"recipient": "ada@"}, "Expected one address such as ada@example.com"),
        ({"recipient": "912 345 678"}, "phone number with a country code"),
        ({"data:order": ""}, "Enter order."),
        ({"when": "later", "at": ""}, "Enter the time, such as"),
        ({"when": "later", "at": "2020-01-02T09:30"}, "past"),
        ({"when": "later", "at": "2027-01-02T09:30", "zone": "recipient"}, "has no time zone"),
        ({"when": "later", "at": f"2027-01-02T09:30:{'0' * 23}"}, "at most 34 characters"),
        (
            {"when": "later", "at": "2027-01-02T09:30:00+01:00", "zone": "recipient"},
            "wrong form or length",
        ),
        ({"meant_for": "ada", "meant": "user:"}, "is gone"),
    ],
)
def test_a_wrong_input_is_named_and_nothing_is_lost(
    clara: Client, values: dict[str, str], words: str
) -> None:
    url = opened(clara)
    given = TO_ADA | values
    page = text_of(clara.post(url, given | {"step": "send", "version": "0"}))
    assert words in page
    assert "Nothing that you typed is lost" in page
    for name, value in given.items():
        if value and name not in ("when", "zone", "meant"):
            assert f'name="{name}" value="{value}"' in page.replace('type="text" ', ""), name
    mail = url.replace("/?", "/email/?")
    assert clara.post(mail, given).status_code == 404
    assert sent() == []


def test_all_wrong_inputs_are_named_at_once(clara: Client) -> None:
    wrong = {"recipient": "", "data:order": "", "when": "later", "at": ""}
    page = text_of(clara.post(opened(clara), TO_ADA | wrong))
    for words in ("Enter a user ID", "Enter order.", "Enter the time"):
        assert words in page, words


def test_a_reminder_asks_for_the_time_of_its_event(clara: Client) -> None:
    allow("contest_reminder")
    url = opened(clara, f"{START}contest_reminder/")
    form = text_of(clara.get(url))
    assert 'name="data:hours_until_start"' not in form, "the event gives it"
    values = {"data:contest_name": "Finals"}
    page = text_of(clara.post(url, TO_ADA | values))
    assert 'id="id_event_at"' in page
    assert "Time of the event</a>:" in page
    long = text_of(clara.post(url, TO_ADA | values | {"event_at": "2" * 60}))
    assert "at most 34 characters" in long
    clara.post(url, previewed(clara, url, **values, event_at="2027-01-02T09:30"))
    assert sent()[0]["data"]["start_time"] == "2027-01-02T09:30:00.000Z"


def test_what_the_event_gives_is_not_missed_beside_another_wrong_input(clara: Client) -> None:
    required = {"type": "object", "required": ["contest_name", "start_time"]}
    allow("contest_reminder", schema=json.dumps(required))
    url = opened(clara, f"{START}contest_reminder/")
    page = text_of(clara.post(url, TO_ADA | {"event_at": "2027-01-02T09:30"}))
    assert "Enter contest name." in page
    assert "Enter time of the event." not in page
    page = text_of(clara.post(url, TO_ADA | {"data:contest_name": "Finals", "recipient": ""}))
    assert "Enter time of the event." in page


def test_a_recipient_is_found_by_name_and_one_of_several_is_chosen(clara: Client) -> None:
    one = {"is_active": True, "created_at": utc_now(), "updated_at": utc_now()}
    for key, email in (("ann-1", "ann@example.com"), ("ann-2", "ann@example.com")):
        collection("recipients").insert_one({"_id": key, "email": email, **one})
    url = opened(clara)
    page = text_of(clara.post(url, TO_ADA | {"recipient": "ann@example.com"}))
    assert "Choose who is meant." in page
    for key in ("user:ann-1", "user:ann-2", "address"):
        assert f'name="meant" value="{key}"' in page
    assert page.count("ann@example.com") == 3, "in the inputs alone: other addresses are masked"
    for meant, user_id in (("user:ann-2", "ann-2"), ("address", None)):
        fresh = opened(clara)
        choice = {"recipient": "ann@example.com", "meant_for": "ann@example.com", "meant": meant}
        clara.post(fresh, previewed(clara, fresh, **choice))
        assert sent()[-1].get("user_id") == user_id
    changed = {"recipient": "ada", "meant_for": "ann@example.com", "meant": "user:ann-2"}
    assert previewed(clara, url, **changed)["meant"] == "user:ada", "a choice is for its text"


def test_the_recipient_of_the_preview_gets_it(clara: Client) -> None:
    collection("recipients").update_one(
        {"_id": "ada"}, {"$set": {"name": "Ada Lovelace", "name_words": ["ada", "lovelace"]}}
    )
    url = opened(clara)
    confirmed = previewed(clara, url, recipient="Lovelace")
    collection("recipients").insert_one(
        {"_id": "Lovelace", "is_active": True, "created_at": utc_now(), "updated_at": utc_now()}
    )
    clara.post(url, confirmed)
    assert sent()[0]["user_id"] == "ada"


def sent_before(*user_ids: str) -> None:
    """Store a notification to each of these users, who aren't registered."""
    for user_id in user_ids:
        factories.accepted(user_id=user_id, created_at=utc_now())


def last_sent() -> Any:
    return sent()[-1]


@pytest.mark.parametrize("user_id", ["12345", "+351912345678", "ada@example.com", "ad", "a.b."])
def test_the_link_of_a_user_who_is_not_registered_means_that_user(
    clara: Client, user_id: str
) -> None:
    sent_before(user_id)
    url = opened(clara, f"{SHIPPED}?{urlencode({'user_id': user_id})}")
    page = clara.get(url).content.decode()
    inputs = dict(re.findall(r'<input type="hidden" name="(meant\w*)" value="([^"]*)">', page))
    assert inputs == {"meant_for": user_id, "meant": f"user:{user_id}"}
    clara.post(url, previewed(clara, url, recipient=user_id, **inputs))
    assert last_sent()["user_id"] == user_id


def test_a_typed_id_of_a_user_who_is_not_registered_means_that_user(clara: Client) -> None:
    sent_before("12345", "ad", "a.b.")
    for user_id in ("12345", "ad", "a.b."):
        url = opened(clara)
        clara.post(url, previewed(clara, url, recipient=user_id))
        assert last_sent()["user_id"] == user_id


def test_a_text_that_is_a_user_id_and_an_address_asks_who_is_meant(clara: Client) -> None:
    allow("order_shipped", channels=["email", "sms", "in_app"])
    for text in ("+351912345678", "ada@example.com"):
        sent_before(text)
        url = opened(clara)
        page = text_of(clara.post(url, TO_ADA | {"recipient": text}))
        assert "Choose who is meant." in page
        assert f'name="meant" value="user:{text}"' in page
        assert 'name="meant" value="address"' in page
        for meant, user_id in ((f"user:{text}", text), ("address", None)):
            fresh = opened(clara)
            chosen = {"recipient": text, "meant_for": text, "meant": meant}
            clara.post(fresh, previewed(clara, fresh, **chosen))
            assert last_sent().get("user_id") == user_id
    assert 'name="meant" value="user:ada"' in page, "its registered owner is offered as well"


def test_an_address_stays_one_if_a_user_gets_it_as_an_id(clara: Client) -> None:
    url = opened(clara)
    confirmed = previewed(clara, url, recipient="grace@example.com")
    one = {"is_active": True, "created_at": utc_now(), "updated_at": utc_now()}
    collection("recipients").insert_one({"_id": "grace@example.com", **one})
    clara.post(url, confirmed)
    assert sent()[0].get("user_id") is None


def test_the_beginning_of_an_id_means_nobody_until_it_is_chosen(clara: Client) -> None:
    url = opened(clara)
    page = text_of(clara.post(url, TO_ADA | {"recipient": "ad"}))
    assert "Choose who is meant." in page
    assert 'name="meant" value="user:ada"' in page


def test_a_typed_address_gets_it(clara: Client) -> None:
    url = opened(clara)
    clara.post(url, previewed(clara, url, recipient="Grace <grace@example.com>"))
    assert sent()[0]["recipient"]["email"] == "grace@example.com"


def test_a_suppressed_channel_is_a_warning(clara: Client) -> None:
    collection("recipients").update_one(
        {"_id": "ada"}, {"$set": {"preferences": {"transactional": {"muted": True}}}}
    )
    allow("order_shipped", channels=["email"])
    page = text_of(clara.post(opened(clara), TO_ADA))
    assert "It can be sent, but:" in page
    assert "Not sent" in page


def test_addresses_of_recipients_are_masked_unless_the_user_sees_them(
    clara: Client, console: Client
) -> None:
    offers = clara.post(OFFERED, {"recipient": "ada"})
    assert "a***@example.com" in text_of(offers)
    for client, shown in ((clara, "a***@example.com"), (console, "ada@example.com")):
        assert shown in text_of(client.post(opened(client), TO_ADA))


def test_secrets_are_masked_in_the_preview(clara: Client) -> None:
    allow("order_shipped", sensitive_variables=["order"])
    url = opened(clara)
    answer = clara.post(url, TO_ADA | {"data:order": "secret-77"})
    page = answer.content.decode()
    assert page.count("secret-77") == 1, "in the form's own input alone"
    assert "Secret values are masked." in page
    mail = clara.post(url.replace("/?", "/email/?"), TO_ADA | {"data:order": "secret-77"})
    assert "secret-77" not in mail.content.decode()
    assert "•••" in mail.content.decode()


def test_a_template_that_changed_since_the_preview_is_previewed_again(clara: Client) -> None:
    url = opened(clara)
    confirmed = previewed(clara, url)
    answer = clara.post(url, confirmed | {"version": "7"})
    assert "has changed since the preview" in text_of(answer)
    assert sent() == []


def test_other_types_are_neither_offered_nor_sent(clara: Client) -> None:
    url = opened(clara)
    confirmed = previewed(clara, url)
    for fields in ({"console_send": False}, {"priority": "critical"}, {"is_active": False}):
        allow("order_shipped", **fields)
        assert "Order shipped" not in text_of(clara.get(START))
        assert clara.post(url, confirmed)["Location"] == START
        assert clara.post(f"{SHIPPED}email/", confirmed).status_code == 404
        allow("order_shipped", priority="high", is_active=True)
    assert sent() == []


def test_a_type_may_have_the_name_of_another_page(clara: Client) -> None:
    known = collection("notification_types").find_one({"_id": "order_shipped"}) or {}
    for slug in ("recipients", "email", "offered"):
        collection("notification_types").insert_one({**known, "_id": slug})
        allow(slug, name=f"Type {slug}")
        page = text_of(clara.get(opened(clara, f"{START}{slug}/")))
        assert f"Type {slug}" in page


def test_a_type_without_template_has_subject_and_text(clara: Client) -> None:
    allow("transactional")
    url = opened(clara, f"{START}transactional/")
    assert "Enter the text." in text_of(clara.post(url, TO_ADA))
    texts = {"subject": "Your question", "body": "It is solved.\r\n\r\nClara"}
    clara.post(url, previewed(clara, url, **texts))
    content = sent()[0]["content"]
    assert (content["subject"], content["body"]) == ("Your question", "It is solved.\n\nClara")


def test_who_may_not_send_sees_nothing_of_it(support: Client) -> None:
    for url in (START, SHIPPED, f"{SHIPPED}email/", OFFERED):
        assert support.get(url).status_code == 403
        assert support.post(url, TO_ADA).status_code == 403
    assert "Send a message" not in text_of(support.get("/admin/"))
    assert sent() == []


def test_a_client_of_somebody_else_has_the_consoles_name(clara: Client) -> None:
    registry.create_client(name="console", scopes=[Scope.NOTIFICATIONS_READ], now=utc_now())
    page = text_of(clara.post(opened(clara), TO_ADA))
    assert "which is the name of the console" in page
    assert sent() == []


def test_it_is_reached_from_a_recipient_and_a_failed_notification(
    clara: Client, support: Client
) -> None:
    link = "/admin/send/?user_id=ada"
    assert link in text_of(clara.get("/admin/recipients/recipient/ada/change/"))
    assert link not in text_of(support.get("/admin/recipients/recipient/ada/change/"))
    page = clara.get(link)
    assert "to ada?" in text_of(page)
    url = opened(clara, f"{SHIPPED}?user_id=ada")
    document = factories.accepted(user_id="ada", created_at=utc_now())
    assert link in text_of(
        clara.get(f"/admin/notifications/notification/{document['_id']}/change/")
    )
    assert 'name="recipient" value="ada"' in text_of(clara.get(url))
    palette = text_of(clara.get("/admin/search/", {"s": "send a"}))
    assert START in palette
