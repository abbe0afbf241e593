"""Calls of a provider's webhook, without the web."""

from collections.abc import Mapping
from urllib.parse import parse_qsl, urlsplit

from providers.contract import Receipt, WebhookProvider, WebhookRequest

URL = "https://notify.example.com/webhooks/provider"


def webhook_request(
    raw: bytes = b"",
    headers: Mapping[str, str] | None = None,
    *,
    method: str = "POST",
    query: Mapping[str, str] | None = None,
    url: str = URL,
) -> WebhookRequest:
    return WebhookRequest(
        method=method,
        url=url,
        query=dict(parse_qsl(urlsplit(url).query)) if query is None else query,
        headers=headers or {},
        raw=raw,
    )


def receipts_of(
    provider: WebhookProvider, headers: Mapping[str, str], raw: bytes, *, url: str = URL
) -> list[Receipt]:
    """Return the verified receipts of a webhook."""
    return list(provider.parse_webhook(webhook_request(raw, headers, url=url)).receipts)
