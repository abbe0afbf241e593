"""Runs a simulated world on virtual time, by the real intake, store, sweeper, and pipeline.

The clock jumps from step to step. In each, people act, receipts come, the client posts, and one
process sweeps and sends what is due, unless a fault ends it. No wake-up arrives: MongoDB says what
is due, as after the loss of the broker.
"""

import asyncio
import heapq
import itertools
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any
from unittest.mock import patch

import msgspec
from bson import ObjectId
from pymongo.errors import PyMongoError

from delivery import digests, pipeline, send_loop, sending, sweeper, window, worker
from delivery.runtime import SendingRuntime
from delivery.window import SendWindow, SendWindows
from devices import registration as devices
from devices.models import Platform
from devices.registration import Registration
from domain.channels import Channel
from domain.errors import FailureCode
from domain.plans import Until, how_reached
from domain.states import DeliveryStatus
from domain.time import truncate_to_milliseconds
from notifications.actions import actions as resend_actions
from notifications.actions.actions import InvalidStateError
from notifications.catalog import definitions, limits, retention, types
from notifications.content import templates
from notifications.inbox import actions as inbox_actions
from notifications.intake import bulk
from notifications.intake.requests import Caller, ContentRequest, NotificationRequest
from notifications.queueing import backlog
from notifications.receipts import processor
from notifications.store import digests as store_digests
from notifications.store import inbox as store_inbox
from notifications.store import leases, limit_uses
from notifications.store import steps as store_steps
from notifications.store.claims import ClaimedDelivery, NotSent
from notifications.store.inbox import Inbox
from notifications.store.references import AttemptReference
from notifyproject.db.collections import collection
from notifyproject.platform import cache, event_loop
from providers.inbox.provider import InAppProvider
from providers.registry import providers_for

from .faults import KILLS, Fault, FaultInjector, KilledError
from .ledger import Ledger
from .provider import SimulatedProvider
from .world import KINDS, LIMITS, Person, Post, World

