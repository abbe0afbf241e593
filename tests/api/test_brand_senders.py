"""The sender and the accounts of a brand: what is taken, what is sent, and by what."""

import html
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from bson import ObjectId
from django.test import Client

from console.widgets.waits import find_pauses
from delivery import accounts, digests, idempotency, pipeline, provider_pauses
from delivery.runtime import SendingRuntime
from domain.channels import Channel
from domain.retry import UnknownPolicy
from domain.time import utc_now
from notifications.catalog import designs
from notifications.content import looks
from notifications.documents.catalog import DESIGNS
from notifications.documents.notification import NOTIFICATIONS
from notifications.store import recovery
from notifications.store.reading import current_hold
from providers.contract import SendRequest, SendTarget
from tests.api.test_design import BRAND, COMMANDS, brand, change, define, put, revision
from tests.console.test_home import issues
from tests.console.test_providers import URL as PROVIDERS
from tests.delivery.test_idempotency import MINUTE, Receiver, lose, run_on
from tests.support.accounts import declare
from tests.support.clients.api import App, new_app, pointers, request
from tests.support.factories import notifications as factories
from tests.support.fakes.provider import (
    ScriptedProvider,
    channel_unavailable,
    timeout,
    unreachable,
)
from tests.support.tables import each_case

EMAIL = Channel.EMAIL
SENDER, HELP = "Acme, Inc. <hello@acme.example>", "Acme's help <help@acme.example>"
ALLOWED = frozenset({"@acme.example", "post@beta.example"})
ACCOUNTS = ("acme_eu", "acme_us")
TEXTS = {
    "PROVIDER_TEXTS_KIND": "twilio",
    "PROVIDER_TEXTS_ACCOUNT_SID": "AC1",
    "PROVIDER_TEXTS_AUTH_TOKEN": "9f2c7be1d04a86c35e7f10b2a8d4936c",
    "PROVIDER_TEXTS_FROM": "Acme",
}


class Account(ScriptedProvider):
    """An account whose circuits have the scopes of email: the senders of brands."""

    def scope(self, target: SendTarget) -> str:
        return target.sender


@pytest.fixture
def sending(settings: Any, monkeypatch: pytest.MonkeyPatch) -> dict[str, Account]:
    """Return the channel's provider, and two accounts that only brands name."""
    settings.EMAIL_SENDERS = ALLOWED
    found = {name: Account(name=name) for name in ("sendgrid", *ACCOUNTS)}
    declare(settings, **_variables(*ACCOUNTS), **TEXTS)
    monkeypatch.setattr(accounts, "get_provider", found.__getitem__)
    for module in (accounts, pipeline):
        monkeypatch.setattr(module, "providers_for", lambda _channel, **_: (found["sendgrid"],))
    return found


def _variables(*names: str) -> dict[str, str]:
    return {
        f"PROVIDER_{name.upper()}_{key}": value
        for name in names
        for key, value in (("KIND", "sendgrid"), ("API_KEY", f"SG.key-of-{name}"))
    }


def store(app: App, name: str = "acme", **fields: Any) -> None:
    stored = {each["name"]: each["revision"] for each in app.get("/design").json()["brands"]}
    put(app, **brand(name, BRAND | fields, revision=stored.get(name)))


def accept(app: App, count: int = 1, *, by: App | None = None, **fields: Any) -> list[ObjectId]:
    answers = [(by or app).post("/notifications", request(**fields)) for _ in range(count)]
    assert {answer.status_code for answer in answers} == {202}, answers[0].json()
    return [ObjectId(answer.json()["id"]) for answer in answers]


def dispatch(*ids: ObjectId, after: timedelta = timedelta(0)) -> dict[str, int]:
    at = utc_now() + after
    return dict(pipeline.dispatch(SendingRuntime(), ids, channel=EMAIL, clock=lambda: at).counts)


def state(notification_id: ObjectId) -> Any:
    return factories.delivery(factories.read(notification_id))


def history(notification_id: ObjectId) -> list[tuple[str, str]]:
    return [(each["provider"], each["status"]) for each in factories.attempts(notification_id)]


def only(provider: ScriptedProvider) -> SendRequest:
    (seen,) = provider.seen
    return seen


