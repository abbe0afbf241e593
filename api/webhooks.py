"""Webhooks of providers: verify, log, apply."""

from typing import Any

import structlog
from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
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


class SendGridWebhook(APIView):
    """SendGrid's event webhook."""

    authentication_classes = ()
    permission_classes = ()

    @extend_schema(exclude=True)
    def post(self, request: Any) -> Response:
        """Apply the events of a signed webhook."""
        raw = read_raw(request._request, limit=MAX_BYTES_BULK)
        provider = sendgrid()
        headers = {name.lower(): value for name, value in request.headers.items()}
        try:
            webhook = provider.parse_webhook(headers, raw)
        except InvalidSignatureError as error:
            raise _rejected(error, INVALID_SIGNATURE, provider=provider.name) from None
        except ValueError:
            log.warning("webhook_unreadable", provider=provider.name, size=len(raw))
            raise BAD_REQUEST.error("Expected a list of events.") from None
        if webhook.unreadable_count:
            count = webhook.unreadable_count
            log.warning("events_unreadable", provider=provider.name, count=count)
        applied = webhook_log.process_webhook(
            webhook.receipts,
            provider=provider.name,
            body=raw.decode(),
            now=utc_now(),
            unreadable_count=webhook.unreadable_count,
        )
        return Response({"events": applied.events, "changed": applied.changed})


class WhatsAppWebhook(APIView):
    """Meta's webhook for WhatsApp. Without an app secret, no webhook is accepted."""

    # Meta repeats a webhook that fails halfway. Applying one twice is idempotent.

    authentication_classes = ()
    permission_classes = ()

    @extend_schema(exclude=True)
    def get(self, request: Any) -> HttpResponse:
        """Answer Meta's verification request with its challenge."""
        try:
            challenge = whatsapp().challenge(request.query_params)
        except InvalidSignatureError as error:
            raise _rejected(error, INVALID_VERIFY_TOKEN, provider="whatsapp") from None
        return HttpResponse(challenge, content_type="text/plain; charset=utf-8")

    @extend_schema(exclude=True)
    def post(self, request: Any) -> Response:
        """Apply the receipts, inbound messages and opt-outs of a signed webhook."""
        raw = read_raw(request._request, limit=MAX_BYTES_BULK)
        provider, now = whatsapp(), utc_now()
        headers = {name.lower(): value for name, value in request.headers.items()}
        try:
            provider.verify_webhook(headers, raw)
            contents, body = provider.parse_webhook(raw), redact_webhook(raw)
        except InvalidSignatureError as error:
            raise _rejected(error, INVALID_SIGNATURE, provider=provider.name) from None
        except ValueError:
            log.warning("webhook_unreadable", provider=provider.name, size=len(raw))
            raise BAD_REQUEST.error("Expected a WhatsApp webhook.") from None
        if count := contents.unreadable_count:
            log.warning("events_unreadable", provider=provider.name, count=count)
        applied = webhook_log.process_webhook(
            contents.receipts,
            provider=provider.name,
            body=body,
            now=now,
            unreadable_count=contents.unreadable_count,
            contents=contents,
        )
        return Response(
            {
                "events": applied.events,
                "changed": applied.changed,
                "inbound": len(contents.messages),
            }
        )


def _rejected(error: InvalidSignatureError, problem: ProblemType, *, provider: str) -> ApiError:
    log.warning("webhook_rejected", provider=provider, reason=str(error))
    return problem.error()
