"""The simulated world: people in 40 time zones, types, limits, and a client's posts. Seeded."""

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, time, timedelta
from itertools import accumulate
from typing import Any
from zoneinfo import ZoneInfo

END = datetime(2031, 4, 8, tzinfo=UTC)
"""Both clock changes lie in the 31 days, and in the 10 days, before it: North America's on March 9,
Europe's on March 30, and Australia's and Chile's back on April 6. MongoDB removes documents whose
time has passed, so that the year is in the future."""
BUSY_EVERY, BUSY_FACTOR = 11, 20
"""One person in this many gets this many times as much as the others. With 11, there are some in
each of the 40 time zones."""
CAMPAIGN_SHARE = 0.02
"""Share of the people who get a daily campaign."""
MAX_POSTS_AT_ONCE = 1_000
ZONES = (
    # Changes of the clock within the simulated time, in both directions
    "Europe/Lisbon",
    "Europe/London",
    "Europe/Berlin",
    "Europe/Athens",
    "Europe/Kyiv",
    "Europe/Chisinau",
    "Atlantic/Azores",
    "America/New_York",
    "America/Chicago",
    "America/Denver",
    "America/Los_Angeles",
    "America/Anchorage",
    "America/St_Johns",
    "America/Halifax",
    "America/Havana",
    "America/Nuuk",
    "Asia/Jerusalem",
    "Asia/Beirut",
    "Australia/Sydney",
    "Australia/Adelaide",
    "Australia/Lord_Howe",
    "Pacific/Auckland",
    "Pacific/Chatham",
    "America/Santiago",
    "Pacific/Easter",
    # None, also with offsets of a part of an hour
    "UTC",
    "Asia/Tokyo",
    "Asia/Shanghai",
    "Asia/Kolkata",
    "Asia/Kathmandu",
    "Asia/Tehran",
    "Asia/Dubai",
    "Africa/Lagos",
    "Africa/Johannesburg",
    "America/Sao_Paulo",
    "America/Caracas",
    "Australia/Eucla",
    "Pacific/Marquesas",
    "Pacific/Kiritimati",
    "Pacific/Pago_Pago",
)
QUIET_HOURS = (("22:00", "07:00"), ("21:30", "08:15"), ("01:30", "02:30"), ("12:00", "14:00"))
"""The third begins or ends in hours that a change of the clock skips or repeats."""
OWN_DIGESTS: tuple[Mapping[str, Any], ...] = (
    {},
    {"sim_comment": {"every": "day", "at": "08:00"}},
    {"sim_news": "off", "sim_like": "off"},
)
SMALL_GAP, LARGE_GAP = timedelta(minutes=20), timedelta(hours=4)


