"""Signed webhooks of providers."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from domain.time import utc_now
from sandbox import credentials
from sandbox.assembly import Sandbox
from sandbox.providers.sendgrid import events as sendgrid
from sandbox.providers.whatsapp import events as whatsapp
from sandbox.providers.whatsapp.errors import Fault

ADA, PHONE = "ada@example.com", "+447700900999"


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """A webhook's path, body, and headers."""

    path: str
    body: bytes
    headers: Mapping[str, str]

    @classmethod
    def of(cls, kind: str, *, channel: str, reference: str, provider: Sandbox) -> Self:
        dialect: Any = whatsapp.SignedWebhooks(provider.whatsapp)
        now = utc_now()
        if channel == "email":
            dialect = sendgrid.SignedWebhooks(
                private_key=credentials.load_webhook_key(provider.data)
            )
            args = {"reference": reference}
            payload = sendgrid.payload(kind, address=ADA, message_id="sg-1", args=args)
        else:
            payload = whatsapp.status(
                kind,
                message_id="wamid.1",
                wa_id=PHONE[1:],
                at=0,
                reference=reference,
                category="utility",
                fault=Fault(code=131026) if kind == "failed" else None,
            )
        for part in (payload, *payload.get("statuses", ())):
            if "timestamp" in part:
                part["timestamp"] = type(part["timestamp"])(int(now.timestamp()))
        body = dialect.encode([payload])
        path = "/webhooks/sendgrid" if channel == "email" else "/webhooks/whatsapp"
        # Neither of the two signs the URL.
        return cls(path=path, body=body, headers=dialect.headers(body, url=path, now=now))
