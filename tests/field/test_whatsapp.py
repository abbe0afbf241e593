"""WhatsApp's webhooks as they arrive: odd items, other forms of a number, and people without one.

Documents: Meta's references of the webhooks ``messages`` and ``user_preferences``, and of
business-scoped user IDs. Reports: https://github.com/chatwoot/chatwoot/issues/11053 (Argentina),
https://github.com/nyaruka/courier/issues/433 (the form in the response to a send).
"""

import itertools
import time
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
from bson import ObjectId
from django.test import Client

from delivery import feedback
from delivery.results import TargetResult
from delivery.sending import PreparedDelivery
from domain.channels import Channel
from domain.content import Recipient
from domain.states import DeliveryStatus
from domain.time import utc_now
from notifications.receipts import webhook_log
from notifyproject.db.collections import collection
from privacy import erasure
from providers.contract import Message
from recipients import (
    registration,
    service_windows,
    suppressions,
    whatsapp_identities,
    whatsapp_learning,
)
from recipients.models import SuppressionReason
from recipients.registration import RecipientProfile
from tests.support.factories import notifications as factories
from tests.support.fakes.provider import ScriptedProvider, accepted
from tests.support.providers.whatsapp import (
    EPOCH,
    PHONE,
    PHONE_NUMBER_ID,
    SECRET,
    change,
    preference,
    preferences_change,
    signed,
    status,
    webhook,
    written,
)
from tests.support.tables import each_case

pytestmark = pytest.mark.usefixtures("db")

WHATSAPP = Channel.WHATSAPP
USER = "GB.13491208655302741918"
DIGITS = PHONE[1:]


@pytest.fixture(autouse=True)
def _number(settings: Any) -> None:
    settings.WHATSAPP_APP_SECRET = SECRET
    settings.WHATSAPP_PHONE_NUMBER_ID = PHONE_NUMBER_ID


def post(raw: bytes) -> Any:
    return Client(raise_request_exception=False).post(
        "/webhooks/whatsapp", raw, content_type="application/json", headers=signed(raw)
    )


def call(*changes: Any) -> Any:
    answer = post(webhook(*changes))
    assert answer.status_code == 200
    return answer.json()


def sent(phone: str = PHONE) -> Any:
    recipient = Recipient(phone=phone, name="Ada")
    return factories.settled(DeliveryStatus.SENT, channel=WHATSAPP, recipient=recipient)


def about(document: Any, **fields: Any) -> dict[str, Any]:
    reference = f"{document['_id']}.whatsapp.1"
    return status(**{"id": "wamid.good", "biz_opaque_callback_data": reference} | fields)


def status_of(document: Any) -> str:
    return factories.delivery(factories.read(document["_id"]), WHATSAPP)["status"]


def now_written(**fields: Any) -> dict[str, Any]:
    return written(timestamp=str(int(time.time())), **fields)


def is_open(phone: str) -> bool:
    return bool(service_windows.open_windows([phone], now=utc_now()))


def opted_out(phone: str) -> bool:
    return bool(suppressions.find_by_address(channel="whatsapp", address=phone))


def log() -> Mapping[str, Any]:
    """Return the newest entry."""
    entry: Mapping[str, Any] = collection("webhook_log").find_one({}, sort=[("_id", -1)])
    return entry


# One odd item.

ODD_STATUSES: list[Any] = [
    None,
    7,
    "x",
    [],
    True,
    {},
    *(status(id=value) for value in (..., None, "", 7, "w" * 1_000, "wam\ud83d", {"$gt": ""})),
    *(status(timestamp=value) for value in (..., None, "", "soon", -1, 10**11, [], True, "nan")),
    *(status(status=value) for value in (..., None, 7, [])),
]
LENIENT_STATUSES: list[Any] = [
    status(timestamp="1795804598.5"),
    status(timestamp=1795804598.5),
    status(recipient_id=7),
    status(biz_opaque_callback_data={"$gt": ""}),
    status(errors="many"),
    status(errors=[None]),
    status(errors=[{"code": "x"}]),
    status(status="new-status"),
    status(conversation=7, pricing=[], unknown={"deep": [[]]}),
]
"""What isn't needed may be odd."""
ODD_MESSAGES: list[Any] = [
    None,
    7,
    "x",
    [],
    *(written(timestamp=value) for value in (..., None, "soon")),
    written(type=7),
]
ODD_PREFERENCES: list[Any] = [
    None,
    7,
    "x",
    preference(timestamp=...),
    preference(timestamp="soon"),
    preference(7),
    preference(category=[]),
]
ODD_CHANGES: list[Any] = [
    None,
    7,
    "x",
    [],
    {},
    {"field": 7},
    {"field": "messages"},
    {"field": "messages", "value": []},
    {"field": "messages", "value": {"statuses": {}}},
    {"field": "messages", "value": {"messages": "x"}},
    {"field": "user_preferences", "value": "x"},
    {"field": "user_preferences", "value": {"user_preferences": 7}},
]


