"""``manage.py redrive`` previews, and starts only what was confirmed, with a name and a reason."""

import io
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from domain.states import BulkOutcome
from notifications.bulk import repository, runner
from notifyproject.db.collections import collection
from tests.support.clients.console import make_staff
from tests.support.factories.bulk import Time, failed, statuses
from tests.support.factories.notifications import NOON


def redrive(**options: Any) -> str:
    """Return what the command prints."""
    output = io.StringIO()
    call_command("redrive", stdout=output, **options)
    return output.getvalue()


@pytest.mark.parametrize("options", [{}, {"dry_run": True}])
def test_without_a_yes_it_previews_and_leaves_nothing(clock: Time, options: dict[str, Any]) -> None:
    ids = failed(2)
    told = redrive(
        channel="email", code="provider_error", since=f"{NOON:%Y-%m-%dT%H:%M:%SZ}", **options
    )
    assert "2 notifications with failures:" in told
    assert "2 safe: would be retried" in told
    assert "Nothing was changed." in told
    assert statuses(ids) == ["failed"] * 2
    assert collection("operations").count_documents({}) == 0


def test_with_a_yes_it_starts_what_workers_go_on_with(clock: Time) -> None:
    ids = failed(2)
    make_staff("maria", superuser=True)
    told = redrive(yes=True, by="maria", reason="SendGrid is back", per_second=500)
    (document,) = collection("operations").find()
    assert f"Bulk operation {document['_id']} is running" in told
    runner.run(document["_id"])
    found = repository.get(document["_id"])
    assert found is not None
    assert found.counts == {BulkOutcome.DONE: 2}
    assert found.started_by is not None
    assert found.started_by.username == "maria"
    assert statuses(ids) == ["pending"] * 2


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"yes": True, "reason": "x"}, "--by takes the username of an operator"),
        ({"yes": True, "reason": "x", "by": "rui"}, "--by takes the username of an operator"),
        ({"yes": True, "by": "maria"}, "A reason is required"),
        ({"since": "yesterday"}, "--since: Expected a time"),
    ],
)
def test_what_is_missing_is_said_and_nothing_is_done(
    clock: Time, options: dict[str, Any], told: str
) -> None:
    ids = failed()
    make_staff("maria", superuser=True)
    make_staff("rui", "notifications.view_notification")
    with pytest.raises(CommandError, match=told):
        redrive(**options)
    assert statuses(ids) == ["failed"]
    assert collection("operations").count_documents({}) == 0
