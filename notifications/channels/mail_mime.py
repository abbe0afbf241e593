"""Mails as mail servers want them: Django's, with the headers and files of ours."""

from collections.abc import Sequence
from dataclasses import dataclass
from email import encoders
from email.header import Header
from email.message import Message as EmailPart
from email.mime.base import MIMEBase
from email.utils import formataddr, parseaddr
from typing import Any

from django.core.mail import EmailMultiAlternatives

from .addresses import ascii_email
from .base import Outbound
from .mail_attachments import File
from .mail_headers import reply_to, unsubscribe_headers


@dataclass(frozen=True, slots=True, kw_only=True)
class Mail:
    """A mail as it goes over the wire."""

    message_id: str
    sender: str
    recipient: str
    raw: bytes


def mail_of(
    outbound: Outbound, *, sender: str, default_reply_to: str | None, files: Sequence[File]
) -> Mail:
    """Return a mail; raises ValueError or MessageError if it cannot be one."""
    message = outbound.message
    name, address = parseaddr(sender)
    address = ascii_email(address)
    recipient = ascii_email(outbound.recipient)
    message_id = f"<{outbound.reference}@{address.partition('@')[2]}>"
    answers_to = reply_to(message, default=default_reply_to)
    mail = EmailMultiAlternatives(
        subject=message.subject or "",
        body=message.text,
        from_email=formataddr((name, address)),
        to=[formataddr((outbound.recipient_name or "", recipient))],
        reply_to=[formataddr(answers_to)] if answers_to else None,
        headers={"Message-ID": message_id},
    )
    if message.html:
        mail.attach_alternative(message.html, "text/html")
    for file in files:
        mail.attach(_part(file))
    whole = mail.message()
    for header, value in unsubscribe_headers(message).items():
        EmailPart.__setitem__(whole, header, _Unfolded(value))
    raw = whole.as_bytes(linesep="\r\n")
    return Mail(message_id=message_id, sender=address, recipient=recipient, raw=raw)


class _Unfolded(Header):
    """A header on one line: where a long URL is cut, some mail programs see two."""

    def encode(self, *_args: Any, **_options: Any) -> str:
        """Return the header as it is, however wide a line should be."""
        return str(self)


def _part(file: File) -> MIMEBase:
    """Return a file as it is, byte for byte: as a text, its line ends would be changed."""
    part = MIMEBase(*file.content_type.split("/", 1))
    part.set_payload(file.content)
    encoders.encode_base64(part)
    part.add_header("Content-Disposition", "attachment", filename=file.filename)
    return part
