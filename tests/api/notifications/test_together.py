"""POSTs that run together in one thread: what each gets, and what is stored."""

import gc
import random
import threading
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from bson import ObjectId
from django.utils import timezone, translation
from pymongo import monitoring

from devices.tokens import device_id
from domain.time import utc_now
from notifications.catalog import types
from notifications.content import templates
from notifyproject import lockstep
from notifyproject.db.collections import collection
from notifyproject.platform import cache
from recipients import service_windows
from tests.support.clients.api import App, new_app, request
from tests.support.factories import notifications as factories
from tests.support.fakes import valkey_faults
from tests.support.fakes.mongo_failpoints import (
    CUT,
    LOST_ANSWER,
    NOT_PRIMARY,
    fail_commands,
)
from tests.support.samples import IS_WHOLE, SEED
from tests.support.tables import each_case
from tests.support.together import together

pytestmark = pytest.mark.usefixtures("db", "broker")
COUNT = 2_000 if IS_WHOLE else 60
"""Generated requests."""
GROUP = 12
"""Of these, those that run together."""
WITHIN = 1.0
"""Seconds in which another thread releases a lock."""


class _Commands(monitoring.CommandListener):
    def __init__(self) -> None:
        self.found: Counter[str] = Counter()

    def started(self, event: monitoring.CommandStartedEvent) -> None:
        if event.command_name in ("find", "aggregate", "insert"):
            self.found[event.command_name] += 1

    def succeeded(self, event: monitoring.CommandSucceededEvent) -> None:
        pass

    def failed(self, event: monitoring.CommandFailedEvent) -> None:
        pass


COMMANDS = _Commands()
monitoring.register(COMMANDS)


@pytest.fixture
def _warm(app: App) -> None:
    """Load the configuration, which the first request reads."""
    assert app.notify().status_code == 202
    collection("notifications").delete_many({})


def stored_ids() -> set[str]:
    return {str(found["_id"]) for found in collection("notifications").find({}, {"_id": 1})}


def accepted(answers: list[Any]) -> list[Any]:
    return [answer for answer in answers if answer.status_code == 202]


@pytest.mark.usefixtures("_warm")
def test_reads_and_inserts_are_made_once_for_all(app: App, settings: Any) -> None:
    settings.RATE_LIMIT_WRITE = 1_000
    COMMANDS.found.clear()
    answers = together(
        *(
            partial(app.notify, user_id=f"user-{number}", external_id=str(number))
            for number in range(9)
        )
    )
    assert COMMANDS.found == {"aggregate": 1, "insert": 1}
    assert {answer.status_code for answer in answers} == {202}
    assert [answer.json()["external_id"] for answer in answers] == [str(n) for n in range(9)]
    assert {answer.json()["id"] for answer in answers} == stored_ids()
    remaining = [int(answer.headers["RateLimit-Remaining"]) for answer in answers]
    assert remaining == sorted(remaining, reverse=True)
    assert len(set(remaining)) == 9, "each was counted"
    assert len({answer.headers["X-Request-Id"] for answer in answers}) == 9


@pytest.mark.usefixtures("_warm")
def test_notifications_of_a_client_are_read_once_for_all(app: App) -> None:
    ids = [app.notify(external_id=str(number)).json()["id"] for number in range(8)]
    alone = [app.get(f"/notifications/{found}").json() for found in ids]
    COMMANDS.found.clear()
    answers = together(*(partial(app.get, f"/notifications/{found}") for found in (*ids, ids[0])))
    # One for the versions of the configuration.
    assert COMMANDS.found == {"aggregate": 2}
    assert [answer.json() for answer in answers] == [*alone, alone[0]]


@pytest.mark.usefixtures("_warm")
def test_notification_of_another_client_is_not_found_among_its_own() -> None:
    apps = [new_app(name) for name in ("first", "second")]
    ids = [app.notify().json()["id"] for app in apps]
    cases = [(app, found) for app in apps for found in (*ids, str(ObjectId()))]
    answers = together(*(partial(app.get, f"/notifications/{found}") for app, found in cases))
    assert [answer.status_code for answer in answers] == [200, 404, 404, 404, 200, 404]


def repeated(app: App, number: int) -> Any:
    return app.post("/notifications", request(), headers={"Idempotency-Key": f"key-{number}"})


def to_devices_of_a_user(app: App, number: int) -> Any:
    return app.notify(user_id=f"user-{number}", channels=["push"])


def to_named_device(app: App, number: int) -> Any:
    return app.notify(channels=["push"], recipient={"device_ids": [device_id(f"token {number}")]})


