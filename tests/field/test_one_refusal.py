"""A refusal that concerns one recipient stops nobody else.

Each answer of the providers' tables is given to one recipient. A login code to another recipient
must leave within five seconds, unless the answer surely concerns the whole account.

https://firebase.google.com/docs/reference/fcm/rest/v1/ErrorCode (errors of one target),
https://github.com/binwiederhier/ntfy/issues/289 (the quota of one topic),
https://docs.360dialog.com/docs/support/api-error-message-list (a 403 for one country).
"""

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest
import redis
from bson import ObjectId

from delivery import feedback, routing
from delivery.circuit_breaker import (
    EVIDENCE_TTL,
    FIRST_WAIT,
    HEAD_START,
    MAX_REFUSED,
    MIN_FAILURES,
    MIN_RECIPIENTS,
)
from delivery.results import TargetResult
from delivery.routing import Route
from delivery.runtime import SendingRuntime
from delivery.sending import PreparedDelivery
from domain.channels import Channel
from domain.errors import (
    FailureCode,
    ProviderError,
    ProviderResponse,
    Reach,
)
from domain.retry import GiveUp, RetryUncounted, decide_retry
from domain.states import Priority
from notifications.store.claims import ClaimedDelivery
from notifyproject.platform import valkey
from providers.contract import Message, SendTarget
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
from tests.support.samples import sampled
from tests.support.tables import each_case

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

RUNTIME = SendingRuntime()
"""Of one process. Each test has a provider account of its own."""


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
                scope=platform,
            ),
        )
        for n, (user, outcome) in enumerate(given)
    ]
    probes = route.probes if route else {}
    feedback.report_provider_health(RUNTIME, provider, results, probes=probes, now=now)