def with_items(document: Any, name: str, odd: list[Any]) -> bytes:
    """Return a webhook that has odd items before a status, a message, and an opt-out."""
    good = change(about(document), messages=[now_written()])
    told = preferences_change(preference(timestamp=int(time.time())))
    match name:
        case "status":
            good["value"]["statuses"][:0] = odd
        case "message":
            good["value"]["messages"][:0] = odd
        case "preference":
            told["value"]["user_preferences"][:0] = odd
        case "change":
            return webhook(*odd, good, told)
    return webhook(good, told)


def tell_the_rest(document: Any) -> None:
    assert status_of(document) == "delivered"
    assert is_open(PHONE)
    assert opted_out(PHONE)


@pytest.mark.parametrize(
    ("name", "odd"),
    [
        *[("status", ODD_STATUSES), ("message", ODD_MESSAGES), ("preference", ODD_PREFERENCES)],
        ("change", ODD_CHANGES),
    ],
    ids=["statuses", "messages", "preferences", "changes"],
)
def test_odd_items_cost_no_other_its_effect(name: str, odd: list[Any]) -> None:
    document = sent()
    raw = with_items(document, name, odd)
    assert post(raw).status_code == 200
    tell_the_rest(document)
    assert log()["unreadable_count"] == len(odd)
    assert webhook_log.replay(log()["_id"], now=utc_now()).changed == 0, "it can be read again"
    assert post(raw).status_code == 200


def test_unneeded_field_may_be_odd() -> None:
    document = sent()
    assert post(with_items(document, "status", LENIENT_STATUSES)).status_code == 200
    tell_the_rest(document)
    assert log()["unreadable_count"] == 0


@pytest.mark.parametrize(
    "entry", [[None], ["x", 7], [{}], [{"changes": {}}], {}, 7, [{"changes": None}]]
)
def test_odd_entry_is_stored(entry: Any) -> None:
    document = sent()
    assert post(webhook(entry=entry)).status_code == 200
    assert log()["unreadable_count"] > 0
    if isinstance(entry, list):
        good = [*entry, {"changes": [change(about(document))]}]
        assert post(webhook(entry=good)).status_code == 200
        assert status_of(document) == "delivered"


@pytest.mark.parametrize(
    ("old", "new"),
    [(b'"Hello"', b'"Hell\xff"'), (b'"Hello"', b'"\\ud83d"'), (b'"Hello"', b"9" * 5_000)],
)
def test_odd_text_costs_nothing(old: bytes, new: bytes) -> None:
    document = sent()
    raw = webhook(change(about(document), messages=[now_written()]))
    assert old in raw
    assert post(raw.replace(old, new)).status_code == 200
    assert status_of(document) == "delivered"
    assert is_open(PHONE)


# Other forms of a number.

FORMS = [
    ("+541123456789", "5491123456789"),
    ("+5491123456789", "541123456789"),
    ("+525512345678", "5215512345678"),
    ("+5531987654321", "553187654321"),
    ("+2290197123456", "22997123456"),
]


@each_case("dialled, reported", FORMS)
def test_other_form_of_a_number_is_the_same_person(dialled: str, reported: str) -> None:
    call(change(messages=[now_written(**{"from": reported})]))
    call(preferences_change(preference(wa_id=reported)))
    assert is_open(dialled)
    assert opted_out(dialled)


@each_case(
    "other", ["541123456780", "54911234567890", "5511234567890", "22902971234567", "33612345678"]
)
def test_similar_number_is_another_person(other: str) -> None:
    call(change(messages=[now_written(**{"from": other})]))
    assert not any(is_open(dialled) for dialled, _ in FORMS)


IVORY_COAST, OLD_FORM = "+2250712345678", "22512345678"
"""No rule tells the two new digits from the old number: they depend on the operator."""


def send(phone: str, other: str | None) -> None:
    """Report that a message was accepted, in whose response WhatsApp has this form."""
    claimed = factories.claimed_delivery(
        channel=WHATSAPP, notification_id=ObjectId(), recipient=Recipient(phone=phone)
    )
    now = utc_now()
    result = TargetResult(
        device_id=None,
        outcome=accepted(other_address=other),
        started_at=now,
        finished_at=now,
        duration_ms=1,
    )
    prepared = PreparedDelivery(claimed=claimed, message=Message(subject=None, text=""), targets=())
    feedback.apply_reputation(
        [(prepared, result)], provider=ScriptedProvider(name="whatsapp"), now=now
    )


@pytest.mark.parametrize("order", list(itertools.permutations(["send", "message", "opt-out"])))
def test_form_in_the_response_is_learned_in_any_order(order: tuple[str, ...]) -> None:
    for step in order:
        if step == "send":
            send(IVORY_COAST, f"+{OLD_FORM}")
        elif step == "message":
            call(change(messages=[now_written(**{"from": OLD_FORM})]))
        else:
            call(preferences_change(preference(wa_id=OLD_FORM)))
    # Another recipient may have the other form, and a client may send to it.
    for form in (IVORY_COAST, f"+{OLD_FORM}"):
        assert is_open(form)
        assert opted_out(form)


