"""Leases of every user: claim, race, renewal, takeover, a stale holder's writes, and giving up."""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from bson import ObjectId
from django.contrib.admin.models import LogEntry

from callbacks import outbox, worker
from callbacks.events import Event, EventType
from callbacks.retry import AttemptOutcome, Decision
from delivery import pipeline
from delivery.runtime import SendingRuntime
from domain.channels import Channel
from domain.digests import CLOSE_GRACE, DigestOutcome
from monitoring import rollup_state
from notifications.broadcasts import repository as broadcasts
from notifications.broadcasts import runner
from notifications.bulk import repository as operations
from notifications.store import digests as store_digests
from notifications.store import leases as store_leases
from notifications.store.digests import Opening, Seal, Window
from notifications.store.leases import LEASES
from notifyproject.db.collections import Documents, collection
from notifyproject.db.leases import Leases, is_leased, is_unclaimed, unclaimed
from notifyproject.platform.endpoints import EndpointResponse
from tests.support.factories import broadcasts as broadcast_factory
from tests.support.factories import bulk
from tests.support.factories.notifications import CLIENT, NOON, accepted
from tests.support.fakes.callback_receiver import called_back

pytestmark = pytest.mark.usefixtures("db", "broker")
MILLISECOND = timedelta(milliseconds=1)
HOUR = timedelta(hours=1)
START = NOON + HOUR
"""All work of this file is due by then."""
TRIES = 6
FORMS = Documents("lease_forms", dict)
EMAIL = Channel.EMAIL
PAGE = Path(__file__).parents[3] / "docs" / "decisions" / "0049-leases.md"


@dataclass(frozen=True, kw_only=True)
class User:
    """What has leases, and how a worker of it claims, renews, and ends its work."""

    leases: Leases[Any]
    create: Callable[[], Any]
    claim: Callable[[Any, datetime], Any]
    """Returns what the holder has, or a false value."""
    finish: Callable[[Any, datetime], object]
    """Returns a false value if the lease was lost."""
    give_back: Callable[[Any, datetime], object] | None = None
    """Ends a claim without progress. None if that doesn't occur."""
    renew: Callable[[Any, datetime], object] | None = None
    give_up: Callable[[Any, datetime], str]
    """What the worker after the last claim makes of it."""
    gives_up: str


def _claim_delivery(notification_id: ObjectId, at: datetime) -> Any:
    claims = store_leases.claim(
        ids=[notification_id], channel=EMAIL, worker="w", now=at, include_poison_candidates=True
    )
    return claims[0] if claims else None


def _quarantine(notification_id: ObjectId, at: datetime) -> str:
    pipeline.dispatch(SendingRuntime(), [notification_id], channel=EMAIL, clock=lambda: at)
    document = collection("notifications").find_one({"_id": notification_id}) or {}
    return str(document["delivery"][0]["failure_code"])


def _open_digest() -> ObjectId:
    opening = Opening(
        group=str(ObjectId()),
        client_id=CLIENT,
        user_id="ada",
        type="comment",
        channel=EMAIL,
        is_test=False,
        key=None,
        windows=[Window(id=ObjectId(), ends_at=START - CLOSE_GRACE)],
        leader=None,
        slides=None,
        max_items=20,
        min_items=2,
    )
    (document,) = store_digests.open_digests([opening], now=NOON).values()
    return ObjectId(document["_id"])


def _claim_digest(digest_id: ObjectId, at: datetime) -> Any:
    claims = store_digests.acquire_due(worker="w", now=at, limit=10)
    return next((closing for closing in claims if closing.id == digest_id), None)


def _seal(held: Any, at: datetime) -> object:
    seal = Seal(
        closing=held, outcome=DigestOutcome.EMPTY, members=[], dropped=0, template_version=None
    )
    return store_digests.seal([seal], now=at)


def _claim_alone(digest_id: ObjectId, at: datetime) -> str:
    _open_digest()
    batches = [store_digests.acquire_due(worker="w", now=at, limit=10) for _ in range(20)]
    return " and ".join(sorted(str(len(some)) for some in batches if some))


def _run_operation(operation_id: ObjectId, at: datetime) -> str:
    operations.claim(operation_id, worker="w", now=at)
    document = collection("operations").find_one({"_id": operation_id}) or {}
    return f"{document['stage']}: {document['problem']}"


def _create_broadcast() -> ObjectId:
    broadcast_factory.recipients(2)
    return broadcast_factory.begun()


