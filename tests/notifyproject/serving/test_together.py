"""Light requests that the web process runs together in one thread."""

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from bson import ObjectId

from notifyproject import lockstep
from notifyproject.db.collections import collection
from notifyproject.lockstep import LockStep, Trip
from notifyproject.serving.connection import LIGHT_PATH, MAX_LIGHT_BODY
from notifyproject.serving.worker import MAX_TOGETHER, WebWorker
from tests.support.clients.api import App, new_app, request
from tests.support.clients.raw_http import Answered, Answers, get, post
from tests.support.fakes.mongo_failpoints import fail_commands
from tests.support.served_program import Served

pytestmark = pytest.mark.usefixtures("db")
COUNT = MAX_TOGETHER + 8
BLOCKED = {"blockConnection": True, "blockTimeMS": 5_000}


@pytest.fixture
def connect(web: Served) -> Iterator[Callable[[], socket.socket]]:
    with ExitStack() as stack:
        yield lambda: stack.enter_context(web.connect())


def send(client: socket.socket, app: App, raw: bytes | None = None, **fields: Any) -> Answers:
    body = json.dumps(request(**fields)).encode() if raw is None else raw
    headers = (f"Authorization: Bearer {app.key}", f"Content-Length: {len(body)}")
    client.sendall(post(*headers, body=body, path=LIGHT_PATH))
    return Answers(client)


def read(client: socket.socket, app: App, notification_id: str) -> Answers:
    client.sendall(get(f"{LIGHT_PATH}/{notification_id}", f"Authorization: Bearer {app.key}"))
    return Answers(client)


def stored(answer: Answered) -> Any:
    return collection("notifications").find_one({"_id": ObjectId(json.loads(answer.body)["id"])})


def test_each_of_many_gets_its_own_answer(connect: Callable[[], socket.socket], app: App) -> None:
    apps = [app, new_app("second"), new_app("third")]
    clients = [connect() for _ in range(COUNT)]
    for _ in range(3):
        waiting = [
            send(client, apps[number % 3], external_id=f"number {number}")
            for number, client in enumerate(clients)
        ]
        found = [answers.next() for answers in waiting]
        assert [answer.status for answer in found] == [202] * COUNT
        for number, answer in enumerate(found):
            document = stored(answer)
            assert document["external_id"] == f"number {number}"
            assert document["client_id"] == apps[number % 3].id
            assert document["request_id"] == answer.headers["x-request-id"]


def test_each_kind_of_answer_is_its_own(connect: Callable[[], socket.socket], app: App) -> None:
    large = {"data": {**request()["data"], "more": "x" * MAX_LIGHT_BODY}}
    kinds: list[tuple[int, Callable[[socket.socket], Answers]]] = [
        (202, lambda client: send(client, app)),
        (422, lambda client: send(client, app, type="unknown")),
        (400, lambda client: send(client, app, b"{")),
        (401, lambda client: send(client, App(id=app.id, key="none"))),
        (202, lambda client: send(client, app, **large)),
    ]
    waiting = [(status, ask(connect())) for _ in range(6) for status, ask in kinds]
    for status, answers in waiting:
        assert answers.next().status == status


def test_notifications_are_read_together_and_between_posts(
    connect: Callable[[], socket.socket], app: App
) -> None:
    other = new_app("other")
    ids = [app.notify(external_id=str(number)).json()["id"] for number in range(COUNT)]
    clients = [connect() for _ in ids]
    for _ in range(3):
        waiting = [read(client, app, i) for client, i in zip(clients, ids, strict=True)]
        for number, answers in enumerate(waiting):
            answer = answers.next()
            assert answer.status == 200
            found = json.loads(answer.body)
            assert (found["id"], found["external_id"]) == (ids[number], str(number))
        asks: list[tuple[int, Answers]] = [
            (200, read(clients[0], app, ids[5])),
            (200, read(clients[1], app, ids[5])),
            (404, read(clients[2], other, ids[5])),
            (404, read(clients[3], app, str(ObjectId()))),
            (404, read(clients[4], app, "0" * 23)),
            (401, read(clients[5], App(id=app.id, key="none"), ids[5])),
            (202, send(clients[6], app)),
            (422, send(clients[7], app, type="unknown")),
        ]
        for status, answers in asks:
            assert answers.next().status == status


