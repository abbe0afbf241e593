"""Checks a notification as the API does, by the service's own rules. Pure."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, ParamSpec, TypeVar

from .rules import time
from .rules.addresses import (
    InvalidAddressError,
    normalize_email,
    normalize_phone,
    normalize_room,
)
from .rules.channels import Channel
from .rules.states import Priority
from .rules.validation import (
    InvalidLanguageError,
    InvalidLinkError,
    ProblemCollector,
    check_deep_link,
    check_image_url,
    has_control_characters,
    is_all,
    parse_channels,
    parse_language,
)
from .types import MemoryType, Types

MAX_BODY_BYTES = 100 * 1024
URGENCY = tuple(Priority)
"""From the most urgent."""
_ALIASES = {"medium": Priority.NORMAL}
_UNTIL = ("delivered", "read", "acted")
_EVENT_VARIABLES = ("start_time", "hours_until_start", "minutes_until_start")
_CODES = {
    "reply_to": "invalid_email",
    "locale": "invalid_language",
    "image_url": "invalid_url",
    "deep_link": "invalid_url",
}
"""Codes of fields that hold what others hold, too."""
_VISIBLE = re.compile(r"\S")
P = ParamSpec("P")
R = TypeVar("R")


class NotInMemoryError(RuntimeError):
    """A request needs what the service in memory doesn't have. Use a service, with NOTIFY_URL."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """What happens on one channel at first."""

    channel: Channel
    step: int | None = None
    after: timedelta = timedelta(0)
    failure: tuple[str, str] | None = None
    """A code and a reason: nothing is sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """A valid notification."""

    type: MemoryType
    recipient: Mapping[str, Any]
    priority: Priority
    deliveries: Sequence[Delivery]
    until: str | None
    """The goal of its plan; None without one."""
    send_at: datetime
    scheduled_at: datetime | None
    expires_at: datetime | None
    is_adjusted: bool
    warnings: Sequence[Mapping[str, Any]] = field(default_factory=list)


def check(
    body: Mapping[str, Any],
    *,
    types: Types,
    recipients: Mapping[str, Mapping[str, Any]],
    devices: Mapping[str, str],
    now: datetime,
    problems: ProblemCollector,
) -> Checked | None:
    """Return a notification whose structure is right, or None after adding its problems.

    ``recipients`` are the registered ones by user ID, and ``devices`` the users of registered ones.
    """
    return _Check(
        body=body,
        types=types,
        registered=recipients.get(body.get("user_id") or "", {}),
        devices=devices,
        now=now,
        problems=problems,
    ).run()


class _Check:
    def __init__(
        self,
        *,
        body: Mapping[str, Any],
        types: Types,
        registered: Mapping[str, Any],
        devices: Mapping[str, str],
        now: datetime,
        problems: ProblemCollector,
    ) -> None:
        self._body, self._types, self._now, self._problems = body, types, now, problems
        self._content = body.get("content") or {}
        self._user_id = body.get("user_id")
        self._registered = registered
        self._devices = devices
        self._type = types.find(body["type"])

    def run(self) -> Checked | None:
        problems = self._problems
        if self._type is None:
            problems.add("/type", "unknown_type", "Unknown type.")
        problems.check_identifier(self._user_id, "/user_id")
        for name in ("entity_id", "external_id", "source"):
            problems.check_one_line(self._body.get(name), f"/{name}")
        recipient = self._check_recipient()
        self._check_devices()
        times = self._check_times(recipient)
        priority = self._check_priority()
        deliveries, until = self._check_channels(recipient)
        if any(one.after for one in deliveries):
            self._check_plan_time(times)
        self._check_content()
        warnings = [] if self._type is None else self._check_data(recipient, deliveries)
        if problems.problems or self._type is None:
            return None
        return Checked(
            type=self._type,
            recipient=recipient,
            priority=priority,
            deliveries=deliveries,
            until=until if any(one.after for one in deliveries) else None,
            warnings=warnings,
            **times,
        )

    def _definition(self, name: str, default: Any = None) -> Any:
        return default if self._type is None else self._type.definition.get(name, default)

    def _check_recipient(self) -> dict[str, Any]:
        given = self._body.get("recipient") or {}
        own: dict[str, Any] = {
            "email": self._checked("/recipient/email", given.get("email"), normalize_email),
            "phone": self._checked("/recipient/phone", given.get("phone"), normalize_phone),
            "room": self._checked("/recipient/room", given.get("room"), normalize_room),
            "locale": self._checked("/recipient/locale", given.get("locale"), parse_language),
            "timezone": self._checked(
                "/recipient/timezone", given.get("timezone"), time.parse_zone
            ),
            "name": given.get("name"),
        }
        self._problems.check_one_line(own["name"], "/recipient/name")
        if own["timezone"] is not None:
            own["timezone"] = own["timezone"].key
        known = {**self._registered, "room": self._definition("room")}
        return {
            "device_ids": list(dict.fromkeys(given.get("device_ids") or ())),
            **{name: value or known.get(name) for name, value in own.items()},
        }

    def _check_devices(self) -> None:
        for index, device in enumerate((self._body.get("recipient") or {}).get("device_ids") or ()):
            user = self._devices.get(device)
            if user is None or self._user_id not in (None, user):
                reason = (
                    "Unknown device." if self._user_id is None else "Not a device of this user."
                )
                self._problems.add(f"/recipient/device_ids/{index}", "unknown_device", reason)

    def _check_times(self, recipient: Mapping[str, Any]) -> dict[str, Any]:
        body, problems = self._body, self._problems
        if body.get("event_at") is not None and self._type is not None:
            body = self._reminder()
        at, local = body.get("scheduled_at"), body.get("scheduled_local")
        requested, is_adjusted, pointer = None, False, "/scheduled_at"
        if at is not None and local is not None:
            reason = "`scheduled_at` and `scheduled_local` are mutually exclusive."
            problems.add("/scheduled_local", "conflict", reason)
            pointer = "/scheduled_local/at"
        elif at is not None:
            requested = self._checked(pointer, at, time.parse_timestamp)
        elif local is not None:
            pointer = "/scheduled_local/at"
            requested, is_adjusted = self._local_time(local, recipient)
        found = self._called(pointer, time.resolve_send_at, requested=requested, now=self._now)
        send_at = found or self._now
        return {
            "send_at": send_at,
            "scheduled_at": send_at if requested is not None else None,
            "expires_at": self._expiry(body, send_at),
            "is_adjusted": is_adjusted,
        }

    def _local_time(
        self, local: Mapping[str, Any], recipient: Mapping[str, Any]
    ) -> tuple[datetime | None, bool]:
        at = self._checked("/scheduled_local/at", local["at"], time.parse_local)
        name, pointer = local.get("timezone") or recipient["timezone"], "/scheduled_local/timezone"
        if at is not None and name is None:
            self._problems.add(pointer, "required", "Required: the recipient has no time zone.")
        zone = self._checked(pointer, name, time.parse_zone) if at is not None else None
        if at is None or zone is None:
            return None, False
        resolved = self._called("/scheduled_local/at", time.resolve_local, at, zone)
        return (resolved.at, resolved.is_adjusted) if resolved else (None, False)

    def _expiry(self, body: Mapping[str, Any], send_at: datetime) -> datetime | None:
        ttl, at = body.get("ttl"), body.get("expires_at")
        if ttl is not None and at is not None:
            reason = "`ttl` and `expires_at` are mutually exclusive."
            self._problems.add("/ttl", "conflict", reason)
            return None
        expires_at = self._checked("/expires_at", at, time.parse_timestamp)
        if at is not None and expires_at is None:
            return None
        if ttl is None and at is None:
            ttl = self._definition("ttl_seconds")
        return self._called(
            "/ttl" if body.get("ttl") is not None else "/expires_at",
            time.resolve_expiry,
            send_at=send_at,
            ttl_seconds=ttl,
            expires_at=expires_at,
        )

    def _reminder(self) -> Mapping[str, Any]:
        body, pointer = self._body, "/event_at"
        lead = self._definition("notify_before_seconds")
        if body.get("scheduled_at") is not None or body.get("scheduled_local") is not None:
            reason = "`event_at` and `scheduled_at` are mutually exclusive."
            self._problems.add(pointer, "conflict", reason)
            return body
        if lead is None and self._type is not None and not self._type.definition:
            raise NotInMemoryError("A reminder needs a folder of types: only its type has a time.")
        if lead is None:
            self._problems.add(pointer, "not_a_reminder", "Not a reminder type.")
            return body
        event_at = self._checked(pointer, body["event_at"], time.parse_timestamp)
        if event_at is None:
            return body
        send_at = self._called(
            pointer,
            time.resolve_reminder,
            event_at=event_at,
            lead_time=timedelta(seconds=lead),
            now=self._now,
        )
        if send_at is None:
            return body
        has_expiry = body.get("ttl") is not None or body.get("expires_at") is not None
        ttl = self._definition("ttl_seconds")
        until = event_at if ttl is None else min(event_at, send_at + timedelta(seconds=ttl))
        own = {} if has_expiry else {"expires_at": rfc3339(until)}
        return {**body, "scheduled_at": rfc3339(send_at), **own}

    def _check_priority(self) -> Priority:
        given = self._body.get("priority")
        if given is None:
            return Priority(self._definition("priority", "normal"))
        if given not in (*_ALIASES, *Priority):
            expected = f"Expected one of {', '.join(Priority)}."
            self._problems.add("/priority", "unknown_priority", expected)
            return Priority.NORMAL
        priority = _ALIASES.get(given) or Priority(given)
        is_marketing = self._definition("category") == "marketing"
        most = self._definition("max_priority") or ("high" if is_marketing else "critical")
        if URGENCY.index(priority) < URGENCY.index(Priority(most)):
            self._problems.add("/priority", "priority_too_high", f"At most {most} for this type.")
        return priority

    def _check_channels(
        self, recipient: Mapping[str, Any]
    ) -> tuple[Sequence[Delivery], str | None]:
        named, plan = self._body.get("channels"), self._body.get("plan")
        if plan is not None:
            if named is not None:
                self._problems.add("/plan", "conflict", "Use either `channels` or `plan`.")
            self._check_plan(plan)
            channels = [Channel(one) for step in plan["steps"] for one in _known(step["channels"])]
        elif named is None:
            channels = self._channels_of_type(recipient)
            plan = self._plan_of_type(channels)
        elif is_all(named):
            channels = self._every_channel(recipient)
        else:
            channels = parse_channels(named, problems=self._problems, takes_all=True)
            return [self._delivery(one, recipient, is_named=True) for one in channels], None
        deliveries = [self._delivery(one, recipient) for one in channels]
        if self._type is None:
            return deliveries, None
        if deliveries and all(one.failure for one in deliveries) and not self._problems.problems:
            fields = dict.fromkeys(f for one in channels for f in one.spec.reach.fields)
            names = " or ".join(f"`{name}`" for name in fields)
            reason = f"No channel can reach this recipient. Send {names}."
            self._problems.add("/recipient", "no_address", reason)
        if plan is None:
            return deliveries, None
        return _in_steps(deliveries, plan), plan.get("until", "delivered")

    def _channels_of_type(self, recipient: Mapping[str, Any]) -> list[Channel]:
        if self._type is None:
            return []
        if not self._type.definition:
            # Without a definition, what the recipient has decides.
            every = self._every_channel(recipient)
            return [one for one in every if not self._obstacle(one, recipient)] or every
        names = self._type.definition.get("channels", [])
        return self._every_channel(recipient) if is_all(names) else [*map(Channel, names)]

    def _every_channel(self, recipient: Mapping[str, Any]) -> list[Channel]:
        return [one for one in Channel if one.is_personal or recipient["room"]]

    def _plan_of_type(self, channels: Sequence[Channel]) -> Mapping[str, Any] | None:
        if plan := self._definition("plan"):
            return dict(plan)
        if (last := self._definition("fallback_channel")) is None:
            return None
        after = self._definition("fallback_after_seconds", 600)
        others = [one for one in channels if one != last]
        return {"steps": [{"channels": others}, {"channels": [last], "after": after}]}

    def _delivery(
        self, channel: Channel, recipient: Mapping[str, Any], *, is_named: bool = False
    ) -> Delivery:
        if not self._obstacle(channel, recipient):
            return Delivery(channel=channel)
        reach = channel.spec.reach
        is_known = self._type is not None
        if (
            is_named
            and is_known
            and all(one.pointer != reach.pointer for one in self._problems.problems)
        ):
            self._problems.add(reach.pointer, "no_address", reach.refusal)
        return Delivery(channel=channel, failure=("no_address", f"Skipped: {reach.refusal}"))

    def _obstacle(self, channel: Channel, recipient: Mapping[str, Any]) -> bool:
        kind = channel.spec.address
        return not channel.can_reach(
            address=None if kind is None else recipient[kind.field],
            user_id=self._user_id,
            has_device=self._user_id is not None or bool(recipient["device_ids"]),
        )

    def _check_plan(self, plan: Mapping[str, Any]) -> None:
        problems, steps = self._problems, plan["steps"]
        until = plan.get("until", "delivered")
        if until not in _UNTIL:
            problems.add("/plan/until", "unknown_value", f"Expected one of {', '.join(_UNTIL)}.")
        used: set[Channel] = set()
        for index, step in enumerate(steps):
            at = f"/plan/steps/{index}"
            channels = parse_channels(step["channels"], problems=problems, pointer=f"{at}/channels")
            if repeated := [one for one in channels if one in used]:
                reason = f"In an earlier step: {', '.join(repeated)}."
                problems.add(f"{at}/channels", "repeated_channel", reason)
            used.update(channels)
            after, before = step.get("after", 0), steps[index - 1].get("after", 0)
            if index == 0 and after:
                reason = "The first step begins at the send time."
                problems.add(f"{at}/after", "out_of_range", reason)
            if index and after <= before:
                problems.add(f"{at}/after", "out_of_range", "Must be later than the step before.")
            is_inbox_alone = len(channels) == 1 and channels[0].is_inbox
            if index < len(steps) - 1 and until == "delivered" and is_inbox_alone:
                reason = "In-app always delivers: add a channel, or wait `until` it is read."
                problems.add(f"{at}/channels", "no_other_channel", reason)

    def _check_plan_time(self, times: Mapping[str, Any]) -> None:
        plan, expires_at = self._body.get("plan"), times["expires_at"]
        if plan is None or expires_at is None or self._problems.problems:
            return
        lifetime = (expires_at - times["send_at"]).total_seconds()
        for index, step in enumerate(plan["steps"]):
            if step.get("after", 0) >= lifetime:
                reason = "The notification has expired by then."
                self._problems.add(f"/plan/steps/{index}/after", "after_expiry", reason)

    def _check_content(self) -> None:
        content, problems = self._content, self._problems
        if (body := content.get("body")) is not None:
            problems.check_one_line(content.get("template_id"), "/content/template_id")
            if not _VISIBLE.search(body):
                problems.add("/content/body", "blank", "Must not be blank.")
            elif len(body.encode(errors="surrogatepass")) > MAX_BODY_BYTES:
                problems.add("/content/body", "too_long", "The body exceeds 100 KB.")
        if (subject := content.get("subject")) is not None:
            if has_control_characters(subject):
                problems.check_one_line(subject, "/content/subject")
            elif not _VISIBLE.search(subject):
                problems.add("/content/subject", "blank", "Must not be blank.")
        self._checked("/content/image_url", content.get("image_url"), check_image_url)
        self._checked("/content/deep_link", content.get("deep_link"), check_deep_link)
        self._checked("/content/reply_to", content.get("reply_to"), normalize_email)

    def _check_data(
        self, recipient: Mapping[str, Any], deliveries: Sequence[Delivery]
    ) -> list[Mapping[str, Any]]:
        """Add the problems of the data of a template. Return those that only warn."""
        if self._type is None or self._content.get("body") is not None:
            return []
        name = self._content.get("template_id")
        template = self._types.find(name) if name else self._type
        if template is None:
            self._problems.add("/content/template_id", "unknown_template", "Unknown template.")
            return []
        if template.parts is not None and not template.parts:
            reason = "This type has no template; provide `content`."
            self._problems.add("/content/body", "required", reason)
            return []
        data, problems = self._body.get("data") or {}, self._problems
        supplied = self._supplied()
        person = {"timezone": recipient["timezone"] or "UTC", "locale": recipient["locale"] or "en"}
        if recipient["name"]:
            person["name"] = recipient["name"]
        for problem in template.find_missing(
            {**data, "recipient": person},
            [one.channel for one in deliveries],
            supplied=supplied,
            locale=recipient["locale"],
        ):
            if all(one.pointer != problem.pointer for one in problems.problems):
                problems.add(problem.pointer, problem.code, problem.detail)
        found = [
            one
            for one in template.find_mismatches(data)
            if one.pointer not in {f"/data/{name}" for name in supplied}
        ]
        if not template.is_checked:
            return [{"pointer": p.pointer, "code": p.code, "detail": p.detail} for p in found]
        reported = {one.pointer for one in problems.problems}
        for problem in found:
            if problem.pointer not in reported:
                problems.add(problem.pointer, problem.code, problem.detail)
        return []

    def _supplied(self) -> list[str]:
        """Return the variables that the service adds, and refuse those that a request may not."""
        names, reserved = [], []
        if self._definition("digest"):
            reserved.append("digest")
        if self._body.get("brand") or self._definition("brand"):
            reserved.append("brand")
        for name in reserved:
            if name in (self._body.get("data") or {}):
                self._problems.add(f"/data/{name}", "reserved", "Reserved.")
        if self._body.get("event_at") is not None:
            names += _EVENT_VARIABLES
        return names + reserved

    def _checked(self, pointer: str, value: Any, check: Callable[[Any], R]) -> R | None:
        return None if value is None else self._called(pointer, check, value)

    def _called(
        self, pointer: str, check: Callable[P, R], *args: P.args, **options: P.kwargs
    ) -> R | None:
        """Return what a rule of the service does; None after adding why it refuses."""
        try:
            return check(*args, **options)
        except time.InvalidTimeError as error:
            self._problems.add(pointer, error.code, str(error))
        except (InvalidAddressError, InvalidLanguageError, InvalidLinkError) as error:
            name = pointer.rpartition("/")[2]
            self._problems.add(pointer, _CODES.get(name, f"invalid_{name}"), str(error))
        return None


def _known(names: Sequence[str]) -> list[Channel]:
    return parse_channels(names, problems=ProblemCollector())


def _in_steps(deliveries: Sequence[Delivery], plan: Mapping[str, Any]) -> list[Delivery]:
    """Return deliveries with their steps: what nothing before it can reach is sent at once."""
    numbers = {
        one: number
        for number, step in enumerate(plan["steps"], 1)
        for one in _known(step["channels"])
    }
    until = plan.get("until", "delivered")

    def may_reach(one: Delivery) -> bool:
        is_proof = one.channel.is_personal and (until != "delivered" or not one.channel.is_inbox)
        return is_proof and one.failure is None

    def step_of(one: Delivery) -> int:
        return numbers.get(one.channel, 1)

    every = [step_of(one) for one in deliveries]
    first = min(
        (step_of(one) for one in deliveries if may_reach(one)), default=max(every, default=1)
    )
    if not any(step_of(one) > first for one in deliveries if one.failure is None):
        return list(deliveries)
    return [
        Delivery(
            channel=one.channel,
            failure=one.failure,
            step=step_of(one),
            after=timedelta(seconds=plan["steps"][step_of(one) - 1].get("after", 0))
            if step_of(one) > first
            else timedelta(0),
        )
        for one in deliveries
    ]


def rfc3339(instant: datetime) -> str:
    """Return an instant as the API writes it."""
    return instant.isoformat(timespec="milliseconds").replace("+00:00", "Z")