def by_whatsapp(app: App, number: int) -> Any:
    phone = f"+35191234567{number}"
    to = {"channels": ["whatsapp"], "recipient": {"phone": phone}}
    return app.notify(type="order_shipped", data={"order": "1"}, **to)


@pytest.mark.usefixtures("_warm")
@each_case("notify", [repeated, to_devices_of_a_user, to_named_device, by_whatsapp])
def test_reads_of_some_requests_are_made_once_for_all(
    app: App, settings: Any, notify: Callable[[App, int], Any]
) -> None:
    settings.RATE_LIMIT_WRITE = 1_000
    types.define_type("order_shipped", {"approved_templates": []}, now=utc_now())
    for number in range(8):
        factories.device(f"token {number}", user_id=f"user-{number}")
        if number % 2:
            phone = f"+35191234567{number}"
            service_windows.record_inbound([(phone, utc_now())], now=utc_now())
    alone = [notify(app, number).json() for number in range(8)]
    made: list[Counter[str]] = []
    for count in (2, 8):
        COMMANDS.found.clear()
        answers = together(*(partial(notify, app, number) for number in range(count)))
        made.append(Counter(COMMANDS.found))
        for answer, expected in zip(answers, alone, strict=False):
            assert answer.status_code == 202, answer.content
            assert answer.json()["warnings"] == expected["warnings"]
            assert (answer.json()["id"] == expected["id"]) == (notify is repeated)
    assert made[0] == made[1]


@pytest.mark.usefixtures("_warm")
def test_each_is_its_own_clients_language_and_zone(app: App) -> None:
    cases = [("de", "Europe/Berlin"), ("ar", "Asia/Tokyo"), ("en", "America/Lima"), ("fr", "UTC")]
    clients = [new_app(f"client {locale}", is_test=locale == "en") for locale, _ in cases]
    tomorrow = (utc_now() + timedelta(days=1)).date()

    def notify(client: App, locale: str, zone: str) -> Any:
        with translation.override(locale), timezone.override(zone):
            answer = client.notify(
                recipient={"email": f"{locale}@example.com", "locale": locale, "timezone": zone},
                scheduled_local={"at": f"{tomorrow}T09:00", "timezone": zone},
            )
            assert answer.status_code == 202, answer.content
            assert translation.get_language() == locale
            assert timezone.get_current_timezone_name() == zone
            return answer

    calls = [partial(notify, client, *case) for client, case in zip(clients, cases, strict=True)]
    answers = together(*calls)
    for client, (locale, zone), answer in zip(clients, cases, answers, strict=True):
        document = collection("notifications").find_one({"_id": ObjectId(answer.json()["id"])})
        alone = collection("notifications").find_one(
            {"_id": ObjectId(notify(client, locale, zone).json()["id"])}
        )
        assert document["client_id"] == client.id
        assert (document["recipient"]["locale"], document["recipient"]["timezone"]) == (
            locale,
            zone,
        )
        assert document["scheduled_at"] == alone["scheduled_at"]
        assert document["content"] == alone["content"]
        assert document.get("is_test") == alone.get("is_test")
        assert document["request_id"] == answer.headers["X-Request-Id"]


@pytest.mark.usefixtures("_warm")
def test_failure_is_that_of_its_request_alone(app: App) -> None:
    assert app.notify(user_id="u", entity_id="taken").status_code == 202
    answers = together(
        app.notify,
        partial(app.notify, type="unknown"),
        partial(app.notify, user_id="u", entity_id="taken"),
        partial(app.send, "/notifications", rb'{"data": {"text": "\ud800"}}'),
        partial(app.send, "/notifications", b"{"),
        partial(App(id=app.id, key="ntf_none").notify),
        app.notify,
    )
    assert [answer.status_code for answer in answers] == [202, 422, 409, 422, 400, 401, 202]
    assert len(stored_ids()) == 3


@pytest.mark.usefixtures("_warm")
def test_same_request_with_one_key_is_one_notification(app: App) -> None:
    once = partial(app.post, "/notifications", request(), headers={"Idempotency-Key": "once"})
    answers = [answer for _ in range(7) for answer in together(*[once] * 32)]
    assert {answer.status_code for answer in answers} == {202}
    assert {answer.json()["id"] for answer in answers} == stored_ids()
    assert len(stored_ids()) == 1


@pytest.mark.usefixtures("_warm")
def test_different_requests_with_one_key_are_one_notification(app: App) -> None:
    answers = together(
        *(
            partial(
                app.post,
                "/notifications",
                request(external_id=str(number)),
                headers={"Idempotency-Key": "once"},
            )
            for number in range(8)
        )
    )
    assert Counter(answer.status_code for answer in answers) == {202: 1, 422: 7}
    assert len(stored_ids()) == 1


