"""The variables of a mail server."""

from typing import Any

from domain.hosts import is_loopback, public_name
from notifyproject.settings import kinds, safety
from notifyproject.settings.declarations import ProviderGroup, declare


class Settings(ProviderGroup):
    """A mail server."""

    heading = "Mail server"
    see = "guides/channels.md"
    provider = "smtp"
    channel = "email"
    needs_threads = True

    SMTP_HOST: str = declare(
        kinds.text(
            r"[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_.])?|[0-9a-fA-F:.]*:[0-9a-fA-F:.]*",
            "a host name or an IP address, without a scheme, a port, or brackets",
        ),
        "127.0.0.1",
        "host of the mail server",
        is_asked=True,
        is_needed=True,
    )
    SMTP_PORT: int = declare(
        kinds.whole(0, 65_535), "25", "587 for `starttls`, usually 465 for `tls`", is_asked=True
    )
    SMTP_SECURITY: str = declare(
        kinds.choice("none", "starttls", "tls"),
        "none",
        "TLS of the connection; certificates are verified",
        is_asked=True,
    )
    SMTP_USER: str = declare(
        kinds.text(), "", "user of the login; without one, there is none", is_asked=True
    )
    SMTP_PASSWORD: str = declare(
        kinds.password(),
        "",
        "password of the login; refused with `SMTP_SECURITY=none`, except to this machine or a "
        "private network",
        is_asked=True,
    )
    SMTP_EHLO_NAME: str = declare(
        # RFC 5321, 4.1.3.
        kinds.text(
            r"[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63})*|\[(?:IPv6:[0-9A-Fa-f:.]+|[0-9.]+)\]",
            "a domain, or an IP address in brackets",
        ),
        "",
        "name with which the service greets the mail server",
        empty=("the host of `PUBLIC_URL`, or without a public one the machine's name or address"),
    )

    def ehlo_name(self, environment: Any) -> str:
        """Return the name with which this service greets a mail server, or an empty text."""
        return self.SMTP_EHLO_NAME or public_name(environment.PUBLIC_URL)

    def configure(self, environment: Any) -> dict[str, Any]:
        """Add Django's own settings of mail."""
        return {
            **vars(self),
            "EMAIL_BACKEND": "django.core.mail.backends.smtp.EmailBackend",
            "EMAIL_HOST": self.SMTP_HOST,
            "EMAIL_PORT": self.SMTP_PORT,
            "EMAIL_HOST_USER": self.SMTP_USER,
            "EMAIL_HOST_PASSWORD": self.SMTP_PASSWORD,
            "EMAIL_USE_TLS": self.SMTP_SECURITY == "starttls",
            "EMAIL_USE_SSL": self.SMTP_SECURITY == "tls",
            "EMAIL_TIMEOUT": 15,
            "SMTP_EHLO_NAME": self.ehlo_name(environment),
        }

    def problem(self) -> str | None:
        """Return why the password would be sent unsafely, or None."""
        is_encrypted = self.SMTP_SECURITY != "none"
        return password_problem(self.SMTP_HOST, self.SMTP_PASSWORD, is_encrypted=is_encrypted)


def password_problem(host: str, password: str, *, is_encrypted: bool) -> str | None:
    """Return what is wrong with how the password is sent to the mail server, or None."""
    is_safe = not password or is_encrypted
    if is_safe or is_loopback(host) or safety.is_private(host):
        return None
    return "SMTP_PASSWORD is sent without TLS: SMTP_SECURITY is none"
