"""``manage.py rollup``: the figures of a time, counted again."""

import io
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command

from analytics import rollup_state
from analytics.models import Interval
from background import tasks
from domain.states import DeliveryStatus
from domain.time import utc_now
from notifyproject.db.collections import collection
from tests.support.factories import notifications as factories
from tests.support.mongo.metrics_recount import recounted, stored

pytestmark = pytest.mark.usefixtures("db")

NOON = factories.NOON
HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)


def command(*words: str) -> str:
    output = io.StringIO()
    call_command("rollup", *words, stdout=output, stderr=io.StringIO())
    return output.getvalue()


def test_the_command_counts_a_time_again() -> None:
    for status in (DeliveryStatus.SENT, DeliveryStatus.FAILED):
        factories.settled(status, at=NOON, created_at=NOON)
    start = NOON - HOUR
    factories.accepted(created_at=start - HOUR)
    since, until = f"{start:%Y-%m-%dT%H:%M}", f"{NOON + timedelta(minutes=8):%Y-%m-%dT%H:%M}Z"
    assert command("--since", since, "--until", until) == "minutes counted: 120\n"
    assert stored(Interval.HOUR, NOON, NOON + HOUR) == +recounted(NOON, NOON + HOUR)


@pytest.mark.parametrize(
    "words",
    [
        ["--until", "2026-01-01"],
        ["--since", "2999-01-01"],
        ["--since", "2020-01-02", "--until", "2020-01-01"],
        ["--since", "2020-01-01", "--until", "2020-01-02"],
    ],
)
def test_the_command_refuses_what_cannot_be_counted(words: list[str]) -> None:
    factories.accepted(created_at=utc_now())
    with pytest.raises(CommandError):
        command(*words)


def test_without_a_time_it_brings_the_figures_up_to_date() -> None:
    now = utc_now()
    factories.settled(DeliveryStatus.SENT, at=now - MINUTE, created_at=now - MINUTE)
    assert command() == "minutes counted: 1\n"
    assert collection("metrics_aggregates").count_documents({"interval": "day"}) > 0


def test_beat_starts_it_every_minute() -> None:
    tasks.roll_up()
    assert rollup_state.counted_at() is not None


def test_it_says_that_somebody_else_is_at_it() -> None:
    assert rollup_state.acquire_lease(now=utc_now())
    with pytest.raises(CommandError, match="try again"):
        command()
