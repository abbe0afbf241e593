"""Checks of accounts with providers of email by calls that send nothing, for the set-up wizard."""

import uuid
from collections.abc import Mapping
from typing import Any

from domain.mailboxes import parse_mailbox
from notifyproject.settings.declarations import ProviderGroup

from . import email_library, email_spec
from .contract import Message, SendRequest
from .http import SUCCESSES, Request, Response
from .mail import AttachmentFile
from .setup_check import RejectedError, explained, fetch
from .spec import ProviderSpec

FILE = AttachmentFile(filename="set-up.txt", content_type="text/plain", content=b"Set-up")
HTML = "<p>Set-up</p>"


def values_of(group: type[ProviderGroup], environment: Any) -> Any:
    """Return the variables of a provider, with URLs as the settings have them."""
    return group(**group.of(environment).configure(environment))


def sample(
    spec: ProviderSpec,
    environment: Any,
    options: Mapping[str, str],
    *,
    recipient: str | None = None,
    extra: Mapping[str, Any] | None = None,
    timeout: float,
) -> Request:
    """Return the request of an email with all parts. Raises CheckError.

    ``extra`` has fields of the provider that make it send nothing.
    """
    if not email_library.is_installed():
        raise RejectedError(
            f"{spec.label} needs django-anymail: install {email_library.REQUIREMENTS}."
        )
    provider = email_spec.provider_of(
        spec.name,
        kind=spec.name,
        options=options,
        secrets={},
        mail={"sender": environment.EMAIL_FROM, "reply_to": environment.EMAIL_REPLY_TO},
    )
    request = SendRequest(
        reference="set-up",
        # The answer to a key that was used before says nothing about other values.
        idempotency_key=f"set-up-{uuid.uuid4()}",
        recipient=recipient or parse_mailbox(environment.EMAIL_FROM).address,
        recipient_name="Set-up, with a comma",
        message=Message(
            subject="Set-up", text="Set-up", html=HTML, unsubscribe_url=environment.PUBLIC_URL
        ),
        category="",
    )
    with explained(spec.label):
        return provider.build(request, files=(FILE,), timeout=timeout, extra=extra).request


def try_sample(
    spec: ProviderSpec, environment: Any, options: Mapping[str, str], **fields: Any
) -> None:
    """Let a provider take an email that it doesn't deliver. Raises CheckError."""
    response = fetch(spec.label, sample(spec, environment, options, **fields))
    if response.status not in SUCCESSES:
        raise rejected(spec, response, "the key and the sender")


def rejected(spec: ProviderSpec, response: Response, what: str) -> RejectedError:
    """Return the error of a response: its status, and what to check."""
    return RejectedError(f"{spec.label} responded with {response.status}: check {what}.")
