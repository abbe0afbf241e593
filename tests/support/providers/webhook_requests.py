"""Calls of a provider's webhook, without the web."""

from collections.abc import Mapping

from providers.contract import Receipt, WebhookProvider, WebhookRequest


def webhook_request(
    raw: bytes = b"",
    headers: Mapping[str, str] | None = None,
    *,
    method: str = "POST",
    query: Mapping[str, str] | None = None,
) -> WebhookRequest:
    return WebhookRequest(
        method=method,
        url="https://notify.example.com/webhooks/provider",
        query=query or {},
        headers=headers or {},
        raw=raw,
    )


def receipts_of(provider: WebhookProvider, headers: Mapping[str, str], raw: bytes) -> list[Receipt]:
    """Return the verified receipts of a webhook."""
    return list(provider.parse_webhook(webhook_request(raw, headers)).receipts)
