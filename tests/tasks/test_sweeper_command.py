"""``manage.py sweeper`` with and without a broker."""

from io import StringIO
from typing import Any
from unittest.mock import Mock

import pytest
import redis
from django.core.management import call_command
from structlog.testing import capture_logs

from delivery import heartbeats, pipeline, worker
from delivery.runtime import SendingRuntime
from domain.time import utc_now
from monitoring import alerts, rollup
from notifyproject.platform import broker as platform_broker
from notifyproject.platform import heartbeat, process, server_health, valkey
from privacy import content_removal
from tasks import tasks
from tests.support.factories import notifications as factories
from tests.support.fakes.provider import ScriptedProvider
from tests.support.waiting import LIMIT

pytestmark = pytest.mark.usefixtures("db", "broker")


@pytest.fixture(autouse=True)
def _signals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Prevent the command from replacing the signal handlers of the test process."""
    monkeypatch.setattr("signal.signal", lambda *_: None)
    valkey.clear()
    process.clear_shutdown()


def sweeper(**options: Any) -> str:
    out = StringIO()
    call_command("sweeper", once=True, stdout=out, **options)
    return out.getvalue()


def test_command_sweeps_and_prints_its_counts(broker: redis.Redis) -> None:
    factories.accepted()
    assert sweeper() == "woken 1, pulled 0, unpublished 0, recovered 0, resolved 0\n"
    assert broker.llen("email.normal") == 1
    last = heartbeats.last_sweep()
    assert last is not None
    assert (utc_now() - last).total_seconds() < 60


def test_command_delivers_without_a_broker_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    provider = ScriptedProvider()
    monkeypatch.setattr(pipeline, "providers_for", lambda _channel, **_: (provider,))
    monkeypatch.setattr(server_health, "PAUSE_AFTER_FAILURE", LIMIT)
    platform_broker._health.record_failure()
    document = factories.accepted()
    assert "sent without a broker" not in sweeper()
    assert "sent without a broker: 1" in sweeper(deliver=True)
    assert factories.delivery(factories.read(document["_id"]))["status"] == "sent"


def test_inline_delivery_ends_with_its_time_budget() -> None:
    factories.accepted()
    assert worker.run_inline(SendingRuntime(), seconds=0) == 0


def test_task_sweeps_once_for_any_number_of_messages(broker: redis.Redis) -> None:
    factories.accepted()
    tasks.sweep()
    tasks.sweep()
    assert broker.llen("email.normal") == 1


def test_command_leaves_delivery_to_workers_with_a_broker(broker: redis.Redis) -> None:
    factories.accepted()
    assert "sent without a broker" not in sweeper(deliver=True)
    assert broker.llen("email.normal") == 1


def test_waiting_command_writes_heartbeats(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    programs: list[str] = []

    def record(program: str) -> None:
        programs.append(program)
        process.request_shutdown()

    monkeypatch.setattr(heartbeat, "record", record)
    call_command("sweeper", stdout=StringIO())
    process.clear_shutdown()
    assert programs == ["sweeper"]


def test_failed_alert_rules_stop_neither_the_roll_up_nor_the_removal_of_content(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done: list[str] = []
    monkeypatch.setattr(alerts, "evaluate", Mock(side_effect=ValueError))
    monkeypatch.setattr(rollup, "run", lambda **_: done.append("counted"))
    monkeypatch.setattr(
        content_removal, "remove_expired_content", lambda **_: done.append("removed")
    )
    with capture_logs() as logs:
        sweeper()
    assert done == ["counted", "removed"]
    assert [log["event"] for log in logs if log["log_level"] == "error"] == ["periodic_task_failed"]