def routes(
    provider: ScriptedProvider, *claims: ClaimedDelivery, at: datetime, platform: str = "ios"
) -> list[Route]:
    found, _ = routing.choose_routes(
        RUNTIME,
        claims,
        providers=[provider],
        targets={claim.reference: [SendTarget(address="x", platform=platform)] for claim in claims},
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
            RUNTIME, [claimed], providers=[provider], targets=targets, paused={}, now=at
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
        fields = {"code": reply.failure_code, "reach": reply.reach}
        yield f"smtp {reply.description}", built(reply.kind, **fields)
    for name, rules in (
        ("whatsapp", (*STATUS_RULES, *NO_CODE_RULES)),
        ("sendgrid", SENDGRID),
        ("any", FALLBACK_RULES),
    ):
        for status in rules:
            fields = {"code": status.code, "reach": status.reach}
            yield f"{name} {status.statuses} {status.field or ''}", built(status.kind, **fields)


TABLE = dict(table())
CERTAIN = {
    name: error
    for name, error in TABLE.items()
    if error.reach is Reach.ACCOUNT
    and error.code in (FailureCode.CHANNEL_UNAVAILABLE, FailureCode.RATE_LIMITED)
}
"""Answers for which all wait: credentials, permissions, configuration, and the account's rate."""


@each_case("name", sorted(TABLE.keys() - CERTAIN.keys()))
@each_case("times", [1, 3 * MIN_FAILURES])
def test_answer_to_one_recipient_delays_no_code_to_another(name: str, times: int) -> None:
    fcm = ScriptedProvider(name="fcm")
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


@each_case("name", sorted(CERTAIN))
def test_answer_about_the_account_holds_others_for_its_pause_only(name: str) -> None:
    fcm = ScriptedProvider(name="fcm")
    answer(fcm, ("ada", CERTAIN[name]))
    pause = max(FIRST_WAIT, timedelta(seconds=getattr(CERTAIN[name], "retry_after", None) or 0))
    assert leaves_at(fcm, code(), at=NOON, until=NOON + pause)


@each_case("outcome", UNCERTAIN_ANSWERS)
def test_five_recipients_in_a_row_are_evidence(outcome: Outcome) -> None:
    fcm = ScriptedProvider(name="fcm")
    for user in map(str, range(MIN_RECIPIENTS - 1)):
        answer(fcm, (user, outcome))
    assert routes(fcm, code(), at=NOON)
    answer(fcm, ("fifth", outcome))
    assert not routes(fcm, delivery("ben"), at=NOON)
    at_once = ScriptedProvider(name="fcm")
    answer(at_once, *((str(n), outcome) for n in range(MIN_RECIPIENTS)))
    assert not routes(at_once, delivery("ben"), at=NOON)


@each_case("outcome", UNCERTAIN_ANSWERS)
@each_case("together", [True, False])
def test_acceptance_in_between_disproves(outcome: Outcome, together: bool) -> None:
    fcm = ScriptedProvider(name="fcm")
    rounds = [
        *[(str(n), outcome) for n in range(MIN_RECIPIENTS - 1)],
        ("ben", accepted()),
        *[(str(n), outcome) for n in range(MIN_RECIPIENTS, 2 * MIN_RECIPIENTS - 1)],
    ]
    for batch in [rounds] if together else [[answered] for answered in rounds]:
        answer(fcm, *batch)
    assert routes(fcm, code(), at=NOON)


@each_case("outcome", UNCERTAIN_ANSWERS)
@each_case("place", [0, 10, 19])
def test_one_good_device_beside_many_refused_ones_disproves(outcome: Outcome, place: int) -> None:
    """All requests of a batch are under way at once: the order of the answers is chance."""
    fcm = ScriptedProvider(name="fcm")
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


@each_case("outcome", UNCERTAIN_ANSWERS)
def test_devices_of_one_person_are_one_recipient(outcome: Outcome) -> None:
    fcm = ScriptedProvider(name="fcm")
    answer(fcm, *[("ada", outcome)] * 50)
    assert routes(fcm, code(), at=NOON)


@each_case("outcome", UNCERTAIN_ANSWERS)
def test_evidence_is_forgotten_after_an_hour(outcome: Outcome) -> None:
    fcm = ScriptedProvider(name="fcm")
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


@each_case("outcome, users", REFUSALS)
def test_refused_recipient_is_not_the_probe(outcome: Outcome, users: list[str]) -> None:
    fcm = ScriptedProvider(name="fcm")
    open_circuit(fcm, outcome, users)
    old, new = delivery("0"), code()
    (probe,) = routes(fcm, old, new, at=AFTER)
    assert (probe.claims, bool(probe.probes)) == ([new], True)


@each_case("outcome, users", REFUSALS)
def test_refused_recipient_leaves_the_probe_to_others_for_a_while(
    outcome: Outcome, users: list[str]
) -> None:
    fcm = ScriptedProvider(name="fcm")
    open_circuit(fcm, outcome, users)
    assert not routes(fcm, delivery("0"), at=AFTER)
    (probe,) = routes(fcm, code(), at=AFTER + SECOND)
    answer(fcm, ("ben", accepted()), now=AFTER + SECOND, route=probe)
    assert routes(fcm, delivery("0"), at=AFTER + SECOND)


@each_case("outcome, users", REFUSALS)
def test_refused_recipient_is_the_probe_if_nobody_else_comes(
    outcome: Outcome, users: list[str]
) -> None:
    fcm = ScriptedProvider(name="fcm")
    open_circuit(fcm, outcome, users)
    at = leaves_at(fcm, delivery("0"), at=AFTER, until=AFTER + HEAD_START)
    assert at == AFTER + HEAD_START


@each_case("outcome, users", REFUSALS[2:5])
def test_another_refusal_of_the_same_recipient_says_nothing_new(
    outcome: Outcome, users: list[str]
) -> None:
    fcm = ScriptedProvider(name="fcm")
    open_circuit(fcm, outcome, users)
    at = AFTER + HEAD_START
    for _ in range(10):
        (probe,) = routes(fcm, delivery("0"), at=at)
        answer(fcm, ("0", outcome), now=at, route=probe)
        at += timedelta(minutes=1)
    assert routes(fcm, code(), at=at)


@each_case("outcome, users", REFUSALS[2:5])
def test_nobody_waits_for_the_probe_of_a_refused_recipient(
    outcome: Outcome, users: list[str]
) -> None:
    fcm = ScriptedProvider(name="fcm")
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
    assert not routes(fcm, delivery("ben"), at=AFTER + 2 * FIRST_WAIT - SECOND)
    (probe,) = routes(fcm, delivery("new"), code(), at=AFTER + 2 * FIRST_WAIT)
    assert [claim.user_id for claim in probe.claims] == ["ben"]


def test_platform_that_needs_a_probe_holds_only_its_own_devices(fcm: ScriptedProvider) -> None:
    open_circuit(fcm, channel_unavailable(reach=UNCERTAIN, scope="ios"), FIVE)
    both = delivery("0")
    targets = {
        both.reference: [SendTarget(address="x", platform=text) for text in ("ios", "android")]
    }
    (route,), held = routing.choose_routes(
        RUNTIME, [both], providers=[fcm], targets=targets, paused={}, now=AFTER
    )
    assert (route.probes, held) == ({}, [])
    assert route.blocked_scopes == {"ios": AFTER + HEAD_START}


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


EVERY_UNCERTAIN = {name: error for name, error in TABLE.items() if error.reach is UNCERTAIN}
REFUSED_FOREVER = {
    **{name: [error] for name, error in EVERY_UNCERTAIN.items()},
    "all kinds in turn": list(EVERY_UNCERTAIN.values()),
}


class Life:
    """Deliveries that are tried again whenever they are due, as by workers with full queues."""

    def __init__(self, provider: ScriptedProvider, *, at: datetime = NOON) -> None:
        self.provider = provider
        self.now = at
        self.due: dict[str, tuple[ClaimedDelivery, datetime]] = {}
        self.answers: dict[str, list[Outcome]] = {}
        self.sent: dict[str, datetime] = {}
        self.requests: Counter[str] = Counter()

    def add(self, claimed: ClaimedDelivery, *answers: Outcome) -> None:
        user = claimed.user_id or ""
        self.answers[user] = [*answers]
        self.due[claimed.reference] = (claimed, self.now)

    def step(self, seconds: float) -> None:
        """Try what is due, in batches of 32 in the order of arrival, then let time pass."""
        due = [document for document, at in self.due.values() if at <= self.now]
        for start in range(0, len(due), 32):
            batch = due[start : start + 32]
            targets = {
                claim.reference: [SendTarget(address="x", platform="ios")] for claim in batch
            }
            found, held = routing.choose_routes(
                RUNTIME, batch, providers=[self.provider], targets=targets, paused={}, now=self.now
            )
            for unsent in held:
                at = unsent.next_attempt_at or self.now + timedelta(days=1)
                self.due[unsent.claimed.reference] = (unsent.claimed, at)
            for route in found:
                self._send(route)
        self.now += timedelta(seconds=seconds)

    def _send(self, route: Route) -> None:
        given = []
        for claimed in route.claims:
            user = claimed.user_id or ""
            self.requests[user] += 1
            outcomes = self.answers[user]
            outcome = outcomes[self.requests[user] % len(outcomes)]
            given.append((user, outcome))
            if isinstance(outcome, ProviderError):
                wait = getattr(outcome, "retry_after", None) or 30
                self.due[claimed.reference] = (claimed, self.now + timedelta(seconds=wait))
            else:
                self.sent[claimed.reference] = self.now
                del self.due[claimed.reference]
        answer(self.provider, *given, now=self.now, route=route)


@each_case("name", [*sampled(sorted(EVERY_UNCERTAIN), each=3), "all kinds in turn"])
@each_case("count", [4, 40])
def test_code_is_never_behind_those_who_are_refused_for_ever(name: str, count: int) -> None:
    fcm = ScriptedProvider(name="fcm")
    life = Life(fcm)
    for n in range(count):
        life.add(delivery(f"v{n}"), *REFUSED_FOREVER[name])
    for _ in range(4):
        asked = code()
        life.add(asked, accepted())
        since = life.now
        for _ in range(18):
            life.step(5)
        assert asked.reference in life.sent
        assert life.sent[asked.reference] - since <= WITHIN


@each_case("priority", [Priority.NORMAL, Priority.CRITICAL])
@each_case("outcome", UNCERTAIN_ANSWERS)
def test_code_waits_for_no_number_of_refused_ones(outcome: Outcome, priority: Priority) -> None:
    fcm = ScriptedProvider(name="fcm")
    life = Life(fcm)
    for n in range(150):
        life.add(delivery(f"v{n}", priority=priority), outcome)
    for wait in (0, 100, 200):
        for _ in range(wait // 20):
            life.step(20)
        asked, since = code(), life.now
        life.add(asked, accepted())
        life.step(2.5)
        life.step(2.5)
        assert life.sent[asked.reference] - since <= WITHIN


@each_case("outcome", UNCERTAIN_ANSWERS)
def test_refused_once_is_no_evidence_after_an_acceptance(outcome: Outcome) -> None:
    fcm = ScriptedProvider(name="fcm")
    eight = [(f"v{n}", outcome) for n in range(8)]
    answer(fcm, *eight)
    at = NOON + timedelta(seconds=60)
    for _ in range(5):
        found = routes(fcm, delivery("ben"), at=at)
        answer(fcm, ("ben", accepted()), now=at, route=found[0] if found else None)
        answer(fcm, *eight, now=at)
        assert routes(fcm, delivery("carla"), at=at + SECOND)
        at += timedelta(minutes=10)


@each_case("outcome", [UNCERTAIN_ANSWERS[0], UNCERTAIN_ANSWERS[1]])
def test_outage_of_the_account_holds_and_tries_each_recipient_once(outcome: Outcome) -> None:
    fcm = ScriptedProvider(name="fcm")
    life = Life(fcm)
    for n in range(200):
        priority = Priority.CRITICAL if n % 2 else Priority.NORMAL
        life.add(delivery(f"v{n}", priority=priority), outcome)
    for _ in range(120):
        life.step(5)
    normal = sum(life.requests[f"v{n}"] for n in range(0, 200, 2))
    assert normal < 60, "a batch until it opens, then probes"
    assert max(life.requests.values()) <= 8
    for n in range(200):
        life.answers[f"v{n}"] = [accepted()]
    for _ in range(200):
        life.step(5)
    assert len(life.sent) == 200


def test_recipient_who_is_accepted_again_is_evidence_again(fcm: ScriptedProvider) -> None:
    outcome = UNCERTAIN_ANSWERS[0]
    answer(fcm, *((user, outcome) for user in FIVE), ("ben", accepted()))
    answer(fcm, *((user, outcome) for user in FIVE))
    assert routes(fcm, delivery("x"), at=NOON)
    answer(fcm, *((user, accepted()) for user in FIVE))
    answer(fcm, *((user, outcome) for user in FIVE))
    assert not routes(fcm, delivery("x"), at=NOON)


def test_failing_trials_end(fcm: ScriptedProvider) -> None:
    """Each would cost a code one of its attempts."""
    open_circuit(fcm, UNCERTAIN_ANSWERS[0], FIVE)
    at, error = NOON + 3 * SECOND, provider_error(response=ProviderResponse(status=500))
    for n in range(MIN_RECIPIENTS):
        (trial,) = routes(fcm, code(f"c{n}"), at=at)
        answer(fcm, (f"c{n}", error), now=at, route=trial)
    assert not routes(fcm, code(), at=at)


def test_answer_about_the_account_ends_trials(fcm: ScriptedProvider) -> None:
    open_circuit(fcm, UNCERTAIN_ANSWERS[0], FIVE)
    answer(fcm, ("ada", channel_unavailable()), now=NOON + SECOND)
    assert not routes(fcm, code(), at=NOON + 3 * SECOND)


def test_refused_recipients_are_bounded(fcm: ScriptedProvider, broker: redis.Redis) -> None:
    outcome = UNCERTAIN_ANSWERS[0]
    for n in range(MAX_REFUSED // 20 + 10):
        answer(fcm, *((f"{n}-{m}", outcome) for m in range(20)))
    (key,) = broker.keys("circuit_refused:*")
    assert broker.zcard(key) == MAX_REFUSED
    assert 0 < broker.pttl(key) <= EVIDENCE_TTL / timedelta(milliseconds=1)


@pytest.mark.parametrize("reach", [UNCERTAIN, Reach.RECIPIENT])
def test_uncertain_rejection_of_a_trial_is_not_final(reach: Reach) -> None:
    state = delivery("ada").retry_state
    decided = {
        is_doubted: decide_retry(
            error=invalid_token(reach=reach), state=state, now=NOON, jitter=0, is_doubted=is_doubted
        )
        for is_doubted in (True, False)
    }
    assert isinstance(decided[True], RetryUncounted) is (reach is UNCERTAIN)
    assert isinstance(decided[False], GiveUp)
