"""A Firebase project in the sandbox, and a push to it."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import urllib3

from providers.contract import Message, SendRequest
from providers.fcm.provider import FCM
from sandbox.assembly import Sandbox
from sandbox.credentials import SERVICE_ACCOUNT_EMAIL
from tests.support.factories.notifications import outbound

THREAD = "a" * 24
TOKENS = "google-oauth"


def now() -> datetime:
    """Return the present time, because Google refuses assertions of another time."""
    return datetime.now(UTC)


def push(token: str = "device-1", **fields: Any) -> SendRequest:
    default: dict[str, Any] = {
        "reference": f"{THREAD}.push.1",
        "notification_id": THREAD,
        "recipient": token,
        "message": Message(subject="Paid", text="Your payment has arrived."),
        "platform": "android",
    }
    chosen = default | fields
    return outbound(**{"scope": chosen["platform"], **chosen})


@dataclass(frozen=True, kw_only=True)
class Project:
    sandbox: Sandbox

    @property
    def key(self) -> dict[str, str]:
        """The service account's JSON."""
        return json.loads(Path(self.sandbox.service_account).read_text())

    def fcm(self, **fields: Any) -> FCM:
        default: dict[str, Any] = {
            "credentials": str(self.sandbox.service_account),
            "base_url": self.sandbox.url,
            "clock": now,
        }
        return FCM(**(default | fields))

    def requests(self, provider: str = "fcm") -> list[dict[str, Any]]:
        found = self.control("GET", f"/requests?provider={provider}&limit=1000")["results"]
        return found[::-1]

    def sent(self) -> list[dict[str, Any]]:
        return [request["body"]["message"] for request in self.requests()]

    def token_endpoint(self, outcome: str, *, times: int | None = None) -> None:
        """Script the outcome of access token requests."""
        self.control(
            "PUT", f"/behaviours/{SERVICE_ACCOUNT_EMAIL}", {"outcome": outcome, "times": times}
        )

    def control(self, method: str, path: str, body: Any = None) -> Any:
        with urllib3.PoolManager(retries=False) as pool:
            answer = pool.request(method, f"{self.sandbox.url}/_sandbox{path}", json=body)
            assert answer.status < 300, answer.data
            return answer.json() if answer.data else None
