"""A request that relies on copies of the configuration, while another process changes it."""

from collections.abc import Callable
from typing import Any

import pytest
from bson import ObjectId

from access.clients import registry
from access.models import Scope
from domain.time import utc_now
from notifyproject.db.collections import collection
from tests.support.clients.api import App, new_app

pytestmark = pytest.mark.usefixtures("db", "broker")
WRITE = Scope.NOTIFICATIONS_WRITE.value


def write(name: str, wanted: dict[str, Any], change: dict[str, Any]) -> None:
    """Change a document and its cache's version, as another process does."""
    collection(name).update_one(wanted, change)
    cache_name = {"notification_types": "types"}.get(name, name)
    collection("cache_versions").update_one({"_id": "all"}, {"$set": {cache_name: ObjectId()}})


def revoke(app: App) -> None:
    write("api_clients", {"_id": app.id}, {"$set": {"keys.$[].revoked_at": utc_now()}})


def unrevoke(app: App) -> None:
    write("api_clients", {"_id": app.id}, {"$unset": {"keys.$[].revoked_at": 1}})


def withdraw(app: App) -> None:
    write("api_clients", {"_id": app.id}, {"$pull": {"scopes": WRITE}})


def grant(app: App) -> None:
    write("api_clients", {"_id": app.id}, {"$addToSet": {"scopes": WRITE}})


def disable(_: App) -> None:
    write("notification_types", {"_id": "payment_confirmed"}, {"$set": {"is_active": False}})


def enable(_: App) -> None:
    write("notification_types", {"_id": "payment_confirmed"}, {"$set": {"is_active": True}})


@pytest.fixture
def app() -> App:
    app = new_app("app", Scope.NOTIFICATIONS_WRITE)
    # The first request of a process compares versions; a version must exist to be relied on.
    registry.issue_key(client_id=app.id, now=utc_now())
    assert app.notify().status_code == 202
    return app


@pytest.mark.parametrize(
    ("before", "change", "status"),
    [
        (None, revoke, 401),
        (revoke, unrevoke, 202),
        (None, withdraw, 403),
        (withdraw, grant, 202),
        (None, disable, 422),
        (disable, enable, 202),
    ],
    ids=lambda item: getattr(item, "__name__", str(item)),
)
def test_change_by_another_process_applies_to_the_next_request(
    app: App, before: Callable[[App], None] | None, change: Callable[[App], None], status: int
) -> None:
    if before is not None:
        before(app)
        assert app.notify().status_code in (401, 403, 422)
    change(app)
    assert app.notify().status_code == status


@pytest.mark.parametrize("recipient", [{"email": "ada@example.com"}, {"email": "no address"}])
def test_request_that_starts_again_counts_and_stores_once(
    app: App, recipient: dict[str, str], settings: Any
) -> None:
    settings.RATE_LIMIT_WRITE = 20
    remaining = int(app.notify(recipient=recipient).headers["RateLimit-Remaining"])
    stored = collection("notifications").count_documents({})
    enable(app)
    answer = app.notify(recipient=recipient)
    assert int(answer.headers["RateLimit-Remaining"]) == remaining - 1
    added = collection("notifications").count_documents({}) - stored
    assert added == (answer.status_code == 202)
