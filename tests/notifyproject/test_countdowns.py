"""The eta of a Celery message follows the corrected clock."""

from collections.abc import Iterator
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from celery.worker import strategy

from domain.time import wall
from notifyproject import clock, countdowns
from notifyproject.celery import app
from tests.support.factories.notifications import NOON

TEN_MINUTES = timedelta(minutes=10)


@pytest.fixture(autouse=True)
def _a_right_clock() -> Iterator[None]:
    yield
    wall.correction = timedelta()


def test_right_clock_changes_nothing() -> None:
    assert countdowns.to_local_clock(NOON.isoformat()) == NOON.isoformat()


@pytest.mark.parametrize("correction", [TEN_MINUTES, -TEN_MINUTES], ids=["slow", "fast"])
def test_eta_is_converted_to_the_wrong_clock(correction: timedelta) -> None:
    wall.correction = correction
    eta = countdowns.to_local_clock(NOON.isoformat())
    assert eta == (NOON - correction).isoformat()


def test_message_without_eta_is_unchanged() -> None:
    wall.correction = TEN_MINUTES
    assert countdowns.to_local_clock(None) is None


def test_every_task_checks_the_clock_first(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(clock, "check_clock", lambda: asked.append("now"))
    app.loader.import_default_modules()
    ours = [task for name, task in app.tasks.items() if not name.startswith("celery.")]
    for task in ours:
        task.before_start("1", (), {})
    assert len(asked) == len(ours) > 5


def test_every_task_converts_its_eta(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(
        strategy, "default", lambda *_, **__: lambda message, *_: seen.append(message.headers)
    )
    wall.correction = -TEN_MINUTES
    app.loader.import_default_modules()
    task = app.tasks["notifications.sweep"]
    handle = task.start_strategy(app, consumer=None)
    handle(SimpleNamespace(headers={"eta": NOON.isoformat(), "id": "1"}), b"")
    assert seen == [{"eta": (NOON + TEN_MINUTES).isoformat(), "id": "1"}]
