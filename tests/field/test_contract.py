"""The OpenAPI document as generators of clients read it."""

from typing import Any

import pytest

from tests.support.openapi import api_document
from tests.support.tables import each_case


@pytest.fixture(scope="module")
def schemas() -> Any:
    return api_document()["components"]["schemas"]


@each_case(
    "field",
    [
        "NotificationRequest.data",
        "ContentRequest.payload",
        "BroadcastRequest.data",
        "RecipientRequest.attributes",
        "TypeRequest.example_data",
        "NotificationView.data",
        "ContentView.payload",
        "AttemptView.platform_response",
    ],
)
def test_free_object_takes_any_field(schemas: Any, field: str) -> None:
    """Without additionalProperties, a generated type takes none:
    https://github.com/openapi-ts/openapi-typescript/issues/1115 and /1686; with anyOf, /1514."""
    structure, _, name = field.partition(".")
    schema = schemas[structure]["properties"][name]
    (free,) = [item for item in [schema, *schema.get("anyOf", ())] if item.get("type") == "object"]
    assert free["additionalProperties"] is True


@each_case(
    "field",
    [
        "NotificationRequest.recipient",
        "NotificationRequest.data",
        "NotificationRequest.ignore_limits",
        "NotificationRecipientRequest.device_ids",
        "ContentRequest.attachments",
        "TypeRequest.priority",
        "LimitRequest.overflow",
    ],
)
def test_field_of_a_request_with_a_default_is_optional(schemas: Any, field: str) -> None:
    """Generated types require a field with a default:
    https://github.com/openapi-ts/openapi-typescript/issues/1741, /664, and /2012."""
    structure, _, name = field.partition(".")
    assert "default" not in schemas[structure]["properties"][name]
    assert name not in schemas[structure].get("required", ())
