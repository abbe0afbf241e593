"""Recipients and suppressions in the console."""

from urllib.parse import urlencode

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client

from domain.time import utc_now
from notifyproject.db.collections import collection
from recipients import queries, registration
from recipients.models import Suppression, SuppressionReason
from recipients.registration import RecipientProfile
from recipients.suppressions import anonymize, suppression_id
from tests.support.clients.console import listed, make_staff, register_ada, signed_in
from tests.support.factories import notifications as factories
from tests.support.tables import each_case

pytestmark = pytest.mark.usefixtures("db")

RECIPIENTS = "/admin/recipients/recipient/"
SUPPRESSIONS = "/admin/recipients/suppression/"
LIFT = {"post": "yes", "reason": "Mailbox works again"}
ADA = "ada@example.com"
BOUNCE = suppression_id("email", ADA, SuppressionReason.HARD_BOUNCE)
KEY = BOUNCE.replace("_", "_5F").replace(":", "_3A")
"""The key as quoted in the admin's URLs."""


@pytest.fixture
def ada() -> None:
    register_ada(
        attributes={"second_email": "ada@work.example"},
        preferences={"marketing": {"muted": True}},
        quiet_hours={"enabled": True, "start": "22:00", "end": "07:00"},
        timezone="Europe/Lisbon",
    )


@pytest.fixture
def suppressed() -> None:
    factories.suppress(ADA, at=utc_now())


@pytest.mark.usefixtures("ada")
def test_recipient_is_found_by_id_and_address(console: Client) -> None:
    for text in ("ada", ADA, "%2B351912345678"):
        assert listed(console, f"{RECIPIENTS}?q={text}") == ["ada"], text
    assert listed(console, f"{RECIPIENTS}?q=da") == []


def test_recipient_is_found_by_words_of_the_name(console: Client) -> None:
    register_ada(name="João Álvares Pessoa")
    register_ada(_id="bob", name="Bob Pessoa", email="bob@example.com", phone="+351911111111")
    for text in ("João Álvares", "joao", "pessoa alvares", "João Álvares Pessoa"):
        assert listed(console, f"{RECIPIENTS}?q={text}") == ["ada"], text
    assert listed(console, f"{RECIPIENTS}?q=Pessoa") == ["ada", "bob"]
    assert listed(console, f"{RECIPIENTS}?q=oao") == [], "the beginning of a word, not its middle"


BEGINNINGS = ("Lov", "lovel", "ad lov", "LÓV", "us", "usr-4", "ada.l", "Ada.Lov", "+3519", "o'b")


def lovelace() -> None:
    registration.register(
        RecipientProfile(
            user_id="usr-42",
            name="Ada O'Brien Lóvelace",
            email="Ada.Lovelace@example.com",
            phone="+351912345678",
        ),
        now=utc_now(),
    )


@each_case("text", BEGINNINGS)
def test_recipient_is_found_while_it_is_typed(console: Client, text: str) -> None:
    lovelace()
    assert listed(console, f"{RECIPIENTS}?{urlencode({'q': text})}") == ["usr-42"]
    shown = console.get(f"/admin/search/?{urlencode({'s': text})}").content.decode()
    assert "/admin/recipients/recipient/usr-42/change/" in shown


@each_case("text", ["+3519", "+351 912", "ada.l", "ada.lovelace", "Ada.Lov"])
def test_who_sees_masked_addresses_cannot_guess_one_by_its_beginning(
    support: Client, text: str
) -> None:
    lovelace()
    collection("recipients").update_one(
        {"_id": "usr-42"}, {"$unset": {"name_words": "", "name": ""}}
    )
    assert listed(support, f"{RECIPIENTS}?{urlencode({'q': text})}") == []
    assert "usr-42" not in support.get(f"/admin/search/?{urlencode({'s': text})}").content.decode()


@each_case("text, found", [("0012345678", ["0012345678-A"]), ("00 351 912 345 678", [])])
def test_digits_alone_may_be_an_id(support: Client, text: str, found: list[str]) -> None:
    registration.register(RecipientProfile(user_id="0012345678-A"), now=utc_now())
    page = support.get(f"{RECIPIENTS}?{urlencode({'q': text})}")
    assert [row.pk for row in page.context["cl"].result_list] == found
    assert ("search by address" in page.content.decode()) is (not found)


def test_name_that_changes_is_found_by_its_new_words_only(console: Client) -> None:
    lovelace()
    registration.register(RecipientProfile(user_id="usr-42", name="Bob Byron"), now=utc_now())
    assert listed(console, f"{RECIPIENTS}?q=byr") == ["usr-42"]
    assert listed(console, f"{RECIPIENTS}?q=love") == []
    registration.register(RecipientProfile(user_id="usr-42"), now=utc_now())
    assert listed(console, f"{RECIPIENTS}?q=byr") == []


