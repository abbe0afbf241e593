"""The presentation of a mail to its recipient, who sees what a mail program decodes."""

from email import message_from_bytes
from email.header import decode_header, make_header
from email.message import Message
from typing import Any

from ...log import Record
from ..base import Attachment, DisplayedMessage
from .validation import raw_mail, recipients

SHOWN = frozenset({"from", "to", "subject", "date", "mime-version", "content-type"})
"""Headers that aren't shown as further facts."""


def header(mail: Message, name: str) -> str:
    """Return a header as a person reads it."""
    return str(make_header(decode_header(str(mail.get(name, "")))))


def headers(mail: Message) -> list[tuple[str, str]]:
    """Return the headers of a mail, decoded and unfolded."""
    return [(name, header(mail, name).replace("\r\n", "")) for name in mail]


def display(record: Record) -> DisplayedMessage:
    """Return a mail as its recipient sees it."""
    body: Any = record.json()
    mail = message_from_bytes(raw_mail(body) or b"")
    texts: dict[str, str] = {}
    files: list[Attachment] = []
    for part in mail.walk():
        if part.is_multipart():
            continue
        content = part.get_payload(decode=True)
        raw = content if isinstance(content, bytes) else b""
        if part.get_content_disposition() == "attachment":
            name = part.get_filename() or ""
            files.append(Attachment(name=name, kind=part.get_content_type(), size=len(raw)))
        else:
            texts.setdefault(part.get_content_type(), raw.decode(errors="replace"))
    return DisplayedMessage(
        sender=header(mail, "From"),
        recipients=tuple(recipients(body)),
        title=header(mail, "Subject"),
        text=texts.get("text/plain", ""),
        html=texts.get("text/html", ""),
        facts=tuple(fact for fact in headers(mail) if fact[0].lower() not in SHOWN),
        attachments=tuple(files),
    )