def test_client_that_leaves_takes_no_other_along(
    connect: Callable[[], socket.socket], app: App, web: Served
) -> None:
    leaving = [web.connect() for _ in range(10)]
    staying = [connect() for _ in range(10)]
    waiting = []
    for gone, client in zip(leaving, staying, strict=True):
        send(gone, app)
        waiting.append(send(client, app))
        gone.close()
    assert [answers.next().status for answers in waiting] == [202] * 10
    assert web.is_healthy()


def test_later_request_does_not_wait_for_one_that_the_database_delays(
    connect: Callable[[], socket.socket], app: App
) -> None:
    first, second = connect(), connect()
    with fail_commands("insert", "notifications", BLOCKED):
        delayed = send(first, app)
        # Until the delayed insert has begun, the second would get the delay.
        while not _is_inserting():
            pass
        assert send(second, app).next().status == 202
        first.setblocking(False)
        with pytest.raises(BlockingIOError):
            first.recv(1)
        first.setblocking(True)
        assert delayed.next().status == 202


def _is_inserting() -> bool:
    running = collection("notifications").database.client.admin.aggregate(
        [{"$currentOp": {}}, {"$match": {"command.insert": "notifications"}}]
    )
    return bool(list(running))


class _Queue:
    """Keeps what the thread gives the poller."""

    def __init__(self) -> None:
        self.deferred: list[tuple[Any, ...]] = []

    def defer(self, _callback: Any, *args: Any) -> None:
        self.deferred.append(args)


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a worker whose connections are numbers, and whose requests share two trips."""
    first: Trip[int, int] = Trip(list)
    second: Trip[int, int] = Trip(list)
    monkeypatch.setattr(
        WebWorker, "_respond", lambda _self, number: bool(first(second(number)) or 1)
    )
    found = WebWorker.__new__(WebWorker)
    found.method_queue = _Queue()
    return found


def test_defect_of_the_step_takes_no_request_along(
    worker: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(self: LockStep) -> bool:
        for task in [self._ready.popleft() for _ in range(3)]:
            task.switch()
        raise RuntimeError("a defect")

    monkeypatch.setattr(LockStep, "run", run)
    worker._handle_together(list(range(6)), 1)
    ((handled, number),) = worker.method_queue.deferred
    assert number == 1
    assert sorted(h.connection for h in handled) == list(range(6))
    assert all(h.is_keepalive for h in handled)


def test_request_that_ends_its_thread_is_closed_and_no_other(
    worker: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    trip: Trip[int, int] = Trip(list)

    def respond(_self: Any, number: int) -> bool:
        if trip(number) == 2:
            raise SystemExit
        return True

    monkeypatch.setattr(WebWorker, "_respond", respond)
    worker._handle_together(list(range(4)), 1)
    ((handled, _),) = worker.method_queue.deferred
    errors = {h.connection: type(h.error) for h in handled}
    assert errors == {0: type(None), 1: type(None), 2: SystemExit, 3: type(None)}


def test_those_that_rest_are_handed_back_later(
    worker: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def respond(_self: Any, number: int) -> bool:
        if number < 2:
            lockstep.rest()
        return True

    monkeypatch.setattr(WebWorker, "_respond", respond)
    worker._handle_together(list(range(4)), 7)
    groups = [[h.connection for h in args[0]] for args in worker.method_queue.deferred]
    assert groups == [[2, 3], [0], [1]]
    assert [args[1:] for args in worker.method_queue.deferred] == [(), (), (7,)]
