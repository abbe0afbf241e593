"""A refusal that concerns one recipient stops nobody else.

Each answer of the providers' tables is given to one recipient. A login code to another recipient
must leave within five seconds, unless the answer surely concerns the whole account.

https://firebase.google.com/docs/reference/fcm/rest/v1/ErrorCode (errors of one target),
https://github.com/binwiederhier/ntfy/issues/289 (the quota of one topic),
https://docs.360dialog.com/docs/support/api-error-message-list (a 403 for one country).
"""

import itertools
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest
from bson import ObjectId

from delivery import feedback, routing
from delivery.circuit_breaker import (
    EVIDENCE_TTL,
    FIRST_WAIT,
    HEAD_START,
    MIN_FAILURES,
    MIN_RECIPIENTS,
)
from delivery.results import TargetResult
from delivery.routing import Route
from delivery.sending import PreparedDelivery
from delivery.targets import SendTarget
from domain.errors import (
    FailureCode,
    ProviderError,
    ProviderResponse,
    Reach,
    RecipientAction,
)
from domain.states import Channel, Priority
from notifications.store import ClaimedDelivery
from notifyproject.platform import valkey
from providers.contract import Message
from providers.fcm.responses import RULES
from providers.response_rules import FALLBACK_RULES, ResponseKind, build_error
from providers.sendgrid.provider import RESPONSE_RULES as SENDGRID
from providers.smtp.replies import RULES as SMTP
from providers.whatsapp.responses import CODE_RULES, NO_CODE_RULES, STATUS_RULES
from tests.support.factories.notifications import FIXED_NOON as NOON
from tests.support.factories.notifications import claimed_delivery
from tests.support.fakes.provider import (
    Outcome,
    ScriptedProvider,
    accepted,
    channel_unavailable,
    invalid_token,
    provider_error,
    rate_limited,
)

pytestmark = pytest.mark.usefixtures("broker", "valkey_anew")

SECOND = timedelta(seconds=1)
WITHIN = 5 * SECOND
UNCERTAIN = Reach.UNCERTAIN
UNCERTAIN_ANSWERS = (
    channel_unavailable(reach=UNCERTAIN),
    channel_unavailable(reach=UNCERTAIN, scope="ios"),
    rate_limited(reach=UNCERTAIN, retry_after=60),
    invalid_token(reach=UNCERTAIN),
)


def delivery(user: str, **fields: Any) -> ClaimedDelivery:
    return claimed_delivery(
        notification_id=ObjectId(), channel=Channel.PUSH, user_id=user, **fields
    )


def code(user: str = "ben") -> ClaimedDelivery:
    """Return a login code."""
    return delivery(user, type="mfa_code", priority=Priority.CRITICAL)


def answer(
    provider: ScriptedProvider,
    *given: tuple[str, Outcome],
    now: datetime = NOON,
    platform: str = "ios",
    route: Route | None = None,
) -> None:
    """Report what the provider answered to these users, in this order."""
    results = [
        (
            PreparedDelivery(
                claimed=delivery(user), message=Message(subject=None, text=""), targets=()
            ),
            TargetResult(
                device_id=f"{user}-{n}",
                outcome=outcome,
                started_at=now,
                finished_at=now + n * timedelta(milliseconds=1),
                duration_ms=1,
                platform=platform,
            ),
        )
        for n, (user, outcome) in enumerate(given)
    ]
    probes = route.probes if route else {}
    feedback.report_provider_health(provider, results, probes=probes, now=now)


def routes(
    provider: ScriptedProvider, *claims: ClaimedDelivery, at: datetime, platform: str = "ios"
) -> list[Route]:
    found, _ = routing.choose_routes(
        claims,
        providers=[provider],
        targets={one.reference: [SendTarget(address="x", platform=platform)] for one in claims},
        paused={},
        now=at,
    )
    return found


def leaves_at(
    provider: ScriptedProvider, claimed: ClaimedDelivery, *, at: datetime, until: datetime
) -> datetime | None:
    """Return when a delivery is sent, if it asks again whenever it is due. None: after the end."""
    targets = {claimed.reference: [SendTarget(address="x", platform="ios")]}
    while at <= until:
        found, held = routing.choose_routes(
            [claimed], providers=[provider], targets=targets, paused={}, now=at
        )
        if found:
            return at
        at = held[0].next_attempt_at or until + SECOND
    return None


