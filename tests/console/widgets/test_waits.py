"""Texts of waits."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

from console.texts.wait_reasons import WAIT_LABELS
from console.widgets.waits import wait_text
from domain.channels import Channel
from domain.wait_reasons import WaitReason, wait_reason
from tests.support.tables import each_case

NOW = datetime(2026, 11, 21, 15, 3, tzinfo=UTC)
CLOCK = re.compile(r"\d\d:\d\d")
PENDING = {"channel": "email", "status": "pending", "attempt_count": 0}
WAITING = {
    WaitReason.SCHEDULE: {},
    WaitReason.RETRY: {"attempt_count": 1, "failure_code": "timeout"},
    WaitReason.QUIET_HOURS: {"failure_code": "quiet_hours"},
    WaitReason.RATE_LIMITED: {"held_reason": "rate_limited"},
    WaitReason.PROVIDER_PAUSED: {"held_reason": "provider_paused"},
    WaitReason.CIRCUIT_OPEN: {"held_reason": "circuit_open"},
    WaitReason.PROVIDER_UNAVAILABLE: {"failure_code": "channel_unavailable"},
    WaitReason.DECRYPTION_FAILED: {"failure_code": "decryption_failed"},
    WaitReason.DAILY_UNITS: {"failure_code": "over_daily_units"},
    WaitReason.STEP: {"step": 2},
}

TIMED = {
    WaitReason.SCHEDULE,
    WaitReason.RETRY,
    WaitReason.QUIET_HOURS,
    WaitReason.RATE_LIMITED,
    WaitReason.DAILY_UNITS,
    WaitReason.STEP,
    WaitReason.PROVIDER_PAUSED,
    WaitReason.CIRCUIT_OPEN,
    WaitReason.PROVIDER_UNAVAILABLE,
}
"""The others end when their cause does, which no clock tells. A provider's has a next check."""


def text(delivery: dict[str, Any]) -> str:
    reason, until = wait_reason(delivery, now=NOW), delivery["next_attempt_at"]
    return str(wait_text(reason, Channel.EMAIL, until, pauses={}, now=NOW))


@each_case("reason", WAITING)
@each_case("late_by", [timedelta(0), timedelta(minutes=9), timedelta(days=3)])
def test_text_never_promises_a_time_that_has_passed(reason: WaitReason, late_by: timedelta) -> None:
    stated = text(PENDING | WAITING[reason] | {"next_attempt_at": NOW - late_by})
    assert stated == WAIT_LABELS[WaitReason.WORKER][0]
    assert not CLOCK.search(str(wait_text(reason, Channel.EMAIL, NOW, pauses={}, now=NOW)))


@each_case("reason", WAITING)
def test_text_states_why_a_delivery_waits(reason: WaitReason) -> None:
    soon = PENDING | WAITING[reason] | {"next_attempt_at": NOW + timedelta(minutes=9)}
    assert wait_reason(soon, now=NOW) is reason
    assert bool(CLOCK.search(text(soon))) is (reason in TIMED)


@each_case(
    "goal, expected",
    [
        (None, "Held: later step at 15:12"),
        ("delivered", "Held: later step at 15:12 unless delivered by then"),
        ("read", "Held: later step at 15:12 unless read by then"),
        ("acted", "Held: later step at 15:12 unless acted on by then"),
    ],
)
def test_later_step_names_the_goal_of_its_plan(goal: str | None, expected: str) -> None:
    until = NOW + timedelta(minutes=9)
    shown = wait_text(WaitReason.STEP, Channel.EMAIL, until, goal=goal, pauses={}, now=NOW)
    assert re.sub(r"<[^>]*>", "", str(shown)) == expected
