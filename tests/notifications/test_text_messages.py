"""Text messages to countries that aren't enabled, and with more parts than their type allows."""

from decimal import Decimal
from typing import Any

import pytest

from delivery import pipeline, texts
from delivery.rendering import RenderedMessage
from delivery.runtime import SendingRuntime
from domain.channels import Channel
from domain.content import Content, Recipient
from domain.sms import TextRules
from domain.states import Category
from domain.time import utc_now
from notifications import checks
from notifications.catalog import texts as catalog
from notifications.catalog import types
from notifications.content.linting import lint_template
from notifications.intake.warnings import find_warnings
from notifications.store.new_notifications import NewDelivery
from notifyproject.db.collections import collection
from providers import registry
from providers.contract import Message
from tests.support.clients.api import App, pointers, request
from tests.support.factories.notifications import claimed_delivery, new
from tests.support.tables import each_case

PORTUGAL, SPAIN, SATELLITE = "+351912345678", "+34612345678", "+881612345678"
CODE = {"type": "mfa_code", "data": {"code": "123456"}}
LONG = {"subject": "News", "body": "a" * 460}
SMS = ["sms"]


@pytest.fixture
def provider(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Configure a provider, and one country."""
    settings.SMS_COUNTRIES = ("PT",)

    def configured(channel: Channel, *, test: bool = False) -> bool:
        return channel is Channel.SMS or registry.is_configured(channel, test=test)

    for module in (catalog, checks):
        monkeypatch.setattr(module, "is_configured", configured)


def sms_to(app: App, number: str, **fields: Any) -> Any:
    recipient = {"phone": number, "email": "ada@example.com"}
    return app.post("/notifications", request(**{**CODE, "recipient": recipient, **fields}))


@pytest.mark.usefixtures("provider")
def test_named_channel_to_another_country_is_refused(app: App) -> None:
    assert sms_to(app, PORTUGAL, channels=SMS).status_code == 202
    answer = sms_to(app, SPAIN, channels=SMS)
    assert (answer.status_code, pointers(answer)) == (
        422,
        {"/recipient/phone": "destination_disabled"},
    )
    assert "SMS to Spain isn't enabled." in answer.content.decode()
    answer = sms_to(app, SATELLITE, channels=SMS)
    assert "The number belongs to no country" in answer.content.decode()
    assert SATELLITE not in answer.content.decode()


@pytest.mark.usefixtures("provider")
def test_other_channels_are_sent_with_a_warning(app: App) -> None:
    types.define_type("mfa_code", {"channels": ["email", "sms"]}, now=utc_now())
    body = sms_to(app, SPAIN).json()
    states = {delivery["channel"]: delivery["status"] for delivery in body["delivery"]}
    assert states == {"email": "pending", "sms": "suppressed"}
    (warning,) = body["warnings"]
    assert (warning["channel"], warning["code"]) == ("sms", "destination_disabled")


def test_without_a_provider_no_country_is_checked(app: App) -> None:
    assert sms_to(app, SPAIN, channels=SMS).status_code == 202


def test_named_channel_with_too_many_parts_is_refused(app: App) -> None:
    long = {"type": "alert", "data": {}, "content": LONG}
    answer = sms_to(app, PORTUGAL, channels=SMS, **long)
    assert (answer.status_code, pointers(answer)) == (422, {"/content": "too_large"})
    assert "4 parts as GSM-7; at most 3 parts." in answer.content.decode()
    types.define_type("alert", {"sms": {"max_units": 4, "allow_unicode": True}}, now=utc_now())
    assert sms_to(app, PORTUGAL, channels=SMS, **long).status_code == 202


def test_type_may_forbid_unicode(app: App) -> None:
    types.define_type("alert", {"sms": {"max_units": 3, "allow_unicode": False}}, now=utc_now())
    own = {"type": "alert", "data": {}, "channels": SMS}
    typographic = {"subject": "News", "body": "\u201cHi\u201d"}
    assert sms_to(app, PORTUGAL, content=typographic, **own).status_code == 202
    emoji = {"subject": "News", "body": "\U0001f44d"}
    answer = sms_to(app, PORTUGAL, content=emoji, **own)
    assert "the type forbids Unicode" in answer.content.decode()


def test_too_many_parts_beside_other_channels_are_a_warning(app: App) -> None:
    types.define_type("alert", {"channels": ["email", "sms"]}, now=utc_now())
    body = sms_to(app, PORTUGAL, type="alert", data={}, content=LONG).json()
    (warning,) = body["warnings"]
    assert (warning["channel"], warning["code"]) == ("sms", "too_large")
    states = {delivery["channel"]: delivery["status"] for delivery in body["delivery"]}
    assert states == {"email": "pending", "sms": "pending"}


def test_forbidden_unicode_beside_other_channels_is_a_warning(app: App) -> None:
    rules = {"max_units": 3, "allow_unicode": False}
    types.define_type("alert", {"channels": ["email", "sms"], "sms": rules}, now=utc_now())
    emoji = {"subject": "News", "body": "\U0001f44d"}
    (warning,) = sms_to(app, PORTUGAL, type="alert", data={}, content=emoji).json()["warnings"]
    assert warning["detail"] == (
        "It fails when it is sent: Some characters aren't in GSM-7, and the type forbids Unicode."
    )


@pytest.mark.usefixtures("db")
@each_case("are_channels_named, expected", [(False, ["too_large"]), (True, [])])
def test_text_on_a_named_channel_is_checked_once(
    are_channels_named: bool, expected: list[str]
) -> None:
    notification = new(
        type="alert",
        recipient=Recipient(phone=PORTUGAL),
        deliveries=(NewDelivery(channel=Channel.SMS),),
        content=Content(**LONG),
    )
    found = find_warnings(notification, are_channels_named=are_channels_named, now=utc_now())
    assert [warning.code for warning in found] == expected


@pytest.mark.usefixtures("db")
@each_case(
    "text, locale, category, expected",
    [
        ("News!", None, Category.MARKETING, ["opt_out_missing"]),
        ("News! Reply STOP to opt out", "pt", Category.MARKETING, []),
        ("Novidades! Responda STOP para deixar de receber", "pt", Category.MARKETING, []),
        ("News!", None, Category.TRANSACTIONAL, []),
    ],
)
def test_marketing_text_of_a_request_says_how_to_opt_out(
    text: str, locale: str | None, category: Category, expected: list[str]
) -> None:
    notification = new(
        type="alert",
        category=category,
        recipient=Recipient(phone=PORTUGAL, locale=locale),
        deliveries=(NewDelivery(channel=Channel.SMS), NewDelivery(channel=Channel.EMAIL)),
        content=Content(subject="News", body=text),
    )
    found = find_warnings(notification, are_channels_named=False, now=utc_now())
    assert [warning.code for warning in found] == expected


def test_preview_shows_the_parts(app: App) -> None:
    body = {"subject": "News", "body": "\u00e7" * 71}
    sent = request(type="alert", data={}, content=body, recipient={"phone": PORTUGAL})
    shown = app.post("/notifications/preview", sent | {"channels": SMS}).json()
    found = {channel["channel"]: channel["sms"] for channel in shown["channels"]}
    assert found["sms"] == {"encoding": "ucs_2", "units": 2, "forcing": ["\u00e7"]}
    assert found["email"] is None


@pytest.mark.usefixtures("db", "provider")
@each_case(
    "number, text, code",
    [
        (PORTUGAL, "a" * 459, None),
        (PORTUGAL, "a" * 460, "too_large"),
        (SPAIN, "Hi", "destination_disabled"),
        (SATELLITE, "Hi", "destination_disabled"),
    ],
)
def test_texts_are_checked_again_before_a_send(number: str, text: str, code: str | None) -> None:
    """The countries or the rules of the type may have changed since the acceptance."""
    claimed = claimed_delivery(channel=Channel.SMS, recipient=Recipient(phone=number))
    message = RenderedMessage(Message(subject=None, text=text))
    allowed, refused = texts.split_refused([claimed], {claimed.notification_id: message})
    assert [unsent.code.value for unsent in refused] == ([code] if code else [])
    assert len(allowed) == (0 if code else 1)


@pytest.mark.usefixtures("broker", "provider")
def test_refused_text_fails_without_an_attempt(
    app: App, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    accepted = sms_to(app, PORTUGAL, channels=SMS).json()
    settings.SMS_COUNTRIES = ("ES",)
    document = collection("notifications").find_one({})
    assert document is not None
    configured = registry.providers_for(Channel.EMAIL)
    monkeypatch.setattr(pipeline, "providers_for", lambda *_, **__: configured)
    pipeline.dispatch(SendingRuntime(), [document["_id"]], channel=Channel.SMS)
    (delivery,) = app.get(f"/notifications/{accepted['id']}").json()["delivery"]
    assert (delivery["status"], delivery["failure_code"]) == ("failed", "destination_disabled")
    assert delivery["failure_reason"] == "SMS to Portugal isn't enabled."
    assert collection("delivery_attempts").count_documents({}) == 0


def lint(sms: str, *, language: str = "default", **options: Any) -> list[tuple[str, str]]:
    parts = {"default": {"subject": "S", "body": "B"}}
    parts.setdefault(language, {})["sms"] = sms
    found = lint_template(
        name="parcel_lost",
        parts=parts,
        example_data={"order": "1" * 100},
        sensitive=frozenset(),
        **options,
    )
    return [(fault.code, fault.reason) for fault in found]


@pytest.mark.usefixtures("db")
def test_template_with_too_many_parts_is_refused() -> None:
    assert lint("{{ order }}" * 4) == []
    reason = "With the example data: 4 parts as GSM-7; at most 3 parts."
    assert lint("{{ order }}" * 5) == [("too_long", reason)]
    assert lint("{{ order }}" * 5, text_rules=TextRules(max_units=4)) == []
    one = TextRules(max_units=1, allow_unicode=False)
    assert lint("\u00e7 {{ order }}", text_rules=one) == [
        ("unicode", "Not in GSM-7, and the type forbids Unicode: \u00e7")
    ]
    assert [code for code, _ in lint("{{ order }}" * 2, text_rules=one)] == ["too_long"]


@pytest.mark.usefixtures("db")
def test_marketing_says_how_to_opt_out_in_its_language() -> None:
    assert lint("Hi. Reply stop to opt out.", is_marketing=True) == []
    assert lint("Hi.", is_marketing=True) == [
        ("opt_out_missing", "A marketing SMS says how to opt out: Reply STOP to opt out")
    ]
    portuguese = "Novidades! Responda STOP para deixar de receber."
    assert lint(portuguese, language="pt", is_marketing=True) == []
    assert lint("Hi. Reply STOP to opt out.", language="pt", is_marketing=True) == [
        (
            "opt_out_missing",
            "A marketing SMS says how to opt out: Responda STOP para deixar de receber",
        )
    ]
    assert lint("Hi.") == []


@pytest.mark.usefixtures("provider")
@each_case(
    "countries, ids",
    [
        (("PT", "ES"), []),
        ((), ["notifications.E024"]),
        (("PT", "XX", "UK"), ["notifications.E025"]),
    ],
)
def test_countries_are_checked_at_the_start(
    settings: Any, countries: tuple[str, ...], ids: list[str]
) -> None:
    settings.SMS_COUNTRIES = countries
    assert [problem.id for problem in checks.sms_settings()] == ids


def test_price_of_no_country_is_reported(settings: Any) -> None:
    settings.SMS_PRICES = {"PT": Decimal("0.036"), "UK": Decimal("0.04")}
    (problem,) = checks.sms_settings()
    assert (problem.id, problem.msg) == (
        "notifications.E057",
        "SMS_PRICES has unknown countries: UK.",
    )