@dataclass(slots=True, kw_only=True)
class Person:
    """A recipient, with what the simulation knows of their wishes."""

    user_id: str
    zone: str
    quiet: tuple[str, str] | None
    devices: int
    muted: set[str] = field(default_factory=set)
    own_max: Mapping[str, int] = field(default_factory=dict)
    """By limit: a maximum of their own."""
    own_digest: Mapping[str, Any] = field(default_factory=dict)
    """By type: a schedule of their own, or "off"."""

    @property
    def email(self) -> str:
        """The address, which is on the person alone."""
        return f"{self.user_id}@example.com"

    def is_quiet(self, now: datetime) -> bool:
        """Return whether the clock on their wall is in their quiet hours."""
        if self.quiet is None:
            return False
        clock = now.astimezone(ZoneInfo(self.zone)).time()
        start, end = map(time.fromisoformat, self.quiet)
        return start <= clock < end if start < end else clock >= start or clock < end


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A notification type, and how often it is used."""

    slug: str
    weight: float
    fields: Mapping[str, Any]
    """Of the request that defines the type."""

    @property
    def is_critical(self) -> bool:
        """Whether it is sent in quiet hours and beyond limits."""
        return self.fields.get("priority") == "critical"

    @property
    def digest(self) -> Mapping[str, Any] | None:
        """The digest of the type, if it has one."""
        return self.fields.get("digest")


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitRule:
    """A limit, in the form that the invariants use."""

    name: str
    types: frozenset[str]
    maximum: int
    period: timedelta
    min_gap: timedelta = timedelta(0)
    overflow: str = "later"

    def counts(self, kind: Kind) -> bool:
        """Return whether the limit counts a type."""
        return not kind.is_critical and (not self.types or kind.slug in self.types)

    @property
    def fields(self) -> dict[str, Any]:
        """Of the request that defines the limit."""
        return {
            "types": sorted(self.types),
            "max": self.maximum,
            "period_seconds": int(self.period.total_seconds()),
            "min_gap_seconds": int(self.min_gap.total_seconds()),
            "overflow": self.overflow,
        }


def _step(*channels: str, after: int = 0, **fields: int) -> dict[str, Any]:
    return {"channels": list(channels), "after": after, **fields}


KINDS = (
    Kind(
        slug="sim_code",
        weight=1,
        fields={"category": "transactional", "priority": "critical", "channels": ["email"]},
    ),
    Kind(
        slug="sim_order",
        weight=4,
        fields={
            "category": "transactional",
            "channels": ["email"],
            "on_unknown": "retry",
            "max_retries": 4,
        },
    ),
    Kind(
        slug="sim_reminder",
        weight=4,
        fields={
            "category": "alert",
            "priority": "high",
            "channels": ["in_app", "push", "email", "whatsapp"],
            "plan": {
                "until": "read",
                "steps": [
                    _step("in_app", "push"),
                    _step("email", after=900),
                    _step("whatsapp", after=14_400, skip_if_late=7_200),
                ],
            },
        },
    ),
    Kind(
        slug="sim_delivered",
        weight=3,
        fields={
            "category": "transactional",
            "channels": ["push", "email", "whatsapp"],
            "on_unknown": "fail",
            "plan": {
                "until": "delivered",
                "steps": [
                    _step("push"),
                    _step("email", after=1_800),
                    _step("whatsapp", after=7_200),
                ],
            },
        },
    ),
    Kind(
        slug="sim_task",
        weight=2,
        fields={
            "category": "alert",
            "channels": ["in_app", "email", "push"],
            "plan": {
                "until": "acted",
                "steps": [
                    _step("in_app"),
                    _step("email", after=3_600),
                    _step("push", after=86_400),
                ],
            },
        },
    ),
    Kind(
        slug="sim_promo",
        weight=4,
        fields={
            "category": "marketing",
            "priority": "low",
            "channels": ["email", "push"],
            "on_unknown": "fail",
        },
    ),
    Kind(
        slug="sim_tip",
        weight=3,
        fields={
            "category": "marketing",
            "channels": ["push", "whatsapp"],
            "ttl_seconds": 43_200,
            "on_unknown": "retry",
        },
    ),
    Kind(
        slug="sim_flash",
        weight=2,
        fields={"category": "alert", "channels": ["push"], "ttl_seconds": 5_400},
    ),
    Kind(
        slug="sim_comment",
        weight=4,
        fields={
            "category": "transactional",
            "channels": ["in_app", "email"],
            "digest": {
                "channels": ["email"],
                "key": "thread",
                "window": {"minutes": 120},
                "leading": True,
                "max_items": 3,
            },
        },
    ),
    Kind(
        slug="sim_like",
        weight=3,
        fields={
            "category": "alert",
            "channels": ["push"],
            "on_unknown": "retry",
            "digest": {
                "channels": ["push"],
                "window": {"minutes": 45},
                "sliding": True,
                "min_items": 3,
            },
        },
    ),
    Kind(
        slug="sim_news",
        weight=4,
        fields={
            "category": "marketing",
            "priority": "low",
            "channels": ["email"],
            "on_unknown": "fail",
            "ttl_seconds": 172_800,
            "digest": {
                "channels": ["email"],
                "window": {"every": "day", "at": "02:30", "zone": "recipient"},
            },
        },
    ),
    Kind(
        slug="sim_mention",
        weight=4,
        fields={
            "category": "alert",
            "channels": ["email"],
            "digest": {
                "channels": ["email"],
                "window": {"minutes": 180},
                "only_over_limit": True,
            },
        },
    ),
)
KIND_BY_SLUG = {kind.slug: kind for kind in KINDS}
LIMITS = (
    LimitRule(
        name="sim_weekly",
        types=frozenset({"sim_promo", "sim_tip"}),
        maximum=3,
        period=timedelta(days=7),
        min_gap=LARGE_GAP,
    ),
    LimitRule(name="sim_daily", types=frozenset(), maximum=6, period=timedelta(days=1)),
    LimitRule(
        name="sim_flashes",
        types=frozenset({"sim_flash", "sim_order"}),
        maximum=2,
        period=timedelta(hours=6),
        min_gap=SMALL_GAP,
        overflow="drop",
    ),
    LimitRule(
        name="sim_mentions",
        types=frozenset({"sim_mention"}),
        maximum=2,
        period=timedelta(hours=12),
        overflow="digest",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """A request of the client for one notification."""

    external_id: str
    person: Person
    kind: Kind
    at: datetime
    send_at: datetime
    expires_at: datetime | None
    ignores_limits: bool
    is_cancelled_later: bool
    thread: str = ""
    """The value of the variable that some digests have as a key."""

    def moved_to(self, at: datetime) -> "Post":
        """Return the post as it is made at another time, with its delay and time to live."""
        later = at - self.at
        expires_at = None if self.expires_at is None else self.expires_at + later
        return replace(self, at=at, send_at=self.send_at + later, expires_at=expires_at)


def is_window(digest: Mapping[str, Any], posts: Sequence[Post]) -> bool:
    """Return whether a stored digest has the window that its members' type and recipient want.

    The client may have ended it early, which its ``window_ends_at`` doesn't show.
    """
    person, rule = posts[0].person, posts[0].kind.digest
    opened_at, ends_at = digest["opened_at"], digest["window_ends_at"]
    own = person.own_digest.get(posts[0].kind.slug)
    if rule is None or own == "off":
        return False
    schedule = own or rule["window"]
    if "minutes" in schedule:
        length = timedelta(minutes=schedule["minutes"])
        most = length * 4 if rule.get("sliding") else length
        return length <= ends_at - opened_at <= most
    return opened_at < ends_at <= opened_at + timedelta(hours=25) and _is_local_time(
        ends_at, time.fromisoformat(schedule["at"]), ZoneInfo(person.zone)
    )


def _is_local_time(at: datetime, wanted: time, zone: ZoneInfo) -> bool:
    """Return whether a clock shows a time first at ``at``, or skips it there."""
    local, before = at.astimezone(zone), (at - timedelta(minutes=1)).astimezone(zone)
    is_skipped = before.time() < wanted < local.time() and before.utcoffset() != local.utcoffset()
    return is_skipped or (local.time() == wanted and local.fold == 0)


class World:
    """The people and posts of one seed. The posts come in the order of their times."""

    def __init__(self, *, seed: int, people: int, days: int, events_per_week: float) -> None:
        self._random = random.Random(f"world {seed}")
        self.start, self.end = END - timedelta(days=days), END
        self.people = [self._person(number) for number in range(people)]
        # Limits hold back what is for busy people, and their digests have many members.
        shares = (1 if number % BUSY_EVERY else BUSY_FACTOR for number in range(people))
        self._shares = list(accumulate(shares))
        self._kind_shares = list(accumulate(kind.weight for kind in KINDS))
        self._number = 0
        self._events_per_second = people * events_per_week / 7 / 86_400

    def _person(self, number: int) -> Person:
        rng = self._random
        return Person(
            user_id=f"person-{number}",
            zone=ZONES[number % len(ZONES)],
            quiet=rng.choice(QUIET_HOURS) if rng.random() < 0.7 else None,
            devices=rng.choice((0, 1, 1, 1, 2)),
            muted={"sim_promo"} if rng.random() < 0.05 else set(),
            own_max={"sim_weekly": 1, "sim_daily": 3} if rng.random() < 0.05 else {},
            own_digest=rng.choices(OWN_DIGESTS, weights=(90, 7, 3))[0],
        )

    def posts(self) -> Iterator[Sequence[Post]]:
        """Yield groups of posts that come together, such as one, or a campaign."""
        rng = self._random
        at = self.start
        campaign_at = self.start + timedelta(hours=rng.uniform(1, 20))
        while True:
            at += timedelta(milliseconds=math.ceil(1000 * rng.expovariate(self._events_per_second)))
            if at >= self.end:
                return
            while campaign_at <= at:
                count = math.ceil(len(self.people) * CAMPAIGN_SHARE)
                chosen = rng.sample(self.people, min(count, MAX_POSTS_AT_ONCE))
                yield [
                    self._post(person, KIND_BY_SLUG["sim_promo"], campaign_at) for person in chosen
                ]
                campaign_at += timedelta(days=1, minutes=rng.randint(-120, 120))
            (person,) = rng.choices(self.people, cum_weights=self._shares)
            # Two or three of one instant, so that they race for the same limit
            count = rng.choices((1, 2, 3), weights=(90, 7, 3))[0]
            kinds = rng.choices(KINDS, cum_weights=self._kind_shares, k=count)
            if kinds[0].digest is not None and rng.random() < 0.4:
                # Several of one instant, which one digest must take
                kinds = [kinds[0]] * rng.randint(2, 6)
            yield [self._post(person, kind, at) for kind in kinds]

    def _post(self, person: Person, kind: Kind, at: datetime) -> Post:
        rng, self._number = self._random, self._number + 1
        delay = timedelta(minutes=rng.randint(30, 3 * 1_440) if rng.random() < 0.1 else 0)
        seconds = kind.fields.get("ttl_seconds")
        if seconds is None and "plan" not in kind.fields and rng.random() < 0.1:
            seconds = rng.randint(600, 43_200)
        expires_at = None if seconds is None else at + delay + timedelta(seconds=seconds)
        return Post(
            external_id=f"post-{self._number}",
            person=person,
            kind=kind,
            at=at,
            send_at=at + delay,
            expires_at=expires_at,
            ignores_limits=not kind.is_critical and rng.random() < 0.02,
            is_cancelled_later=rng.random() < 0.01,
            thread=rng.choice(("roof", "garden")),
        )
