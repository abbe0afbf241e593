"""Email by the API of Amazon SES, version 2, as MIME messages of our own."""

import base64
import re
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

import msgspec

from domain.errors import ProviderResponse
from notifyproject.platform.egress import Deadline

from .. import aws_sns, contract, http_client
from ..aws_responses import accepted_id, classify_response
from ..aws_signing import Credentials, Signer
from ..contract import (
    SendRequest,
    SendResult,
    WebhookRequest,
    WebhookResult,
    seconds_to_send,
)
from ..http import Request
from ..mail import AttachmentFile, SenderScopes, attachment_files, cannot_build
from ..mime import build_mail
from . import webhooks
from .responses import RULES
from .webhooks import REFERENCE_HEADER, REFERENCE_TAG

SERVICE = "ses"
PATH = "/v2/email/outbound-emails"
_MESSAGE_ID = re.compile(r"[A-Za-z0-9._@-]{1,200}", re.ASCII)


def base_url_of(values: Any) -> str:
    """Return the address of the API, which is AWS's in the region unless the values have one."""
    return values.SES_URL or aws_sns.endpoint("email", values.SES_REGION)


@dataclass(frozen=True, kw_only=True)
class SES(SenderScopes):
    """Provider that sends email through one SES account in one region."""

    credentials: Credentials
    region: str
    base_url: str
    sender: str
    """``Name <address>``."""
    receiver: aws_sns.Receiver
    clock: Callable[[], datetime]
    configuration_set: str = ""
    reply_to: str | None = None
    attachment_hosts: AbstractSet[str] = frozenset()
    name: str = "ses"

    @cached_property
    def account(self) -> str:
        """The account's name, with a hash of the key, the region, and the configuration set."""
        return contract.account_name(
            self.name, self.credentials.access_key_id, self.region, self.configuration_set
        )

    async def send(self, request: SendRequest, *, timeout: float) -> SendResult:
        """Send one email; see :class:`providers.contract.Provider`."""
        deadline = Deadline.after(timeout)
        async with attachment_files(
            request.message.attachments, hosts=self.attachment_hosts, deadline=deadline
        ) as files:
            try:
                body = self.body(request, files=files)
            except ValueError as error:
                raise cannot_build() from error
            now = self.clock()
            left = seconds_to_send(request, left=deadline.seconds_left, now=now)
            # Still within the limit of mails with files, since the body is in memory.
            response = await http_client.send(self.signed(PATH, body, now=now, timeout=left))
        message_id = accepted_id(response, _MESSAGE_ID)
        if message_id is None:
            raise classify_response(RULES, response, now=self.clock(), scope=request.scope)
        return SendResult(provider_id=message_id, response=ProviderResponse(status=response.status))

    def signed(self, path: str, body: bytes | None, *, now: datetime, timeout: float) -> Request:
        """Return a signed request to the API."""
        request = Request(
            url=f"{self.base_url}{path}",
            headers={"Content-Type": "application/json"},
            body=body,
            timeout=timeout,
        )
        signer = Signer(credentials=self.credentials, region=self.region, service=SERVICE)
        return signer.sign(request, now=now)

    def body(self, request: SendRequest, *, files: Sequence[AttachmentFile] = ()) -> bytes:
        """Return the JSON body for one email. Raises ValueError.

        The reference is in a header, and in a tag, since SES reports the first 10 KB of headers.
        The sender is in the mail alone: that of the request would replace it, and has no name.
        """
        mail = build_mail(
            request,
            sender=self.sender,
            default_reply_to=self.reply_to,
            files=files,
            headers=((REFERENCE_HEADER, request.reference),),
        )
        fields: dict[str, object] = {
            "Destination": {"ToAddresses": [mail.recipient]},
            "Content": {"Raw": {"Data": base64.b64encode(mail.raw).decode("ascii")}},
            "EmailTags": [
                {"Name": REFERENCE_TAG, "Value": webhooks.tag_of(request.reference)},
            ],
        }
        if self.configuration_set:
            fields["ConfigurationSetName"] = self.configuration_set
        return msgspec.json.encode(fields)

    def parse_webhook(self, request: WebhookRequest) -> WebhookResult:
        """Verify and read a notification.

        Raises InvalidSignatureError, UnverifiedWebhookError, or ValueError.
        """
        return self.receiver.read(request, describe=webhooks.describe, parse=webhooks.parse_logged)

    def parse_logged(self, raw: bytes) -> WebhookResult:
        """Read the events of a verified notification. Raises ValueError."""
        return webhooks.parse_logged(raw)
