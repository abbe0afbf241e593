"""Webhooks of providers: verify, log, apply."""

from typing import Any

import structlog
from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework.response import Response
from rest_framework.views import APIView

from domain.time import utc_now
from notifications.receipts import inbound, webhook_log
from providers.contract import InvalidSignatureError
from providers.registry import sendgrid, whatsapp
from providers.whatsapp.webhooks import redact_webhook
from recipients import service_windows

from .http.body import MAX_BYTES_BULK, read_raw
from .http.problems import ApiError, bad_request

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
            events = provider.parse_receipts(headers, raw)
        except InvalidSignatureError as error:
            log.warning("webhook_refused", provider=provider.name, reason=str(error))
            raise ApiError(
                status=403, code="invalid_signature", detail="The signature is not valid."
            ) from None
        except ValueError:
            raise bad_request("malformed", "Not a list of events.") from None
        applied = webhook_log.process_webhook(
            events, provider=provider.name, body=raw.decode(), now=utc_now()
        )
        return Response({"events": applied.events, "changed": applied.changed})


class WhatsAppWebhook(APIView):
    """WhatsApp's webhook. The signature is the authentication; without a secret nobody is let in.

    Whatever fails half-way is sent again by Meta, and applying it twice ends as applying it once.
    """

    authentication_classes = ()
    permission_classes = ()

    @extend_schema(exclude=True)
    def get(self, request: Any) -> HttpResponse:
        """Prove to Meta that the webhook is ours."""
        try:
            challenge = whatsapp().challenge(request.query_params)
        except InvalidSignatureError as error:
            raise _invalid_signature(
                error, code="invalid_token", detail="The token is not valid."
            ) from None
        return HttpResponse(challenge, content_type="text/plain; charset=utf-8")

    @extend_schema(exclude=True)
    def post(self, request: Any) -> Response:
        """Apply the reports of a signed webhook, and note who has written."""
        raw = read_raw(request._request, limit=MAX_BYTES_BULK)
        provider, now = whatsapp(), utc_now()
        headers = {name.lower(): value for name, value in request.headers.items()}
        try:
            events = provider.parse_receipts(headers, raw)
            inbound_messages = provider.parse_inbound(raw)
            preferences = provider.parse_opt_outs(raw)
            body = redact_webhook(raw)
        except InvalidSignatureError as error:
            raise _invalid_signature(
                error, code="invalid_signature", detail="The signature is not valid."
            ) from None
        except ValueError:
            raise bad_request("malformed", "Not a webhook of WhatsApp's.") from None
        applied = webhook_log.process_webhook(events, provider=provider.name, body=body, now=now)
        service_windows.record_inbound([(one.phone, one.at) for one in inbound_messages], now=now)
        inbound.apply_opt_outs(preferences, provider=provider.name, now=now)
        return Response(
            {"events": applied.events, "changed": applied.changed, "inbound": len(inbound_messages)}
        )


def _invalid_signature(error: InvalidSignatureError, *, code: str, detail: str) -> ApiError:
    log.warning("webhook_refused", provider="whatsapp", reason=str(error))
    return ApiError(status=403, code=code, detail=detail)
