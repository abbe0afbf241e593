"""Small reads and inserts that requests of a step make together."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from pymongo import monitoring
from pymongo.errors import DuplicateKeyError, OperationFailure, PyMongoError, WriteConcernError

from notifications.documents.records import IDEMPOTENCY_KEYS
from notifyproject.db.collections import Documents, collection
from notifyproject.db.trips import find_few, find_in_several, insert_shared
from recipients.documents import RECIPIENTS, SUPPRESSIONS
from tests.support.fakes.mongo_failpoints import (
    CUT,
    LOST_ANSWER,
    NOT_PRIMARY,
    STEPS_DOWN,
    fail_commands,
)
from tests.support.tables import each_case
from tests.support.together import together

pytestmark = pytest.mark.usefixtures("db")
PEOPLE: Documents[Any] = Documents(RECIPIENTS.name, dict)
KEYS: Documents[Any] = Documents(IDEMPOTENCY_KEYS.name, dict)
MARKS: Documents[Any] = Documents(SUPPRESSIONS.name, dict)


class _Commands(monitoring.CommandListener):
    def __init__(self) -> None:
        self.names: list[str] = []

    def started(self, event: monitoring.CommandStartedEvent) -> None:
        if event.command_name in ("find", "aggregate", "insert"):
            self.names.append(event.command_name)

    def succeeded(self, event: monitoring.CommandSucceededEvent) -> None:
        pass

    def failed(self, event: monitoring.CommandFailedEvent) -> None:
        pass


COMMANDS = _Commands()
monitoring.register(COMMANDS)


@pytest.fixture
def commands() -> list[str]:
    """Return the names of the commands that read and insert, from now on."""
    COMMANDS.names = []
    return COMMANDS.names


@pytest.fixture
def _stored() -> None:
    for name in ("ada", "bob", "eve"):
        collection(PEOPLE.name).insert_one(
            {"_id": name, "is_active": name != "eve", "names": [name], "key": f"p:{name}"}
        )
        collection(MARKS.name).insert_one({"_id": name, "key": f"e:{name}"})
        collection(MARKS.name).insert_one({"_id": f"{name}-2", "key": f"e:{name}"})


def person(*names: str) -> dict[str, Any]:
    return {PEOPLE.name: {"_id": {"$in": list(names)}, "is_active": True}}


def marks(*names: str) -> dict[str, Any]:
    return {MARKS.name: {"key": {"$in": [f"e:{name}" for name in names]}}}


READS: tuple[tuple[Callable[[], Any], ...], ...] = (
    tuple(partial(find_in_several, person(name)) for name in ("ada", "bob", "eve", "nobody")),
    tuple(partial(find_in_several, person(name) | marks(name)) for name in ("ada", "bob", "eve")),
    tuple(partial(find_in_several, person("ada") | marks("ada")) for _ in range(3)),
    (
        partial(find_in_several, person("ada", "bob") | marks("ada", "bob")),
        partial(find_in_several, person("bob")),
        partial(find_in_several, marks("bob", "eve")),
    ),
    tuple(partial(find_few, MARKS, marks("ada")[MARKS.name], limit=n) for n in (1, 2, 3)),
    tuple(partial(find_few, PEOPLE, {"_id": name}, limit=1) for name in ("ada", "bob", "nobody")),
    tuple(
        partial(find_few, PEOPLE, {"_id": name, "key": f"p:{name}"}, limit=1)
        for name in ("ada", "bob")
    ),
    (
        partial(find_few, PEOPLE, {"_id": "ada"}, limit=1),
        partial(find_few, PEOPLE, {"is_active": True}, limit=9),
        partial(find_few, PEOPLE, {"_id": {"$gt": "ada"}}, limit=9),
    ),
    tuple(partial(find_few, PEOPLE, {"names": name}, limit=1) for name in ("ada", "bob")),
)


@pytest.mark.usefixtures("_stored")
@each_case("reads", READS)
def test_read_together_finds_what_it_finds_alone(reads: tuple[Callable[[], Any], ...]) -> None:
    assert together(*reads) == [read() for read in reads]


@pytest.mark.usefixtures("_stored")
def test_reads_of_different_values_are_one_request(commands: list[str]) -> None:
    together(*READS[1])
    assert commands == ["aggregate"]


@pytest.mark.usefixtures("_stored")
def test_document_of_two_readers_is_no_shared_object() -> None:
    first, second = together(*(partial(find_few, PEOPLE, {"_id": "ada"}, limit=1),) * 2)
    first[0]["names"].append("changed")
    assert second[0]["names"] == ["ada"]


def test_more_than_fits_into_one_response_is_read_by_each() -> None:
    for name in ("ada", "bob"):
        collection(PEOPLE.name).insert_one({"_id": name, "text": "x" * 9_000_000})
    found = together(
        *(partial(find_few, PEOPLE, {"_id": name}, limit=1) for name in ("ada", "bob"))
    )
    assert [(rows[0]["_id"], len(rows[0]["text"])) for rows in found] == [
        ("ada", 9_000_000),
        ("bob", 9_000_000),
    ]


def keys(*names: Any) -> list[Callable[[], None]]:
    documents = ({"_id": name, "number": number} for number, name in enumerate(names))
    return [partial(insert_shared, KEYS, document) for document in documents]


def stored() -> dict[str, int]:
    return {found["_id"]: found["number"] for found in collection(KEYS.name).find()}


def test_inserts_are_one_request_for_each_collection(commands: list[str]) -> None:
    assert together(*keys("a", "b"), partial(insert_shared, MARKS, {"_id": 1})) == [None] * 3
    assert commands == ["insert", "insert"]
    assert stored() == {"a": 0, "b": 1}


def test_duplicate_fails_alone_and_as_it_does_alone() -> None:
    keys("taken")[0]()
    results = together(*keys("a", "taken", "b", "b"))
    assert [type(result) for result in results] == [
        type(None),
        DuplicateKeyError,
        type(None),
        DuplicateKeyError,
    ]
    with pytest.raises(DuplicateKeyError) as alone:
        keys("taken")[0]()
    assert str(results[1]).partition(", full error")[0] == str(alone.value).partition(", full")[0]
    assert results[1].details["keyValue"] == {"_id": "taken"}
    assert stored() == {"taken": 0, "a": 0, "b": 2}


def test_document_that_cannot_be_encoded_fails_alone() -> None:
    results = together(*keys("a", "\ud800", "b"), *keys(2**70))
    assert [isinstance(result, Exception) for result in results] == [False, True, False, True]
    assert sorted(stored()) == ["a", "b"]


@each_case("trouble", [NOT_PRIMARY, CUT])
def test_insert_is_repeated_while_a_primary_is_elected(trouble: Any) -> None:
    collection(KEYS.name).delete_many({})
    with fail_commands("insert", KEYS.name, trouble):
        assert together(*keys("a", "b")) == [None, None]
    assert stored() == {"a": 0, "b": 1}


@each_case("trouble", [NOT_PRIMARY, CUT])
def test_failed_insert_fails_for_each(trouble: Any) -> None:
    with fail_commands("insert", KEYS.name, trouble, times=9):
        results = together(*keys("a", "b", "c"))
    assert all(isinstance(result, PyMongoError) for result in results)
    assert len({id(result) for result in results}) == 3
    assert stored() == {}


@each_case("trouble", [LOST_ANSWER, STEPS_DOWN])
def test_insert_without_a_majority_succeeds_for_none(trouble: Any) -> None:
    collection(KEYS.name).update_one({"_id": "taken"}, {"$set": {"number": 1}}, upsert=True)
    with fail_commands("insert", KEYS.name, trouble, times=9):
        results = together(*keys("a", "taken", "c"))
    assert [type(result) for result in results] == [
        WriteConcernError,
        DuplicateKeyError,
        WriteConcernError,
    ]
    collection(KEYS.name).delete_many({"_id": {"$in": ["a", "c"]}})


@each_case("trouble", [NOT_PRIMARY, CUT])
def test_read_is_repeated_while_a_primary_is_elected(trouble: Any) -> None:
    collection(PEOPLE.name).update_one({"_id": "ada"}, {"$set": {"number": 1}}, upsert=True)
    with fail_commands("aggregate", PEOPLE.name, trouble):
        first, second = together(
            partial(find_few, PEOPLE, {"_id": "ada"}, limit=1),
            partial(find_few, PEOPLE, {"_id": "bob"}, limit=1),
        )
    assert (len(first), second) == (1, [])


@pytest.mark.usefixtures("_stored")
def test_filter_that_cannot_be_encoded_fails_alone() -> None:
    results = together(
        *(partial(find_few, PEOPLE, {"_id": name}, limit=1) for name in ("ada", "\ud800", "bob"))
    )
    assert [isinstance(result, Exception) for result in results] == [False, True, False]
    assert [result[0]["_id"] for result in (results[0], results[2])] == ["ada", "bob"]


@pytest.mark.usefixtures("_stored")
def test_list_with_other_values_belongs_to_those_whose_value_it_has(commands: list[str]) -> None:
    names = ["ada", {"former": "eve"}, ["bob"]]
    collection(PEOPLE.name).update_one({"_id": "ada"}, {"$set": {"names": names}})
    found = together(
        *(partial(find_few, PEOPLE, {"names": name}, limit=1) for name in ("ada", "bob"))
    )
    assert [[row["_id"] for row in rows] for rows in found] == [["ada"], ["bob"]]
    assert commands == ["aggregate"]


def test_failed_read_fails_for_each() -> None:
    with fail_commands("aggregate", PEOPLE.name, {"errorCode": 2}, times=9):
        results = together(
            partial(find_few, PEOPLE, {"_id": "ada"}, limit=1),
            partial(find_few, PEOPLE, {"_id": "bob"}, limit=1),
        )
    assert [type(result) for result in results] == [OperationFailure] * 2