@each_case(
    "fields, problems",
    [
        ({"from": SENDER, "reply_to": HELP}, {}),
        ({"from": "post@beta.example"}, {}),
        ({"from": "Post <POST@beta.example>"}, {}),
        ({"from": "Shop <notifications@example.com>"}, {}),
        ({"reply_to": "anybody@anywhere.example"}, {}),
        ({"accounts": {"email": ["acme_us", "acme_eu"]}}, {}),
        ({"from": "other@beta.example"}, {"from": "sender_not_allowed"}),
        ({"from": "hello@mail.acme.example"}, {"from": "sender_not_allowed"}),
        ({"from": "hello@acme.example.org"}, {"from": "sender_not_allowed"}),
        ({"from": "acme.example"}, {"from": "invalid_email"}),
        ({"from": "a@acme.example, b@acme.example"}, {"from": "invalid_email"}),
        ({"from": "A\r\nBcc: eve@example.org <a@acme.example>"}, {"from": "invalid_email"}),
        ({"reply_to": "nobody"}, {"reply_to": "invalid_email"}),
        ({"accounts": {"email": ["acme"]}}, {"accounts/email/0": "unknown_account"}),
        ({"accounts": {"email": ["sandbox-sendgrid"]}}, {"accounts/email/0": "unknown_account"}),
        ({"accounts": {"email": ["twilio"]}}, {"accounts/email/0": "unknown_account"}),
        ({"accounts": {"email": ["acme_us", "acme_us"]}}, {"accounts/email/1": "duplicate"}),
        ({"accounts": {"email": ["acme_us"], "sms": ["texts"]}}, {}),
        ({"accounts": {"sms": ["acme_us"]}}, {"accounts/sms/0": "unknown_account"}),
        ({"accounts": {"push": ["fcm"]}}, {"accounts/push": "invalid_channel"}),
        ({"accounts": {"fax": ["acme_us"]}}, {"accounts/fax": "invalid_channel"}),
    ],
)
def test_sender_and_accounts_are_checked_when_they_are_stored(
    app: App, sending: dict[str, Account], fields: dict[str, Any], problems: dict[str, str]
) -> None:
    answer = change(app, **brand(fields=BRAND | fields), dry_run=True)
    found = pointers(answer) if answer.status_code == 422 else {}
    assert found == {f"/brands/0/brand/{name}": code for name, code in problems.items()}


def test_email_has_the_sender_and_the_reply_address_of_its_brand(
    app: App, sending: dict[str, Account]
) -> None:
    store(app, **{"from": SENDER, "reply_to": HELP})
    store(app, "plain")
    own = {"reply_to": "orders@acme.example"}
    ids = [
        *accept(app, brand="acme"),
        *accept(app, brand="acme", content=own),
        *accept(app, brand="plain"),
        *accept(app),
    ]
    assert dispatch(*ids) == {"sent": 4}
    found = [(seen.message.sender, seen.message.reply_to) for seen in sending["sendgrid"].seen]
    assert [(str(sender or ""), text) for sender, text in found] == [
        (SENDER, HELP),
        (SENDER, "orders@acme.example"),
        ("", None),
        ("", None),
    ]


def test_brand_that_changes_afterwards_changes_no_accepted_message(
    app: App, sending: dict[str, Account]
) -> None:
    store(app, **{"from": SENDER, "accounts": {"email": ["acme_eu"]}})
    define(app, {"subject": "S", "body": "B"}, brand="acme")
    ids = accept(app, type="parcel", data={"name": "Ada"})
    store(app, **{"from": "post@beta.example", "accounts": {"email": ["acme_us"]}})
    assert dispatch(*ids) == {"sent": 1}
    assert str(only(sending["acme_eu"]).message.sender) == SENDER
    later = accept(app, type="parcel", data={"name": "Ada"})
    assert dispatch(*later) == {"sent": 1}
    assert str(only(sending["acme_us"]).message.sender) == "post@beta.example"