S = DeliveryStatus
CLIENT = ObjectId("5" * 24)
INBOX_READ_SHARE, ACK_SHARE, ACT_SHARE, SNOOZE_SHARE = 0.25, 0.05, 0.05, 0.05
END_SHARE = 0.03
"""Share of the posts after which the client ends their recipient's open digest."""
CHANGE_SHARE = 0.02
"""Share of the posts after which their recipient changes quiet hours or mutes a type."""
READ_BETWEEN_WRITES = 0.15
"""Probability that a recipient reads a notification right before a write to it."""
MAX_TRIES = 6
"""Requests of the client, and reports of a provider, until one is answered."""
MAX_DRAIN = timedelta(days=150)
"""Time after the last post in which everything must end: ten may wait for a limit of one in seven
days, which takes ten weeks, and longer steps and lost uses delay each of them."""
MAX_ROUNDS = 50
"""Processes that one step starts, each after the last was killed or failed."""
WINDOW_SIZE = 64
TEMPLATE: Any = {
    "default": {
        "subject": "{{ thread }}",
        "body": "{% if digest %}{{ digest.count }} messages: "
        "{% for item in digest.items %}{{ item.data.name }}; {% endfor %}"
        "{% else %}{{ name }}{% endif %}",
    }
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The size of a simulation, and how much goes wrong in it."""

    seed: int
    people: int
    days: int
    events_per_week: float = 0.5
    """Events for a person on average. Most of them are one notification, some up to six."""
    step: timedelta = timedelta(hours=1)
    fault_rate: float = 0.5
    """Probability of a fault in a step, and in a request or report."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of one run."""

    settings: Settings
    counts: Mapping[str, int]
    faults: Mapping[str, int]
    violations: Mapping[str, int]
    examples: Sequence[str]
    seconds: float
    until: datetime
    """The virtual time at which everything had ended."""

    @property
    def kills(self) -> int:
        """How many processes were killed."""
        return sum(self.faults.get(kind.value, 0) for kind in KILLS)


def simulate(
    settings: Settings, *, log_progress: Callable[[str], object] = lambda _: None
) -> Outcome:
    """Run a simulation in an empty database. Return what happened and which invariants broke."""
    began = time.monotonic()
    engine = _Engine(settings, log_progress)
    with engine.installed():
        engine.prepare()
        engine.run()
    return Outcome(
        settings=settings,
        counts=engine.ledger.counts,
        faults=engine.faults.counts,
        violations=engine.ledger.violations,
        examples=engine.ledger.examples,
        seconds=time.monotonic() - began,
        until=engine.now,
    )


class _Engine:
    def __init__(self, settings: Settings, log_progress: Callable[[str], object]) -> None:
        self.settings = settings
        self._log_progress = log_progress
        self._random = random.Random(f"engine {settings.seed}")
        self._jitter = random.Random(f"jitter {settings.seed}")
        self.world = World(
            seed=settings.seed,
            people=settings.people,
            days=settings.days,
            events_per_week=settings.events_per_week,
        )
        self.now = self.world.start
        self.faults = FaultInjector(random.Random(f"faults {settings.seed}"))
        self.faults.before_write = self._read_between_writes
        self.ledger = Ledger(
            sequence=lambda: self.faults.sequence,
            notifications=collection("notifications"),
            attempts=collection("delivery_attempts"),
            digests=collection("digests"),
        )
        self.providers = {
            channel: SimulatedProvider(
                channel=channel,
                seed=settings.seed,
                clock=self.clock,
                check_alive=self.faults.check_alive,
                ledger=self.ledger,
                start=self.world.start,
            )
            for channel in Channel
            if channel is not Channel.IN_APP
        }
        self._posts = self.world.posts()
        self._next_posts = next(self._posts, None)
        self._agenda: list[tuple[datetime, int, Callable[[], object]]] = []
        self._numbers = itertools.count()
        self._keys = itertools.count()

    def clock(self) -> datetime:
        """Return the virtual time."""
        return self.now

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Let the service use the simulated providers and the virtual time."""
        with ExitStack() as stack:
            stack.enter_context(self.faults.installed())
            for target, name, value in (
                (pipeline, "providers_for", self._providers_for),
                # Answers come at once: groups are settled together in each run of a seed.
                (send_loop, "REFILL_SECONDS", 5.0),
                (sending, "COLLECT_SECONDS", 5.0),
                (leases, "start", partial(self._start, leases.start)),
                (leases, "settle_not_sent", partial(self._settle_not_sent, leases.settle_not_sent)),
                # Its clock stands still, so that a pause would never end.
                (window, "PAUSE_SECONDS", 0.0),
                # It measures at most every few seconds of real time.
                (backlog, "is_overloaded", lambda **_: False),
            ):
                stack.enter_context(patch.object(target, name, value))
            self._forget()
            yield
        cache.clear_all()

    def prepare(self) -> None:
        """Store types, limits, people, and devices. The retention is the shortest allowed."""
        days = {"content_days": None, "metadata_days": retention.MIN_METADATA_DAYS}
        collection("retention_policies").update_many({}, {"$set": days})
        retention.invalidate_retention()
        for kind in KINDS:
            request = msgspec.convert({"name": kind.slug, **kind.fields}, definitions.TypeRequest)
            fields = {**definitions.validate_type(kind.slug, request), "is_active": True}
            if kind.digest is not None:
                version = templates.create_version(
                    type_slug=kind.slug, parts=TEMPLATE, note="", created_by="", now=self.now
                )
                fields["template_version"] = version.number
            types.define_type(kind.slug, fields, now=self.now)
        for limit in LIMITS:
            fields = limits.validate_limit(
                limit.name, msgspec.convert(limit.fields, limits.LimitRequest)
            )
            limits.define_limit(limit.name, fields, now=self.now)
        people = self.world.people
        collection("recipients").insert_many([_stored(person, self.now) for person in people])
        for person in people:
            for number in range(person.devices):
                token = f"{person.user_id}-{number}"
                new = Registration(user_id=person.user_id, token=token, platform=Platform.ANDROID)
                devices.register(new, now=self.now)
            for limit_name, maximum in person.own_max.items():
                limit_uses.set_stricter(
                    limit_name,
                    person=limits.person_of_user(person.user_id),
                    user_id=person.user_id,
                    own={"max": maximum},
                    now=self.now,
                )

    def run(self) -> None:
        """Run until everything has ended, at most for the time of the drain, and check it."""
        last_day = self.now.date()
        while self.now < self.world.end + MAX_DRAIN:
            at = self._next_time()
            if at is None:
                break
            steps = max(-(-(at - self.now) // self.settings.step), 1)
            # Not on the full minute, where quiet hours begin and end
            jitter = timedelta(milliseconds=self._random.randrange(1_000))
            self.now = truncate_to_milliseconds(self.now + steps * self.settings.step + jitter)
            self._step()
            if self.now.date() != last_day:
                last_day = self.now.date()
                self.ledger.check_kept(now=self.now)
                if self.now < self.world.end:
                    self._log_progress(f"{last_day}: {len(self.ledger.posts):,} posts")
        self.ledger.check_stored()

    def _next_time(self) -> datetime | None:
        """Return when something happens next; None if everything has ended."""
        times = [self._agenda[0][0]] if self._agenda else []
        if self._next_posts is not None:
            times.append(self._next_posts[0].at)
        times += [
            provider.receipts[0][0] for provider in self.providers.values() if provider.receipts
        ]
        # Without due work before the next step, the queries are not needed.
        if not times or min(times) > self.now + self.settings.step:
            due = backlog.oldest_due(now=self.now + 2 * MAX_DRAIN)
            closes_at, _ = store_digests.next_due(until=self.now + 2 * MAX_DRAIN, limit=1)
            times += [at for at in (due, closes_at) if at is not None]
        return min(times) if times else None

    def _step(self) -> None:
        while self._agenda and self._agenda[0][0] <= self.now:
            heapq.heappop(self._agenda)[2]()
        for provider in self.providers.values():
            if receipts := provider.due_receipts(self.now):
                self._report(provider, receipts)
        posts: list[Post] = []
        while self._next_posts is not None and self._next_posts[0].at <= self.now:
            posts += [post.moved_to(self.now) for post in self._next_posts]
            self._next_posts = next(self._posts, None)
        for start in range(0, len(posts), bulk.MAX_ITEMS):
            self._post(posts[start : start + bulk.MAX_ITEMS])
        for _ in range(MAX_ROUNDS):
            if self._attempt(self._work):
                return
        raise RuntimeError(f"{MAX_ROUNDS} processes failed at {self.now}")

    def _work(self) -> None:
        sweeper.sweep(now=self.now)
        digests.close_due(clock=self.clock)
        worker.run_inline(self._runtime, clock=self.clock)

    def _attempt(self, task: Callable[[], object], *, is_safe: bool = False) -> bool:
        """Run a process with a task. Return whether it ended well; ``is_safe`` excludes faults."""
        fault: Fault | None = None if is_safe else self.faults.draw(self.settings.fault_rate)
        try:
            with self.faults.process(fault):
                try:
                    task()
                finally:
                    # What a killed process has in flight ends before the next process.
                    event_loop.run(_pass_by())
        except KilledError:
            self._forget()
            return False
        except PyMongoError:
            # The task failed, as Celery logs it; the process goes on.
            return False
        return True

    def _repeat(self, task: Callable[[], object]) -> None:
        """Run a task until it ends well, as a client repeats a request without an answer."""
        for number in range(MAX_TRIES):
            if self._attempt(task, is_safe=number + 1 == MAX_TRIES):
                return
        raise RuntimeError("a request failed without a fault")

    def _post(self, posts: Sequence[Post]) -> None:
        key = f"bulk-{next(self._keys)}"
        caller = Caller(
            client_id=CLIENT,
            idempotency_key=key,
            may_ignore_limits=True,
            may_send_critical=True,
        )
        requests = [_request(post) for post in posts]
        contents = [post.external_id.encode() for post in posts]
        found: list[bulk.BulkAcceptance] = []

        def send() -> None:
            found.append(bulk.accept_bulk(requests, contents=contents, caller=caller, now=self.now))

        self._repeat(send)
        for post, outcome in zip(posts, found[-1].outcomes, strict=True):
            if isinstance(outcome, ObjectId):
                self.ledger.record_post(post, outcome)
                self._plan_actions(post, outcome)
            else:
                self.ledger.counts[f"refused {type(outcome).__name__}"] += 1

    def _report(self, provider: SimulatedProvider, receipts: Sequence[Any]) -> None:
        self._repeat(
            lambda: processor.apply_receipts(receipts, provider=provider.name, now=self.now)
        )
        named = [
            AttemptReference.parse(receipt.event_id.rpartition(".")[0]) for receipt in receipts
        ]
        ids = {reference.notification_id for reference in named if reference is not None}
        planned = [
            notification_id
            for notification_id in ids
            if (post := self.ledger.posts.get(str(notification_id))) and "plan" in post.kind.fields
        ]
        if planned:
            for document in collection("notifications").find({"_id": {"$in": planned}}):
                statuses = {Channel(d["channel"]): S(d["status"]) for d in document["delivery"]}
                if "plan_until" in document and how_reached(
                    Until(document["plan_until"]),
                    statuses=statuses,
                    is_marked_read="marked_read_at" in document,
                    is_acted="acted_at" in document,
                ):
                    self.ledger.record_reach(str(document["_id"]))

    def _plan_actions(self, post: Post, notification_id: ObjectId) -> None:
        rng = self._random
        planned: list[Callable[[], object]] = []
        has_plan, has_digest = "plan" in post.kind.fields, post.kind.digest is not None
        if (has_plan or has_digest) and rng.random() < INBOX_READ_SHARE:
            planned.append(partial(self._read, notification_id))
        if has_digest and rng.random() < END_SHARE:
            planned.append(partial(self._end_digest, post))
        if has_plan:
            if rng.random() < ACK_SHARE + ACT_SHARE:
                planned.append(partial(self._act, notification_id))
            if rng.random() < SNOOZE_SHARE:
                planned.append(partial(self._snooze, post, notification_id))
        if post.is_cancelled_later:
            planned.append(partial(self._cancel, notification_id))
        if rng.random() < CHANGE_SHARE:
            planned.append(partial(self._change_wishes, post.person))
        for action in planned:
            at = post.send_at + timedelta(seconds=rng.random() ** 3 * 86_400)
            heapq.heappush(self._agenda, (at, next(self._numbers), action))

    def _read(self, notification_id: ObjectId) -> None:
        self._repeat(
            lambda: store_inbox.mark_read_by_client(
                client_id=CLIENT, notification_id=notification_id, now=self.now
            )
        )
        self.ledger.record_end(notification_id, now=self.now)
        plan = self.ledger.posts[str(notification_id)].kind.fields.get("plan")
        if plan is not None and plan["until"] != "acted":
            self.ledger.record_reach(str(notification_id))

    def _act(self, notification_id: ObjectId) -> None:
        self._repeat(
            lambda: store_steps.mark_acted(
                client_id=CLIENT, notification_id=notification_id, now=self.now
            )
        )
        self.ledger.record_reach(str(notification_id))

    def _snooze(self, post: Post, notification_id: ObjectId) -> None:
        until = self.now + timedelta(minutes=self._random.randint(5, 600))
        inbox = Inbox(CLIENT, post.person.user_id)

        def snooze() -> None:
            try:
                inbox_actions.snooze(
                    inbox=inbox, notification_id=notification_id, until=until, now=self.now
                )
            except inbox_actions.UnknownNotificationError:
                self.ledger.counts["not in the inbox"] += 1

        self._repeat(snooze)

    def _cancel(self, notification_id: ObjectId) -> None:
        def cancel() -> None:
            try:
                resend_actions.cancel(
                    notification_id=notification_id, channels=None, reason="test", now=self.now
                )
            except InvalidStateError:
                self.ledger.counts["nothing to cancel"] += 1

        self._repeat(cancel)
        self.ledger.record_end(notification_id, now=self.now)

    def _end_digest(self, post: Post) -> None:
        """Let the client send or cancel the recipient's open digest of a type, if there is one."""
        wanted = {"user_id": post.person.user_id, "type": post.kind.slug, "status": "open"}
        found = collection("digests").find_one(wanted)
        if found is None:
            return
        is_cancelled = self._random.random() < 0.3
        self._repeat(
            lambda: store_digests.end_digest(found["_id"], is_cancelled=is_cancelled, now=self.now)
        )
        self.ledger.counts["digests ended early"] += 1

    def _change_wishes(self, person: Person) -> None:
        quiet = self._random.choice((None, ("20:00", "09:00"), ("01:30", "02:30")))
        muted = self._random.choice((set(), {"sim_tip"}, {"sim_flash"}))
        person.quiet, person.muted = quiet, muted
        changes = {
            name: value
            for name, value in _stored(person, self.now).items()
            if name in ("quiet_hours", "preferences", "updated_at")
        }
        collection("recipients").update_one({"_id": person.user_id}, {"$set": changes})

    def _read_between_writes(self, spec: Any) -> None:
        """Let a recipient read a notification right before a write to it."""
        if spec.get("update") != "notifications" or self._random.random() > READ_BETWEEN_WRITES:
            return
        wanted = spec["updates"][0]["q"].get("_id")
        ids = wanted.get("$in", ()) if isinstance(wanted, Mapping) else ()
        planned = [
            notification_id
            for notification_id in ids
            if (post := self.ledger.posts.get(str(notification_id)))
            and post.kind.fields.get("plan", {}).get("until") in ("read", "delivered")
        ]
        if planned:
            notification_id = self._random.choice(planned)
            store_inbox.mark_read_by_client(
                client_id=CLIENT, notification_id=notification_id, now=self.now
            )
            self.ledger.record_reach(str(notification_id))
            self.ledger.counts["read between writes"] += 1

    def _start(
        self,
        start: Callable[..., list[ClaimedDelivery]],
        claims: Sequence[ClaimedDelivery],
        **more: Any,
    ) -> list[ClaimedDelivery]:
        started = start(claims, **more)
        for delivery in started:
            key = (str(delivery.notification_id), delivery.channel)
            self.ledger.started[key] = self.faults.started_at
        return started

    def _settle_not_sent(
        self, settle: Callable[..., int], not_sent: Sequence[NotSent], **more: Any
    ) -> int:
        held = Counter(unsent.code for unsent in not_sent if unsent.status is S.PENDING)
        self.ledger.counts["held by limits"] += held[FailureCode.OVER_LIMIT]
        self.ledger.counts["held by quiet hours"] += held[FailureCode.QUIET_HOURS]
        return settle(not_sent, **more)

    def _providers_for(self, channel: Channel, *, test: bool = False) -> tuple[Any, ...]:
        return (self.providers[channel],) if channel in self.providers else providers_for(channel)

    def _forget(self) -> None:
        """Begin with the memory of a new process."""
        accounts = [provider.account for provider in self.providers.values()]
        self._runtime = SendingRuntime(
            # Of one size, which real time doesn't change
            windows=SendWindows(
                {
                    account: SendWindow(WINDOW_SIZE, clock=lambda: 0.0, _size=WINDOW_SIZE)
                    for account in (*accounts, InAppProvider().account)
                }
            ),
            jitter=self._jitter,
        )
        cache.clear_all()


def _stored(person: Person, now: datetime) -> dict[str, Any]:
    start, end = person.quiet or ("22:00", "07:00")
    number = int(person.user_id.rpartition("-")[2])
    return {
        "_id": person.user_id,
        "email": person.email,
        "phone": f"+35191{number:07}",
        "timezone": person.zone,
        "attributes": {},
        "preferences": {
            **{slug: {"muted": True} for slug in sorted(person.muted)},
            **{slug: {"digest": own} for slug, own in person.own_digest.items()},
        },
        "quiet_hours": {
            "enabled": person.quiet is not None,
            "start": start,
            "end": end,
            "timezone": None,
        },
        "is_active": True,
        "created_at": now,
        "updated_at": now,
    }


def _request(post: Post) -> NotificationRequest:
    content = ContentRequest(subject=post.external_id, body="A simulated message.")
    return NotificationRequest(
        type=post.kind.slug,
        user_id=post.person.user_id,
        external_id=post.external_id,
        # A digest is rendered by its type's template.
        content=content if post.kind.digest is None else ContentRequest(),
        data={"name": post.external_id, "thread": post.thread},
        scheduled_at=post.send_at.isoformat() if post.send_at != post.at else None,
        expires_at=post.expires_at.isoformat() if post.expires_at is not None else None,
        ignore_limits=post.ignores_limits,
    )


async def _pass_by() -> None:
    """Let the tasks that are in the event loop run."""
    for _ in range(10):
        await asyncio.sleep(0)
