"""The Valkey client, and times in its scripts."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import redis
from hypothesis import given
from hypothesis import strategies as st

from notifyproject.platform import valkey
from notifyproject.platform.valkey import (
    Unavailable,
    connection,
    from_milliseconds,
    to_milliseconds,
)
from tests.support.fakes.valkey_faults import own_valkey
from tests.support.fork import become_child
from tests.support.together import together

pytestmark = pytest.mark.usefixtures("valkey_anew")
instants = st.datetimes(datetime(1970, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC))


@given(instants)
def test_round_trip_loses_less_than_a_millisecond(instant: datetime) -> None:
    back = from_milliseconds(to_milliseconds(instant))
    assert timedelta() <= instant - back < timedelta(milliseconds=1)
    assert back.tzinfo is UTC


def test_milliseconds_count_from_1970() -> None:
    assert to_milliseconds(datetime(1970, 1, 2, tzinfo=UTC)) == 86_400_000


def test_each_process_has_one_client(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = valkey.client()
    assert valkey.client() is ours
    become_child(monkeypatch, valkey)
    assert valkey.client() is not ours


def test_client_has_short_timeouts_and_no_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(valkey, "TIMEOUT", 0.3)
    options = valkey.client().connection_pool.connection_kwargs
    assert options["socket_timeout"] == options["socket_connect_timeout"] == 0.3
    assert options["retry"].get_retries() == 0
    assert not options["decode_responses"]


@pytest.mark.parametrize("error", [ConnectionRefusedError, TimeoutError, BrokenPipeError])
def test_failure_makes_following_calls_unavailable(error: type[OSError]) -> None:
    with pytest.raises(Unavailable), connection():
        raise error
    with pytest.raises(Unavailable), connection():
        pytest.fail("Valkey was asked again at once")
    valkey.clear()
    with connection() as client:
        assert client is valkey.client()


def test_own_defect_is_not_unavailability() -> None:
    with pytest.raises(ZeroDivisionError), connection():
        raise ZeroDivisionError
    with connection():
        pass


def test_changed_url_has_another_client(settings: Any) -> None:
    ours = valkey.client()
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    assert valkey.client() is not ours


SET = "redis.call('SET', KEYS[1], ARGV[1])"
FAIL = "return redis.error_reply('refused')"


def test_later_scripts_run_in_the_order_of_the_thread(broker: redis.Redis) -> None:
    for number in range(5):
        valkey.run_later(SET, keys=["later"], args=[number])
    assert valkey.send("GET", "later") == b"4"


@pytest.fixture
def own(tmp_path: Path) -> Iterator[redis.Redis]:
    """Return a client of a Valkey that no other test process uses."""
    with own_valkey(tmp_path) as server, redis.Redis(port=server.port) as client:
        yield client


def test_lost_scripts_are_loaded_again(own: redis.Redis) -> None:
    valkey.run_later(SET, keys=["later"], args=["loaded"])
    own.script_flush()
    valkey.run_later(SET, keys=["later"], args=["lost"])
    assert valkey.send("GET", "later") == b"loaded"
    valkey.run_later(SET, keys=["later"], args=["again"])
    assert valkey.send("GET", "later") == b"again"


def test_failed_later_script_is_logged_and_not_read_by_the_next_command(
    broker: redis.Redis, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(Unavailable):
        valkey.run_later(FAIL, keys=[], args=[])
    valkey.clear()
    valkey.run_later("if ARGV[1] == '2' then " + FAIL + " end", keys=[], args=[1])
    valkey.run_later("if ARGV[1] == '2' then " + FAIL + " end", keys=[], args=[2])
    assert valkey.send("PING") == b"PONG"
    assert "valkey_script_failed" in caplog.text


def test_refused_script_takes_no_other_of_its_step_along(broker: redis.Redis) -> None:
    # Valkey runs neither before the process has loaded it.
    second = SET + " "
    results = together(
        partial(valkey.run_later, SET, keys=["later"], args=["first"]),
        partial(valkey.run_later, FAIL, keys=[], args=[]),
        partial(valkey.run_later, SET, keys=["again"], args=["first"]),
        partial(valkey.run_later, second, keys=["other"], args=["second"]),
    )
    assert [type(result) for result in results] == [type(None), Unavailable, *[type(None)] * 2]
    valkey.clear()
    stored = [valkey.send("GET", key) for key in ("later", "again", "other")]
    assert stored == [b"first", b"first", b"second"]


def test_closed_connection_is_replaced(own: redis.Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    assert valkey.send("PING") == b"PONG"
    own.client_kill_filter(_type="normal", skipme=True)
    monkeypatch.setattr(valkey, "MAX_IDLE", -1.0)
    assert valkey.send("PING") == b"PONG"


@pytest.mark.parametrize("command", ["script_flush", "flushall"])
def test_shared_server_is_not_changed_for_other_test_processes(
    broker: redis.Redis, command: str
) -> None:
    with pytest.raises(AssertionError, match="own_valkey"):
        getattr(broker, command)()
