"""Browsers of a sandbox, and pushes to them."""

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import urllib3

from devices import subscriptions, tokens
from devices.push_keys import VapidKey, new_key
from domain.web_push import (
    SealedSubscription,
    Subscription,
    decode_base64url,
    endpoint_host,
    fingerprint,
)
from providers.contract import Message, SendRequest
from providers.webpush.provider import WebPush
from sandbox.assembly import Sandbox
from tests.support.factories.notifications import outbound

THREAD = "b" * 24
SUBJECT = "mailto:push@example.com"
PUBLIC_URL, HOME = "https://notify.example.com", "https://app.example.com/"
GOOGLE, MOZILLA = "fcm.googleapis.com", "updates.push.services.mozilla.com"
APPLE, MICROSOFT = "web.push.apple.com", "wns2-par02p.notify.windows.com"
HOSTS = (GOOGLE, MOZILLA, APPLE, MICROSOFT)
SERVICES = (
    "fcm.googleapis.com",
    "push.services.mozilla.com",
    "push.apple.com",
    "notify.windows.com",
)


def sealed(found: Subscription) -> SealedSubscription:
    device_id = tokens.device_id(found.endpoint)
    return subscriptions.sealed({"_id": device_id, "subscription": subscriptions.stored(found)})


def push(subscription: SealedSubscription, **fields: Any) -> SendRequest:
    default: dict[str, Any] = {
        "reference": f"{THREAD}.push.1",
        "notification_id": THREAD,
        "recipient": "",
        "message": Message(subject="Paid", text="Your payment has arrived."),
        "platform": "web",
        "scope": subscription.host,
        "subscription": subscription,
    }
    return outbound(**(default | fields))


@dataclass(frozen=True, kw_only=True)
class PushServices:
    """The push services of a sandbox, and the service's keys for them."""

    sandbox: Sandbox

    @cached_property
    def key(self) -> VapidKey:
        return new_key()

    def provider(self, *keys: VapidKey, **fields: Any) -> WebPush:
        default: dict[str, Any] = {
            "keys": [key.private_text for key in keys or (self.key,)],
            "subject": SUBJECT,
            "public_url": PUBLIC_URL,
            "home": HOME,
            "clock": lambda: datetime.now(UTC),
        }
        return WebPush(**(default | fields))

    def json(self, host: str, name: str, *, key: VapidKey | None = None) -> dict[str, Any]:
        """Return a new subscription as a browser gives it. A ``key`` is the only one for it."""
        body = {"host": host, "name": name}
        if key is not None:
            body["application_server_key"] = key.public_text
        return self.control("POST", "/webpush/subscriptions", body)

    def subscribe(
        self,
        host: str = MOZILLA,
        name: str = "ada",
        *,
        key: VapidKey | None = None,
        registered_as: VapidKey | None = None,
    ) -> SealedSubscription:
        """Return a stored subscription. The device may have been registered with another key."""
        found = self.json(host, name, key=key)
        known = registered_as or key or self.key
        return sealed(
            Subscription(
                endpoint=found["endpoint"],
                host=endpoint_host(found["endpoint"], services=SERVICES, stand_in=self.sandbox.url),
                p256dh=decode_base64url(found["keys"]["p256dh"]),
                auth=decode_base64url(found["keys"]["auth"]),
                fingerprint=fingerprint(known.public),
            )
        )

    def requests(self) -> list[dict[str, Any]]:
        found = self.control("GET", "/requests?provider=webpush&limit=1000")["results"]
        return found[::-1]

    def shown(self) -> list[dict[str, Any]]:
        """Return what the browsers show, oldest first."""
        return [request["body"]["push"]["notification"] for request in self.requests()]

    def control(self, method: str, path: str, body: Any = None) -> Any:
        with urllib3.PoolManager(retries=False) as pool:
            answer = pool.request(method, f"{self.sandbox.url}/_sandbox{path}", json=body)
            assert answer.status < 300, answer.data
            return answer.json() if answer.data else None
