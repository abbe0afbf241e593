"""The standard library's SMTP client: greetings, logins, and replies as real servers have them."""

import base64
import hmac
import smtplib
import socket
from collections.abc import Sequence
from typing import Any

from domain.hosts import is_private_name

CHALLENGE, LOGGED_IN = 334, (235, 503)
MAX_CHALLENGES = 5
COMPLETED = 250
POSITIVE = frozenset({*range(200, 220), *range(230, 300)})
"""Codes of a completed command. Those of 22z are about the connection."""
INVALID_REPLY = -1
"""smtplib's code for a reply without one."""


class SMTP(smtplib.SMTP):
    """An SMTP client.

    Passwords may be UTF-8 (RFC 4616). A mechanism that can't be used leads to the next one. Any
    positive completion of a mail command counts (RFC 5321, 4.3.2), and an overlong reply is an
    invalid one.
    """

    def __init__(
        self, host: str, port: int, *, ehlo_name: str, local_hostname: str, **options: Any
    ) -> None:
        """Connect. EHLO gives ``ehlo_name``; if it is empty, the machine's name or address."""
        # In a container, the machine's name is no domain, and servers refuse it in EHLO
        # (RFC 5321, 4.1.1.1).
        machine = "" if is_private_name(local_hostname.lower()) else local_hostname
        super().__init__(host, port, ehlo_name or machine or "localhost", **options)
        if not (ehlo_name or machine) and self.sock is not None:
            self.local_hostname = _address_literal(self.sock)

    def ehlo(self, name: str = "") -> tuple[int, bytes]:
        """Send EHLO, and note the server's features."""
        reply = super().ehlo(name)
        if "auth" in self.esmtp_features:
            # Some servers write the names of mechanisms in lower case.
            self.esmtp_features["auth"] = self.esmtp_features["auth"].upper()
        return reply

    def auth(
        self, mechanism: str, authobject: object, *, initial_response_ok: bool = True
    ) -> tuple[int, bytes]:
        """Log in by one mechanism. Raises SMTPAuthenticationError."""
        # Only PLAIN is answered in the command: not every server takes the user of LOGIN there.
        first = f" {self._answer(mechanism, [])}" if mechanism == "PLAIN" else ""
        code, text = self.docmd("AUTH", f"{mechanism}{first}")
        questions: list[bytes] = []
        while code == CHALLENGE and len(questions) < MAX_CHALLENGES:
            try:
                questions.append(base64.b64decode(text))
                answer = self._answer(mechanism, questions)
            except ValueError:
                # A challenge that is no base64, or a digest that this machine doesn't allow. The
                # asterisk ends the mechanism (RFC 4954, 4).
                code, text = self.docmd("*")
                break
            code, text = self.docmd(answer)
        if code not in LOGGED_IN:
            raise smtplib.SMTPAuthenticationError(code, text)
        return code, text

    def _answer(self, mechanism: str, questions: Sequence[bytes]) -> str:
        """Return the answer to the last question, as base64. Raises ValueError without MD5."""
        user, password = self.user, self.password
        if mechanism == "PLAIN":
            answer = f"\0{user}\0{password}"
        elif mechanism == "LOGIN":
            question = questions[-1].lower()
            is_second = len(questions) > 1 and not question.startswith(b"user")
            answer = password if question.startswith(b"pass") or is_second else user
        else:
            digest = hmac.new(password.encode(), questions[-1], "md5").hexdigest()
            answer = f"{user} {digest}"
        return base64.b64encode(answer.encode()).decode("ascii")

    def mail(self, sender: str, options: Sequence[str] = ()) -> tuple[int, bytes]:
        """Send MAIL FROM."""
        return _completed(*super().mail(sender, options))

    def rcpt(self, recip: str, options: Sequence[str] = ()) -> tuple[int, bytes]:
        """Send RCPT TO."""
        return _completed(*super().rcpt(recip, options))

    def data(self, msg: Any) -> tuple[int, bytes]:
        """Send DATA and the message."""
        return _completed(*super().data(msg))

    def getreply(self) -> tuple[int, bytes]:
        """Return a reply's code and text. Raises SMTPServerDisconnected."""
        try:
            return super().getreply()
        except smtplib.SMTPResponseException:
            # A line is longer than smtplib reads. It has closed the connection.
            return INVALID_REPLY, b"The line is too long."


class SMTPOverTLS(SMTP, smtplib.SMTP_SSL):
    """An SMTP client whose connection begins with TLS."""


def _address_literal(connection: socket.socket) -> str:
    address = str(connection.getsockname()[0]).partition("%")[0]
    return f"[IPv6:{address}]" if ":" in address else f"[{address}]"


def _completed(code: int, text: bytes) -> tuple[int, bytes]:
    # smtplib takes 250 only.
    return (COMPLETED if code in POSITIVE else code), text