def test_withdrawn_sender_holds_its_messages_until_it_is_allowed_again(
    app: App, sending: dict[str, Account], settings: Any
) -> None:
    store(app, **{"from": SENDER})
    ids = [*accept(app, brand="acme"), *accept(app)]
    settings.EMAIL_SENDERS = frozenset({"nonsense"})
    assert dispatch(*ids) == {"pending": 1, "sent": 1}
    held = state(ids[0])
    assert held["failure_code"] == "channel_unavailable"
    assert "EMAIL_SENDERS" in held["failure_reason"]
    assert held["attempt_count"] == 0
    assert only(sending["sendgrid"]).message.sender is None
    settings.EMAIL_SENDERS = ALLOWED
    assert dispatch(ids[0], after=timedelta(minutes=1)) == {"sent": 1}


def test_accounts_of_a_brand_send_its_messages_and_no_others(
    app: App, sending: dict[str, Account]
) -> None:
    store(app, accounts={"email": ["acme_eu"]})
    store(app, "beta", accounts={"email": ["acme_us", "acme_eu"]})
    store(app, "plain")
    of = {name: accept(app, 2, brand=name) for name in ("acme", "beta", "plain")}
    usual = accept(app, 2)
    assert dispatch(*of["acme"], *of["beta"], *of["plain"], *usual) == {"sent": 8}
    found = {name: [history(i)[-1][0] for i in ids] for name, ids in of.items()}
    assert found == {"acme": ["acme_eu"] * 2, "beta": ["acme_us"] * 2, "plain": ["sendgrid"] * 2}
    assert {history(i)[-1][0] for i in usual} == {"sendgrid"}


def test_failover_stays_among_the_accounts_of_the_brand(
    app: App, sending: dict[str, Account]
) -> None:
    store(app, accounts={"email": ["acme_us", "acme_eu"]})
    ids = accept(app, brand="acme")
    sending["acme_us"].always(unreachable)
    assert dispatch(*ids) == {"pending": 1}
    assert dispatch(*ids) == {"sent": 1}
    assert history(ids[0]) == [("acme_us", "failed"), ("acme_eu", "sent")]
    alone = accept(app, brand="acme")
    sending["acme_eu"].always(channel_unavailable)
    sending["acme_us"].always(channel_unavailable)
    for minutes in range(3):
        dispatch(*alone, after=timedelta(minutes=minutes))
    assert {name for name, _ in history(alone[0])} <= {*ACCOUNTS}
    assert state(alone[0])["status"] == "pending"
    assert sending["sendgrid"].seen == []


def test_ambiguous_attempt_stays_with_the_account_of_the_brand(
    app: App, sending: dict[str, Account]
) -> None:
    store(app, accounts={"email": ["acme_us", "acme_eu"]})
    ids = accept(app, brand="acme")
    sending["acme_us"].always(timeout)
    assert dispatch(*ids) == {"unknown": 1}
    assert (len(sending["acme_us"].seen), sending["acme_eu"].seen) == (1, [])


def test_lost_answer_is_repeated_with_its_key_at_the_account_of_the_brand(
    app: App, sending: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idempotency, "policy_of", lambda _slug: UnknownPolicy.FAIL)
    sending["acme_us"] = receiver = Receiver(name="acme_us")
    receiver.is_answer_lost = lose(count=1)
    store(app, accounts={"email": ["acme_us", "acme_eu"]})
    (notification_id,) = accept(app, brand="acme")
    now = utc_now()
    run_on(notification_id, at=now, until=now + 30 * MINUTE)
    keys = [request.idempotency_key for request in receiver.seen]
    assert keys == [f"{notification_id}.email.1"] * 2
    assert (state(notification_id)["status"], sending["acme_eu"].seen) == ("sent", [])


