"""A check of the account without a mail."""

from http import HTTPStatus

from domain.mailboxes import parse_mailbox
from domain.time import utc_now
from notifyproject.settings.variables import Environment

from ..contract import Message, SendRequest
from ..setup_check import TIMEOUT, RejectedError, call
from .provider import SendGrid
from .variables import Settings


def check(environment: Environment, *, timeout: float = TIMEOUT) -> None:
    """Let SendGrid validate a mail in its sandbox mode. Raises CheckError."""
    values = Settings.of(environment)
    provider = SendGrid(
        api_key=values.SENDGRID_API_KEY,
        base_url=values.SENDGRID_URL or "https://api.sendgrid.com",
        sender=environment.EMAIL_FROM,
        webhook_public_key="",
        clock=utc_now,
    )
    sender = parse_mailbox(environment.EMAIL_FROM).address
    message = Message(subject="Set-up", text="Set-up")
    request = SendRequest(reference="set-up", recipient=sender, message=message, category="")
    body = provider.body(request) | {"mail_settings": {"sandbox_mode": {"enable": True}}}
    url = f"{provider.base_url}/v3/mail/send"
    token = f"Bearer {provider.api_key}"
    status = call("SendGrid", url, body, authorization=token, timeout=timeout)
    if status not in (HTTPStatus.OK, HTTPStatus.ACCEPTED):
        raise RejectedError(f"SendGrid responded with {status}: check the key and the sender.")
