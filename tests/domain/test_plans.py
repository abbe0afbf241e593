"""Plans: steps, and when a recipient counts as reached."""

from datetime import timedelta

from domain.channels import Channel
from domain.plans import Plan, Step, Until, how_reached, may_reach
from domain.states import DeliveryStatus
from tests.support.tables import each_case

EMAIL, PUSH, WHATSAPP, IN_APP = map(Channel, ("email", "push", "whatsapp", "in_app"))
S, U = DeliveryStatus, Until


def test_channel_that_no_step_names_is_in_the_first() -> None:
    later = Step(channels=(EMAIL,), after=timedelta(minutes=15))
    plan = Plan(until=U.READ, steps=(Step(channels=(PUSH,)), later))
    assert [plan.step_of(channel) for channel in (PUSH, EMAIL, WHATSAPP)] == [1, 2, 1]


@each_case(
    "statuses, delivered, read",
    [
        ({PUSH: S.SENT}, None, None),
        ({PUSH: S.UNKNOWN}, None, None),
        ({PUSH: S.FAILED}, None, None),
        ({IN_APP: S.DELIVERED}, None, None),
        ({PUSH: S.DELIVERED, IN_APP: S.DELIVERED}, "delivered by push", None),
        ({PUSH: S.READ}, "read on push", "read on push"),
        ({PUSH: S.FAILED, IN_APP: S.READ}, "read on in_app", "read on in_app"),
    ],
)
def test_goal_is_met_by_proof_only(
    statuses: dict[Channel, DeliveryStatus], delivered: str | None, read: str | None
) -> None:
    def reached(until: Until) -> str | None:
        return how_reached(until, statuses=statuses, is_marked_read=False, is_acted=False)

    assert (reached(U.DELIVERED), reached(U.READ), reached(U.ACTED)) == (delivered, read, None)


@each_case(
    "until, mark, is_reached",
    [
        (U.DELIVERED, "is_marked_read", True),
        (U.READ, "is_marked_read", True),
        (U.ACTED, "is_marked_read", False),
        (U.DELIVERED, "is_acted", True),
        (U.READ, "is_acted", True),
        (U.ACTED, "is_acted", True),
    ],
)
def test_mark_by_the_client_or_reader_counts(until: Until, mark: str, is_reached: bool) -> None:
    marks = {"is_marked_read": False, "is_acted": False, mark: True}
    assert (how_reached(until, statuses={}, **marks) is not None) is is_reached


def test_steps_wait_for_what_may_still_be_proof() -> None:
    assert may_reach(EMAIL, S.SENT, until=U.DELIVERED)
    assert may_reach(EMAIL, S.UNKNOWN, until=U.DELIVERED)
    assert may_reach(IN_APP, S.DELIVERED, until=U.READ)
    assert not may_reach(IN_APP, S.DELIVERED, until=U.DELIVERED)
    ended = (S.FAILED, S.SUPPRESSED, S.EXPIRED, S.CANCELLED)
    assert not any(may_reach(EMAIL, status, until=U.READ) for status in ended)
