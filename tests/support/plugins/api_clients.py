"""An app that calls the API."""

from collections.abc import Callable
from typing import Any

import pytest
from bson import ObjectId

from notifyproject.db.collections import collection
from tests.support.clients.api import Answer, App, new_app


@pytest.fixture
def app(db: None, broker: Any) -> App:
    """Give a test an app with every scope."""
    return new_app("app")


@pytest.fixture
def other_app(db: None) -> App:
    """Give a test another app with every scope."""
    return new_app("other app")


@pytest.fixture
def stored(db: None) -> Callable[[Answer], dict[str, Any]]:
    """Give a test a look at what is stored."""
    return lambda answer: collection("notifications").find_one(
        {"_id": ObjectId(answer.json()["id"])}
    )
