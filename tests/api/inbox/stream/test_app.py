"""Inbox streams: events, wake-ups, ends, limits, and refusals."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
import redis
from bson import ObjectId
from django.conf import settings as django_settings
from structlog.testing import capture_logs

from access.clients import inbox_tokens
from api.inbox.stream.app import StreamTiming
from api.inbox.stream.follower import MAX_EVENTS_PER_POLL
from api.inbox.stream.subscriptions import CLIENT_NAME, MAX_PER_INBOX
from delivery import pipeline
from delivery.runtime import SendingRuntime
from domain.time import utc_now
from notifications.inbox import actions
from notifications.inbox import wakeups as inbox_wakeups
from notifications.store import acceptance
from notifications.store.inbox import Inbox
from notifyproject.platform import valkey
from tests.support.clients.api import App
from tests.support.clients.inbox import (
    IN_APP,
    InboxUser,
    claims_of,
    delivered,
    forged,
    token,
    unknown_id,
)
from tests.support.clients.sse import BY_WAKEUP, NEVER, REFUSED, Event, Process, SSEClient, process
from tests.support.factories import notifications as factories
from tests.support.fakes.mongo_failpoints import fail_commands
from tests.support.tables import each_case
from tests.support.waiting import until


def arrives(app: App, **fields: Any) -> str:
    """Store a notification and publish its wake-up, as the API does."""
    document = delivered(app, **{"created_at": utc_now(), **fields})
    inbox_wakeups.send_inbox_wakeups([document])
    return str(document["_id"])


def ids(events: list[Event]) -> list[str | None]:
    return [event.id for event in events if event.name == "notification"]


def own(app: App) -> Inbox:
    return Inbox(app.id, "ada")


def cut_off(broker: redis.Redis) -> None:
    database = broker.get_connection_kwargs()["db"]
    for client in broker.client_list():
        if client["name"] == CLIENT_NAME and int(client["db"]) == database:
            broker.client_kill_filter(_id=client["id"])


def counts_of(event: Event) -> tuple[int, int]:
    assert event.name == "counts"
    return event.data["unread"], event.data["unseen"]


def test_stream_begins_with_retry_and_counts(app: App) -> None:
    arrives(app)
    with process() as streams, streams.open(token(app)) as stream:
        first = stream.event()
        assert counts_of(first) == (1, 1)
        assert stream.status == 200
        assert stream.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert stream.headers["cache-control"] == "no-store"
        assert stream.headers["x-accel-buffering"] == "no"
        assert stream.headers["x-request-id"]
        retry = int(stream.body.partition(b"\n")[0].removeprefix(b"retry: "))
        assert 2_000 <= retry <= 6_000


def test_wakeup_sends_changes_at_once(app: App) -> None:
    """An event is sent for a new, a later delivered, and a read notification."""
    with process(timing=BY_WAKEUP) as streams, streams.open(token(app)) as stream:
        streams.connected()
        assert counts_of(stream.event()) == (0, 0)

        new = app.notify(user_id="ada", channels=["in_app"], recipient=...).json()["id"]
        event, counts = stream.events(2)
        assert (event.name, event.id, event.data["id"]) == ("notification", new, new)
        assert event.data["subject"]
        assert counts_of(counts) == (1, 1)

        later = factories.accepted(
            client_id=app.id,
            channels=[IN_APP],
            send_at=utc_now() - timedelta(seconds=1),
            created_at=utc_now() - timedelta(minutes=1),
        )
        pipeline.dispatch(SendingRuntime(), [later["_id"]], channel=IN_APP)
        event, counts = stream.events(2)
        assert event.id == str(later["_id"])
        assert counts.data["unread"] == 2

        actions.mark_read(inbox=own(app), notification_id=later["_id"], now=utc_now())
        assert counts_of(stream.event()) == (1, 1)

        app.post("/recipients/ada/notifications/read-all")
        assert counts_of(stream.event()) == (0, 0)


def test_item_that_comes_back_from_a_snooze_is_an_event(app: App) -> None:
    with process(timing=BY_WAKEUP) as streams, streams.open(token(app)) as stream:
        streams.connected()
        stream.events(1)
        notification_id = arrives(app)
        first, before = stream.events(2)
        until_ = utc_now() + timedelta(hours=1)
        actions.snooze(
            inbox=own(app), notification_id=ObjectId(notification_id), until=until_, now=utc_now()
        )
        assert counts_of(stream.event()) == (0, 0)
        actions.resurface_due(now=until_)
        again, after = stream.events(2)
        assert (first.id, again.id) == (notification_id, notification_id)
        assert again.data["delivered_at"] > first.data["delivered_at"]
        assert counts_of(after) == (1, 1)
        assert after.data["as_of"] > before.data["as_of"]


def test_stream_has_only_its_own_inbox(app: App, other_app: App) -> None:
    with (
        process(timing=BY_WAKEUP) as streams,
        streams.open(token(app)) as ada,
        streams.open(token(app, "eve")) as eve,
        streams.open(token(other_app)) as elsewhere,
    ):
        streams.connected()
        for stream in (ada, eve, elsewhere):
            stream.events(1)
        arrives(app, user_id="eve")
        arrives(other_app)
        mine = arrives(app)
        assert ids(ada.events(2)) == [mine]
        assert len(ids(eve.events(2))) == len(ids(elsewhere.events(2))) == 1
        for stream in (ada, eve, elsewhere):
            assert stream.body.count(b"event: notification") == 1


def test_wakeup_holds_no_content_and_no_user_id(app: App, broker: redis.Redis) -> None:
    with broker.pubsub(ignore_subscribe_messages=True) as heard:
        heard.subscribe(inbox_wakeups.VALKEY_CHANNEL)
        arrives(app, user_id="ada")
        messages: list[str] = []

        def has_come() -> bool:
            while (message := heard.get_message(timeout=0.2)) is not None:
                messages.extend(message["data"].decode().split(" "))
            return own(app).key in messages

        until(has_come)
    assert all(len(message) == 64 and int(message, 16) for message in messages)


def test_last_event_id_resumes_the_stream(app: App) -> None:
    start = utc_now() - timedelta(minutes=5)
    moments = [start + timedelta(minutes=n) for n in range(4)]
    known, *missed = [arrives(app, created_at=moment) for moment in moments]
    with process(timing=BY_WAKEUP) as streams:
        with streams.open(token(app), last_event_id=known) as stream:
            assert ids(stream.events(4)) == missed, "the oldest first"
        with streams.open(token(app), last_event_id=missed[-1]) as stream:
            assert [event.name for event in stream.events(1)] == ["counts"]


def test_stream_without_notifications_is_resumed_by_the_id_of_its_counts(app: App) -> None:
    with process(timing=BY_WAKEUP) as streams, streams.open(token(app)) as stream:
        counts = stream.events(1)[0]
    missed = arrives(app, created_at=utc_now() + timedelta(minutes=1))
    with (
        process(clock=lambda: utc_now() + timedelta(minutes=5), timing=BY_WAKEUP) as streams,
        streams.open(token(app), last_event_id=counts.id) as stream,
    ):
        found = stream.events(2)
        assert [event.name for event in found] == ["notification", "counts"]
        assert ids(found) == [missed]


def test_notification_visible_late_is_sent(app: App) -> None:
    """A slower process can store an earlier notification after a later one was sent."""
    with process(timing=BY_WAKEUP) as streams, streams.open(token(app)) as stream:
        streams.connected()
        stream.events(1)
        now = utc_now()
        newer = arrives(app, created_at=now)
        assert ids(stream.events(2)) == [newer]
        older = arrives(app, created_at=now - timedelta(seconds=2))
        assert ids(stream.events(2)) == [older]


@pytest.mark.parametrize("case", ["unknown", "of another inbox", "too many"])
def test_reload_event_replaces_missed_events(app: App, case: str) -> None:
    last = unknown_id()
    if case == "of another inbox":
        last = arrives(app, user_id="eve")
    if case == "too many":
        last = arrives(app)
        new = [
            factories.new(
                client_id=app.id, channels=[IN_APP], created_at=utc_now() + timedelta(seconds=n)
            )
            for n in range(MAX_EVENTS_PER_POLL + 1)
        ]
        acceptance.accept(new, now=new[-1].created_at)
    with (
        process(timing=BY_WAKEUP) as streams,
        streams.open(token(app), last_event_id=last) as stream,
    ):
        events = stream.events(MAX_EVENTS_PER_POLL + 2 if case == "too many" else 2)
        assert (events[0].name, events[-1].name) == ("reload", "counts")
        assert len(ids(events)) == (MAX_EVENTS_PER_POLL if case == "too many" else 0)


def test_heartbeat_is_sent_while_idle(app: App) -> None:
    with process() as streams, streams.open(token(app)) as stream:
        stream.events(1)
        until(lambda: stream.body.count(b"\n:\n\n") >= 3)
        assert stream.body.count(b"event:") == 1


def test_poll_finds_changes_without_wakeup(app: App) -> None:
    timing = StreamTiming(heartbeat=0.02, poll=0.1)
    with process(timing=timing) as streams, streams.open(token(app)) as stream:
        streams.connected()
        stream.events(1)
        new = str(delivered(app, created_at=utc_now())["_id"])
        assert ids(stream.events(2)) == [new]


def test_heartbeat_polls_without_valkey(app: App, settings: Any) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    with process() as streams, streams.open(token(app)) as stream:
        stream.events(1)
        new = str(delivered(app, created_at=utc_now())["_id"])
        assert ids(stream.events(2)) == [new]
        assert not streams.streams.listener.is_connected


def test_reconnected_stream_misses_nothing(app: App, broker: redis.Redis) -> None:
    with process(timing=BY_WAKEUP) as streams, streams.open(token(app)) as stream:
        streams.connected()
        stream.events(1)
        new = str(delivered(app, created_at=utc_now())["_id"])
        cut_off(broker)
        assert ids(stream.events(2)) == [new]
        assert ids(stream.events(0)) == []


def test_stream_stays_open_while_mongodb_fails(app: App) -> None:
    timing = replace(BY_WAKEUP, repeat_poll=0.01)
    with process(timing=timing) as streams, streams.open(token(app)) as stream:
        streams.connected()
        stream.events(1)
        with capture_logs() as logs, fail_commands("find", "notifications", REFUSED):
            new = arrives(app)
            until(lambda: "inbox_stream_poll_failed" in [entry["event"] for entry in logs])
        # Polled again without another wake-up.
        assert ids(stream.events(2)) == [new]


def _last_events(streams: Process, text: str, *, do: Any) -> list[Event | None]:
    """Return the two events after an action: the last one, and None for the stream's end."""
    with streams.open(text) as stream:
        streams.connected()
        stream.events(1)
        do()
        return [stream.event(), stream.event()]


