"""Plans in requests and in stored types."""

from collections.abc import Collection, Sequence
from datetime import timedelta
from typing import Annotated

import msgspec
from msgspec import Meta

from domain.channels import INBOX, Channel
from domain.plans import MAX_STEPS, Plan, Step, Until, until_of
from domain.time import MAX_TTL

from ..documents.catalog import NotificationTypeDocument, PlanStep, TypePlan
from ..validation import ProblemCollector, enum_of, parse_channels

MAX_AFTER_SECONDS = int(MAX_TTL.total_seconds())
DEFAULT_FALLBACK_AFTER_SECONDS = 600


class StepRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Channels that are used together."""

    channels: Annotated[list[Annotated[str, enum_of(Channel)]], Meta(examples=[["email"]])]
    after: Annotated[
        int,
        Meta(
            ge=0,
            le=MAX_AFTER_SECONDS,
            description="Seconds after the send time; 0 in the first step only, and increasing.",
            examples=[0],
        ),
    ] = 0
    skip_if_late: (
        Annotated[
            int,
            Meta(
                ge=1,
                le=MAX_AFTER_SECONDS,
                description="The step expires if it can't begin within this many seconds, for "
                "example because of quiet hours; null: it is sent however late.",
            ),
        ]
        | None
    ) = None


class PlanRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Channels in steps. A later step is sent only if the recipient hasn't been reached by then."""

    until: Annotated[
        str,
        enum_of(Until),
        Meta(
            description="delivered: a provider confirmed the delivery. read: also an opened push, "
            "and a notification marked as read. acted: an action in the inbox, or `POST …/ack`.",
            examples=[Until.READ.value],
        ),
    ] = Until.DELIVERED.value
    steps: Annotated[
        list[StepRequest],
        Meta(min_length=2, max_length=MAX_STEPS, description="Each channel once."),
    ]


def parse_plan(
    request: PlanRequest,
    problems: ProblemCollector,
    *,
    allowed: Collection[Channel] = tuple(Channel),
    pointer: str = "/plan",
) -> Plan | None:
    """Return the plan, or None after adding each problem, such as a channel that isn't allowed."""
    before = len(problems.problems)
    if request.until not in [member.value for member in Until]:
        expected = f"Expected one of {', '.join(Until)}."
        problems.add(f"{pointer}/until", "unknown_value", expected)
    steps: list[Step] = []
    for index, given in enumerate(request.steps):
        at = f"{pointer}/steps/{index}"
        channels = parse_channels(given.channels, problems=problems, pointer=f"{at}/channels")
        used = {channel for step in steps for channel in step.channels}
        if repeated := [channel for channel in channels if channel in used]:
            reason = f"In an earlier step: {', '.join(repeated)}."
            problems.add(f"{at}/channels", "repeated_channel", reason)
        if other := [channel for channel in channels if channel not in allowed]:
            reason = f"Not one of the type's channels: {', '.join(other)}."
            problems.add(f"{at}/channels", "not_a_channel", reason)
        _check_time(index, request.steps, at, problems)
        is_last = given is request.steps[-1]
        if not is_last and request.until == Until.DELIVERED and channels == [INBOX]:
            reason = "In-app always delivers: add a channel, or wait `until` it is read."
            problems.add(f"{at}/channels", "no_other_channel", reason)
        steps.append(
            Step(
                channels=tuple(channels),
                after=timedelta(seconds=given.after),
                skip_if_late=None
                if given.skip_if_late is None
                else timedelta(seconds=given.skip_if_late),
            )
        )
    if len(problems.problems) > before:
        return None
    return Plan(until=Until(request.until), steps=tuple(steps))


def _check_time(
    index: int, steps: Sequence[StepRequest], at: str, problems: ProblemCollector
) -> None:
    if index == 0 and steps[0].after:
        problems.add(f"{at}/after", "out_of_range", "The first step begins at the send time.")
    if index and steps[index].after <= steps[index - 1].after:
        problems.add(f"{at}/after", "out_of_range", "Must be later than the step before.")


def fallback_plan(channel: Channel, *, after: timedelta) -> Plan:
    """Return the plan of a fallback channel: all other channels, then this one."""
    steps = (Step(channels=()), Step(channels=(channel,), after=after))
    return Plan(until=Until.DELIVERED, steps=steps)


def stored_plan(plan: Plan) -> TypePlan:
    """Return a plan's stored form, which is also that of requests."""
    return {
        "until": plan.until.value,
        "steps": [_stored_step(step) for step in plan.steps],
    }


def _stored_step(step: Step) -> PlanStep:
    stored: PlanStep = {
        "channels": [channel.value for channel in step.channels],
        "after": int(step.after.total_seconds()),
    }
    if step.skip_if_late is not None:
        stored["skip_if_late"] = int(step.skip_if_late.total_seconds())
    return stored


def plan_of(document: NotificationTypeDocument) -> Plan | None:
    """Return the plan of a stored type, which its fallback channel may stand for."""
    if (stored := document.get("plan")) is not None:
        return Plan(
            until=until_of(stored["until"]),
            steps=tuple(_step_of(step) for step in stored["steps"]),
        )
    if (channel := document.get("fallback_channel")) is None:
        return None
    after = timedelta(seconds=document["fallback_after_seconds"])
    return fallback_plan(Channel(channel), after=after)


def _step_of(stored: PlanStep) -> Step:
    late = stored.get("skip_if_late")
    return Step(
        channels=tuple(Channel(name) for name in stored["channels"]),
        after=timedelta(seconds=stored["after"]),
        skip_if_late=None if late is None else timedelta(seconds=late),
    )
