"""``manage.py redrive``: previews, and starts only with a name and a reason."""

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
from tests.support.tables import each_case


def redrive(**options: Any) -> str:
    output = io.StringIO()
    call_command("redrive", stdout=output, **options)
    return output.getvalue()


@pytest.mark.parametrize("options", [{}, {"dry_run": True}])
def test_command_without_yes_previews_only(clock: Time, options: dict[str, Any]) -> None:
    ids = failed(2)
    output = redrive(
        channel="email", code="provider_error", since=f"{NOON:%Y-%m-%dT%H:%M:%SZ}", **options
    )
    assert "2 notifications with failures:" in output
    assert "2 safe: would be retried" in output
    assert "Nothing was changed." in output
    assert statuses(ids) == ["failed"] * 2
    assert collection("operations").count_documents({}) == 0


def test_command_with_yes_starts_the_operation(clock: Time) -> None:
    ids = failed(2)
    make_staff("maria", superuser=True)
    output = redrive(yes=True, by="maria", reason="SendGrid is back", per_second=500)
    (document,) = collection("operations").find()
    assert f"Bulk operation {document['_id']} is running" in output
    runner.run(document["_id"])
    found = repository.get(document["_id"])
    assert found is not None
    assert found.counts == {BulkOutcome.DONE: 2}
    assert found.started_by is not None
    assert found.started_by.username == "maria"
    assert statuses(ids) == ["pending"] * 2


@pytest.fixture
def staff(clock: Time) -> None:
    make_staff("maria", superuser=True)
    make_staff("rui", "notifications.view_notification")


@pytest.mark.usefixtures("staff")
@each_case(
    "options, output",
    [
        ({"yes": True, "reason": "x"}, "--by takes the username of an operator"),
        ({"yes": True, "reason": "x", "by": "rui"}, "--by takes the username of an operator"),
        ({"yes": True, "by": "maria"}, "A reason is required"),
        ({"since": "yesterday"}, "--since: Expected a time"),
    ],
)
def test_command_refuses_missing_options(clock: Time, options: dict[str, Any], output: str) -> None:
    ids = failed()
    with pytest.raises(CommandError, match=output):
        redrive(**options)
    assert statuses(ids) == ["failed"]
    assert collection("operations").count_documents({}) == 0