@pytest.mark.parametrize("timing", [BY_WAKEUP, StreamTiming(heartbeat=0.02, poll=NEVER)])
def test_stream_ends_when_its_token_is_revoked(app: App, timing: StreamTiming) -> None:
    """A wake-up ends the stream at once. Without a wake-up, the next heartbeat ends it."""
    text = token(app)

    def revoke() -> None:
        jti = claims_of(text)["jti"]
        if timing is BY_WAKEUP:
            app.delete(f"/inbox/tokens/{jti}")
        else:
            inbox_tokens.revoke(client_id=app.id, jti=jti, now=utc_now())

    with process(timing=timing) as streams:
        found = _last_events(streams, text, do=revoke)
    assert found == [Event("end", {"reason": "token_revoked"}), None]


def test_stream_ends_when_all_tokens_of_the_recipient_are_revoked(app: App) -> None:
    with process(timing=BY_WAKEUP) as streams:
        path = "/inbox/tokens?user_id=ada"
        found = _last_events(streams, token(app), do=lambda: app.delete(path))
    assert found == [Event("end", {"reason": "token_revoked"}), None]


def test_stream_ends_when_its_token_expires(app: App) -> None:
    offset = timedelta(0)

    def run_out() -> None:
        nonlocal offset
        offset = inbox_tokens.LIFETIME

    with process(clock=lambda: utc_now() + offset) as streams:
        found = _last_events(streams, token(app), do=run_out)
    assert found == [Event("end", {"reason": "token_expired"}), None]