def _run_broadcast(broadcast_id: ObjectId, at: datetime) -> str:
    runner.run_page(broadcast_id, clock=lambda: at)
    document = broadcast_factory.read(broadcast_id)
    return f"{document['status']}: {document['failure_reason']}"


def _record_message() -> str:
    called_back("http://127.0.0.1:9/")
    event = Event(id="evt_1", client_id=CLIENT, type=EventType.DELIVERY_SENT, at=NOON, data={})
    outbox.store_messages([event], now=NOON)
    return event.id


def _claim_message(message_id: str, at: datetime) -> Any:
    claims = outbox.claim(client_id=CLIENT, limit=1, now=at)
    return claims[0] if claims else None


def _quarantine_message(message_id: str, at: datetime) -> str:
    assert not _claim_message(message_id, at)
    document = collection("callback_messages").find_one({"_id": message_id}) or {}
    return f"{document['status']}: {document['error']}"


def _disable_endpoint(client_id: ObjectId, at: datetime) -> str:
    assert not worker.acquire_lease(client_id, now=at)
    document = collection("callbacks").find_one({"_id": client_id}) or {}
    return f"{document['state']}: {document['disabled_reason']}"


def _settle(held: Any, at: datetime) -> object:
    response = EndpointResponse(status=204, duration_ms=1, error=None, excerpt=None)
    return outbox.settle(held, response, Decision(AttemptOutcome.DELIVERED), at=at)


def _subscribe() -> ObjectId:
    called_back("http://127.0.0.1:9/")
    return CLIENT


def _renew_rollup(held: Any, at: datetime) -> object:
    try:
        rollup_state.renew_lease(held, now=at)
    except rollup_state.LeaseLostError:
        return False
    return True


def _stop_rollup(key: str, at: datetime) -> str:
    assert rollup_state.acquire_lease(now=at) is None
    assert rollup_state.stopped_at() == at
    return str(LogEntry.objects.get().change_message)


USERS = {
    "deliveries": User(
        leases=LEASES,
        create=lambda: accepted()["_id"],
        claim=_claim_delivery,
        finish=lambda held, at: store_leases.release([held], now=at),
        give_back=lambda held, at: store_leases.release([held], now=at),
        renew=lambda held, at: store_leases.start([held], provider="sendgrid", worker="w", now=at),
        give_up=_quarantine,
        gives_up="quarantined",
    ),
    "digests": User(
        leases=store_digests.LEASES,
        create=_open_digest,
        claim=_claim_digest,
        finish=_seal,
        give_up=_claim_alone,
        gives_up="1 and 1",
    ),
    "operations": User(
        leases=operations.LEASES,
        create=lambda: bulk.started(bulk.Time(NOON)).id,
        claim=lambda operation_id, at: operations.claim(operation_id, worker="w", now=at),
        finish=lambda held, at: operations.release(held, at=at, now=at),
        give_back=lambda held, at: operations.release(held, at=at, now=at),
        renew=lambda held, at: operations.save_progress(held, now=at),
        give_up=_run_operation,
        gives_up="paused: 3 consecutive workers made no progress. See their logs.",
    ),
    "broadcasts": User(
        leases=broadcasts.LEASES,
        create=_create_broadcast,
        claim=lambda broadcast_id, at: broadcasts.acquire_lease(broadcast_id, worker="w", now=at),
        finish=lambda held, at: broadcasts.release_lease(held, now=at),
        give_back=lambda held, at: broadcasts.defer(held, until=at, now=at),
        give_up=_run_broadcast,
        gives_up="failed: 5 consecutive workers failed on the same page.",
    ),
    "callback endpoints": User(
        leases=worker.LEASES,
        create=_subscribe,
        claim=lambda client_id, at: worker.acquire_lease(client_id, now=at),
        finish=lambda held, at: worker.release_lease(held, held.health, now=at),
        give_back=lambda held, at: worker.release_lease(held, held.health, is_used=False, now=at),
        give_up=_disable_endpoint,
        gives_up="disabled: stuck",
    ),
    "callback messages": User(
        leases=outbox.LEASES,
        create=_record_message,
        claim=_claim_message,
        finish=_settle,
        give_back=lambda held, at: outbox.give_back([held]),
        give_up=_quarantine_message,
        gives_up="failed: Three workers in a row ended while they sent it.",
    ),
    "roll-up": User(
        leases=rollup_state.LEASES,
        create=lambda: "rollup",
        claim=lambda key, at: rollup_state.acquire_lease(now=at),
        finish=lambda held, at: held.release(),
        give_back=lambda held, at: held.give_back(),
        renew=_renew_rollup,
        give_up=_stop_rollup,
        gives_up="Stopped: three workers in a row ended while they counted.",
    ),
}