def built(kind: ResponseKind, **fields: Any) -> ProviderError:
    return build_error(
        kind,
        "Refused.",
        **{
            "code": None,
            "action": RecipientAction.SUSPECT,
            "response": ProviderResponse(status=400),
            "retry_after": None,
        }
        | fields,
    )


def table() -> Iterator[tuple[str, ProviderError]]:
    for row in RULES:
        scope = "ios" if row.is_platform_only else None
        fields = {"code": row.failure_code, "retry_after": row.pause, "scope": scope}
        yield f"fcm {row.description}", built(row.kind, reach=row.reach, **fields)
    for rule in CODE_RULES:
        fields = {"code": rule.code, "action": rule.action, "reach": rule.reach}
        yield f"whatsapp {rule.codes} {rule.subcode or ''}", built(rule.kind, **fields)
    for reply in SMTP:
        fields = {"code": reply.failure_code, "action": reply.action, "reach": reply.reach}
        yield f"smtp {reply.description}", built(reply.kind, **fields)
    for name, rules in (
        ("whatsapp", (*STATUS_RULES, *NO_CODE_RULES)),
        ("sendgrid", SENDGRID),
        ("any", FALLBACK_RULES),
    ):
        for status in rules:
            fields = {"code": status.code, "action": status.action, "reach": status.reach}
            yield f"{name} {status.statuses} {status.field or ''}", built(status.kind, **fields)


TABLE = dict(table())
CERTAIN = {
    name: error
    for name, error in TABLE.items()
    if error.reach is Reach.ACCOUNT
    and error.code in (FailureCode.CHANNEL_UNAVAILABLE, FailureCode.RATE_LIMITED)
}
"""Answers for which all wait: credentials, permissions, configuration, and the account's rate."""


@pytest.mark.parametrize("name", sorted(TABLE.keys() - CERTAIN.keys()))
@pytest.mark.parametrize("times", [1, 3 * MIN_FAILURES], ids=["once", "again and again"])
def test_answer_to_one_recipient_delays_no_code_to_another(
    fcm: ScriptedProvider, name: str, times: int
) -> None:
    answer(fcm, *[("ada", TABLE[name])] * times)
    assert leaves_at(fcm, code(), at=NOON + SECOND, until=NOON + WITHIN)


def test_only_these_answers_concern_the_account_at_once() -> None:
    """A row that is added here lets one answer stop everybody: is it surely not the recipient?"""
    assert len(CERTAIN) < len(TABLE) / 3
    assert not [name for name in CERTAIN if "any other 403" in name or "THIRD_PARTY" in name]
    assert {name for name in CERTAIN if name.startswith("fcm")} == {
        "fcm 401 UNAUTHENTICATED, again with a new access token",
        "fcm 403 with a reason such as IAM_PERMISSION_DENIED or SERVICE_DISABLED",
        "fcm 403 with a text about a missing permission",
        "fcm 429 about the quota of the project",
        "fcm a redirect",
        "fcm any other 401, or 407",
        "fcm any other 404",
    }


@pytest.mark.parametrize("name", sorted(CERTAIN))
def test_answer_about_the_account_holds_others_for_its_pause_only(
    fcm: ScriptedProvider, name: str
) -> None:
    answer(fcm, ("ada", CERTAIN[name]))
    pause = max(FIRST_WAIT, timedelta(seconds=getattr(CERTAIN[name], "retry_after", None) or 0))
    assert leaves_at(fcm, code(), at=NOON, until=NOON + pause)


@pytest.mark.parametrize("outcome", UNCERTAIN_ANSWERS)
def test_five_recipients_in_a_row_are_evidence(fcm: ScriptedProvider, outcome: Outcome) -> None:
    for user in map(str, range(MIN_RECIPIENTS - 1)):
        answer(fcm, (user, outcome))
    assert routes(fcm, code(), at=NOON)
    answer(fcm, ("fifth", outcome))
    assert not routes(fcm, code(), at=NOON)


@pytest.mark.parametrize("outcome", UNCERTAIN_ANSWERS)
def test_five_recipients_of_one_batch_are_evidence(fcm: ScriptedProvider, outcome: Outcome) -> None:
    answer(fcm, *((str(n), outcome) for n in range(MIN_RECIPIENTS)))
    assert not routes(fcm, code(), at=NOON)