@pytest.mark.usefixtures("ada")
def test_address_is_found_in_other_spellings(console: Client) -> None:
    for text in ("ADA@Example.com", "%2B351 912-345-678"):
        assert listed(console, f"{RECIPIENTS}?q={text}") == ["ada"], text


@pytest.mark.usefixtures("ada", "suppressed")
def test_recipient_page_shows_preferences_and_suppressions(console: Client) -> None:
    shown = console.get(f"{RECIPIENTS}ada/change/").content.decode()
    for words in (
        ADA,
        "+351912345678",
        "22:00 to 07:00 (Europe/Lisbon)",
        "Hard bounce",
        "Muted",
        "/admin/notifications/notification/?q=ada",
        "ada@work.example",
    ):
        assert words in shown, words


@pytest.mark.usefixtures("ada")
def test_recipient_is_masked_for_support(support: Client) -> None:
    for url in (RECIPIENTS, f"{RECIPIENTS}ada/change/"):
        shown = support.get(url).content.decode()
        for address in (ADA, "+351912345678", "ada@work.example"):
            assert address not in shown
        assert "a***@example.com" in shown


@pytest.mark.usefixtures("ada")
def test_recipient_cannot_be_edited(console: Client) -> None:
    response = console.post(f"{RECIPIENTS}ada/change/", {"name": "Eve", "email": "eve@example.com"})
    assert response.status_code == 403
    assert collection("recipients").find_one({"_id": "ada"})["name"] == "Ada"


def manual(channel: str, address: str) -> dict[str, str]:
    return {"channel": channel, "address": address, "reason": "manual"}


@each_case(
    "channel, address",
    [
        ("email", " Bob@Example.com "),
        ("whatsapp", "+351912345678"),
        ("whatsapp", "+351 912 345 679"),
    ],
)
def test_address_is_suppressed_manually(console: Client, channel: str, address: str) -> None:
    response = console.post(f"{SUPPRESSIONS}add/", manual(channel, address))
    assert response.status_code == 302
    plain = address.strip() if channel == "email" else address.replace(" ", "")
    found = queries.find_suppressed([(channel, plain)], now=utc_now())
    assert found[(channel, plain)].reason == "manual"
    stored = Suppression.objects.latest("created_at")
    assert (stored.source, stored.marketing_only) == ("admin", False)
    assert LogEntry.objects.latest("pk").object_repr == f"{channel}: manual"


@each_case(
    "channel, address, problem",
    [
        ("email", "nonsense", "Expected one address such as ada@example.com."),
        ("email", "+351912345678", "Expected one address such as ada@example.com."),
        ("whatsapp", "912345678", "such as +351912345678."),
        ("whatsapp", "ada@example.com", "such as +351912345678."),
        ("pigeon", "ada@example.com", "is not one of the available choices"),
        ("email", "", "This field is required."),
    ],
)
def test_invalid_address_is_refused(
    console: Client, channel: str, address: str, problem: str
) -> None:
    response = console.post(f"{SUPPRESSIONS}add/", manual(channel, address))
    assert problem in response.content.decode()
    assert not Suppression.objects.exists()


@pytest.mark.usefixtures("suppressed")
def test_manual_suppression_is_separate_and_keeps_the_stricter_scope(console: Client) -> None:
    fields = manual("email", ADA)
    console.post(f"{SUPPRESSIONS}add/", fields)
    console.post(f"{SUPPRESSIONS}add/", fields | {"marketing_only": "on"})
    bounce, own = Suppression.objects.order_by("reason")
    assert (bounce.reason, bounce.source) == ("hard_bounce", "sendgrid")
    assert (own.reason, own.source, own.marketing_only) == ("manual", "admin", False)


@pytest.mark.usefixtures("suppressed")
def test_lifting_a_bounce_keeps_the_unsubscription(console: Client) -> None:
    reason = SuppressionReason.UNSUBSCRIBED
    factories.suppress(ADA, reason=reason, source="one-click", marketing_only=True, at=utc_now())
    console.post(f"{SUPPRESSIONS}{KEY}/delete/", LIFT)
    assert Suppression.objects.get().reason == "unsubscribed"


@pytest.mark.usefixtures("suppressed")
def test_erased_recipients_suppression_has_no_address(console: Client) -> None:
    anonymize([("email", ADA)])
    shown = console.get(SUPPRESSIONS).content.decode()
    assert "Erased" in shown
    assert ADA not in shown
    assert listed(console, f"{SUPPRESSIONS}?q={ADA}") == [BOUNCE]
    assert console.get(f"{SUPPRESSIONS}{KEY}/change/").status_code == 200


