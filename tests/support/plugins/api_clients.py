"""API clients."""

from collections.abc import Callable
from typing import Any

import pytest
from bson import ObjectId

from notifications import request_log
from notifications.request_log import RequestLog
from notifyproject.db.collections import collection
from tests.support.clients.api import Answer, App, new_app


@pytest.fixture
def app(db: None, broker: Any) -> App:
    return new_app("app")


@pytest.fixture
def other_app(db: None) -> App:
    return new_app("other app")


@pytest.fixture
def noted(settings: Any, monkeypatch: pytest.MonkeyPatch) -> RequestLog:
    """Return the log of requests of this process, which the test stores itself."""
    settings.REQUEST_LOG_DAYS = 7
    found = RequestLog()
    monkeypatch.setattr(request_log, "note", found.add)
    return found


@pytest.fixture
def stored(db: None) -> Callable[[Answer], dict[str, Any]]:
    return lambda answer: collection("notifications").find_one(
        {"_id": ObjectId(answer.json()["id"])}
    )