OTHER_FORMS = [
    (IVORY_COAST, f"+{OLD_FORM}"),
    ("+528112345678", "+5218112345670"),
    ("+5561987654321", "+556187654320"),
    ("+543415551234", "+5493415551230"),
    ("+2290195123456", "+22995123450"),
]
"""The numbers after the first differ in a digit, so that no rule folds them: WhatsApp says it."""


def opt(value: str, phone: str, at: int) -> None:
    call(preferences_change(preference(value, wa_id=phone[1:], timestamp=at)))


@each_case("identifier, other", OTHER_FORMS)
@pytest.mark.parametrize(("opted", "returned"), [(0, 1), (1, 0)])
def test_opt_out_and_opt_in_count_at_either_form(
    identifier: str, other: str, opted: int, returned: int
) -> None:
    forms, now = (identifier, other), int(time.time())
    opt("stop", forms[opted], now - 60)
    send(identifier, other)
    assert opted_out(identifier)
    assert opted_out(other)
    opt("resume", forms[returned], now - 40)
    assert not opted_out(identifier)
    assert not opted_out(other)
    opt("stop", forms[returned], now - 20)
    assert opted_out(identifier)
    assert opted_out(other)
    send(identifier, other)
    suppressions.lift(
        channel="whatsapp", address=identifier, reasons=[SuppressionReason.UNSUBSCRIBED]
    )
    send(other, identifier)
    assert not opted_out(identifier), "nothing brings back what was lifted"
    assert not opted_out(other)


def test_three_forms_of_one_person_are_found_from_each() -> None:
    """Two clients write a number differently, and WhatsApp in a third way."""
    forms = (IVORY_COAST, "+2250712345670", f"+{OLD_FORM}")
    send(forms[0], forms[2])
    send(forms[1], forms[2])
    for form in forms:
        opt("stop", form, int(time.time()))
        assert all(map(opted_out, forms)), form
        reasons = [SuppressionReason.UNSUBSCRIBED]
        suppressions.lift(channel="whatsapp", address=form, reasons=reasons)
        assert not any(map(opted_out, forms)), form


@each_case("reason", ["unsubscribed", "complaint", "manual", "hard_bounce"])
def test_suppression_that_a_client_stores_stands_at_both_forms(reason: str) -> None:
    send(IVORY_COAST, f"+{OLD_FORM}")
    stored = suppressions.suppress(
        channel="whatsapp",
        address=IVORY_COAST,
        reason=SuppressionReason(reason),
        source="api",
        marketing_only=False,
        now=utc_now(),
    )
    # A bounce concerns one form: the other may be the valid one.
    assert opted_out(f"+{OLD_FORM}") is (reason != "hard_bounce")
    assert suppressions.lift_one(stored["_id"])
    assert not opted_out(f"+{OLD_FORM}")