@pytest.mark.usefixtures("suppressed")
def test_suppression_is_found_by_the_whole_address(console: Client) -> None:
    assert listed(console, f"{SUPPRESSIONS}?q=ADA@example.com") == [BOUNCE]
    assert listed(console, f"{SUPPRESSIONS}?q=ada") == []


@pytest.mark.usefixtures("suppressed")
def test_selected_suppressions_are_lifted(console: Client) -> None:
    for name in ("bob", "eve"):
        address = f"{name}@example.com"
        factories.suppress(address, reason=SuppressionReason.COMPLAINT, at=utc_now())
    bob = suppression_id("email", "bob@example.com", SuppressionReason.COMPLAINT)
    action = {"action": "delete_selected", "_selected_action": [BOUNCE, bob], "post": "yes"}
    assert console.post(SUPPRESSIONS, action).status_code == 302
    assert Suppression.objects.get().address == "eve@example.com"
    assert LogEntry.objects.count() == 2


@pytest.mark.usefixtures("suppressed")
def test_lifting_a_suppression_is_audited(console: Client) -> None:
    console.post(f"{SUPPRESSIONS}{KEY}/delete/", LIFT)
    entry = LogEntry.objects.get()
    assert (entry.user.username, entry.object_repr) == ("maria", "email: hard_bounce")
    assert entry.change_message == "Lifted: Mailbox works again"


@pytest.mark.usefixtures("suppressed")
def test_lifting_a_suppression_requires_a_reason(console: Client) -> None:
    url = f"{SUPPRESSIONS}{KEY}/delete/"
    assert 'name="reason"' in console.get(url).content.decode()
    answer = console.post(url, {"post": "yes", "reason": " "}, follow=True)
    assert "enter the reason" in answer.content.decode()
    assert Suppression.objects.exists()


@pytest.mark.usefixtures("suppressed")
@pytest.mark.parametrize(
    ("came_from", "expected"),
    [
        ("/admin/recipients/recipient/ada/change/", "/admin/recipients/recipient/ada/change/"),
        ("", SUPPRESSIONS),
        ("https://evil.example/admin/", SUPPRESSIONS),
        ("//evil.example/", SUPPRESSIONS),
    ],
)
def test_lifting_a_suppression_leads_back(console: Client, came_from: str, expected: str) -> None:
    url = f"{SUPPRESSIONS}{KEY}/delete/?{urlencode({'next': came_from})}"
    answer = console.post(url, LIFT)
    assert (answer.status_code, answer["Location"]) == (302, expected)


@pytest.mark.usefixtures("suppressed")
def test_suppression_is_linked_from_the_recipient_and_the_notification(console: Client) -> None:
    profile = registration.RecipientProfile(user_id="ada", email=ADA)
    registration.register(profile, now=utc_now())
    document = factories.accepted(created_at=utc_now())
    for page in (
        "/admin/recipients/recipient/ada/change/",
        f"/admin/notifications/notification/{document['_id']}/change/",
    ):
        shown = console.get(page).content.decode()
        assert f"{SUPPRESSIONS}{KEY}/change/" in shown
        assert f"{SUPPRESSIONS}{KEY}/delete/?{urlencode({'next': page})}" in shown


@pytest.mark.usefixtures("suppressed")
def test_suppression_is_lifted_without_seeing_its_address(db: None) -> None:
    names = [f"recipients.{verb}_suppression" for verb in ("view", "delete", "add")]
    operator = signed_in(make_staff("rui", *names, "notifications.reveal_addresses"))
    url = f"{SUPPRESSIONS}{KEY}/"
    for page in (SUPPRESSIONS, f"{url}change/", f"{url}delete/"):
        shown = operator.get(page).content.decode()
        assert ADA not in shown, page
        assert "a***@example.com" in shown or page.endswith("delete/"), page
    assert listed(operator, f"{SUPPRESSIONS}?q={ADA}") == [BOUNCE]
    assert operator.post(f"{url}delete/", LIFT).status_code == 302
    assert not Suppression.objects.exists()


@pytest.mark.usefixtures("suppressed")
def test_suppressions_are_filtered_by_channel_and_reason(console: Client) -> None:
    for query in ("channel=email", "reason=hard_bounce", "channel=email&reason=hard_bounce"):
        assert listed(console, f"{SUPPRESSIONS}?{query}") == [BOUNCE], query
    for query in ("channel=whatsapp", "reason=manual", "channel=whatsapp&reason=hard_bounce"):
        assert listed(console, f"{SUPPRESSIONS}?{query}") == [], query


@pytest.mark.usefixtures("suppressed")
def test_viewer_cannot_lift_a_suppression(db: None) -> None:
    support = signed_in(make_staff("rui", "recipients.view_suppression"))
    assert support.post(f"{SUPPRESSIONS}{KEY}/delete/", LIFT).status_code == 403
    assert Suppression.objects.exists()
