"""SendGrid accounts, batches of mails, and bodies built by SendGrid's library."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import urllib3
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

from domain.errors import ProviderError
from domain.time import utc_now
from notifyproject.platform.event_loop import run
from providers.contract import Message, SendRequest, SendResult
from providers.mail import AttachmentFile
from providers.sendgrid.provider import SendGrid, SubstitutionTag
from sandbox.assembly import Sandbox
from tests.support.factories.notifications import FIXED_NOON, outbound
from tests.support.waiting import LIMIT, until

NEWS = Message(subject="News", text="There is news.", html="<p>There is news.</p>")
LINK = "https://notify.example.com/u/"


def mails(*recipients: str, **fields: Any) -> list[SendRequest]:
    """Return the same mail to several recipients."""
    default = {"message": NEWS, "category": "marketing", "recipient_name": None}
    return [
        outbound(reference=f"{number:024x}.email.1", recipient=recipient, **(default | fields))
        for number, recipient in enumerate(recipients)
    ]


def leaving(recipient: str, *, number: int = 0, token: str) -> SendRequest:
    """Return a mail with an unsubscribe link."""
    url = f"{LINK}{token}"
    message = Message(
        subject="News",
        text=f"There is news.\n\nUnsubscribe: {url}",
        html=f'<p>There is news.</p><a href="{url}">Unsubscribe</a>',
        unsubscribe_url=url,
    )
    (mail,) = mails(recipient, message=message)
    return replace(mail, reference=f"{number:024x}.email.1")


def people(count: int, *others: str) -> list[str]:
    """Return addresses that accept mail, followed by these other addresses."""
    return [*(f"person-{number}@example.com" for number in range(count)), *others]


@dataclass(frozen=True, kw_only=True)
class Account:
    """An account in the sandbox."""

    sandbox: Sandbox

    def sendgrid(self, **fields: Any) -> SendGrid:
        return account(**(sandbox_account(self.sandbox) | fields))

    def send(
        self, outbounds: Sequence[SendRequest], *, timeout: float = LIMIT, **fields: Any
    ) -> list[SendResult | ProviderError]:
        return run(self.sendgrid(**fields).send_many(outbounds, timeout=timeout))

    def requests(self) -> list[dict[str, Any]]:
        found = self._control("GET", "/requests?provider=sendgrid&limit=1000")["results"]
        return found[::-1]

    def bodies(self) -> list[dict[str, Any]]:
        return [request["body"] for request in self.requests()]

    def reached(self) -> list[str]:
        """Return the recipients of accepted mails, sorted."""
        taken = (request for request in self.requests() if request["accepted"])
        return sorted(address for request in taken for address in request["recipients"])

    def until_reached(self, count: int) -> list[str]:
        """Wait until this many recipients were reached."""
        return until(lambda: found if len(found := self.reached()) >= count else [])

    def script(self, address: str, outcome: str, *, times: int | None = None) -> None:
        self._control("PUT", f"/behaviours/{address}", {"outcome": outcome, "times": times})

    def reset(self) -> None:
        self._control("POST", "/reset")

    def _control(self, method: str, path: str, body: Any = None) -> Any:
        with urllib3.PoolManager(retries=False) as pool:
            answer = pool.request(method, f"{self.sandbox.url}/_sandbox{path}", json=body)
            assert answer.status < 300, answer.data
            return answer.json() if answer.data else None


def sandbox_account(sandbox: Sandbox) -> dict[str, Any]:
    """Return the fields of an account in a sandbox."""
    return {
        "api_key": "SG.test",
        "base_url": sandbox.url,
        "sender": "The Shop <shop@example.com>",
        "webhook_public_key": sandbox.public_key,
        "clock": utc_now,
    }


def account(**fields: Any) -> SendGrid:
    default: dict[str, Any] = {
        "api_key": "SG.key",
        "base_url": "http://127.0.0.1:1",
        "sender": "Notifications <notifications@example.com>",
        "webhook_public_key": "",
        "clock": lambda: FIXED_NOON,
    }
    return SendGrid(**(default | fields))


def built(
    outbound: SendRequest, file: AttachmentFile, tag: SubstitutionTag | None
) -> dict[str, Any]:
    """Return the body of a mail, built by SendGrid's library."""
    message, url = outbound.message, outbound.message.unsubscribe_url
    person = Personalization()
    person.add_to(To(outbound.recipient, outbound.recipient_name))
    person.add_custom_arg(CustomArg("reference", outbound.reference))
    person.add_header(Header("Auto-Submitted", "auto-generated"))
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
            mail.add_content(Content(kind, tag.substitute(text, url=url) if tag else text))
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
