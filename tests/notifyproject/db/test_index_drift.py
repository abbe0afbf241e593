"""``check_indexes``: declared and existing indexes."""

import io
from collections.abc import Iterator

import pytest
from django.core.management import CommandError, call_command
from pymongo import TEXT
from pymongo.operations import IndexModel

from notifications.models import Notification
from notifyproject.db import index_drift
from notifyproject.db.collections import database
from notifyproject.db.index_drift import Drift, Problem
from notifyproject.db.indexes import EXTERNAL_INDEXES

pytestmark = pytest.mark.usefixtures("db")
COLLECTION, NAME = "notifications", "ntf_due"


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    yield
    for item in index_drift.find_drift():
        if item.problem is not Problem.MISSING:
            database()[item.collection].drop_index(item.name)
    index_drift.create_missing()


def run(**options: bool) -> str:
    output = io.StringIO()
    call_command("check_indexes", stdout=output, **options)
    return output.getvalue()


def test_indexes_match_after_migrate() -> None:
    assert index_drift.find_drift() == []
    assert run() == "Every index is as declared.\n"


def test_declared_indexes_include_those_of_django() -> None:
    assert {index.name for index in Notification._meta.indexes} == set(
        index_drift.declared_indexes(Notification)
    )


def test_missing_index_is_reported_and_created() -> None:
    database()[COLLECTION].drop_index(NAME)
    assert index_drift.find_drift() == [Drift(COLLECTION, NAME, Problem.MISSING)]
    with pytest.raises(CommandError, match="--create creates missing"):
        run()
    assert run(create=True) == "notifications.ntf_due: created\nEvery index is as declared.\n"


@pytest.mark.parametrize("name", [index.name for index in EXTERNAL_INDEXES["django_admin_log"]])
def test_missing_index_of_a_model_of_django_is_reported(name: str) -> None:
    database()["django_admin_log"].drop_index(name)
    assert index_drift.find_drift() == [Drift("django_admin_log", name, Problem.MISSING)]


@pytest.mark.parametrize(
    "other",
    [
        IndexModel([("name", TEXT)], name="rcp_name"),
        IndexModel([("locale", TEXT)], name="rcp_name", default_language="none"),
    ],
    ids=["another language", "other words"],
)
def test_different_text_index_is_reported(other: IndexModel) -> None:
    database()["recipients"].drop_index("rcp_name")
    database()["recipients"].create_indexes([other])
    assert index_drift.find_drift() == [Drift("recipients", "rcp_name", Problem.DIFFERENT)]


def test_undeclared_index_is_reported_and_kept() -> None:
    database()[COLLECTION].create_indexes([IndexModel("content.subject", name="by_hand")])
    assert index_drift.find_drift() == [Drift(COLLECTION, "by_hand", Problem.UNDECLARED)]
    with pytest.raises(CommandError, match="Drop different and undeclared"):
        run(create=True)
    assert "by_hand" in database()[COLLECTION].index_information()


def test_index_of_a_hashed_shard_key_is_accepted() -> None:
    database()[COLLECTION].create_indexes([IndexModel([("user_id", "hashed")], name="by_shard")])
    try:
        assert index_drift.find_drift() == []
    finally:
        database()[COLLECTION].drop_index("by_shard")


@pytest.mark.parametrize(
    "other",
    [
        IndexModel([("due_at", 1), ("priority", 1)], name=NAME),
        IndexModel([("priority", 1), ("due_at", 1)], name=NAME),
        IndexModel("due_at", name=NAME, expireAfterSeconds=0),
    ],
    ids=["the keys in another order", "not partial", "an expiry"],
)
def test_different_index_of_the_same_name_is_reported(other: IndexModel) -> None:
    database()[COLLECTION].drop_index(NAME)
    database()[COLLECTION].create_indexes([other])
    assert index_drift.find_drift() == [Drift(COLLECTION, NAME, Problem.DIFFERENT)]
