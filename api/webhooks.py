"""Webhooks of providers: verify, log, apply."""

from collections.abc import Iterator
from contextlib import contextmanager

import structlog
from django.http import HttpResponse
from rest_framework.request import Request
from rest_framework.views import APIView

from domain.time import utc_now
from notifications.receipts import webhook_log
from providers.contract import InvalidSignatureError
from providers.registry import sendgrid, whatsapp
from providers.whatsapp.webhooks import redact_webhook

from .http.body import MAX_BYTES_BULK, read_raw
from .http.problems import (
    BAD_REQUEST,
    INVALID_SIGNATURE,
    INVALID_VERIFY_TOKEN,
    ApiError,
    ProblemType,
)
from .http.rendering import Response

log = structlog.get_logger(__name__)


class ProviderWebhook(APIView):
    """Base of the webhooks. The provider's signature, or its token, is the authentication."""

    authentication_classes = ()
    permission_classes = ()
    schema = None


class SendGridWebhook(ProviderWebhook):
    """SendGrid's event webhook."""

    def post(self, request: Request) -> Response:
        """Apply the events of a signed webhook."""
        raw, headers = _read(request)
        provider = sendgrid()
        with _refusals(provider.name, expected="a list of events", size=len(raw)):
            webhook = provider.parse_webhook(headers, raw)
        _warn_of_unreadable(webhook.unreadable_count, provider=provider.name)
        applied = webhook_log.process_webhook(
            webhook.receipts,
            provider=provider.name,
            body=raw.decode(),
            now=utc_now(),
            unreadable_count=webhook.unreadable_count,
        )
        return Response({"events": applied.events, "changed": applied.changed})


class WhatsAppWebhook(ProviderWebhook):
    """Meta's webhook for WhatsApp. Without an app secret, no webhook is accepted."""

    # Meta repeats a webhook that fails halfway. Applying one twice is idempotent.

    def get(self, request: Request) -> HttpResponse:
        """Answer Meta's verification request with its challenge."""
        try:
            challenge = whatsapp().challenge(request.query_params)
        except InvalidSignatureError as error:
            raise _rejected(error, INVALID_VERIFY_TOKEN, provider="whatsapp") from None
        return HttpResponse(challenge, content_type="text/plain; charset=utf-8")

    def post(self, request: Request) -> Response:
        """Apply the receipts, inbound messages and opt-outs of a signed webhook."""
        raw, headers = _read(request)
        provider, now = whatsapp(), utc_now()
        with _refusals(provider.name, expected="a WhatsApp webhook", size=len(raw)):
            provider.verify_webhook(headers, raw)
            contents, body = provider.parse_webhook(raw), redact_webhook(raw)
        _warn_of_unreadable(contents.unreadable_count, provider=provider.name)
        applied = webhook_log.process_webhook(
            contents.receipts,
            provider=provider.name,
            body=body,
            now=now,
            unreadable_count=contents.unreadable_count,
            contents=contents,
        )
        inbound = len(contents.messages)
        return Response({"events": applied.events, "changed": applied.changed, "inbound": inbound})


def _read(request: Request) -> tuple[bytes, dict[str, str]]:
    """Return the body, and the headers by their names in lower case. Raises ApiError."""
    raw = read_raw(request._request, limit=MAX_BYTES_BULK)
    return raw, {name.lower(): value for name, value in request.headers.items()}


@contextmanager
def _refusals(provider: str, *, expected: str, size: int) -> Iterator[None]:
    """Log a webhook that can't be verified or parsed, and raise its ApiError."""
    try:
        yield
    except InvalidSignatureError as error:
        raise _rejected(error, INVALID_SIGNATURE, provider=provider) from None
    except ValueError:
        log.warning("webhook_unreadable", provider=provider, size=size)
        raise BAD_REQUEST.error(f"Expected {expected}.") from None


def _warn_of_unreadable(count: int, *, provider: str) -> None:
    if count:
        log.warning("events_unreadable", provider=provider, count=count)


def _rejected(error: InvalidSignatureError, problem: ProblemType, *, provider: str) -> ApiError:
    log.warning("webhook_rejected", provider=provider, reason=str(error))
    return problem.error()