def test_stream_ends_on_shutdown(app: App) -> None:
    with process(timing=BY_WAKEUP) as streams:
        found = _last_events(streams, token(app), do=lambda: streams.run(streams.streams.stop()))
        assert found == [Event("end", {"reason": "restart"}), None]
        with streams.open(token(app)) as offset:
            assert (offset.status, offset.problem()["code"]) == (503, "restarting")


def test_failed_wakeup_does_not_fail_the_request(app: App, settings: Any) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    valkey.clear()
    try:
        answer = app.notify(user_id="ada", channels=["in_app"], recipient=...)
        assert answer.status_code == 202
        notification_id = ObjectId(answer.json()["id"])
        assert actions.mark_read(inbox=own(app), notification_id=notification_id, now=utc_now())[
            "is_read"
        ]
    finally:
        settings.REDIS_URL = django_settings.REDIS_URL
        valkey.clear()


PAGE = "https://app.example.com"


@pytest.fixture
def streams(db: None, broker: Any, settings: Any) -> Iterator[Process]:
    settings.INBOX_STREAMS = MAX_PER_INBOX + 2
    settings.INBOX_ORIGINS = frozenset({PAGE})
    with process(timing=BY_WAKEUP) as served:
        yield served


def refused(stream: SSEClient) -> tuple[int, str]:
    problem = stream.problem()
    assert stream.headers["content-type"] == "application/problem+json"
    assert stream.headers["x-request-id"] == problem["request_id"]
    assert stream.status == problem["status"]
    return stream.status, problem["code"]


