"""Mails as SendGrid's own library builds them, to hold ours against."""

import base64
from typing import Any

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

from notifications.channels.base import Outbound
from notifications.channels.email_sendgrid_bodies import Tag
from notifications.channels.mail_attachments import File


def built(outbound: Outbound, file: File, tag: Tag | None) -> dict[str, Any]:
    """Return the body of a mail from Shop, with an address for answers and one file."""
    message, url = outbound.message, outbound.message.unsubscribe_url
    person = Personalization()
    person.add_to(To(outbound.recipient, outbound.recipient_name))
    person.add_custom_arg(CustomArg("reference", outbound.reference))
    if url is not None:
        person.add_header(Header("List-Unsubscribe", f"<{url}>"))
        person.add_header(Header("List-Unsubscribe-Post", "List-Unsubscribe=One-Click"))
        if tag is not None:
            person.add_substitution(Substitution(tag.text, url.rpartition("/")[2]))
    mail = Mail()
    mail.from_email = Email("shop@example.com", "Shop")
    mail.subject = Subject(message.subject)
    mail.reply_to = ReplyTo(message.reply_to)
    for kind, text in (("text/plain", message.text), ("text/html", message.html)):
        if text:
            mail.add_content(Content(kind, tag.put_into(text, url=url) if tag else text))
    mail.add_attachment(
        Attachment(
            FileContent(base64.b64encode(file.content).decode("ascii")),
            FileName(file.filename),
            FileType(file.content_type),
            Disposition("attachment"),
        )
    )
    mail.add_personalization(person)
    return dict(mail.get())
