"""Circuits without Valkey: everything goes, nothing fails, and nobody waits."""

from pathlib import Path
from types import SimpleNamespace

import pytest
import redis
from structlog.testing import capture_logs

from delivery import circuit_breaker
from delivery.circuit_breaker import Allowed, Blocked
from notifyproject.platform import valkey
from tests.support.factories.notifications import NOON
from tests.support.fakes.valkey_faults import at_once, away, of_our_own, silent
from tests.support.waiting import SHORT

pytestmark = pytest.mark.usefixtures("broker", "valkey_anew")

FCM = "fcm:1a2b3c4d"


def use_everything() -> None:
    assert circuit_breaker.request_permissions([FCM, "smtp:1"], now=NOON) == {
        FCM: Allowed(),
        "smtp:1": Allowed(),
    }
    circuit_breaker.record(FCM, successes=1, failures=20, now=NOON)
    circuit_breaker.trip(FCM, now=NOON, retry_after=None)
    circuit_breaker.return_probe(FCM, probe=circuit_breaker.Probe("x"), now=NOON)
    assert not circuit_breaker.close(FCM)
    assert circuit_breaker.circuit_states(now=NOON) is None


def test_without_valkey_everything_goes() -> None:
    with away():
        use_everything()


def test_a_silent_valkey_is_waited_for_once() -> None:
    with silent() as valkey_there:
        for _ in range(10):
            use_everything()
        assert valkey_there.asked == 1


def test_a_silent_valkey_is_waited_for_by_all_threads_at_the_same_time() -> None:
    with silent(brief=SHORT) as valkey_there:
        at_once(16, use_everything)
        assert 1 < valkey_there.most_at_once <= valkey_there.asked <= 16


def test_after_some_seconds_it_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    circuit_breaker.trip(FCM, now=NOON, retry_after=None)
    blocked = {FCM: Blocked(NOON + circuit_breaker.FIRST_WAIT)}
    assert circuit_breaker.request_permissions([FCM], now=NOON) == blocked
    seconds = 100.0
    monkeypatch.setattr(valkey, "time", SimpleNamespace(monotonic=lambda: seconds))
    valkey._pause.begin()
    assert circuit_breaker.request_permissions([FCM], now=NOON) == {FCM: Allowed()}
    seconds += valkey.PAUSE_AFTER_FAILURE
    assert circuit_breaker.request_permissions([FCM], now=NOON) == blocked


def test_it_is_logged_once_that_valkey_is_away() -> None:
    with away(), capture_logs() as logs:
        use_everything()
        use_everything()
    assert [entry["event"] for entry in logs] == ["valkey_unavailable"]


def test_a_valkey_that_was_restarted_is_asked_at_once_and_learns_the_scripts(
    tmp_path: Path,
) -> None:
    with of_our_own(tmp_path) as server:
        circuit_breaker.trip(FCM, now=NOON, retry_after=None)
        server.kill()
        server.start()
        assert circuit_breaker.request_permissions([FCM], now=NOON) == {FCM: Allowed()}
        circuit_breaker.trip(FCM, now=NOON, retry_after=None)
        assert isinstance(circuit_breaker.request_permissions([FCM], now=NOON)[FCM], Blocked)


def test_any_number_of_accounts_is_one_question(tmp_path: Path) -> None:
    accounts = [f"smtp:{number}" for number in range(20)]
    with of_our_own(tmp_path):
        circuit_breaker.request_permissions(accounts, now=NOON)
        valkey.client().config_resetstat()
        circuit_breaker.request_permissions(accounts, now=NOON)
        stats = valkey.client().info("commandstats")
    assert stats["cmdstat_evalsha"]["calls"] == 1
    assert stats.keys() == {"cmdstat_evalsha", "cmdstat_hmget", "cmdstat_config|resetstat"}


def test_something_else_under_its_key_holds_nobody_up(broker: redis.Redis) -> None:
    broker.set(f"circuit:{FCM}", "not a circuit")
    use_everything()