def test_crash_while_two_forms_are_joined_loses_no_opt_out(monkeypatch: Any) -> None:
    opt("stop", f"+{OLD_FORM}", int(time.time()))
    with monkeypatch.context() as patched:
        patched.setattr(whatsapp_learning, "_join", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            send(IVORY_COAST, f"+{OLD_FORM}")
    assert not opted_out(IVORY_COAST)
    send(IVORY_COAST, f"+{OLD_FORM}")
    assert opted_out(IVORY_COAST)


def test_erasure_erases_both_forms_and_keeps_them_suppressed() -> None:
    registration.register(RecipientProfile(user_id="ada", phone=IVORY_COAST), now=utc_now())
    send(IVORY_COAST, f"+{OLD_FORM}")
    call(change(messages=[now_written(**{"from": OLD_FORM}, from_user_id=USER)]))
    opt("stop", f"+{OLD_FORM}", int(time.time()))
    bare = sent(f"+{OLD_FORM}")
    assert erasure.erase("ada", now=utc_now()).is_complete
    for form in (IVORY_COAST, f"+{OLD_FORM}"):
        assert opted_out(form)
        assert not is_open(form)
    assert collection("whatsapp_identities").count_documents({}) == 0
    assert collection("suppressions").count_documents({"address": {"$exists": True}}) == 0
    assert "phone" not in factories.read(bare["_id"])["recipient"]


# A number or user ID that changes.


def updated(**fields: Any) -> dict[str, Any]:
    update = {
        "wa_id": DIGITS,
        "detail": "User id for Ada has been updated.",
        "user_id": {"previous": USER, "current": NEW_USER},
        "timestamp": "1749416383",
    }
    item = {name: field for name, field in (update | fields).items() if field is not ...}
    return {"field": "user_id_update", "value": {"user_id_update": [item]}}


def system(kind: str, told: dict[str, Any], **fields: Any) -> dict[str, Any]:
    text = "User Ada Lovelace changed"
    message = now_written(type="system", system={"body": text, "type": kind, **told}, **fields)
    return change(messages=[message])


NEW_USER, NEW_NUMBER = "GB.91348720655302749999", "447700900777"
BY_USER_ID = [
    updated(),
    updated(wa_id=...),
    updated(parent_user_id={"previous": "GB.ENT.1", "current": "GB.ENT.2"}),
    system("user_changed_user_id", {"user_id": NEW_USER}, **{"from": ..., "from_user_id": USER}),
    system("user_changed_number", {"wa_id": NEW_NUMBER}, **{"from": ..., "from_user_id": USER}),
]
BY_NUMBER = [
    updated(user_id={"current": NEW_USER}),
    system("user_changed_number", {"wa_id": NEW_NUMBER, "user_id": NEW_USER}),
    system("user_changed_number", {"wa_id": NEW_NUMBER}),
    system("customer_changed_number", {"new_wa_id": NEW_NUMBER}),
]


def follow(told: dict[str, Any]) -> None:
    call(told)
    call(change(messages=[now_written(**{"from": NEW_NUMBER}, from_user_id=NEW_USER)]))
    assert opted_out(f"+{NEW_NUMBER}")
    assert "Ada Lovelace" not in str(list(collection("webhook_log").find({}))), "no name is stored"


@pytest.mark.parametrize("told", [*BY_USER_ID, *BY_NUMBER])
def test_opt_out_follows_the_person_to_a_new_number(told: dict[str, Any]) -> None:
    """As Meta's reference of user_id_update: a new number has a new user ID.

    Payloads as in https://github.com/restfb/restfb/pull/1648.
    """
    told_by_message()
    call(preferences_change(preference(user_id=USER, timestamp=int(time.time()) - 9)))
    follow(told)
    assert opted_out(PHONE), "the earlier number keeps it"


@pytest.mark.parametrize("told", BY_USER_ID)
def test_opt_out_of_an_unknown_person_follows_the_new_user_id(told: dict[str, Any]) -> None:
    call(preferences_change(preference(wa_id=..., user_id=USER, timestamp=int(time.time()) - 9)))
    follow(told)
    assert not opted_out(PHONE), "no webhook said that it was this number"


@pytest.mark.parametrize(
    "odd", [updated(user_id=...), updated(user_id="x"), updated(user_id={"current": 7})]
)
def test_update_without_a_new_user_id_is_counted(odd: dict[str, Any]) -> None:
    call(odd)
    assert log()["unreadable_count"] == 1


def test_new_owner_of_an_earlier_number_gets_no_opt_out() -> None:
    """The number is another person's now; the opt-out that was given for it stays with it."""
    call(system("user_changed_number", {"wa_id": NEW_NUMBER, "user_id": NEW_USER}))
    opt("stop", f"+{NEW_NUMBER}", int(time.time()))
    assert not opted_out(PHONE)


# People without a number.


def told_by_status() -> Any:
    call(change(about(sent(), recipient_user_id=USER)))


def told_by_status_without_number() -> Any:
    call(change(about(sent(), recipient_id=..., recipient_user_id=USER)))


def told_by_message() -> Any:
    call(change(messages=[written(from_user_id=USER, timestamp="1")]))


def told_by_contact() -> Any:
    value = change(about(sent()))
    value["value"]["contacts"] = [{"wa_id": DIGITS, "user_id": USER, "profile": {"name": "Ada"}}]
    call(value)


def told_by_preference() -> Any:
    call(preferences_change(preference("resume", user_id=USER, timestamp=1)))


WAYS = [
    told_by_status,
    told_by_status_without_number,
    told_by_message,
    told_by_contact,
    told_by_preference,
]
OPT_OUTS = [preference(wa_id=..., user_id=USER), preference(wa_id=USER)]
MESSAGES = [
    {"from": ..., "from_user_id": USER},
    {"from": USER},
    {"from": None, "from_user_id": USER},
]


@pytest.mark.parametrize("way", WAYS)
def test_user_id_is_the_person_of_the_number(way: Any) -> None:
    way()
    for told in (
        *(preferences_change(opt_out) for opt_out in OPT_OUTS),
        *(change(messages=[now_written(**message)]) for message in MESSAGES),
    ):
        for name in ("suppressions", "service_windows", "provider_events"):
            collection(name).delete_many({})
        call(told)
        assert (opted_out(PHONE), is_open(PHONE)) == (
            told["field"] == "user_preferences",
            told["field"] == "messages",
        )


@pytest.mark.parametrize("way", WAYS)
def test_unknown_person_is_matched_once_the_number_is_known(way: Any) -> None:
    call(preferences_change(OPT_OUTS[0]))
    call(change(messages=[now_written(**MESSAGES[0])]))
    assert not opted_out(PHONE)
    assert opted_out(USER), "staff see it"
    entries = list(collection("webhook_log").find({}))
    assert [entry["unmatched_count"] for entry in entries] == [1, 1]
    assert all(USER in entry["search_keys"] and USER in entry["body"] for entry in entries)
    way()
    assert opted_out(PHONE)
    assert is_open(PHONE)
    assert not opted_out(USER)


def test_stored_webhook_can_be_replayed_for_a_person_known_since() -> None:
    call(preferences_change(OPT_OUTS[0]))
    entry = log()
    told_by_message()
    suppressions.lift(channel="whatsapp", address=PHONE, reasons=[SuppressionReason.UNSUBSCRIBED])
    collection("provider_events").delete_many({})
    webhook_log.replay(entry["_id"], now=utc_now())
    assert opted_out(PHONE)
    stored = collection("webhook_log").find_one({"_id": entry["_id"]})
    assert stored is not None
    assert stored["unmatched_count"] == 0


def test_opt_in_lifts_the_opt_out_of_the_other_identifier() -> None:
    told_by_status()
    call(preferences_change(preference(timestamp=int(time.time()) - 60)))
    assert opted_out(PHONE)
    call(
        preferences_change(
            preference("resume", wa_id=..., user_id=USER, timestamp=int(time.time()))
        )
    )
    assert not opted_out(PHONE)


@each_case(
    "odd",
    ["GB", "GB.", "gb.123", "GBR.123", "GB.12 3", "GB." + "1" * 129, "", 7, None, {"$gt": ""}],
)
def test_odd_user_id_is_nobody(odd: Any) -> None:
    call(preferences_change(preference(wa_id=..., user_id=odd)))
    call(change(messages=[now_written(**{"from": ..., "from_user_id": odd})]))
    entries = collection("webhook_log").find({}).sort("_id", -1).limit(2)
    assert [entry["unreadable_count"] for entry in entries] == [1, 1], (
        "staff see that it had no effect"
    )
    assert collection("suppressions").count_documents({}) == 0
    assert collection("service_windows").count_documents({}) == 0


@pytest.mark.parametrize(
    "opt_out", [preference("STOP"), preference(wa_id=PHONE), preference(wa_id=int(DIGITS))]
)
def test_opt_out_counts_in_any_form(opt_out: Any) -> None:
    call(preferences_change(opt_out))
    assert opted_out(PHONE)


def test_user_id_of_another_person_changes_nothing() -> None:
    told_by_status()
    call(preferences_change(preference(wa_id=..., user_id=USER[:-1])))
    assert not opted_out(PHONE)


def test_number_of_a_user_id_follows_a_change() -> None:
    told_by_message()
    call(change(messages=[written(**{"from": "351912345678"}, from_user_id=USER, timestamp="2")]))
    assert whatsapp_identities.numbers_of([USER]) == {USER: ("+351912345678",)}


def test_erasure_forgets_the_user_id() -> None:
    told_by_message()
    whatsapp_identities.delete([PHONE])
    assert collection("whatsapp_identities").count_documents({}) == 0


def test_known_person_is_written_once_in_half_a_year() -> None:
    told_by_message()
    (before,) = collection("whatsapp_identities").find({})
    told_by_message()
    assert list(collection("whatsapp_identities").find({})) == [before]
    later = utc_now() + whatsapp_identities.RETENTION / 2 + timedelta(days=1)
    assert whatsapp_learning.learn({USER: PHONE}, now=later) == 1
    (after,) = collection("whatsapp_identities").find({})
    assert after["expires_at"] > before["expires_at"]


# Other shapes that real webhooks have.


def test_contact_without_a_profile_is_read() -> None:
    """As in https://github.com/netflie/whatsapp-cloud-api/pull/234."""
    document = sent()
    value = change(about(document), messages=[now_written()])
    value["value"]["contacts"] = [{"wa_id": DIGITS}, {"wa_id": DIGITS, "user_id": USER}]
    call(value)
    assert status_of(document) == "delivered"
    assert is_open(PHONE)


@pytest.mark.parametrize(
    ("fields", "opens"),
    [
        ({"type": "unsupported", "errors": [{"code": 131051}]}, True),
        ({"type": "reaction", "reaction": {"message_id": "wamid.1"}}, True),
        ({"type": "order", "order": {}}, True),
        ({"type": None}, True),
        ({"type": "system", "system": {"type": "user_changed_number", "wa_id": "1"}}, False),
        ({"type": "text", "group_id": "Y2FwaV9ncm91cDo"}, False),
    ],
)
def test_message_that_a_person_wrote_to_us_opens_the_window(
    fields: dict[str, Any], opens: bool
) -> None:
    call(change(messages=[now_written(**fields)]))
    assert is_open(PHONE) is opens


@pytest.mark.parametrize("text", ["Hello", "STOP"])
def test_logged_message_to_a_group_changes_nothing_when_it_is_replayed(text: str) -> None:
    call(change(messages=[now_written(text=text, group_id="Y2FwaV9ncm91cDo")]))
    webhook_log.replay(log()["_id"], now=utc_now())
    assert not is_open(PHONE)
    assert not opted_out(PHONE)


@each_case("field", ["smb_message_echoes", "history", "message_template_status_update"])
def test_other_subscriptions_change_nothing(field: str) -> None:
    call({"field": field, "value": {"messages": [now_written()], "message_echoes": ["x"]}})
    assert not is_open(PHONE)
    assert log()["unreadable_count"] == 0


def test_errors_of_the_account_stand_beside_good_items() -> None:
    document = sent()
    value = change(about(document))
    value["value"]["errors"] = [{"code": 130429, "title": "Rate limit hit"}]
    call(value)
    assert status_of(document) == "delivered"


def test_error_details_of_a_failed_status_are_read() -> None:
    """As in https://github.com/restfb/restfb/issues/1344."""
    document = sent()
    errors = [{"code": 131026, "title": "x", "message": "x", "error_data": {"details": "y"}}]
    call(change(about(document, status="failed", errors=errors)))
    stored = factories.delivery(factories.read(document["_id"]), WHATSAPP)
    assert (stored["status"], stored["failure_code"]) == ("failed", "reported_failed")
    assert "(131026)" in stored["failure_reason"]


def test_number_that_is_not_on_the_list_of_a_test_number_stays_valid() -> None:
    """As in https://github.com/chatwoot/chatwoot/issues/13932: the account isn't live yet."""
    for n in range(4):
        errors = [{"code": 131030, "title": "Recipient phone number not in allowed list"}]
        call(change(about(sent(), id=f"wamid.{n}", status="failed", errors=errors)))
    assert not opted_out(PHONE)


# Opt-outs in messages.


def system_preference(value: Any) -> dict[str, Any]:
    """As in Meta's reference of user_preferences: the system message that may come in its place."""
    told = {"marketing": value, "body": "User requested to stop marketing messages"}
    return now_written(type="system", system={"type": "user_preference_changed", **told})


def text_of(text: Any) -> dict[str, Any]:
    return now_written(text=text)


def tapped(label: str, payload: Any = None) -> dict[str, Any]:
    """A quick reply of a template, as in https://github.com/rapidpro/rapidpro/issues/1430."""
    return now_written(type="button", button={"text": label, "payload": payload or label})


def replied(title: str, id_: str, kind: str = "button_reply") -> dict[str, Any]:
    reply = {"type": kind, kind: {"id": id_, "title": title}}
    return now_written(type="interactive", interactive=reply)


LABEL = "Não quero mais"
STOPS = [
    *(system_preference(value) for value in ("stop", "STOP")),
    *(text_of(text) for text in ("STOP", "stop", " Stop. ", "Stop!", "*STOP*", "Stop All")),
    *(
        text_of(text)
        for text in ("Unsubscribe", "opt-out", "ARRÊT", "Arre\u0302t", "Parar", "SAIR")
    ),
    tapped("Stop promotions"),
    tapped("Parar promoções"),
    tapped(LABEL, "STOP"),
    replied("Stop", "1"),
    replied(LABEL, "opt_out"),
    replied("Stop", "x", "list_reply"),
]
NO_STOPS = [
    *(system_preference(value) for value in ("maybe", None, 7, [])),
    *(text_of(text) for text in ("STOP 12345", "Stop. Thank you", "stop, o Zé não vem", "cancel")),
    *(text_of(text) for text in ("", "!", "nonstop", "s t o p", None, 7, {"$gt": ""}, "stop " * 9)),
    tapped("Yes"),
    replied("Stop over", "2"),
    now_written(type="reaction", reaction={"emoji": "stop"}),
    now_written(text="stop", group_id="Y2FwaV9ncm91cDo"),
]


def from_many(messages: list[dict[str, Any]]) -> tuple[list[str], dict[str, Any]]:
    """Return the numbers of people, and a change in which each of them wrote a message."""
    numbers = [f"{447_700_900_100 + n}" for n in range(len(messages))]
    told = [
        message | {"from": number, "id": f"wamid.{number}"}
        for number, message in zip(numbers, messages, strict=True)
    ]
    return [f"+{number}" for number in numbers], change(messages=told)


def test_message_opts_out_of_marketing() -> None:
    """As in https://github.com/fedeostan/capo-v1/issues/182 and Meta's marketing opt-out button.

    https://github.com/braze-inc/braze-docs/pull/4758: the business has to honor the button.
    """
    phones, told = from_many(STOPS)
    call(told)
    for phone, message in zip(phones, STOPS, strict=True):
        (found,) = suppressions.find_by_address(channel="whatsapp", address=phone)
        assert (found["reason"], found["marketing_only"]) == ("unsubscribed", True)
        assert is_open(phone) is (message["type"] != "system")
        reasons = [SuppressionReason.UNSUBSCRIBED]
        suppressions.lift(channel="whatsapp", address=phone, reasons=reasons)
    call(told)
    assert not any(map(opted_out, phones)), "Meta repeats webhooks"
    entry = next(iter(collection("webhook_log").find({})))
    assert not any(label in entry["body"] for label in ("promo", "Stop", LABEL, "requested"))
    collection("provider_events").delete_many({})
    webhook_log.replay(entry["_id"], now=utc_now())
    assert all(map(opted_out, phones)), "the log has the choice without the text"


def test_other_message_opts_nobody_out() -> None:
    """As in https://github.com/medic/cht-core/issues/476: "STOP 12345" has another meaning."""
    phones, told = from_many(NO_STOPS)
    call(told)
    assert not any(map(opted_out, phones))
    assert log()["unreadable_count"] == 0


@pytest.mark.parametrize(
    "message", [text_of("START"), text_of("unstop"), tapped("Start"), system_preference("resume")]
)
@pytest.mark.parametrize(("age", "is_lifted"), [(60, True), (-60, False)])
def test_message_opts_in_again(message: dict[str, Any], age: int, is_lifted: bool) -> None:
    at = int(time.time()) - 120
    call(change(messages=[text_of("STOP") | {"timestamp": str(at - age)}]))
    call(change(messages=[message | {"timestamp": str(at)}]))
    assert opted_out(PHONE) is not is_lifted, "an earlier opt-in doesn't lift it"


def test_opt_out_by_a_person_without_a_number_waits_for_it() -> None:
    call(change(messages=[text_of("STOP") | {"from": None, "from_user_id": USER}]))
    assert opted_out(USER)
    told_by_message()
    assert opted_out(PHONE)


def test_earlier_number_of_a_changed_one_is_the_customer() -> None:
    """Newer versions of the API name the earlier number ``customer``."""
    opt("stop", PHONE, int(time.time()))
    told = {"customer": DIGITS, "wa_id": NEW_NUMBER}
    call(system("customer_changed_number", told, **{"from": NEW_NUMBER}))
    assert opted_out(f"+{NEW_NUMBER}")


# Receipts.


def outcome(*receipts: tuple[str, dict[str, Any]]) -> tuple[str, str | None]:
    document = sent()
    for n, (kind, fields) in enumerate(receipts):
        told = {"status": kind, "id": f"wamid.{document['_id']}", "timestamp": str(EPOCH + n)}
        call(change(about(document, **(told | fields))))
    stored = factories.delivery(factories.read(document["_id"]), WHATSAPP)
    return stored["status"], stored.get("failure_reason")


def why(code: int, details: Any, title: str = "Title") -> dict[str, Any]:
    error = {"code": code, "title": title, "message": title, "error_data": {"details": details}}
    return {"errors": [error]}


UNDELIVERABLE = why(131026, "Message Undeliverable.")


@each_case(
    "kinds, status",
    [
        # https://github.com/chatwoot/chatwoot/issues/14529, and /pull/14149
        ("delivered sent", "delivered"),
        ("read sent delivered", "read"),
        ("failed sent", "failed"),
        ("sent failed", "failed"),
        ("read", "read"),
        # https://github.com/chatwoot/chatwoot/pull/6295, and pywa's list
        ("delivered deleted", "delivered"),
        ("delivered played", "delivered"),
    ],
)
def test_receipts_may_come_in_any_order(kinds: str, status: str) -> None:
    told = [(kind, UNDELIVERABLE if kind == "failed" else {}) for kind in kinds.split()]
    assert outcome(*told)[0] == status


MIME = "Unsupported Image mime type text/html. Please use one of image/png, image/jpeg."
COUNT = "body: number of localizable_params (1) does not match the expected number of params (2)"


@each_case(
    "errors, told",
    [
        # https://github.com/chatwoot/chatwoot/issues/10428
        (why(131053, MIME), f"can't be downloaded. (131053): {MIME}"),
        # https://github.com/shridarpatil/frappe_whatsapp/issues/87
        (why(131052, "failed with http code 503"), "(131052): failed with http code 503"),
        (why(132000, COUNT), f"(132000): {COUNT}"),
        (why(131009, f"Param to {PHONE} is bad"), "(131009): Param to [address] is bad"),
        (why("131008", "A is missing"), "invalid. (131008): A is missing"),
        (why(131008, None), "missing or invalid. (131008)"),
        (why(131008, {"a": 1}), "missing or invalid. (131008)"),
        # https://github.com/ArnasDon/wacrm/issues/535
        (why(139999, "New rule.", "New"), "New: New rule. (139999)"),
        (why(139999, "New", "New"), "New (139999)"),
        # These say it all.
        (UNDELIVERABLE, "outdated app. (131026)"),
        (why(131049, "To maintain healthy engagement."), "is reached. (131049)"),
        (why(131047, "More than 24 hours."), "is required. (131047)"),
    ],
)
def test_reason_has_what_only_the_details_tell(errors: dict[str, Any], told: str) -> None:
    status, reason = outcome(("failed", errors))
    assert status == "failed"
    assert (reason or "").endswith(told)


def test_every_status_of_a_batch_counts() -> None:
    """As in https://github.com/david-lev/pywa/issues/229, with a message that nobody knows.

    https://github.com/shridarpatil/frappe_whatsapp/pull/252
    """
    documents = [sent() for _ in range(5)]
    told = [about(document, id=f"wamid.{n}") for n, document in enumerate(documents)]
    foreign = status(id="wamid.foreign", biz_opaque_callback_data=...)
    entries = [
        {"id": "1", "changes": [change(told[0], foreign, told[1]), change(told[2])]},
        {"id": "1", "changes": [change(told[3], number="999")]},
        {"id": "2", "changes": [{"field": "account_update", "value": {}}, change(told[4])]},
    ]
    assert post(webhook(entry=entries)).status_code == 200
    assert {status_of(document) for document in documents} == {"delivered"}


# What a refusal tells.


def refuse(phone: str, code: int, at: float, **fields: Any) -> None:
    document = sent(phone)
    told = {"status": "failed", "timestamp": str(int(at)), "id": f"wamid.{document['_id']}"}
    call(change(about(document, **(told | {"recipient_id": phone[1:]} | fields), **why(code, "x"))))


@each_case("phone", [PHONE, *(form for form, _ in FORMS)])
def test_refused_text_closes_the_window(phone: str) -> None:
    """As in https://github.com/megaapp977/stack/issues/117: each resend would fail again."""
    call(change(messages=[now_written(**{"from": phone[1:]})]))
    assert is_open(phone)
    refuse(phone, 131047, time.time())
    assert not is_open(phone)
    call(change(messages=[now_written(**{"from": phone[1:]})]))
    assert is_open(phone), "they wrote again"


@each_case(
    "code, age, fields",
    [
        *((code, 0, {}) for code in (131026, 131049, 132001, 139999)),
        (131047, 60, {}),
        (131047, 0, {"status": "sent"}),
        (131047, 0, {"recipient_id": "447700900998"}),
        (131047, 0, {"recipient_id": ...}),
    ],
)
def test_window_stays_open_otherwise(code: int, age: int, fields: dict[str, Any]) -> None:
    call(change(messages=[now_written()]))
    refuse(PHONE, code, time.time() - age, **fields)
    assert is_open(PHONE)


def test_refusal_of_a_text_from_another_number_of_the_business_closes_no_window() -> None:
    """A window is between a person and one number of the business."""
    call(change(messages=[now_written()]))
    refused = about(sent(), status="failed", timestamp=str(int(time.time())), **why(131047, "x"))
    call(change(refused, number="100000000000002"))
    assert is_open(PHONE)


def test_text_refused_by_user_id_closes_the_window_of_the_number() -> None:
    told_by_message()
    call(change(messages=[now_written()]))
    refuse(PHONE, 131047, time.time(), recipient_id=..., recipient_user_id=USER)
    assert not is_open(PHONE)


@pytest.mark.parametrize("is_batch", [True, False])
def test_younger_opt_in_lifts_an_opt_out_that_an_error_told(is_batch: bool) -> None:
    """Both may arrive much later, as Meta repeats webhooks for days."""
    at, document = int(time.time()) - 3_600, sent()
    error = about(document, status="failed", timestamp=str(at), **why(131050, "x"))
    told = [change(error), preferences_change(preference("resume", timestamp=at + 60))]
    for some in [told] if is_batch else [[item] for item in told]:
        call(*some)
    assert not opted_out(PHONE)
    call(preferences_change(preference("stop", timestamp=at + 120)))
    call(preferences_change(preference("resume", timestamp=at + 90)))
    assert opted_out(PHONE), "an older one doesn't"


# Reports that were right from the beginning.


def test_repeated_message_opens_one_window() -> None:
    """As in https://github.com/Neurotech-HQ/heyoo/issues/84."""
    raw = webhook(change(messages=[now_written()]))
    assert [post(raw).status_code for _ in range(5)] == [200] * 5
    assert collection("service_windows").count_documents({}) == 1


def test_our_messages_do_not_extend_the_window() -> None:
    """As in https://github.com/hackclub/attend/pull/84."""
    call(change(messages=[written(timestamp=str(int(time.time()) - 23 * 3_600))]))
    before = service_windows.last_inbound(PHONE)
    call(change(about(sent(), timestamp=str(int(time.time())))))
    assert service_windows.last_inbound(PHONE) == before


def test_message_without_contacts_is_read() -> None:
    """As in https://github.com/opengovsg/postmangovsg/pull/2223."""
    told = change(messages=[now_written(type="button", button={"text": "Yes"})])
    del told["value"]["contacts"]
    call(told)
    assert is_open(PHONE)


@pytest.mark.parametrize("missing", ["conversation", "pricing", "recipient_id"])
def test_status_needs_neither_price_nor_number(missing: str) -> None:
    """As in https://github.com/restfb/restfb/issues/1240, and since per-message prices."""
    document = sent()
    call(change(about(document, **{missing: ...})))
    assert status_of(document) == "delivered"


@pytest.mark.parametrize("is_known", [False, True])
def test_user_id_leaves_the_number_that_its_person_gave_up(is_known: bool) -> None:
    """Somebody else may have the earlier number soon."""
    if is_known:
        told_by_message()
    call(system("user_changed_number", {"wa_id": NEW_NUMBER}, from_user_id=USER))
    call(change(messages=[text_of("STOP") | {"from": None, "from_user_id": USER}]))
    assert (opted_out(f"+{NEW_NUMBER}"), opted_out(PHONE)) == (True, False)


def test_opt_out_of_the_earlier_number_follows_a_user_id_alone() -> None:
    told_by_message()
    opt("stop", PHONE, int(time.time()))
    told = {"wa_id": NEW_NUMBER, "user_id": USER}
    call(system("user_changed_number", told, **{"from": None}, from_user_id=USER))
    assert opted_out(f"+{NEW_NUMBER}")


def test_late_opt_in_lifts_no_opt_out_that_was_repeated_after_it() -> None:
    at = int(time.time()) - 3_600
    for value, age in (("stop", 0), ("stop", 120), ("resume", 60)):
        call(preferences_change(preference(value, timestamp=at + age)))
    assert opted_out(PHONE)
