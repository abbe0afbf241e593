"""What was posted, sent, and reached in the simulation, and whether each send was allowed.

The ledger knows only what an outsider sees: requests, bytes at the provider, and responses. It
checks each send at once, and the stored documents at the end.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from bson import ObjectId
from pymongo.collection import Collection

from domain.states import OPEN, AttemptStatus, Channel
from notifications.store import AttemptReference
from notifyproject.db.collections import Document

from .world import LIMITS, LimitRule, Post

MAX_EXAMPLES = 5
"""Violations of one invariant that are described."""
ENDED_UNREACHED = frozenset({"failed", "suppressed", "expired", "cancelled"})
INVARIANTS = {
    "limit": "never more messages than a limit allows in any rolling period",
    "gap": "the least gap of a limit is kept",
    "reached": "no bytes of a later step after a committed reach",
    "quiet": "nothing that isn't critical in quiet hours",
    "early": "nothing before its time or its step's",
    "expired": "nothing after its expiry",
    "twice": "one acceptance of a delivery, except after a recorded unknown outcome",
    "ended": "each delivery, step, and held message ends",
    "lost": "each accepted post is one notification",
    "purged": "MongoDB deletes no notification with an open delivery",
}


@dataclass(frozen=True, slots=True)
class Acceptance:
    """A message that the provider accepted."""

    at: datetime
    attempt: int


@dataclass(slots=True)
class Ledger:
    """The facts of one run, and the violations that they show."""

    sequence: Callable[[], int]
    """The number of commands so far."""
    notifications: Collection[Document]
    attempts: Collection[Document]
    """Handles, since Django refuses to connect in the event loop, where sends are checked."""
    posts: dict[str, Post] = field(default_factory=dict)
    """By notification ID."""
    accepted: dict[tuple[str, str], list[Acceptance]] = field(default_factory=dict)
    """By notification ID, and channel or device."""
    by_person: dict[tuple[str, str], dict[tuple[str, str], list[datetime]]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    """By limit and person: the times of each delivery."""
    reached: dict[str, int] = field(default_factory=dict)
    """By notification ID: the sequence number before which a reach was committed for good."""
    started: dict[tuple[str, Channel], int] = field(default_factory=dict)
    """By delivery: the sequence number of the write that started the last attempt."""
    counts: Counter[str] = field(default_factory=Counter)
    violations: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)

    def record_post(self, post: Post, notification_id: ObjectId) -> None:
        """Record that a post was acknowledged with an ID."""
        known = self.posts.setdefault(str(notification_id), post)
        if known is not post:
            self.violate("lost", f"{notification_id} is {known.external_id} and {post.external_id}")

    def record_reach(self, notification_id: str) -> None:
        """Record that the recipient was reached, and that this is committed."""
        self.reached.setdefault(notification_id, self.sequence())

    def violate(self, invariant: str, text: str) -> None:
        """Record a violation of an invariant."""
        self.violations[invariant] += 1
        if self.violations[invariant] <= MAX_EXAMPLES:
            self.examples.append(f"{invariant}: {text}")

    def record_send(self, reference: AttemptReference, *, now: datetime) -> Post | None:
        """Record that bytes of a message left, and check that they may."""
        notification_id, channel = str(reference.notification_id), reference.channel
        self.counts["sends"] += 1
        post = self.posts.get(notification_id)
        if post is None:
            self.violate("lost", f"{reference} was sent, and no post has its ID")
            return None
        what = f"{reference} ({post.kind.slug}, {post.external_id}) at {now:%m-%d %H:%M:%S}"
        if post.person.is_quiet(now) and not post.kind.is_critical:
            self.violate("quiet", f"{what}, {post.person.quiet} in {post.person.zone}")
        if now < post.send_at:
            self.violate("early", f"{what}, before {post.send_at}")
        if post.expires_at is not None and now >= post.expires_at:
            self.violate("expired", f"{what}, after {post.expires_at}")
        self._check_step(post, notification_id, channel, now, what)
        return post

    def _check_step(
        self, post: Post, notification_id: str, channel: Channel, now: datetime, what: str
    ) -> None:
        steps = post.kind.fields.get("plan", {}).get("steps", ())
        number = next((n for n, one in enumerate(steps) if channel.value in one["channels"]), 0)
        if number == 0:
            return
        self.counts["later steps"] += 1
        reached_at = self.reached.get(notification_id)
        if reached_at is not None and reached_at < self.started[notification_id, channel]:
            self.violate("reached", what)
        if (now - post.send_at).total_seconds() < steps[number]["after"]:
            self._check_opened_early(post, notification_id, number, what)

    def _check_opened_early(self, post: Post, notification_id: str, number: int, what: str) -> None:
        """Check that every channel of the steps before has ended without reaching anybody."""
        document = self.notifications.find_one({"_id": ObjectId(notification_id)})
        plan = post.kind.fields["plan"]
        before = {name for one in plan["steps"][:number] for name in one["channels"]}
        if plan["until"] == "delivered":
            before.discard(Channel.IN_APP.value)
        deliveries = document["delivery"] if document else ()
        open_ones = [
            d["channel"]
            for d in deliveries
            if d["channel"] in before and d["status"] not in ENDED_UNREACHED
        ]
        if open_ones:
            self.violate("early", f"{what}, while {open_ones} may reach them")

    def record_acceptance(self, post: Post, reference: AttemptReference, *, now: datetime) -> None:
        """Record that the provider has a message, and check the limits of its recipient."""
        notification_id, channel = str(reference.notification_id), reference.channel
        key = (notification_id, reference.device_id or channel.value)
        earlier = self.accepted.setdefault(key, [])
        if earlier:
            self.counts["second copies"] += 1
            self._check_copy(reference, earlier[-1])
        earlier.append(Acceptance(now, reference.attempt_number))
        self.counts["accepted"] += 1
        delivery = (notification_id, channel.value)
        for limit in LIMITS:
            if limit.counts(post.kind):
                others = self.by_person[limit.name, post.person.user_id]
                if not post.ignores_limits:
                    self._check_limit(limit, post, others, delivery, now)
                others.setdefault(delivery, []).append(now)

    def _check_copy(self, reference: AttemptReference, earlier: Acceptance) -> None:
        if earlier.attempt == reference.attempt_number:
            self.violate("twice", f"{reference} was accepted twice in one attempt")
            return
        record = self.attempts.find_one(
            {
                "notification_id": reference.notification_id,
                "channel": reference.channel.value,
                "attempt_number": earlier.attempt,
                "status": AttemptStatus.UNKNOWN.value,
            }
        )
        if record is None:
            self.violate("twice", f"{reference}, and attempt {earlier.attempt} is not unknown")

    def _check_limit(
        self,
        limit: LimitRule,
        post: Post,
        others: Mapping[tuple[str, str], list[datetime]],
        delivery: tuple[str, str],
        now: datetime,
    ) -> None:
        maximum = min(limit.maximum, post.person.own_max.get(limit.name, limit.maximum))
        last = [times[-1] for key, times in others.items() if key != delivery]
        recent = [at for at in last if at > now - limit.period]
        who = f"{post.person.user_id}, {limit.name}, {delivery} at {now}"
        if len(recent) >= maximum:
            self.violate("limit", f"{who}: {len(recent) + 1} of {maximum}: {sorted(recent)}")
        if limit.min_gap and recent and now - max(recent) < limit.min_gap:
            self.violate("gap", f"{who}: {now - max(recent)} after the last")

    def check_kept(self, *, now: datetime) -> None:
        """Check that no open notification has reached its purge date.

        MongoDB itself deletes none here, because its clock isn't the virtual one.
        """
        found = self.notifications.find({"purge_at": {"$lte": now}, "due_at": {"$exists": True}})
        for document in found:
            self.violate("purged", f"{document['_id']} at {now}")

    def check_stored(self) -> None:
        """Check that each post is one notification, and that all of its deliveries have ended."""
        open_statuses = {status.value for status in OPEN}
        found: Counter[str] = Counter()
        for document in self.notifications.find(
            {}, {"external_id": 1, "delivery.status": 1, "delivery.failure_code": 1}
        ):
            found[document["external_id"]] += 1
            for delivery in document["delivery"]:
                self.counts[delivery["status"]] += 1
                self.counts[f"code {delivery.get('failure_code')}"] += 1
                if delivery["status"] in open_statuses:
                    self.violate("ended", f"{document['_id']} is {delivery['status']}")
        for post in self.posts.values():
            if found[post.external_id] != 1:
                self.violate(
                    "lost", f"{post.external_id} is stored {found[post.external_id]} times"
                )
        self.counts["notifications"] = sum(found.values())