@pytest.mark.parametrize("outcome", UNCERTAIN_ANSWERS)
@pytest.mark.parametrize("together", [True, False], ids=["one batch", "many batches"])
def test_acceptance_in_between_disproves(
    fcm: ScriptedProvider, outcome: Outcome, together: bool
) -> None:
    rounds = [
        *[(str(n), outcome) for n in range(MIN_RECIPIENTS - 1)],
        ("ben", accepted()),
        *[(str(n), outcome) for n in range(MIN_RECIPIENTS, 2 * MIN_RECIPIENTS - 1)],
    ]
    for batch in [rounds] if together else [[one] for one in rounds]:
        answer(fcm, *batch)
    assert routes(fcm, code(), at=NOON)


@pytest.mark.parametrize("outcome", UNCERTAIN_ANSWERS)
@pytest.mark.parametrize("place", [0, 10, 19])
def test_one_good_device_beside_many_refused_ones_disproves(
    fcm: ScriptedProvider, outcome: Outcome, place: int
) -> None:
    """All requests of a batch are under way at once: the order of the answers is chance."""
    batch: list[tuple[str, Outcome]] = [(str(n), outcome) for n in range(20)]
    batch[place] = ("ben", accepted())
    for _ in range(3):
        answer(fcm, *batch)
    assert routes(fcm, code(), at=NOON)


def test_acceptance_on_another_platform_disproves_nothing(fcm: ScriptedProvider) -> None:
    error = channel_unavailable(reach=UNCERTAIN, scope="ios")
    for n in range(MIN_RECIPIENTS):
        answer(fcm, (str(n), error))
        answer(fcm, (str(n), accepted()), platform="android")
    assert not routes(fcm, code(), at=NOON)
    assert routes(fcm, code(), at=NOON, platform="android"), "Android is not concerned"


@pytest.mark.parametrize("outcome", UNCERTAIN_ANSWERS)
def test_devices_of_one_person_are_one_recipient(fcm: ScriptedProvider, outcome: Outcome) -> None:
    answer(fcm, *[("ada", outcome)] * 50)
    assert routes(fcm, code(), at=NOON)


@pytest.mark.parametrize("outcome", UNCERTAIN_ANSWERS)
def test_evidence_is_forgotten_after_an_hour(fcm: ScriptedProvider, outcome: Outcome) -> None:
    for n in range(MIN_RECIPIENTS - 1):
        answer(fcm, (str(n), outcome))
    answer(fcm, ("fifth", outcome), now=NOON + EVIDENCE_TTL)
    assert routes(fcm, code(), at=NOON + EVIDENCE_TTL)


def test_errors_of_one_recipient_open_no_circuit(fcm: ScriptedProvider) -> None:
    error = provider_error(response=ProviderResponse(status=500))
    for _ in range(3 * MIN_FAILURES):
        answer(fcm, ("ada", error))
    assert routes(fcm, code(), at=NOON)
    for user in map(str, range(MIN_RECIPIENTS - 1)):
        answer(fcm, (user, error))
    assert not routes(fcm, code(), at=NOON)


AFTER = NOON + FIRST_WAIT
FIVE = [str(n) for n in range(MIN_RECIPIENTS)]


def open_circuit(provider: ScriptedProvider, outcome: Outcome, users: Sequence[str]) -> None:
    answer(provider, *((user, outcome) for user in users))
    assert not routes(provider, code(), at=NOON)


REFUSALS = [
    (channel_unavailable(), ["0"]),
    (channel_unavailable(scope="ios"), ["0"]),
    (channel_unavailable(reach=UNCERTAIN), FIVE),
    (channel_unavailable(reach=UNCERTAIN, scope="ios"), FIVE),
    (invalid_token(reach=UNCERTAIN), FIVE),
    (provider_error(response=ProviderResponse(status=503)), FIVE * 4),
]


@pytest.mark.parametrize(("outcome", "users"), REFUSALS)
def test_refused_recipient_is_not_the_probe(
    fcm: ScriptedProvider, outcome: Outcome, users: list[str]
) -> None:
    open_circuit(fcm, outcome, users)
    old, new = delivery("0"), code()
    (probe,) = routes(fcm, old, new, at=AFTER)
    assert (probe.claims, bool(probe.probes)) == ([new], True)


@pytest.mark.parametrize(("outcome", "users"), REFUSALS)
def test_refused_recipient_leaves_the_probe_to_others_for_a_while(
    fcm: ScriptedProvider, outcome: Outcome, users: list[str]
) -> None:
    open_circuit(fcm, outcome, users)
    assert not routes(fcm, delivery("0"), at=AFTER)
    (probe,) = routes(fcm, code(), at=AFTER + SECOND)
    answer(fcm, ("ben", accepted()), now=AFTER + SECOND, route=probe)
    assert routes(fcm, delivery("0"), at=AFTER + SECOND)