def test_web_process_returns_the_stream_url(app: App, settings: Any) -> None:
    settings.INBOX_STREAM_URL = "https://stream.example.com"
    answer = InboxUser(app=app).get("/stream")
    assert (answer.status_code, answer.json()["code"]) == (421, "wrong_endpoint")
    assert "https://stream.example.com/api/v1/inbox/stream" in answer.json()["detail"]
    assert InboxUser(app=app, token="x").get("/stream").status_code == 401


def test_invalid_token_opens_no_stream(app: App, streams: Process) -> None:
    good = token(app)
    offset = token(app, now=utc_now() - timedelta(hours=1))
    for text in ("", "x", app.key, offset, forged(good, key="x" * 40), forged(good, aud="admin")):
        with streams.open(text) as stream:
            assert refused(stream) == (401, "unauthenticated")
            assert stream.headers["www-authenticate"] == 'Bearer realm="inbox"'


@each_case(
    "how, status, code",
    [
        ({"query": b"token=x"}, 400, "unknown_parameter"),
        ({"query": b"access_token=x"}, 400, "unknown_parameter"),
        ({"last_event_id": "x"}, 400, "invalid_event_id"),
        ({"last_event_id": "A" * 24}, 400, "invalid_event_id"),
        ({"last_event_id": '{"$ne": ""}'}, 400, "invalid_event_id"),
        ({"last_event_id": "\u00e9" * 24}, 400, "invalid_event_id"),
        ({"method": "POST"}, 405, "method_not_allowed"),
        ({"method": "DELETE"}, 405, "method_not_allowed"),
    ],
)
def test_invalid_request_is_refused(
    app: App, streams: Process, how: dict[str, Any], status: int, code: str
) -> None:
    with streams.open(token(app), **how) as stream:
        assert refused(stream) == (status, code)


def test_stream_without_mongodb_answers_503(app: App, streams: Process) -> None:
    text = token(app)
    with fail_commands("aggregate", "api_clients", REFUSED), streams.open(text) as stream:
        assert refused(stream) == (503, "store_unavailable")
        assert stream.headers["retry-after"]


