"""What was posted, sent, and reached in the simulation, and whether each send was allowed.

The ledger knows only what an outsider sees: requests, bytes at the provider, and responses. It
checks each send at once, and the stored documents at the end.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from bson import ObjectId
from pymongo.collection import Collection

from domain.channels import Channel
from domain.digests import DigestStatus
from domain.states import OPEN, AttemptStatus, DeliveryStatus
from notifications.store.references import AttemptReference
from notifyproject.db.collections import Document

from .world import LIMITS, LimitRule, Post, is_window

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
    "carried": "each member of a digest is in one carrier, and not sent by itself",
    "window": "a digest ends when its window does, and a group has one at a time",
    "dropped": "no carrier has a message that was read, cancelled, or expired before",
}
NAME = re.compile(r"post-\d+")
COUNT = re.compile(r"(\d+) messages")


@dataclass(frozen=True, slots=True)
class Acceptance:
    """A message that the provider accepted."""

    at: datetime
    attempt: int


@dataclass(frozen=True, slots=True)
class Carrier:
    """A message that is sent in the place of several, as its text shows."""

    post: Post
    """Its newest message, in the form of a post of the carrier."""
    listed: tuple[str, ...]
    """External IDs."""
    count: int
    """Of all messages that it carries."""
    sent_at: datetime


@dataclass(slots=True)
class Ledger:
    """The facts of one run, and the violations that they show."""

    sequence: Callable[[], int]
    """The number of commands so far."""
    notifications: Collection[Document]
    attempts: Collection[Document]
    digests: Collection[Document]
    """Handles, since Django refuses to connect in the event loop, where sends are checked."""
    posts: dict[str, Post] = field(default_factory=dict)
    """By notification ID."""
    ids: dict[str, str] = field(default_factory=dict)
    """Notification IDs by external ID."""
    carriers: dict[str, Carrier] = field(default_factory=dict)
    """By notification ID, as they were first sent."""
    carried: dict[tuple[str, Channel], str] = field(default_factory=dict)
    """The carrier by the external ID and channel of a message that it lists."""
    sent_alone: set[tuple[str, Channel]] = field(default_factory=set)
    """External ID and channel of messages of types with digests that were sent by themselves."""
    ended: dict[str, datetime] = field(default_factory=dict)
    """By notification ID: when its recipient had read it, or it was cancelled."""
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
        self.ids[post.external_id] = str(notification_id)

    def record_reach(self, notification_id: str) -> None:
        """Record that the recipient was reached, and that this is committed."""
        self.reached.setdefault(notification_id, self.sequence())

    def record_end(self, notification_id: ObjectId, *, now: datetime) -> None:
        """Record that a notification was read or cancelled."""
        self.ended.setdefault(str(notification_id), now)

    def violate(self, invariant: str, text: str) -> None:
        """Record a violation of an invariant."""
        self.violations[invariant] += 1
        if self.violations[invariant] <= MAX_EXAMPLES:
            self.examples.append(f"{invariant}: {text}")

    def record_send(self, reference: AttemptReference, *, text: str, now: datetime) -> Post | None:
        """Record that bytes of a message left, and check that they may."""
        notification_id, channel = str(reference.notification_id), reference.channel
        self.counts["sends"] += 1
        post = self.posts.get(notification_id)
        if post is None:
            post = self._record_carrier(reference, text, now)
        elif post.kind.digest is not None:
            self.sent_alone.add((post.external_id, channel))
            if (post.external_id, channel) in self.carried:
                self.violate("carried", f"{post.external_id} is sent by itself, too")
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

    def _record_carrier(self, reference: AttemptReference, text: str, now: datetime) -> Post | None:
        """Record a carrier with the posts that its text lists. None if it lists none."""
        notification_id, channel = str(reference.notification_id), reference.channel
        if notification_id in self.carriers:
            return self.carriers[notification_id].post
        listed = tuple(dict.fromkeys(NAME.findall(text)))
        count = COUNT.search(text)
        if count is None or any(member not in self.ids for member in listed):
            return None
        posts = [self.posts[self.ids[member]] for member in listed]
        newest = posts[-1]
        has_key = newest.kind.digest is not None and "key" in newest.kind.digest
        groups = {(post.person.user_id, post.kind.slug, has_key and post.thread) for post in posts}
        if len(groups) != 1:
            self.violate("carried", f"{reference} has posts of {len(groups)} groups: {listed}")
        for member in listed:
            if self.carried.setdefault((member, channel), notification_id) != notification_id:
                self.violate("carried", f"{member} is in {reference} and in another carrier")
            if (member, channel) in self.sent_alone:
                self.violate("carried", f"{member} is in {reference}, and was sent by itself")
        is_whole = len(listed) == int(count[1])
        expiries = [post.expires_at for post in posts]
        known = [expiry for expiry in expiries if expiry is not None]
        carrier = replace(
            newest,
            external_id=f"the carrier of {newest.external_id}",
            send_at=min(post.send_at for post in posts),
            expires_at=max(known) if is_whole and len(known) == len(expiries) else None,
            ignores_limits=all(post.ignores_limits for post in posts),
        )
        self.carriers[notification_id] = Carrier(carrier, listed, int(count[1]), now)
        return carrier

    def _check_step(
        self, post: Post, notification_id: str, channel: Channel, now: datetime, what: str
    ) -> None:
        steps = post.kind.fields.get("plan", {}).get("steps", ())
        number = next((n for n, step in enumerate(steps) if channel.value in step["channels"]), 0)
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
        before = {name for step in plan["steps"][:number] for name in step["channels"]}
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
        members: dict[ObjectId, list[str]] = defaultdict(list)
        merged: dict[str, set[str]] = defaultdict(set)
        for document in self.notifications.find({}, {"content": 0, "data": 0, "error_history": 0}):
            name = document.get("external_id", "")
            found[name] += 1
            for delivery in document["delivery"]:
                self.counts[delivery["status"]] += 1
                self.counts[f"code {delivery.get('failure_code')}"] += 1
                if delivery["status"] in open_statuses:
                    self.violate("ended", f"{document['_id']} is {delivery['status']}")
                if "digest_id" in delivery:
                    members[delivery["digest_id"]].append(name)
                if delivery["status"] == DeliveryStatus.MERGED:
                    merged[str(delivery["carried_by"])].add(name)
        for post in self.posts.values():
            if found[post.external_id] != 1:
                self.violate(
                    "lost", f"{post.external_id} is stored {found[post.external_id]} times"
                )
        self.counts["notifications"] = sum(found.values())
        self._check_digests(members, merged)

    def _check_digests(
        self, members: Mapping[ObjectId, list[str]], merged: Mapping[str, set[str]]
    ) -> None:
        """Check that each digest is closed in its window, and is what its carrier says."""
        last: dict[str, Document] = {}
        carriers = set()
        for digest in self.digests.find().sort([("group", 1), ("opened_at", 1)]):
            digest_id = digest["_id"]
            if digest["status"] != DigestStatus.CLOSED:
                self.violate("ended", f"digest {digest_id} is {digest['status']}")
                continue
            self.counts[f"digests {digest['outcome']}"] += 1
            before = last.get(digest["group"])
            if before is not None and digest["opened_at"] < before["closes_at"]:
                self.violate("window", f"{digest_id} was opened before {before['_id']} ended")
            last[digest["group"]] = digest
            posts = [self.posts[self.ids[name]] for name in members.get(digest_id, ())]
            if posts and not is_window(digest, posts):
                times = f"{digest['opened_at']} to {digest['window_ends_at']}"
                self.violate("window", f"{digest_id} of {digest['type']}: {times}")
            if "carrier_id" in digest:
                carrier_id = str(digest["carrier_id"])
                carriers.add(carrier_id)
                self._check_carrier(digest, carrier_id, merged.get(carrier_id, set()))
        for carrier_id in (*self.carriers, *merged):
            if carrier_id not in carriers:
                self.violate("carried", f"{carrier_id} is the carrier of no digest")

    def _check_carrier(self, digest: Document, carrier_id: str, merged: set[str]) -> None:
        if len(merged) != digest["count"]:
            self.violate("carried", f"{len(merged)} of {digest['count']} name {carrier_id}")
        sent = self.carriers.get(carrier_id)
        if sent is None:
            return
        if sent.count != len(merged) or not merged.issuperset(sent.listed):
            self.violate("carried", f"{carrier_id} says {sent.listed}, {sent.count}: {merged}")
        if sent.sent_at < digest["closes_at"]:
            self.violate("window", f"{carrier_id} was sent before {digest['closes_at']}")
        for name in merged:
            notification_id = self.ids[name]
            ends = (self.ended.get(notification_id), self.posts[notification_id].expires_at)
            if any(at is not None and at < digest["sealed_at"] for at in ends):
                self.violate("dropped", f"{name} is in {carrier_id}, sealed {digest['sealed_at']}")
