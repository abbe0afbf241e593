"""SMS by AWS End User Messaging: its operation SendTextMessage."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

import msgspec

from domain.countries import country_of
from domain.errors import FailureCode, PermanentError, ProviderResponse
from domain.states import Category

from .. import aws_sns, contract, http_client
from ..aws_responses import accepted_id, classify_response
from ..aws_signing import Credentials, Signer
from ..contract import (
    NotAttemptedError,
    SendRequest,
    SendResult,
    SendTarget,
    WebhookRequest,
    WebhookResult,
    is_expired,
)
from ..http import Request
from . import webhooks
from .responses import RULES
from .webhooks import REFERENCE_KEY

SERVICE = "sms-voice"
TARGET = "PinpointSMSVoiceV2"
CONTENT_TYPE = "application/x-amz-json-1.0"
MIN_LIFETIME, MAX_LIFETIME = 5, 259_200
"""Seconds for which AWS may try to send a text."""
_MESSAGE_ID = re.compile(r"[A-Za-z0-9-]{1,100}", re.ASCII)


def base_url_of(values: Any) -> str:
    """Return the address of the API, which is AWS's in the region unless the values have one."""
    return values.AWS_SMS_URL or aws_sns.endpoint(SERVICE, values.AWS_SMS_REGION)


def api_request(
    operation: str, fields: Any, *, base_url: str, signer: Signer, now: datetime, timeout: float
) -> Request:
    """Return a signed request for an operation."""
    request = Request(
        url=f"{base_url}/",
        headers={"Content-Type": CONTENT_TYPE, "X-Amz-Target": f"{TARGET}.{operation}"},
        body=msgspec.json.encode(fields),
        timeout=timeout,
    )
    return signer.sign(request, now=now)


@dataclass(frozen=True, kw_only=True)
class AwsSms:
    """Provider that sends by one account in one region."""

    credentials: Credentials
    region: str
    base_url: str
    receiver: aws_sns.Receiver
    clock: Callable[[], datetime]
    sender: str = ""
    """A pool, a number, a sender ID, or an ARN of one. Empty: AWS chooses."""
    configuration_set: str = ""
    protect_configuration: str = ""
    max_price: str = ""
    name: str = "aws_sms"

    @cached_property
    def account(self) -> str:
        """The account's name, with a hash of the key, the region, and the sender."""
        return contract.account_name(
            self.name, self.credentials.access_key_id, self.region, self.sender
        )

    async def send(self, request: SendRequest, *, timeout: float) -> SendResult:
        """Send one message.

        AWS knows no token that makes a repeat harmless, so that an unread response is ambiguous
        until an event with the reference comes. See :class:`providers.contract.Provider`.
        """
        now = self.clock()
        if is_expired(request, now=now):
            raise NotAttemptedError
        try:
            signed = api_request(
                "SendTextMessage",
                self.fields(request, now=now),
                base_url=self.base_url,
                signer=Signer(credentials=self.credentials, region=self.region, service=SERVICE),
                now=now,
                timeout=timeout,
            )
        except ValueError as error:
            raise PermanentError("Can't build the SMS.", code=FailureCode.RENDER_FAILED) from error
        response = await http_client.send(signed)
        message_id = accepted_id(response, _MESSAGE_ID)
        if message_id is None:
            raise classify_response(RULES, response, now=self.clock(), scope=request.scope)
        return SendResult(provider_id=message_id, response=ProviderResponse(status=response.status))

    def scope(self, target: SendTarget) -> str:
        """Return the country of a number, for which the account may lack a sender."""
        return country_of(target.address) or ""

    def fields(self, request: SendRequest, *, now: datetime) -> dict[str, object]:
        """Return the members of a request. The context comes back in each event."""
        is_marketing = request.category == Category.MARKETING
        found: dict[str, object] = {
            "DestinationPhoneNumber": request.recipient,
            "MessageBody": request.message.text,
            "MessageType": "PROMOTIONAL" if is_marketing else "TRANSACTIONAL",
            "Context": {REFERENCE_KEY: request.reference},
        }
        configured = {
            "OriginationIdentity": self.sender,
            "ConfigurationSetName": self.configuration_set,
            "ProtectConfigurationId": self.protect_configuration,
            "MaxPrice": self.max_price,
        }
        found |= {name: value for name, value in configured.items() if value}
        if request.expires_at is not None:
            left = int((request.expires_at - now).total_seconds())
            found["TimeToLive"] = min(max(left, MIN_LIFETIME), MAX_LIFETIME)
        return found

    def parse_webhook(self, request: WebhookRequest) -> WebhookResult:
        """Verify and read a notification.

        Raises InvalidSignatureError, UnverifiedWebhookError, or ValueError.
        """
        return self.receiver.read(request, describe=webhooks.describe, parse=webhooks.parse_logged)

    def parse_logged(self, raw: bytes) -> WebhookResult:
        """Read the contents of a verified notification. Raises ValueError."""
        return webhooks.parse_logged(raw)