@pytest.mark.usefixtures("_warm")
def test_same_entity_is_notified_once(app: App) -> None:
    answers = together(*[partial(app.notify, user_id="u", entity_id="e")] * 16)
    assert Counter(answer.status_code for answer in answers) == {202: 1, 409: 15}
    (stored,) = stored_ids()
    refused = [answer for answer in answers if answer.status_code == 409]
    assert all(stored in answer.content.decode() for answer in refused)


@pytest.mark.usefixtures("_warm")
@each_case("trouble, times", [(t, n) for t in (NOT_PRIMARY, CUT) for n in (1, 2, 9)])
def test_each_202_is_stored_while_a_primary_is_elected(app: App, trouble: Any, times: int) -> None:
    before = stored_ids()
    for command, name in (("insert", "notifications"), ("aggregate", "suppressions")):
        with fail_commands(command, name, trouble, times=times):
            answers = together(*[app.notify] * 8)
        assert {answer.status_code for answer in answers} <= {202, 503}
        for answer in answers:
            assert answer.status_code == 202 or answer.headers["Retry-After"]
        new = stored_ids() - before
        assert {answer.json()["id"] for answer in accepted(answers)} <= new
        before |= new


@pytest.mark.usefixtures("_warm")
def test_without_a_majority_nothing_is_accepted(app: App) -> None:
    with fail_commands("insert", "notifications", LOST_ANSWER, times=9):
        answers = together(*[app.notify] * 8)
    assert {answer.status_code for answer in answers} == {503}


@pytest.mark.usefixtures("_warm")
def test_without_valkey_each_is_accepted_and_one_finds_out_for_all(app: App) -> None:
    with valkey_faults.unresponsive() as silent:
        answers = together(*[app.notify] * 8)
    assert {answer.status_code for answer in answers} == {202}
    assert {answer.json()["id"] for answer in answers} == stored_ids()
    assert silent.connections == 1


@pytest.mark.usefixtures("_warm")
def test_change_of_configuration_starts_each_again(app: App) -> None:
    def notify_as_unknown() -> Any:
        return app.notify(type="made_meanwhile", channels=["email"], content={"body": "Hello"})

    assert notify_as_unknown().status_code == 422
    collection("notification_types").insert_one(
        {
            **collection("notification_types").find_one({"_id": "payment_confirmed"}),
            "_id": "made_meanwhile",
        }
    )
    # As another process does.
    collection("cache_versions").update_one(
        {"_id": "all"}, {"$set": {"types": ObjectId()}}, upsert=True
    )
    answers = together(*[notify_as_unknown] * 4)
    assert [answer.status_code for answer in answers] == [202] * 4


class Watch:
    """Looks at the locks of this process whenever a task waits."""

    def __init__(self) -> None:
        types_of_locks = (type(threading.Lock()), type(threading.RLock()))
        found = {
            id(lock): lock
            for owner in gc.get_objects()
            for lock in gc.get_referents(owner)
            # The class of a lazy object is that of its value, which it would load.
            if type(lock) in types_of_locks
        }
        self._free = [lock for lock in found.values() if not _is_held(lock)]
        self.waits = 0
        self.held: list[Any] = []

    def look(self) -> None:
        """Keep the locks that are held now and before were free."""
        self.waits += 1
        # Another thread releases its lock soon.
        self.held += [lock for lock in self._free if _is_held(lock) and not _is_released(lock)]


def _is_held(lock: Any) -> bool:
    owned = getattr(lock, "_is_owned", None)
    return bool(owned() if owned else lock.locked())


def _is_released(lock: Any) -> bool:
    if not hasattr(lock, "locked") or not lock.acquire(timeout=WITHIN):
        return False
    lock.release()
    return True


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Watch:
    found = Watch()
    original = lockstep._Task.wait

    def wait(self: Any) -> None:
        found.look()
        original(self)

    monkeypatch.setattr(lockstep._Task, "wait", wait)
    return found


class _Owner:
    def __init__(self) -> None:
        self.lock = threading.Lock()


@pytest.fixture
def owner() -> _Owner:
    return _Owner()


def test_lock_of_a_task_that_waits_is_found(owner: _Owner, watch: Watch) -> None:
    def work() -> None:
        with owner.lock:
            lockstep.rest()

    together(work)
    assert watch.held == [owner.lock]