@pytest.fixture(params=USERS)
def user(request: pytest.FixtureRequest) -> User:
    return USERS[request.param]


def stored(user: User) -> list[Mapping[str, Any]]:
    return list(user.leases.collection().find().sort("_id", 1))


def test_one_of_many_workers_gets_the_lease(user: User) -> None:
    key = user.create()
    with ThreadPoolExecutor(8) as workers:
        claims = list(workers.map(lambda _: user.claim(key, START), range(16)))
    assert sum(bool(held) for held in claims) == 1


def test_lease_is_taken_over_when_it_ends_and_the_late_holder_changes_nothing(user: User) -> None:
    key = user.create()
    late = user.claim(key, START)
    ends_at = START + user.leases.length
    assert late
    assert not user.claim(key, ends_at - MILLISECOND)
    other = user.claim(key, ends_at)
    assert other
    before = stored(user)
    for write in (user.renew, user.finish):
        if write is not None:
            assert not write(late, ends_at)
    assert stored(user) == before
    assert user.finish(other, ends_at)


@pytest.mark.parametrize("name", [name for name, user in USERS.items() if user.renew is not None])
def test_renewed_lease_is_held_for_longer(name: str) -> None:
    user = USERS[name]
    assert user.renew is not None
    key, length = user.create(), user.leases.length
    held = user.claim(key, START)
    assert user.renew(held, START + length - MILLISECOND)
    assert not user.claim(key, START + length)
    assert not user.claim(key, START + 2 * length - 2 * MILLISECOND)


@pytest.mark.parametrize(
    "name", [name for name, user in USERS.items() if user.give_back is not None]
)
def test_claim_without_progress_is_given_back_uncounted(name: str) -> None:
    user = USERS[name]
    assert user.give_back is not None
    key, at = user.create(), START
    assert user.claim(key, at), "a worker that is lost"
    for _ in range(2):
        at += user.leases.length
        user.give_back(user.claim(key, at), at)
        (document,) = stored(user)
        (counted,) = document.get("delivery", [document])
        assert (counted["claim_count"], counted.get("claim")) == (1, None)


def test_lost_workers_make_the_next_one_give_up(user: User) -> None:
    key, at = user.create(), START
    for _ in range(user.leases.max_claims):
        assert user.claim(key, at)
        at += user.leases.length * user.leases.max_length_factor
    assert user.give_up(key, at) == user.gives_up


@pytest.mark.parametrize("left", [None, -MILLISECOND, timedelta(0), MILLISECOND])
def test_the_filter_the_expression_and_the_check_agree(left: timedelta | None) -> None:
    claim = {} if left is None else {"claim": {"token": "t", "lease_until": NOON + left}}
    found = FORMS()
    found.insert_one({"_id": "one", **claim})
    is_free = left is None or left <= timedelta(0)
    assert (found.count_documents(unclaimed(now=NOON)) == 1) is is_free
    expression = {"$expr": is_unclaimed("$claim", now=NOON)}
    assert (found.count_documents(expression) == 1) is is_free
    assert is_leased(claim, now=NOON) is not is_free
    found.drop()


def test_worker_name_is_stored_literally() -> None:
    leases = Leases(collection=FORMS, length=HOUR, max_claims=1, max_length_factor=2)
    FORMS().insert_one({"_id": "one"})
    held = leases.claim_one({"_id": "one"}, worker="$$ROOT", now=NOON)
    document = FORMS().find_one({"_id": "one"}) or {}
    FORMS().drop()
    assert held is not None
    assert document["claim"] == {"token": held.token, "lease_until": held.until, "worker": "$$ROOT"}


def test_page_lists_all_users() -> None:
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    listed = {row.split("`")[1]: row for row in rows}
    assert set(listed) == {user.leases.collection.name for user in USERS.values()}
    for user in USERS.values():
        row = listed[user.leases.collection.name]
        assert f"{user.leases.length.total_seconds():.0f} s" in row
        assert f"{user.leases.max_claims} claims" in row
