"""The description of the inbox: what takes which credential, and what is answered."""

from typing import Any

import pytest
from drf_spectacular.generators import SchemaGenerator

HIDDEN = {"recipient", "delivery", "data", "error", "error_history", "status", "user_id"}


@pytest.fixture(scope="module")
def described() -> Any:
    """Generate it once."""
    return SchemaGenerator().get_schema(request=None, public=True)


def operations(described: Any, *, of_tokens: bool) -> dict[str, Any]:
    return {
        operation["operationId"]: operation
        for path, methods in described["paths"].items()
        for operation in methods.values()
        if path.startswith("/api/v1/inbox") and ("/tokens" in path) is of_tokens
    }


def test_people_use_an_inbox_token_and_apps_a_key(described: Any) -> None:
    schemes = described["components"]["securitySchemes"]
    assert schemes["inboxToken"] == {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}
    for operation in operations(described, of_tokens=False).values():
        assert operation["security"] == [{"inboxToken": []}]
        assert "x-scope" not in operation
        assert "403" not in operation["responses"]
    for operation in operations(described, of_tokens=True).values():
        assert operation["security"] == [{"apiKey": []}]
        assert operation["x-scope"] == "inbox:issue"


def test_everything_is_described(described: Any) -> None:
    assert set(operations(described, of_tokens=False)) == {
        *("listInbox", "countInbox", "readAllInbox", "streamInbox"),
        *("readInboxItem", "unreadInboxItem", "archiveInboxItem", "unarchiveInboxItem"),
    }
    assert set(operations(described, of_tokens=True)) == {
        *("issueInboxToken", "revokeInboxToken", "revokeInboxTokens"),
    }
    stream = operations(described, of_tokens=False)["streamInbox"]
    assert "text/event-stream" in stream["responses"]["200"]["content"]
    assert {"400", "401", "421", "429", "503"} <= set(stream["responses"])
    assert [p["name"] for p in stream["parameters"]] == ["Last-Event-ID"]


def test_an_item_has_no_field_that_is_not_its_owners(described: Any) -> None:
    fields = described["components"]["schemas"]["InboxItem"]["properties"]
    assert not HIDDEN & set(fields)
