"""What providers call. The signature is the authentication; without a key nothing is accepted."""

from typing import Any

import structlog
from drf_spectacular.utils import extend_schema
from rest_framework.response import Response
from rest_framework.views import APIView

from domain.time import utc_now
from providers.contract import InvalidSignatureError
from providers.registry import sendgrid

from ..receipts import webhook_log
from .parsing import MAX_BYTES_BULK, read_raw
from .problems import Problem, malformed

log = structlog.get_logger(__name__)


class SendGridWebhook(APIView):
    """SendGrid's event webhook."""

    authentication_classes = ()
    permission_classes = ()

    @extend_schema(exclude=True)
    def post(self, request: Any) -> Response:
        """Apply the events of a signed webhook."""
        raw = read_raw(request._request, limit=MAX_BYTES_BULK)
        account = sendgrid()
        headers = {name.lower(): value for name, value in request.headers.items()}
        try:
            events = account.parse_receipts(headers, raw)
        except InvalidSignatureError as error:
            log.warning("webhook_refused", provider=account.name, reason=str(error))
            raise Problem(
                status=403, code="invalid_signature", detail="The signature is not valid."
            ) from None
        except ValueError:
            raise malformed("malformed", "Not a list of events.") from None
        applied = webhook_log.process_webhook(
            events, provider=account.name, body=raw.decode(), now=utc_now()
        )
        return Response({"events": applied.events, "changed": applied.changed})
