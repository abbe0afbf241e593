"""Recipients who read their inbox with a token."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import jwt
from bson import ObjectId
from django.conf import settings

from access.clients import inbox_tokens
from domain.channels import Channel
from domain.time import utc_now
from notifications.documents.notification import NotificationDocument
from tests.support.clients.api import Answer, App
from tests.support.factories import notifications as factories

IN_APP = Channel.IN_APP


@dataclass(kw_only=True)
class InboxUser:
    """A recipient with an inbox token."""

    app: App
    user_id: str = "ada"
    token: str = ""

    def __post_init__(self) -> None:
        self.token = self.token or token(self.app, self.user_id)

    def get(self, path: str = "", **query: Any) -> Answer:
        return self.send("GET", path, query)

    def post(self, path: str, body: Any = None) -> Answer:
        return self.send("POST", path, body=body)

    def put(self, path: str, body: Any) -> Answer:
        return self.send("PUT", path, body=body)

    def send(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        body: Any = None,
    ) -> Answer:
        answer = self.app.http.generic(
            method,
            f"/api/v1/inbox{path}",
            b"" if body is None else json.dumps(body).encode(),
            content_type="application/json",
            query_params=query,
            headers={"Authorization": f"Bearer {self.token}", **(headers or {})},
        )
        return self.app._checked(answer)

    def ids(self, **query: Any) -> list[str]:
        return [item["id"] for item in self.get(**query).json()["results"]]

    def counts(self) -> tuple[int, int]:
        counts = self.get("/counts").json()
        return counts["unread"], counts["unseen"]


def token(app: App, user_id: str = "ada", *, now: datetime | None = None) -> str:
    now = now or utc_now()
    return inbox_tokens.issue(client_id=app.id, user_id=user_id, now=now).text


def credential_for(app: App, path: str) -> dict[str, str]:
    """Return the header of an inbox token for a path of the inbox, otherwise nothing."""
    is_inbox = path.startswith("/inbox/") and not path.startswith("/inbox/tokens")
    return {"Authorization": f"Bearer {token(app)}"} if is_inbox else {}


def claims_of(text: str) -> dict[str, Any]:
    """Return a token's claims without verification."""
    claims: dict[str, Any] = jwt.decode(text, options={"verify_signature": False})
    return claims


def forged(text: str, *, key: str | None = None, algorithm: str = "HS256", **claims: Any) -> str:
    """Return a token with other claims. The value ... leaves a claim out."""
    kept = {name: v for name, v in {**claims_of(text), **claims}.items() if v is not ...}
    key = settings.INBOX_SIGNING_KEY if key is None else key
    return jwt.encode(kept, key, algorithm=algorithm)


def delivered(app: App, **fields: Any) -> NotificationDocument:
    return factories.accepted(**{"client_id": app.id, "channels": [IN_APP], **fields})


def at(seconds: int) -> datetime:
    return datetime.fromtimestamp(factories.NOON.timestamp() + seconds, UTC)


def unknown_id() -> str:
    return str(ObjectId())
