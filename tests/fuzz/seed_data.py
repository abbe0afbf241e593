"""One object of each kind, created with the examples of the OpenAPI document."""

import json
import uuid
from dataclasses import dataclass
from typing import Any

from tests.support.clients.api import App
from tests.support.openapi import api_operations

ORDER = (
    "putRecipient",
    "putPreferences",
    "registerDevice",
    "joinTopic",
    "putSuppression",
    "putType",
    "createTemplateVersion",
    "putCallback",
    "createNotification",
    "createBroadcast",
    "createNotifications",
    "issueInboxToken",
    "previewNotification",
    "cleanUpNotifications",
)
"""Operations whose examples are sent. All must succeed."""
NAMED = {
    "notification_id": ("createNotification", "id"),
    "broadcast_id": ("createBroadcast", "id"),
    "device_id": ("registerDevice", "id"),
    "jti": ("issueInboxToken", "jti"),
}
"""Parameters, and the operation and response field that provide a value."""


KEYED = frozenset({"createNotifications", "createBroadcast"})
"""Operations that need an idempotency key."""


@dataclass(kw_only=True)
class Seeder:
    """Creates objects as a client."""

    app: App

    def everything(self) -> dict[str, str]:
        """Send the example requests. Return the created IDs by parameter name."""
        answers = {name: self._send(name) for name in ORDER}
        return {
            "user_id": "ada",
            "topic": "news",
            "slug": "payment_confirmed",
            "number": "1",
            **{name: answers[operation][field] for name, (operation, field) in NAMED.items()},
            "channel": "email",
            "address": "ada@example.com",
            "delivery_id": self.app.post("/callbacks/test").json()["id"],
            "cursor": self.app.get("/notifications", limit=1).json()["next"],
        }

    def another(self, parameter: str) -> str:
        """Create another object for a parameter. Return its ID."""
        operation, field = NAMED[parameter]
        return str(self._send(operation)[field])

    def _send(self, name: str) -> Any:
        operation = api_operations()[name]
        path = operation["path"]
        for parameter in operation["parameters"]:
            path = path.replace(f"{{{parameter['name']}}}", str(parameter.get("example")))
        body = operation.get("requestBody", {}).get("content", {}).get("application/json")
        content = body["examples"]["request"]["value"] if body else None
        if name == "createNotification":
            content = {**content, "channels": ["email", "in_app"]}
        if name == "createBroadcast":
            # An earlier request may have removed the topic's members.
            content = {**content, "audience": {"user_ids": ["ada"]}}
        if name == "putType":
            # Its schema takes less than that of the shipped type, which needs a confirmation.
            content = {**content, "schema_mode": "warn"}
        raw = b"" if content is None else json.dumps(content).encode()
        answer = self.app.send(
            path.removeprefix("/api/v1"),
            raw,
            method=operation["method"],
            headers={"Idempotency-Key": uuid.uuid4().hex} if name in KEYED else {},
        )
        assert answer.status_code < 300, (name, answer.content)
        return answer.json()
