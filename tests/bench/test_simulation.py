"""The simulation of people: a few people at each change of the clock, and what the ledger finds."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from bson import ObjectId

from bench.simulation.engine import Settings, simulate
from bench.simulation.ledger import Ledger
from bench.simulation.report import table
from bench.simulation.world import KIND_BY_SLUG, ZONES, Person, Post
from domain.states import Channel
from notifications.store import AttemptReference
from notifyproject.db.collections import collection
from tests.support.factories import notifications as factories

pytestmark = pytest.mark.usefixtures("db", "broker")

NOON = datetime(2031, 4, 1, 12, tzinfo=UTC)
NIGHT = ("22:00", "07:00")
EMAIL, PUSH = Channel.EMAIL, Channel.PUSH


@pytest.fixture
def ledger() -> Ledger:
    return Ledger(
        sequence=lambda: 7,
        notifications=collection("notifications"),
        attempts=collection("delivery_attempts"),
    )


def posted(
    ledger: Ledger, slug: str = "sim_promo", *, quiet: tuple[str, str] | None = NIGHT
) -> AttemptReference:
    ada = Person(user_id="person-1", zone="Europe/Berlin", quiet=quiet, devices=1)
    post = Post(
        external_id=f"post-{len(ledger.posts)}",
        person=ada,
        kind=KIND_BY_SLUG[slug],
        at=NOON,
        send_at=NOON,
        expires_at=NOON + timedelta(days=2),
        ignores_limits=False,
        is_cancelled_later=False,
    )
    one = ObjectId()
    ledger.record_post(post, one)
    return AttemptReference(one, EMAIL, 1)


def accept(ledger: Ledger, reference: AttemptReference, *, at: datetime) -> None:
    post = ledger.record_send(reference, now=at)
    assert post is not None
    ledger.record_acceptance(post, reference, now=at)


def test_invariants_hold_while_processes_are_killed_between_writes() -> None:
    settings = Settings(seed=1, people=10, days=10, step=timedelta(hours=8), fault_rate=0.7)
    outcome = simulate(settings)
    assert not outcome.violations, table([outcome])
    assert outcome.kills > 10
    assert outcome.faults["applied, response lost"] > 0
    assert outcome.counts["accepted"] > 30
    assert outcome.counts["held by limits"] > 0
    assert outcome.counts["code not_needed"] > 0


def test_clock_changes_move_quiet_hours() -> None:
    ada = Person(user_id="person-1", zone="Europe/Berlin", quiet=("01:30", "02:30"), devices=0)
    spring = datetime(2031, 3, 30, tzinfo=UTC)
    # At 02:00, the clock goes to 03:00.
    assert ada.is_quiet(spring + timedelta(minutes=59))
    assert not ada.is_quiet(spring + timedelta(minutes=60))
    assert len(set(ZONES)) == 40


def test_ledger_finds_a_message_beyond_a_limit(ledger: Ledger) -> None:
    for hours in (0, 5, 10, 15):
        accept(ledger, posted(ledger, quiet=None), at=NOON + timedelta(hours=hours))
    assert ledger.violations == {"limit": 1}


def test_ledger_finds_a_gap_that_is_too_small(ledger: Ledger) -> None:
    for minutes in (0, 239):
        accept(ledger, posted(ledger), at=NOON + timedelta(minutes=minutes))
    assert ledger.violations == {"gap": 1}


def test_ledger_finds_a_send_in_quiet_hours_and_after_expiry(ledger: Ledger) -> None:
    ledger.record_send(posted(ledger), now=NOON + timedelta(hours=9))
    ledger.record_send(posted(ledger, "sim_code"), now=NOON + timedelta(hours=9))
    ledger.record_send(posted(ledger), now=NOON + timedelta(days=2))
    assert ledger.violations == {"quiet": 1, "expired": 1}


def test_ledger_finds_a_step_after_a_reach_and_before_its_time(ledger: Ledger) -> None:
    reference = posted(ledger, "sim_reminder")
    ledger.started[str(reference.notification_id), EMAIL] = 8
    ledger.record_reach(str(reference.notification_id))
    ledger.record_send(reference, now=NOON + timedelta(seconds=900))
    assert ledger.violations == {"reached": 1}
    ledger.started[str(reference.notification_id), EMAIL] = 6
    ledger.record_send(reference, now=NOON + timedelta(seconds=900))
    assert ledger.violations == {"reached": 1}
    ledger.record_send(replace(reference, channel=PUSH), now=NOON - timedelta(seconds=1))
    assert ledger.violations == {"reached": 1, "early": 1}


def test_ledger_finds_a_second_copy_without_an_unknown_outcome(ledger: Ledger) -> None:
    first = posted(ledger, "sim_code")
    accept(ledger, first, at=NOON)
    accept(ledger, replace(first, attempt_number=2), at=NOON)
    assert ledger.violations == {"twice": 1}


def test_ledger_finds_an_open_notification_that_mongodb_would_delete(ledger: Ledger) -> None:
    document = factories.accepted()
    ledger.check_kept(now=document["purge_at"] - timedelta(seconds=1))
    assert ledger.violations == {}
    ledger.check_kept(now=document["purge_at"])
    assert ledger.violations == {"purged": 1}


def test_ledger_finds_a_post_that_is_lost(ledger: Ledger) -> None:
    posted(ledger)
    ledger.check_stored()
    assert ledger.violations == {"lost": 1}