@pytest.mark.parametrize(("outcome", "users"), REFUSALS)
def test_refused_recipient_is_the_probe_if_nobody_else_comes(
    fcm: ScriptedProvider, outcome: Outcome, users: list[str]
) -> None:
    open_circuit(fcm, outcome, users)
    at = leaves_at(fcm, delivery("0"), at=AFTER, until=AFTER + HEAD_START)
    assert at == AFTER + HEAD_START


@pytest.mark.parametrize(("outcome", "users"), REFUSALS[2:5])
def test_another_refusal_of_the_same_recipient_says_nothing_new(
    fcm: ScriptedProvider, outcome: Outcome, users: list[str]
) -> None:
    open_circuit(fcm, outcome, users)
    at = AFTER + HEAD_START
    for _ in range(10):
        (probe,) = routes(fcm, delivery("0"), at=at)
        answer(fcm, ("0", outcome), now=at, route=probe)
        at += timedelta(minutes=1)
    assert routes(fcm, code(), at=at)


@pytest.mark.parametrize(("outcome", "users"), REFUSALS[2:5])
def test_nobody_waits_for_the_probe_of_a_refused_recipient(
    fcm: ScriptedProvider, outcome: Outcome, users: list[str]
) -> None:
    open_circuit(fcm, outcome, users)
    at = AFTER + HEAD_START
    (old,) = routes(fcm, delivery("0"), at=at)
    (new,) = routes(fcm, code(), at=at)
    answer(fcm, ("0", outcome), now=at + SECOND, route=old)
    answer(fcm, ("ben", accepted()), now=at + SECOND, route=new)
    assert routes(fcm, code("carla"), at=at + SECOND)


def test_refusal_of_another_recipient_opens_the_circuit_again(fcm: ScriptedProvider) -> None:
    error = channel_unavailable(reach=UNCERTAIN)
    open_circuit(fcm, error, FIVE)
    (probe,) = routes(fcm, delivery("new"), at=AFTER)
    answer(fcm, ("new", error), now=AFTER, route=probe)
    assert not routes(fcm, code(), at=AFTER + 2 * FIRST_WAIT - SECOND)
    (probe,) = routes(fcm, delivery("new"), code(), at=AFTER + 2 * FIRST_WAIT)
    assert [one.user_id for one in probe.claims] == ["ben"]


def test_platform_that_needs_a_probe_holds_only_its_own_devices(fcm: ScriptedProvider) -> None:
    open_circuit(fcm, channel_unavailable(reach=UNCERTAIN, scope="ios"), FIVE)
    both = delivery("0")
    targets = {
        both.reference: [SendTarget(address="x", platform=one) for one in ("ios", "android")]
    }
    (route,), held = routing.choose_routes(
        [both], providers=[fcm], targets=targets, paused={}, now=AFTER
    )
    assert (route.probes, held) == ({}, [])
    assert route.blocked_platforms == {"ios": AFTER + HEAD_START}


def test_order_of_refusals_and_acceptances_decides(fcm: ScriptedProvider) -> None:
    """Whatever the order, the circuit opens after five in a row, and never before."""
    error = channel_unavailable(reach=UNCERTAIN)
    for length in (MIN_RECIPIENTS - 1, MIN_RECIPIENTS):
        for before in itertools.product([True, False], repeat=3):
            provider = ScriptedProvider(name="fcm")
            for n, is_accepted in enumerate(before):
                answer(provider, (f"b{n}", accepted() if is_accepted else error))
            answer(provider, ("ben", accepted()))
            for n in range(length):
                answer(provider, (str(n), error))
            assert bool(routes(provider, code(), at=NOON)) is (length < MIN_RECIPIENTS)


def test_success_takes_one_round_trip(
    fcm: ScriptedProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, calls = valkey.run, []

    def counted(script: str, **options: Any) -> Any:
        calls.append(script)
        return run(script, **options)

    monkeypatch.setattr(valkey, "run", counted)
    answer(fcm, *((str(n), accepted()) for n in range(100)))
    assert len(calls) == 1
    routes(fcm, *(delivery(str(n)) for n in range(100)), at=NOON)
    assert len(calls) == 3, "permissions of all circuits, and the rate"
