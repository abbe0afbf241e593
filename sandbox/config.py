"""The configuration of a sandbox."""

from dataclasses import dataclass, field
from pathlib import Path

WHATSAPP_API_VERSION = "v26.0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Timings:
    """Durations, in seconds."""

    response: float = 0.0
    """From a request, of any provider, to its response."""
    processed: float = 0.05
    """From acceptance to the event ``processed``."""
    delivered: float = 0.3
    """From acceptance to the event ``delivered``; later events take multiples of this value."""
    late: float = 20.0
    """The extra delay of the events if the message was accepted without an answer."""
    slow: float = 2.0
    drip: float = 1.0
    """Between two bytes of an answer in mode ``dripping``."""
    rate_limit: int = 5
    short_lived: float = 5.0
    pumping: float = 60.0
    """How long a carrier's block of a prefix lasts."""
    batch_window: float = 0.1
    """How long events are collected for one POST."""
    retry_delay: float = 1.0
    """The delay before a webhook is retried the first time; each retry doubles the delay."""
    retry_timeout: float = 300.0
    """How long a webhook is retried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The address, the data folder, and the webhook URLs of a sandbox."""

    data: Path
    webhook_url: str = ""
    """The receiver of SendGrid's events; empty for none."""
    whatsapp_webhook_url: str = ""
    """The receiver of WhatsApp's statuses and inbound messages; empty for none."""
    twilio_webhook_url: str = ""
    """The receiver of inbound SMS; empty for none. Status callbacks go where each message says."""
    mail_webhooks_url: str = ""
    """Where the webhooks of the other providers of email are, and of AWS SMS: each is below it, by
    the provider's name. Empty for none."""
    whatsapp_templates: Path | None = None
    """A file of approved templates, besides those in the data folder."""
    whatsapp_api_version: str = WHATSAPP_API_VERSION
    host: str = "127.0.0.1"
    port: int = 0
    """0: any free port."""
    timings: Timings = field(default_factory=Timings)
