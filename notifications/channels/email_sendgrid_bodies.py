"""Mails as SendGrid's v3 API wants them: what all recipients get, and what each does.

A mail to many says the same to all but for the address by which each unsubscribes: a tag stands in
its place, and each recipient's personalization says what to put there.
"""

import base64
import secrets
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Self

from sendgrid.helpers.mail import (
    Attachment,
    Content,
    CustomArg,
    Disposition,
    Email,
    FileContent,
    FileName,
    FileType,
    Header,
    Mail,
    Personalization,
    ReplyTo,
    Subject,
    Substitution,
    To,
)

from .addresses import ascii_email
from .base import Message, Outbound
from .mail_attachments import File
from .mail_headers import reply_to, unsubscribe_headers


@dataclass(frozen=True, slots=True)
class Tag:
    """What stands for a recipient's own part of the unsubscribe address.

    It is the end of the address, behind the last slash: the link remains one to SendGrid, whichever
    it does first, putting in what it stands for or counting clicks.
    """

    text: str

    @classmethod
    def new(cls) -> Self:
        """Return a tag that nobody's words hold: it cannot be guessed."""
        return cls(f"-{secrets.token_hex(8)}-")

    def put_into(self, text: str, *, url: str | None) -> str:
        """Return a mail's text with the tag in place of the end of ``url``."""
        return text if url is None else text.replace(url, f"{url.rpartition('/')[0]}/{self.text}")


SAME = Tag("\0")
"""Compares mails that are to be alike; nothing that is sent holds a NUL."""


def same_mail(outbound: Outbound) -> Hashable:
    """Return what two mails have in common that may share a request."""
    message = outbound.message
    url = message.unsubscribe_url
    return (
        message.subject,
        SAME.put_into(message.text, url=url),
        message.html and SAME.put_into(message.html, url=url),
        url and SAME.put_into(url, url=url),
        message.reply_to,
        message.attachments,
    )


def shared(
    message: Message,
    *,
    sender: tuple[str, str],
    default_reply_to: str | None,
    files: Sequence[File],
    tag: Tag | None,
) -> dict[str, Any]:
    """Return the part of a body that is the same for all; raises ValueError, SendGridException.

    ``sender`` is a name and an address. Without a ``tag`` the message's own address to unsubscribe
    is in it, for its one recipient.
    """
    mail = Mail()
    mail.from_email = Email(sender[1], sender[0] or None)
    mail.subject = Subject(message.subject)
    answers_to = reply_to(message, default=default_reply_to)
    if answers_to is not None:
        mail.reply_to = ReplyTo(answers_to[1], answers_to[0] or None)
    for kind, text in (("text/plain", message.text), ("text/html", message.html)):
        if text:
            url = message.unsubscribe_url
            mail.add_content(Content(kind, tag.put_into(text, url=url) if tag else text))
    for file in files:
        mail.add_attachment(_attachment(file))
    return mail.get()


def own(outbound: Outbound, *, tag: Tag | None) -> dict[str, Any]:
    """Return the personalization of one recipient; raises ValueError."""
    personalization = Personalization()
    to = To(name=outbound.recipient_name)
    # Given with no name it would be taken apart, as if it were a header: 8 µs for each mail.
    to.email = ascii_email(outbound.recipient)
    personalization.add_to(to)
    personalization.add_custom_arg(CustomArg("reference", outbound.reference))
    for name, value in unsubscribe_headers(outbound.message).items():
        personalization.add_header(Header(name, value))
    url = outbound.message.unsubscribe_url
    if tag is not None and url is not None:
        personalization.add_substitution(Substitution(tag.text, url.rpartition("/")[2]))
    return personalization.get()


def _attachment(file: File) -> Attachment:
    return Attachment(
        FileContent(base64.b64encode(file.content).decode("ascii")),
        FileName(file.filename),
        FileType(file.content_type),
        Disposition("attachment"),
    )
