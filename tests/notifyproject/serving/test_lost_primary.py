"""POSTs that run together while the database's primary freezes, steps down, or is killed."""

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from bson import ObjectId
from pymongo import MongoClient
from pymongo.read_concern import ReadConcern

from bench.chaos.replicas import ReplicaSet
from notifyproject.db.collections import collection, database
from notifyproject.serving.connection import LIGHT_PATH
from notifyproject.stack.servers import HOST, Server
from tests.support.clients.api import App, request
from tests.support.clients.raw_http import Answered, Answers, post
from tests.support.fakes.mongo_failpoints import Trouble
from tests.support.served_program import Serve, Served
from tests.support.subprocess import paused
from tests.support.tables import each_case
from tests.support.waiting import until

pytestmark = [pytest.mark.usefixtures("db"), pytest.mark.slow]
DATABASE = "lost_primary"
COUNT = 12
BLOCKED: Trouble = {"blockConnection": True, "blockTimeMS": 1_500}
"""The insert waits in MongoDB until the trouble has begun."""


@pytest.fixture
def members(tmp_path: Path, app: App) -> Iterator[ReplicaSet]:
    """Run three members with the documents of the test's database."""
    found = ReplicaSet(folder=tmp_path, members=3, parameters=("enableTestCommands=1",))
    try:
        found.start()
        with MongoClient[Any](found.uri(DATABASE)) as client:
            for name in database().list_collection_names():
                if documents := list(collection(name).find()):
                    client[DATABASE][name].insert_many(documents)
        yield found
    finally:
        found.stop()


@pytest.fixture
def lasting(members: ReplicaSet, serve: Serve) -> Served:
    """Run a web process on these members."""
    return serve(MONGODB_URI=members.uri(DATABASE), RATE_LIMIT_WRITE="0")


@contextmanager
def frozen(_members: ReplicaSet, primary: Server) -> Iterator[None]:
    assert primary.process is not None
    with paused(primary.process.pid):
        yield


@contextmanager
def without_majority(members: ReplicaSet, primary: Server) -> Iterator[None]:
    other = next(member for member in members.members if member is not primary)
    with frozen(members, primary), frozen(members, other):
        yield


@contextmanager
def stepped_down(members: ReplicaSet, _primary: Server) -> Iterator[None]:
    members.step_down(seconds=10)
    yield


@contextmanager
def killed(_members: ReplicaSet, primary: Server) -> Iterator[None]:
    primary.kill()
    yield
    primary.start()


InTrouble = Callable[[ReplicaSet, Server], AbstractContextManager[None]]


@each_case("in_trouble", [frozen, without_majority, stepped_down, killed])
def test_each_202_is_stored_and_every_other_answer_says_so(
    members: ReplicaSet, lasting: Served, app: App, in_trouble: InTrouble
) -> None:
    with ExitStack() as stack:
        clients = [stack.enter_context(lasting.connect()) for _ in range(COUNT)]
        later = [stack.enter_context(lasting.connect()) for _ in range(COUNT)]
        assert {answer.status for answer in answers(clients, app.key)} == {202}
        primary = members.primary()
        assert primary is not None
        with inserts_blocked(primary) as is_inserting:
            waiting = [send(client, app.key) for client in clients]
            until(is_inserting)
            with in_trouble(members, primary):
                found = answers(later, app.key)
                found += [answer.next() for answer in waiting]
        members.wait_healthy()
        is_stored = stored(members)
        for answer in found:
            assert answer.status in (202, 503), answer.body
            if answer.status == 202:
                assert is_stored(answer)
            else:
                assert answer.problem()["code"] == "store_unavailable"
                assert answer.headers["retry-after"]
        after = [stack.enter_context(lasting.connect()) for _ in range(COUNT)]
        assert {answer.status for answer in answers(after, app.key)} == {202}


def send(client: Any, key: str) -> Answers:
    body = json.dumps(request()).encode()
    headers = (f"Authorization: Bearer {key}", f"Content-Length: {len(body)}")
    client.sendall(post(*headers, body=body, path=LIGHT_PATH))
    return Answers(client)


def answers(clients: list[Any], key: str) -> list[Answered]:
    return [waiting.next() for waiting in [send(client, key) for client in clients]]


@contextmanager
def inserts_blocked(primary: Server) -> Iterator[Callable[[], bool]]:
    """Let the next insert of a notification wait; yield whether it does."""
    data = {"failCommands": ["insert"], "namespace": f"{DATABASE}.notifications", **BLOCKED}
    with MongoClient[Any](HOST, primary.port, directConnection=True) as client:
        point = {"configureFailPoint": "failCommand", "mode": {"times": 1}, "data": data}
        client.admin.command(point)
        running = [{"$currentOp": {}}, {"$match": {"command.insert": "notifications"}}]
        yield lambda: bool(list(client.admin.aggregate(running)))


def stored(members: ReplicaSet) -> Callable[[Answered], bool]:
    """Return whether a majority has the notification of an answer."""
    with MongoClient[Any](members.uri(DATABASE)) as client:
        written = client.get_database(DATABASE, read_concern=ReadConcern("majority"))
        ids = {document["_id"] for document in written["notifications"].find({}, {"_id": 1})}
    return lambda answer: ObjectId(json.loads(answer.body)["id"]) in ids
