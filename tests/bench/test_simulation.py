"""The simulation of people: a few people at each change of the clock, and what the ledger finds."""

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from bson import ObjectId
from pymongo.errors import NetworkTimeout

from bench.simulation.engine import Settings, simulate
from bench.simulation.faults import Fault, FaultInjector, Kind
from bench.simulation.ledger import Ledger
from bench.simulation.report import table
from bench.simulation.world import KIND_BY_SLUG, ZONES, Person, Post, is_window
from domain.states import Channel
from notifications.store.references import AttemptReference
from notifyproject.db.collections import collection
from notifyproject.platform import crash_points
from notifyproject.platform.crash_points import Boundary
from tests.support.factories import notifications as factories

pytestmark = pytest.mark.usefixtures("db", "broker")

NOON = datetime(2031, 4, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
NIGHT = ("22:00", "07:00")
EMAIL, PUSH = Channel.EMAIL, Channel.PUSH


@pytest.fixture
def ledger() -> Ledger:
    return Ledger(
        sequence=lambda: 7,
        notifications=collection("notifications"),
        attempts=collection("delivery_attempts"),
        digests=collection("digests"),
    )


def a_post(slug: str) -> Post:
    return Post(
        external_id="post-0",
        person=Person(user_id="person-1", zone="UTC", quiet=None, devices=1),
        kind=KIND_BY_SLUG[slug],
        at=NOON,
        send_at=NOON,
        expires_at=NOON + timedelta(days=2),
        ignores_limits=False,
        is_cancelled_later=False,
    )


def posted(
    ledger: Ledger,
    slug: str = "sim_promo",
    *,
    quiet: tuple[str, str] | None = NIGHT,
    thread: str = "roof",
) -> AttemptReference:
    ada = Person(user_id="person-1", zone="Europe/Berlin", quiet=quiet, devices=1)
    name = f"post-{len(ledger.posts)}"
    post = replace(a_post(slug), external_id=name, person=ada, thread=thread)
    digest_id = ObjectId()
    ledger.record_post(post, digest_id)
    return AttemptReference(digest_id, EMAIL, 1)


def accept(ledger: Ledger, reference: AttemptReference, *, at: datetime) -> None:
    post = ledger.record_send(reference, text="A message.", now=at)
    assert post is not None
    ledger.record_acceptance(post, reference, now=at)


@pytest.mark.slow
def test_invariants_hold_while_processes_are_killed_between_writes() -> None:
    settings = Settings(
        seed=1,
        people=10,
        days=10,
        events_per_week=5.0,
        step=timedelta(hours=8),
        fault_rate=0.7,
    )
    outcome = simulate(settings)
    assert not outcome.violations, table([outcome])
    assert outcome.kills > 10
    assert outcome.faults["applied, response lost"] > 0
    assert outcome.counts["accepted"] > 30
    assert outcome.counts["held by limits"] > 0
    assert outcome.counts["code not_needed"] > 0
    assert outcome.counts["merged"] > 0


@pytest.mark.parametrize(
    ("kind", "is_before_the_read"), [(Kind.RESPONSE_LOST, True), (Kind.REQUEST_LOST, False)]
)
def test_repeated_start_counts_from_when_it_was_applied(
    kind: Kind, is_before_the_read: bool
) -> None:
    faults = FaultInjector(random.Random(1))

    def start() -> None:
        collection("notifications").update_many({"_id": 1}, {"$set": {"status": "sending"}})

    with faults.installed(), faults.process(Fault(kind, 1)):
        with pytest.raises(NetworkTimeout):
            start()
        read_at = faults.sequence = faults.sequence + 1
        start()
        crash_points.reach(Boundary.START_WRITTEN)
    assert (faults.started_at < read_at) is is_before_the_read


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
    ledger.record_send(posted(ledger), text="", now=NOON + timedelta(hours=9))
    ledger.record_send(posted(ledger, "sim_code"), text="", now=NOON + timedelta(hours=9))
    ledger.record_send(posted(ledger), text="", now=NOON + timedelta(days=2))
    assert ledger.violations == {"quiet": 1, "expired": 1}


def test_ledger_finds_a_step_after_a_reach_and_before_its_time(ledger: Ledger) -> None:
    reference = posted(ledger, "sim_reminder")
    ledger.started[str(reference.notification_id), EMAIL] = 8
    ledger.record_reach(str(reference.notification_id))
    ledger.record_send(reference, text="", now=NOON + timedelta(seconds=900))
    assert ledger.violations == {"reached": 1}
    ledger.started[str(reference.notification_id), EMAIL] = 6
    ledger.record_send(reference, text="", now=NOON + timedelta(seconds=900))
    assert ledger.violations == {"reached": 1}
    ledger.record_send(replace(reference, channel=PUSH), text="", now=NOON - timedelta(seconds=1))
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


def carry(ledger: Ledger, *names: str, at: datetime = NOON) -> ObjectId:
    carrier = AttemptReference(ObjectId(), EMAIL, 1)
    text = f"{len(names)} messages: {'; '.join(names)};"
    ledger.record_send(carrier, text=text, now=at)
    return carrier.notification_id


def test_ledger_finds_a_member_that_is_sent_twice(ledger: Ledger) -> None:
    for _ in range(3):
        posted(ledger, "sim_comment")
    alone = posted(ledger, "sim_comment")
    carry(ledger, "post-0", "post-1")
    assert ledger.violations == {}
    carry(ledger, "post-1", "post-2")
    assert ledger.violations == {"carried": 1}
    ledger.record_send(alone, text="post-3", now=NOON)
    carry(ledger, "post-3")
    assert ledger.violations == {"carried": 2}
    ledger.record_send(replace(alone, attempt_number=2), text="post-3", now=NOON)
    assert ledger.violations == {"carried": 3}


def test_ledger_finds_a_carrier_of_two_groups_and_one_of_nothing(ledger: Ledger) -> None:
    posted(ledger, "sim_comment", thread="roof")
    posted(ledger, "sim_comment", thread="garden")
    carry(ledger, "post-0", "post-1")
    assert ledger.violations == {"carried": 1}
    carry(ledger, "post-7")
    assert ledger.violations == {"carried": 1, "lost": 1}


def closed_digest(ledger: Ledger) -> AttemptReference:
    """Store a digest of one member, whose window ended after 45 minutes, and its carrier."""
    member = posted(ledger, "sim_like")
    digest_id, carrier_id = ObjectId(), carry(ledger, "post-0", at=NOON + HOUR)
    closes_at = NOON + timedelta(minutes=45)
    collection("digests").insert_one(
        {
            "_id": digest_id,
            "group": "a",
            "type": "sim_like",
            "status": "closed",
            "opened_at": NOON,
            "window_ends_at": closes_at,
            "closes_at": closes_at,
            "sealed_at": closes_at,
            "outcome": "sent",
            "count": 1,
            "carrier_id": carrier_id,
        }
    )
    waited = {"channel": "push", "digest_id": digest_id, "carried_by": carrier_id}
    collection("notifications").insert_one(
        {
            "_id": member.notification_id,
            "external_id": "post-0",
            "delivery": [{**waited, "status": "merged"}],
        }
    )
    return member


def test_ledger_finds_a_wrong_window_and_a_carrier_before_its_end(ledger: Ledger) -> None:
    closed_digest(ledger)
    ledger.check_stored()
    assert ledger.violations == {}
    collection("digests").update_one({}, {"$set": {"window_ends_at": NOON + 4 * HOUR}})
    ledger.check_stored()
    assert ledger.violations == {"window": 1}
    collection("digests").update_one({}, {"$set": {"closes_at": NOON + 2 * HOUR}})
    ledger.check_stored()
    assert ledger.violations == {"window": 3}


def test_ledger_finds_a_member_that_was_read_before(ledger: Ledger) -> None:
    member = closed_digest(ledger)
    ledger.record_end(member.notification_id, now=NOON + timedelta(minutes=45))
    ledger.check_stored()
    assert ledger.violations == {}
    ledger.ended[str(member.notification_id)] = NOON
    ledger.check_stored()
    assert ledger.violations == {"dropped": 1}


def test_ledger_finds_a_digest_that_never_ends_and_a_lost_member(ledger: Ledger) -> None:
    closed_digest(ledger)
    collection("notifications").update_one({}, {"$unset": {"delivery.0.carried_by": ""}})
    collection("notifications").update_one({}, {"$set": {"delivery.0.status": "sent"}})
    ledger.check_stored()
    assert ledger.violations == {"carried": 2}
    collection("digests").update_one({}, {"$set": {"status": "closing"}})
    ledger.check_stored()
    assert ledger.violations["ended"] == 1


@pytest.mark.parametrize(
    ("zone", "ends_at"),
    [
        ("Europe/Berlin", datetime(2031, 3, 29, 1, 30, tzinfo=UTC)),
        # The clock goes from 02:00 to 03:00, and in October from 03:00 to 02:00.
        ("Europe/Berlin", datetime(2031, 3, 30, 1, 0, tzinfo=UTC)),
        ("Europe/Berlin", datetime(2031, 10, 26, 0, 30, tzinfo=UTC)),
        ("Australia/Adelaide", datetime(2031, 4, 5, 16, 0, tzinfo=UTC)),
    ],
)
def test_window_of_a_schedule_ends_at_the_local_time(zone: str, ends_at: datetime) -> None:
    ada = Person(user_id="person-1", zone=zone, quiet=None, devices=1)
    posts = [replace(a_post("sim_news"), person=ada)]
    fields = {"opened_at": ends_at - HOUR, "window_ends_at": ends_at}
    assert is_window(fields, posts)
    assert not is_window({**fields, "window_ends_at": ends_at + HOUR}, posts)
    assert not is_window({**fields, "opened_at": ends_at - 30 * HOUR}, posts)
    ada.own_digest = {"sim_news": "off"}
    assert not is_window(fields, posts)


def test_ledger_finds_a_post_that_is_lost(ledger: Ledger) -> None:
    posted(ledger)
    ledger.check_stored()
    assert ledger.violations == {"lost": 1}