def test_lost_answer_is_repeated_whatever_has_become_of_the_brand(
    app: App, sending: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its message keeps the accounts that it was accepted with: no other one repeats it."""
    monkeypatch.setattr(idempotency, "policy_of", lambda _slug: UnknownPolicy.FAIL)
    sending["acme_us"] = receiver = Receiver(name="acme_us")
    receiver.is_answer_lost = lose(count=2)
    store(app, accounts={"email": ["acme_us"]})
    changed, removed = accept(app, brand="acme"), accept(app, brand="acme")
    now = utc_now()
    run_on(*changed, at=now, until=now)
    store(app, accounts={"email": ["acme_eu"]})
    run_on(*changed, at=now, until=now + 30 * MINUTE)
    run_on(*removed, at=now, until=now)
    put(app, **brand("acme", None, revision=revision(app, "brands", "acme")))
    run_on(*removed, at=now, until=now + 30 * MINUTE)
    for notification_id in (*changed, *removed):
        assert state(notification_id)["status"] == "sent"
        assert receiver.taken[f"{notification_id}.email.1"] == 1
    assert (sending["acme_eu"].seen, sending["sendgrid"].seen) == ([], [])


def test_lost_answer_of_an_account_that_now_sends_other_messages_is_not_repeated(
    app: App, sending: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The account took it in the place of the channel's, and only a brand names it since."""
    monkeypatch.setattr(idempotency, "policy_of", lambda _slug: UnknownPolicy.FAIL)
    sending["acme_us"] = receiver = Receiver(name="acme_us")
    receiver.is_answer_lost = lambda: True
    store(app, accounts={"email": ["acme_us"]})
    (notification_id,) = accept(app)
    now = utc_now()
    with monkeypatch.context() as patch:
        patch.setattr(pipeline, "providers_for", lambda _channel, **_: (receiver,))
        run_on(notification_id, at=now, until=now)
    run_on(notification_id, at=now, until=now + 30 * MINUTE)
    ended = state(notification_id)
    assert (ended["status"], ended["failure_reason"]) == ("failed", recovery.UNKNOWN_REASON)
    assert (len(receiver.seen), sending["sendgrid"].seen) == (1, [])


@each_case("is_missing", [True, False])
def test_message_whose_design_cannot_be_read_waits_on_every_channel(
    app: App, sending: dict[str, Account], is_missing: bool
) -> None:
    """Nobody knows what may send it, whatever its text needs of the design."""
    store(app, accounts={"email": ["acme_eu"], "sms": ["texts"]})
    fields = {"recipient": {"email": "ada@example.com", "phone": "+351912345678"}}
    ids = [*accept(app, brand="acme", channels=["email", "sms"], **fields), *accept(app)]
    (kept,) = DESIGNS().find()
    if is_missing:
        DESIGNS().delete_one({"_id": kept["_id"]})
    else:
        unread = {**kept["brands"]["acme"], "accounts": "of a later version"}
        DESIGNS().update_one({"_id": kept["_id"]}, {"$set": {"brands.acme": unread}})
    looks.clear()
    now = utc_now()
    for channel in (EMAIL, Channel.SMS):
        pipeline.dispatch(SendingRuntime(), ids, channel=channel, clock=lambda: now)
    held = factories.read(ids[0])["delivery"]
    assert [(each["status"], each["failure_reason"]) for each in held] == [
        ("pending", accounts.UNREADABLE)
    ] * 2
    assert [sent.recipient for sent in sending["sendgrid"].seen] == ["ada@example.com"]
    DESIGNS().replace_one({"_id": kept["_id"]}, kept, upsert=True)
    looks.clear()
    assert dispatch(ids[0], after=timedelta(minutes=1)) == {"sent": 1}
    assert len(sending["acme_eu"].seen) == 1
    for each in sending.values():
        each.seen.clear()


@each_case(
    "withdrawn, said",
    [
        ("account", "Expired while acme_eu was unavailable (not configured here)."),
        (
            "sender",
            "Expired while its brand was unavailable (its sender isn't one of EMAIL_SENDERS).",
        ),
    ],
)
def test_message_that_expires_while_its_brand_cannot_send_names_the_setting(
    app: App, sending: dict[str, Account], settings: Any, withdrawn: str, said: str
) -> None:
    """It waits until then, and no longer."""
    settings.EMAIL_SENDERS = ALLOWED
    declare(settings, **_variables(*ACCOUNTS))
    store(app, **{"from": SENDER, "accounts": {"email": ["acme_eu"]}})
    expires_at = utc_now() + timedelta(minutes=10)
    (notification_id,) = accept(app, brand="acme", expires_at=expires_at.isoformat())
    if withdrawn == "account":
        declare(settings)
    else:
        settings.EMAIL_SENDERS = frozenset()
    at, waits = utc_now(), 0
    while (held := state(notification_id))["status"] == "pending":
        at, waits = max(held["next_attempt_at"], at), waits + 1
        assert at <= factories.read(notification_id)["expires_at"]
        pipeline.dispatch(
            SendingRuntime(), [notification_id], channel=EMAIL, clock=lambda now=at: now
        )
    assert (held["status"], held["failure_code"]) == ("expired", "expired")
    assert held["failure_reason"] == said
    assert at == factories.read(notification_id)["expires_at"]
    assert waits > 3


def test_step_of_a_plan_does_not_wait_for_a_setting_until_it_expires(
    app: App, sending: dict[str, Account], settings: Any
) -> None:
    """The next step has the time that is left."""
    store(app, **{"from": SENDER})
    settings.EMAIL_SENDERS = frozenset()
    steps = [{"channels": ["email"]}, {"channels": ["sms"], "after": 60}]
    expires_at = utc_now() + timedelta(seconds=90)
    (notification_id,) = accept(
        app,
        brand="acme",
        plan={"steps": steps},
        recipient={"email": "ada@example.com", "phone": "+351912345678"},
        expires_at=expires_at.isoformat(),
    )
    assert dispatch(notification_id, after=timedelta(seconds=61)) == {"expired": 1}
    assert "EMAIL_SENDERS" in state(notification_id)["failure_reason"]


def test_removed_account_holds_the_messages_of_its_brand_alone(
    app: App, sending: dict[str, Account], settings: Any
) -> None:
    store(app, accounts={"email": ["acme_eu"]})
    store(app, "beta", accounts={"email": ["acme_eu", "acme_us"]})
    acme, beta, usual = accept(app, brand="acme"), accept(app, brand="beta"), accept(app)
    declare(settings, **_variables("acme_us"))
    assert dispatch(*acme, *beta, *usual) == {"pending": 1, "sent": 2}
    assert (history(beta[0])[-1][0], history(usual[0])[-1][0]) == ("acme_us", "sendgrid")
    held = state(acme[0])
    assert (held["failure_code"], held["attempt_count"]) == ("channel_unavailable", 0)
    assert "acme_eu" in held["failure_reason"]
    hold = current_hold(held)
    assert hold is not None
    assert (hold.reason, hold.provider) == ("provider_unavailable", "acme_eu")
    declare(settings, **_variables(*ACCOUNTS))
    assert dispatch(*acme, after=timedelta(minutes=1)) == {"sent": 1}
    assert history(acme[0]) == [("acme_eu", "sent")]


def test_held_message_is_looked_at_at_growing_intervals_and_fails_at_last(
    app: App, sending: dict[str, Account], settings: Any
) -> None:
    store(app, accounts={"email": ["acme_eu"]})
    (notification_id,) = accept(app, brand="acme")
    declare(settings)
    began, at, waits = utc_now(), utc_now(), []
    while (held := state(notification_id))["status"] == "pending":
        at = max(held["next_attempt_at"], at)
        now = at
        pipeline.dispatch(
            SendingRuntime(), [notification_id], channel=EMAIL, clock=lambda at=now: at
        )
        if following := state(notification_id)["next_attempt_at"]:
            waits.append(following - at)
    assert waits == sorted(waits)
    assert (waits[0], waits[-1]) == (accounts.MIN_DELAY, accounts.MAX_DELAY)
    assert held["status"] == "failed"
    assert timedelta(hours=72) <= at - began < timedelta(hours=73)


def test_account_without_a_provider_of_the_channel_sends_its_brand(
    app: App, sending: dict[str, Account], monkeypatch: pytest.MonkeyPatch
) -> None:
    store(app, accounts={"email": ["acme_eu"]})
    monkeypatch.setattr(pipeline, "providers_for", lambda _channel, **_: ())
    branded, usual = accept(app, brand="acme"), accept(app)
    assert dispatch(*branded, *usual) == {"sent": 1, "failed": 1}


def test_test_mode_sends_to_the_sandbox_whatever_the_brand_names(
    app: App, sending: dict[str, Account], monkeypatch: pytest.MonkeyPatch
) -> None:
    store(app, **{"from": SENDER, "accounts": {"email": ["acme_eu"]}})
    sandbox = Account(name="sandbox-sendgrid")
    monkeypatch.setattr(
        pipeline, "providers_for", lambda _channel, *, test: (sandbox,) if test else ()
    )
    ids = accept(app, by=new_app("tests", is_test=True), brand="acme")
    assert dispatch(*ids) == {"sent": 1}
    assert str(only(sandbox).message.sender) == SENDER
    assert sending["acme_eu"].seen == []


def test_refused_sender_stops_its_brand_and_nobody_else(
    app: App, sending: dict[str, Account]
) -> None:
    store(app, **{"from": SENDER})
    store(app, "beta", **{"from": "post@beta.example"})
    of_acme, of_beta, usual = accept(app, 3, brand="acme"), accept(app, brand="beta"), accept(app)
    sending["sendgrid"].behave = lambda outbound: (
        channel_unavailable(scope=outbound.scope)
        if outbound.scope == "hello@acme.example"
        else ScriptedProvider().behave(outbound)
    )
    assert dispatch(of_acme[0]) == {"pending": 1}
    assert dispatch(*of_acme[1:], *of_beta, *usual) == {"pending": 2, "sent": 2}
    assert [history(i) for i in of_acme[1:]] == [[], []]
    hold = current_hold(state(of_acme[1]))
    assert hold is not None
    assert (hold.reason, hold.provider) == ("circuit_open", "sendgrid")
    assert app.get("/suppressions").json()["results"] == []


def test_own_address_under_another_name_has_no_circuit_of_its_own(
    app: App, sending: dict[str, Account]
) -> None:
    store(app, **{"from": "Acme <Notifications@example.com>"})
    assert dispatch(*accept(app, brand="acme")) == {"sent": 1}
    seen = only(sending["sendgrid"])
    assert (seen.scope, seen.message.sender and seen.message.sender.name) == (None, "Acme")


def test_preview_shows_the_sender(app: App, sending: dict[str, Account]) -> None:
    store(app, **{"from": SENDER, "reply_to": HELP})

    def shown(**fields: Any) -> tuple[Any, Any]:
        answer = app.post("/notifications/preview", request(**fields))
        email = next(c for c in answer.json()["channels"] if c["channel"] == "email")
        return email["sender"], email["reply_to"]

    assert shown(brand="acme") == (SENDER, HELP)
    assert shown() == ("Notifications <notifications@example.com>", None)


def test_brand_of_an_unfinished_broadcast_is_not_removed(
    app: App, sending: dict[str, Account]
) -> None:
    store(app, "news")
    app.put("/recipients/ada", {"email": "ada@example.com"})
    body = {"type": "marketing", "audience": {"all": True}, "brand": "news"}
    later = (utc_now() + timedelta(days=1)).isoformat()
    content = {"subject": "News", "body": "There is news."}
    answer = app.post("/broadcasts", body | {"scheduled_at": later, "content": content})
    assert answer.status_code == 202, answer.json()
    removal = brand("news", None, revision=revision(app, "brands", "news"))
    refused = change(app, **removal)
    assert pointers(refused) == {"/brands/0": "in_use"}
    assert answer.json()["id"] in refused.content.decode()
    assert app.post(f"/broadcasts/{answer.json()['id']}/cancel", {}).status_code == 202
    assert change(app, **removal).status_code == 200


def test_home_names_brands_that_the_settings_no_longer_let_send(
    app: App, sending: dict[str, Account], settings: Any
) -> None:
    store(app, **{"from": SENDER, "accounts": {"email": ["acme_eu"]}})
    store(app, "beta", accounts={"email": ["acme_us"]})
    assert _brand_issues() == []
    settings.EMAIL_SENDERS = frozenset()
    declare(settings, **_variables("acme_us"))
    assert _brand_issues() == [
        "Brand Acme: its sender isn't one of EMAIL_SENDERS, acme_eu isn't configured"
    ]


def _brand_issues() -> list[str]:
    design = designs.read_newest()
    found = issues(brands={name: design.brand(name) for name in design.brands})
    return [issue.text for issue in found]


def test_digest_is_of_one_brand_and_sent_as_it(app: App, sending: dict[str, Account]) -> None:
    """Also if the brand is removed while the digest collects."""
    store(app, **{"from": SENDER, "accounts": {"email": ["acme_eu"]}})
    store(app, "beta", **{"from": "post@beta.example"})
    window = {"minutes": 10}
    define(app, {"subject": "S", "body": "B"}, digest={"channels": ["email"], "window": window})
    fields = {"type": "parcel", "data": {"name": "Ada"}}
    ids = [*accept(app, 2, brand="acme", **fields), *accept(app, 2, brand="beta", **fields)]
    assert dispatch(*ids) == {"pending": 4}
    put(app, **brand("beta", None, revision=revision(app, "brands", "beta")))
    later = utc_now() + timedelta(minutes=11)
    digests.close_due(clock=lambda: later)
    carriers = NOTIFICATIONS().find({"digest_id": {"$exists": True}})
    assert dispatch(*(each["_id"] for each in carriers), after=timedelta(minutes=11)) == {"sent": 2}
    of_acme, of_beta = only(sending["acme_eu"]).message, only(sending["sendgrid"]).message
    assert (str(of_acme.sender), str(of_beta.sender)) == (SENDER, "post@beta.example")


def test_digest_of_no_brand_is_sent_as_none(app: App, sending: dict[str, Account]) -> None:
    """Also if its type names a brand while the digest collects."""
    store(app, **{"from": SENDER, "accounts": {"email": ["acme_eu"]}})
    texts = {"subject": "S", "body": "B"}
    digest = {"channels": ["email"], "window": {"minutes": 10}}
    define(app, texts, digest=digest)
    assert dispatch(*accept(app, 2, type="parcel", data={"name": "Ada"})) == {"pending": 2}
    define(app, texts, digest=digest, brand="acme")
    later = utc_now() + timedelta(minutes=11)
    digests.close_due(clock=lambda: later)
    (carrier,) = NOTIFICATIONS().find({"digest_id": {"$exists": True}})
    assert dispatch(carrier["_id"], after=timedelta(minutes=11)) == {"sent": 1}
    assert only(sending["sendgrid"]).message.sender is None
    assert sending["acme_eu"].seen == []


def test_paused_account_that_no_brand_names_anymore_is_named_and_resumed(
    sending: dict[str, Account], console: Client
) -> None:
    """Accepted messages still need it."""
    provider_pauses.pause("acme_eu", by="maria", reason="", now=utc_now())
    assert find_pauses() == {EMAIL: "acme_eu (SendGrid) paused by maria"}
    console.post(f"{PROVIDERS}acme_eu/resume/")
    assert provider_pauses.pauses() == {}


def test_brands_of_a_batch_cost_no_commands_of_their_own(
    app: App, sending: dict[str, Account]
) -> None:
    for name in ("acme", "beta", "gamma"):
        store(app, name, **{"from": SENDER, "accounts": {"email": ["acme_eu"]}})

    def commands(*brands: str) -> Counter[str]:
        ids = [each for name in brands for each in accept(app, brand=name)]
        dispatch(*accept(app, brand="acme"))
        COMMANDS.found.clear()
        assert dispatch(*ids) == {"sent": 3}
        return Counter(COMMANDS.found)

    assert commands("acme", "beta", "gamma") == commands("acme", "acme", "acme")


def test_pages_show_the_sender_and_the_accounts(
    app: App, sending: dict[str, Account], console: Client
) -> None:
    store(app, **{"from": SENDER, "reply_to": HELP, "accounts": {"email": ["acme_eu"]}})
    define(app, {"subject": "S", "body": "B"}, brand="acme")
    (notification_id,) = accept(app, type="parcel", data={"name": "Ada"})
    page = html.unescape(_page(console, f"notification/{notification_id}"))
    for shown in ("Acme (acme)", SENDER, HELP, "acme_eu (SendGrid)"):
        assert shown in page
    assert SENDER in html.unescape(_page(console, "notificationtype/parcel"))
    assert "Acme" not in _page(console, f"notification/{accept(app)[0]}")


def _page(console: Client, path: str) -> str:
    answer = console.get(f"/admin/notifications/{path}/change/")
    assert answer.status_code == 200
    return answer.content.decode()