@pytest.mark.usefixtures("valkey_anew")
def test_repeated_failures_block_the_address_in_streams_and_requests(
    app: App, streams: Process, settings: Any
) -> None:
    settings.RATE_LIMIT_FAILED = 3
    for number in range(3):
        # Without a proxy, a client can't choose its address.
        with streams.open("x", x_forwarded_for=f"198.51.100.{number}") as stream:
            assert refused(stream) == (401, "unauthenticated")
    with streams.open(token(app)) as stream:
        assert refused(stream) == (429, "rate_limited")
        assert 0 < int(stream.headers["retry-after"]) <= 60
        assert stream.headers["ratelimit-remaining"] == "0"
    here, elsewhere = (
        app.http.get("/api/v1/inbox", REMOTE_ADDR=address).status_code
        for address in ("203.0.113.7", "203.0.113.8")
    )
    assert (here, elsewhere) == (429, 401)
    settings.TRUSTED_PROXIES = 1
    with streams.open(token(app), x_forwarded_for="198.51.100.9") as stream:
        assert stream.status == 200


def test_streams_are_limited_per_recipient(app: App, streams: Process) -> None:
    with ExitStack() as opened:
        first = opened.enter_context(streams.open(token(app)))
        for _ in range(MAX_PER_INBOX - 1):
            opened.enter_context(streams.open(token(app)))
        with streams.open(token(app)) as one_more:
            assert refused(one_more) == (429, "rate_limited")
            assert one_more.headers["retry-after"]
        with streams.open(token(app, "eve")) as eve:
            assert eve.status == 200
        streams.loop.call_soon_threadsafe(first.leave)
        until(lambda: len(streams.streams._connections) == MAX_PER_INBOX - 1)
        with streams.open(token(app)) as instead:
            assert instead.status == 200


def test_streams_are_limited_per_process(app: App, streams: Process) -> None:
    with ExitStack() as opened:
        for n in range(MAX_PER_INBOX + 2):
            opened.enter_context(streams.open(token(app, f"user-{n}")))
        with streams.open(token(app, "one-too-many")) as one_more:
            assert refused(one_more) == (503, "too_many_streams")
    with streams.open(token(app, "one-too-many")) as again:
        assert again.status == 200


def test_stalled_reader_gets_no_more_data(app: App) -> None:
    """The stream still counts towards the limit, or unread connections could fill the memory."""
    timing = StreamTiming(heartbeat=0.01, poll=0.01, write_timeout=0.05)
    with process(timing=timing) as streams, streams.open(token(app), is_reading=False) as stream:
        until(lambda: stream.refused == 1)
        with streams.open(token(app)) as other:
            until(lambda: other.body.count(b":\n\n") > 20)
        assert stream.refused == 1
        assert len(streams.streams._connections) == 1
    assert len(streams.streams._connections) == 0


def test_cors_headers_follow_the_allowed_origins(app: App, streams: Process) -> None:
    asked = {"origin": PAGE, "access_control_request_method": "GET"}
    with streams.open("", method="OPTIONS", **asked) as stream:
        assert (stream.status, stream.body) == (204, b"")
        assert stream.headers["access-control-allow-origin"] == PAGE
        assert "last-event-id" in stream.headers["access-control-allow-headers"]
    with streams.open(token(app), origin=PAGE) as stream:
        assert (stream.status, stream.headers["access-control-allow-origin"]) == (200, PAGE)
    with streams.open(token(app), origin="https://evil.example") as stream:
        assert "access-control-allow-origin" not in stream.headers
    with streams.open("x", origin=PAGE) as stream:
        assert refused(stream)[0] == 401
        assert stream.headers["access-control-allow-origin"] == PAGE


@each_case("path", ["/", "/admin/", "/api/v1/inbox", "/api/v1/inbox/streams"])
def test_stream_process_serves_no_other_path(app: App, streams: Process, path: str) -> None:
    with streams.open(token(app), path=path) as stream:
        assert refused(stream) == (421, "wrong_endpoint")


def test_stream_process_answers_healthz(streams: Process) -> None:
    with streams.open("", path="/healthz") as stream:
        assert (stream.status, stream.problem()) == (200, {"status": "ok"})
