"""Webhooks of providers: verify, log, apply."""

import structlog
from django.conf import settings
from django.http import HttpResponse
from django.urls import URLPattern, path
from rest_framework.request import Request
from rest_framework.views import APIView

from domain.time import utc_now
from notifications.receipts import webhook_log
from providers.accounts import every_account
from providers.contract import (
    InvalidSignatureError,
    InvalidVerifyTokenError,
    UnverifiedWebhookError,
    WebhookRequest,
    WebhookResult,
)
from providers.discovery import SPECS
from providers.registry import webhook_provider
from providers.spec import Account, WebhookSpec

from .http.body import MAX_BYTES_BULK, read_raw
from .http.problems import BAD_REQUEST, INVALID_SIGNATURE, INVALID_VERIFY_TOKEN, UNVERIFIED_WEBHOOK
from .http.rendering import Response

log = structlog.get_logger(__name__)


class ProviderWebhook(APIView):
    """The webhook of an account, whose signature or token is the authentication.

    A provider repeats a webhook that fails halfway. Applying one twice is idempotent.
    """

    authentication_classes = ()
    permission_classes = ()
    schema = None
    provider = ""
    content = ""
    """What the provider sends."""

    def get(self, request: Request) -> HttpResponse:
        """Answer the request by which a provider verifies the address."""
        return self._apply(self._parse(request, b""))

    def post(self, request: Request) -> HttpResponse:
        """Apply what a signed webhook contains."""
        return self._apply(self._parse(request, read_raw(request._request, limit=MAX_BYTES_BULK)))

    def _parse(self, request: Request, raw: bytes) -> WebhookResult:
        """Read a call. Log one that can't be verified or read, and raise its ApiError."""
        query = request.META["QUERY_STRING"]
        call = WebhookRequest(
            method=str(request.method),
            url=f"{settings.PUBLIC_URL}{request._request.path_info}{'?' if query else ''}{query}",
            query=request.query_params.dict(),
            headers={name.lower(): value for name, value in request.headers.items()},
            raw=raw,
        )
        try:
            return webhook_provider(self.provider).parse_webhook(call)
        except InvalidSignatureError as error:
            log.warning("webhook_rejected", provider=self.provider, reason=str(error))
            is_token = isinstance(error, InvalidVerifyTokenError)
            raise (INVALID_VERIFY_TOKEN if is_token else INVALID_SIGNATURE).error() from None
        except UnverifiedWebhookError as error:
            # A provider repeats it after an error of the server, not after one of its own.
            log.warning("webhook_unverified", provider=self.provider, reason=str(error))
            raise UNVERIFIED_WEBHOOK.error() from error
        except ValueError:
            log.warning("webhook_unreadable", provider=self.provider, size=len(raw))
            raise BAD_REQUEST.error(f"Expected {self.content}.") from None

    def _apply(self, found: WebhookResult) -> HttpResponse:
        answer: dict[str, int] = {}
        if found.unreadable_count:
            log.warning("events_unreadable", provider=self.provider, count=found.unreadable_count)
        if found.logged is not None:
            applied = webhook_log.process_webhook(
                found.receipts,
                provider=self.provider,
                body=found.logged,
                now=utc_now(),
                unreadable_count=found.unreadable_count,
                inbound=found.inbound,
            )
            answer |= {"events": applied.events, "changed": applied.changed}
        if found.inbound is not None:
            answer["inbound"] = len(found.inbound.messages)
        if (reply := found.reply) is not None:
            return HttpResponse(reply.body, status=reply.status, content_type=reply.content_type)
        return Response(answer)


def routes() -> list[URLPattern]:
    """Return the addresses of the webhooks: one for each account of a provider that has them.

    That includes accounts by which nothing is sent any more: their receipts still arrive.
    """
    return [
        _route(account, webhook)
        for account in every_account()
        if (webhook := SPECS[account.kind].webhook)
    ]


def _route(account: Account, webhook: WebhookSpec) -> URLPattern:
    # Loads its code before the process is forked, not in the first call.
    webhook_provider(account.name)
    methods = ["get", "post", "head", "options"] if webhook.has_handshake else ["post", "options"]
    view = ProviderWebhook.as_view(
        provider=account.name, content=webhook.content, http_method_names=methods
    )
    return path(account.webhook_path.removeprefix("/"), view, name=f"webhook-{account.name}")
