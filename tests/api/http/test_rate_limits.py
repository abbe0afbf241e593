"""Rate limits per client and endpoint, per inbox, and for failing addresses."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import redis
from django.test import Client as DjangoClient

from notifyproject.platform import valkey
from tests.support.clients.api import Answer, App, request
from tests.support.clients.inbox import InboxUser
from tests.support.tables import each_case

pytestmark = pytest.mark.usefixtures("broker", "valkey_anew")


@pytest.fixture
def limits(settings: Any) -> Any:
    settings.RATE_LIMIT_READ = 3
    settings.RATE_LIMIT_WRITE = 20
    settings.RATE_LIMIT_INBOX = 2
    settings.RATE_LIMIT_FAILED = 4
    return settings


def limit_headers(answer: Answer) -> tuple[str, str]:
    return answer.headers["RateLimit-Limit"], answer.headers["RateLimit-Remaining"]


def keys(broker: redis.Redis) -> set[str]:
    return {key.decode() for key in broker.scan_iter("rate_limit:*")}


def test_every_response_has_the_remaining_limit(app: App, limits: Any) -> None:
    answers = [app.get("/notifications") for _ in range(3)]
    assert [limit_headers(answer) for answer in answers] == [("3", "2"), ("3", "1"), ("3", "0")]
    assert all(0 < int(answer.headers["RateLimit-Reset"]) <= 60 for answer in answers)
    assert limit_headers(app.get("/notifications/unknown")) == ("3", "2"), "404, too"
    assert limit_headers(app.post("/notifications", {})) == ("20", "19"), "422, too"
    answer = app.get("/notifications")
    assert (answer.status_code, answer.json()["code"]) == (429, "rate_limited")
    assert answer.headers["Retry-After"] == answer.headers["RateLimit-Reset"]
    assert 0 < int(answer.headers["Retry-After"]) <= 60
    assert limit_headers(answer) == ("3", "0")


def test_limit_is_per_client_endpoint_and_direction(app: App, other_app: App, limits: Any) -> None:
    for _ in range(4):
        app.get("/notifications")
    assert app.get("/notifications").status_code == 429
    assert app.get("/notifications/stats").status_code == 200
    assert app.notify().status_code == 202
    assert other_app.get("/notifications").status_code == 200


def test_limit_covers_all_paths_of_an_endpoint(app: App, limits: Any) -> None:
    answers = [app.get(f"/recipients/person-{n}") for n in range(4)]
    assert [answer.status_code for answer in answers] == [404, 404, 404, 429]


@each_case("odd", ["nan", "inf", "-5", "1e300", "9" * 40, "", "soon", "0x", None])
def test_odd_stored_count_counts_as_absent(
    odd: str | None, app: App, limits: Any, broker: redis.Redis
) -> None:
    app.get("/notifications")
    (key,) = keys(broker)
    if odd is None:
        broker.delete(key)
        broker.rpush(key, "1")
    else:
        broker.set(key, odd, px=3_600_000)
    answers = [app.get("/notifications") for _ in range(4)]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
    assert 0 < int(answers[-1].headers["Retry-After"]) <= 60
    broker.delete(*keys(broker))


def test_refused_requests_do_not_extend_the_wait(
    app: App, limits: Any, broker: redis.Redis
) -> None:
    for _ in range(8):
        app.get("/notifications")
    (key,) = keys(broker)
    assert int(broker.get(key) or 0) == 3
    broker.pexpire(key, 30_500)
    retry_after = int(app.get("/notifications").headers["Retry-After"])
    assert broker.pttl(key) <= retry_after * 1000 <= 31_000, "never too early"
    broker.delete(key)  # As when its minute is over.
    assert app.get("/notifications").status_code == 200


def test_concurrent_requests_respect_the_limit(app: App, limits: Any) -> None:
    headers = {"Authorization": f"Bearer {app.key}"}

    def send(_: int) -> int:
        client = DjangoClient(raise_request_exception=False)
        body = request()
        path, kind = "/api/v1/notifications", "application/json"
        return client.post(path, body, content_type=kind, headers=headers).status_code

    with ThreadPoolExecutor(50) as threads:
        statuses = Counter(threads.map(send, range(50)))
    assert statuses == {202: 20, 429: 30}


def test_counter_key_names_the_client_and_expires(
    app: App, limits: Any, broker: redis.Redis
) -> None:
    app.get("/notifications")
    (key,) = keys(broker)
    assert key == f"rate_limit:client:{app.id}:notifications.read"
    assert 30_000 < broker.pttl(key) <= 60_000
    broker.persist(key)
    app.get("/notifications")
    assert broker.pttl(key) > 0


def test_inbox_limit_is_per_recipient(app: App, limits: Any, broker: redis.Redis) -> None:
    # No hexadecimal digits: the digest in a key contains "ada" now and then.
    ruth, louis = (InboxUser(app=app, user_id=name) for name in ("ruth", "louis"))
    statuses = [ruth.get("/counts").status_code for _ in range(3)]
    assert (statuses, louis.get("/counts").status_code) == ([200, 200, 429], 200)
    assert not any("ruth" in key or "louis" in key for key in keys(broker))


def test_repeated_failures_block_the_address(app: App, limits: Any) -> None:
    key, app.key = app.key, "ntf_" + "a" * 10 + "_" + "x" * 43
    assert [app.get("/notifications").status_code for _ in range(4)] == [401] * 4
    app.key = key
    for path in ("/notifications/stats", "/notifications/unknown/path"):
        answer = app.get(path)
        assert (answer.status_code, answer.json()["code"]) == (429, "rate_limited")
        assert 0 < int(answer.headers["Retry-After"]) <= 60
        assert int(answer.headers["Content-Length"]) == len(answer.content)
    elsewhere = {"X-Forwarded-For": "198.51.100.7"}
    limits.TRUSTED_PROXIES = 1
    assert app.send("/notifications", b"", method="GET", headers=elsewhere).status_code == 200


def test_forged_address_does_not_avoid_the_block(app: App, limits: Any) -> None:
    app.key = "ntf_" + "a" * 10 + "_" + "x" * 43

    def answer(number: int) -> int:
        forged = {"X-Forwarded-For": f"198.51.100.{number}"}
        return app.send("/notifications", b"", method="GET", headers=forged).status_code

    assert [answer(number) for number in range(5)] == [401] * 4 + [429]


def test_authenticated_requests_are_not_failures(
    app: App, limits: Any, broker: redis.Redis
) -> None:
    limits.RATE_LIMIT_READ = 0
    for _ in range(6):
        assert app.get("/notifications").status_code == 200
    assert keys(broker) == set()


def test_request_takes_one_trip_to_valkey(
    app: App, limits: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, keys = valkey.run, list[Any]()

    def counted(script: str, **call: Any) -> Any:
        keys.append(call["keys"])
        return run(script, **call)

    monkeypatch.setattr(valkey, "run", counted)
    assert app.get("/notifications").status_code == 200
    assert InboxUser(app=app).get("/counts").status_code == 200
    assert [len(of_script) for of_script in keys] == [2, 2], "the address's, and the caller's"


def test_disabled_limit_counts_nothing(app: App, broker: redis.Redis) -> None:
    answer = app.get("/notifications")
    assert "RateLimit-Limit" not in answer.headers
    assert keys(broker) == set()


def test_valkey_outage_allows_requests_and_is_logged_once(
    app: App, limits: Any, caplog: pytest.LogCaptureFixture
) -> None:
    limits.REDIS_URL = "redis://127.0.0.1:1/0"
    valkey.clear()
    answers = [app.get("/notifications") for _ in range(6)]
    assert {answer.status_code for answer in answers} == {200}
    assert "RateLimit-Limit" not in answers[0].headers
    assert caplog.text.count("valkey_unavailable") == 1
