"""Plans in requests and types."""

from typing import Any

import msgspec

from domain.channels import Channel
from domain.plans import Until
from notifications.catalog.plans import PlanRequest, parse_plan, plan_of, stored_plan
from notifications.validation import ProblemCollector
from tests.support.tables import each_case

GOOD = {
    "until": "read",
    "steps": [
        {"channels": ["in-app", "push"]},
        {"after": 900, "channels": ["email"]},
        {"after": 3600, "channels": ["whatsapp"], "skip_if_late": 1800},
    ],
}


def problems_of(**changes: Any) -> dict[str, str]:
    problems = ProblemCollector()
    plan = parse_plan(msgspec.convert(GOOD | changes, PlanRequest), problems)
    assert (plan is None) is bool(problems.problems)
    return {problem.pointer: problem.code for problem in problems.problems}


def test_plan_is_stored_as_it_is_requested() -> None:
    plan = parse_plan(msgspec.convert(GOOD, PlanRequest), ProblemCollector())
    assert plan is not None
    assert plan.until is Until.READ
    assert plan.steps[0].channels == (Channel.IN_APP, Channel.PUSH)
    assert plan_of({"plan": stored_plan(plan)}) == plan


def test_fallback_channel_is_a_plan_of_two_steps() -> None:
    plan = plan_of({"fallback_channel": "push", "fallback_after_seconds": 90})
    assert plan is not None
    assert (plan.until, plan.step_of(Channel.PUSH), plan.step_of(Channel.EMAIL)) == (
        Until.DELIVERED,
        2,
        1,
    )
    assert plan_of({"fallback_channel": None, "plan": None}) is None


@each_case(
    "changes, expected",
    [
        ({}, {}),
        ({"until": "opened"}, {"/plan/until": "unknown_value"}),
        (
            {"steps": [{"channels": ["email"], "after": 5}, {"channels": ["push"], "after": 9}]},
            {"/plan/steps/0/after": "out_of_range"},
        ),
        (
            {"steps": [{"channels": ["email"]}, {"channels": ["push"]}]},
            {"/plan/steps/1/after": "out_of_range"},
        ),
        (
            {"steps": [{"channels": ["email"]}, {"channels": ["email"], "after": 9}]},
            {"/plan/steps/1/channels": "repeated_channel"},
        ),
        (
            {"steps": [{"channels": []}, {"channels": ["pigeon"], "after": 9}]},
            {
                "/plan/steps/0/channels": "no_channel",
                "/plan/steps/1/channels/0": "unknown_channel",
            },
        ),
        (
            {
                "until": "delivered",
                "steps": [{"channels": ["in_app"]}, {"channels": ["email"], "after": 9}],
            },
            {"/plan/steps/0/channels": "no_other_channel"},
        ),
    ],
)
def test_step_that_could_never_be_used_is_refused(
    changes: dict[str, Any], expected: dict[str, str]
) -> None:
    assert problems_of(**changes) == expected


def test_channel_outside_the_types_is_refused() -> None:
    problems = ProblemCollector()
    request = msgspec.convert(GOOD, PlanRequest)
    parse_plan(request, problems, allowed=[Channel.EMAIL, Channel.PUSH, Channel.IN_APP])
    assert [(p.pointer, p.code) for p in problems.problems] == [
        ("/plan/steps/2/channels", "not_a_channel")
    ]