@pytest.mark.usefixtures("_warm")
def test_no_task_waits_with_a_lock_held(app: App, watch: Watch) -> None:
    # What the caches read, they read with a lock held.
    cache.clear_all()
    templates.clear()
    answers = together(
        app.notify,
        partial(app.post, "/notifications", request(), headers={"Idempotency-Key": "k"}),
        partial(app.notify, type="unknown"),
        partial(app.notify, channels=["email", "in_app", "push"], user_id="u"),
        partial(App(id=app.id, key="ntf_none").notify),
    )
    assert [answer.status_code for answer in answers] == [202, 202, 422, 202, 401]
    assert watch.waits > 10
    assert not watch.held


TEXTS = (
    "Hello",
    "Grüße {{ order_id }}",
    "{{ nothing }}",
    "{% for n in (1..900) %}{{ n }}{% endfor %}",
)
"""Texts, the last of which takes the most work that is allowed, and needs more in a long one."""


def generated(source: random.Random, number: int) -> Callable[[App], Any]:
    """Return a request of any kind, which a client then makes."""
    key = {"Idempotency-Key": f"key-{source.randrange(6)}"} if source.random() < 0.3 else {}
    fields: dict[str, Any] = {"external_id": str(source.randrange(4) if key else number)}
    optional = {
        "user_id": f"user-{source.randrange(5)}",
        "entity_id": f"entity-{source.randrange(5)}",
        "type": source.choice(["payment_confirmed", "unknown", "", 7]),
        "channels": source.choice([["email"], ["in_app"], ["push", "email"], "all", ["fax"], []]),
        "priority": source.choice(["low", "medium", "critical", "none"]),
        "recipient": source.choice(
            [
                {},
                {"email": "ada@"},
                {"email": "bounced@example.com"},
                {"phone": "+4915112345678"},
                {"email": "eve@example.com", "locale": "de", "timezone": "Europe/Berlin"},
                {"device_ids": ["none"]},
            ]
        ),
        "content": {"subject": "Note", "body": source.choice(TEXTS)},
        "data": source.choice([{}, {"order_id": "x" * 30_000}, {"a": {"b": [1, 2.5, None]}}]),
        "scheduled_at": source.choice(["2099-01-01T09:00:00Z", "yesterday"]),
        "expires_at": "2099-01-02T09:00:00Z",
        "max_retries": source.choice([0, 3, 99]),
        "surplus": 1,
    }
    fields |= {name: value for name, value in optional.items() if source.random() < 0.12}
    kind = source.random()
    if kind < 0.05:
        raw = source.choice([b"", b"{", b"[]", b'{"a": 1, "a": 2}', b"\xff", b"{}" * 9])
        return lambda app: app.send("/notifications", raw, headers=key)
    if kind < 0.1:
        return lambda app: App(id=app.id, key=app.key[:-1]).notify(**fields)
    return lambda app: app.post("/notifications", request(**fields), headers=key)


VARYING = frozenset({"id", "request_id", "created_at", "updated_at", "instance"})


def essence(answer: Any) -> Any:
    """Return an answer without IDs and times."""
    headers = {
        name: value
        for name, value in answer.headers.items()
        if name not in ("X-Request-Id", "Location", "Content-Length")
        and not name.startswith("RateLimit-")
    }
    return answer.status_code, headers, _steady(answer.json())


def _steady(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            name: _steady(item)
            for name, item in value.items()
            if name not in VARYING and not name.endswith(("_at", "_id"))
        }
    return [_steady(item) for item in value] if isinstance(value, list) else value


def documents(app: App) -> list[Any]:
    """Return what is stored of a client's notifications, without IDs and times."""
    found = collection("notifications").find({"client_id": app.id}, sort=[("_id", 1)])
    return sorted((_steady(document) for document in found), key=repr)


@pytest.mark.usefixtures("_warm")
def test_generated_requests_get_together_what_they_get_alone(settings: Any) -> None:
    """``ALL_CASES=1`` takes 2,000."""
    settings.RATE_LIMIT_FAILED = 0
    source = random.Random(SEED)
    alone, shared = new_app("alone"), new_app("shared")
    for start in range(0, COUNT, GROUP):
        wanted = [generated(source, number) for number in range(start, start + GROUP)]
        expected = [essence(make(alone)) for make in wanted]
        found = [
            essence(answer) for answer in together(*(partial(make, shared) for make in wanted))
        ]
        # Of requests that compete, such as those of one key, another may be first.
        assert Counter(map(repr, found)) == Counter(map(repr, expected)), SEED
        assert documents(shared) == documents(alone), SEED
