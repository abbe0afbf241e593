"""What a sandbox is started with."""

from dataclasses import dataclass, field
from pathlib import Path

WHATSAPP_API_VERSION = "v26.0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Timings:
    """How long things take, in seconds."""

    processed: float = 0.05
    """From the acceptance to the event ``processed``."""
    delivered: float = 0.3
    """From the acceptance to the event ``delivered``; what comes later takes multiples of it."""
    late: float = 20.0
    """Put before the events of a message that was taken without an answer."""
    slow: float = 2.0
    """Before a slow answer."""
    drip: float = 1.0
    """Between two bytes of a dripping answer."""
    rate_limit: int = 5
    """The pause a rate limit asks for."""
    short_lived: float = 5.0
    """How long a short-lived access token lasts."""
    batch_window: float = 0.1
    """How long events are gathered before they are posted together."""
    retry_delay: float = 1.0
    """Before a refused webhook is posted again; it doubles each time."""
    retry_timeout: float = 300.0
    """A webhook is given up after this time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Where a sandbox listens, where it keeps its log, and whom it tells."""

    data: Path
    webhook_url: str = ""
    """Where SendGrid's events go; empty: nowhere."""
    whatsapp_webhook_url: str = ""
    """Where WhatsApp's reports and what people write go; empty: nowhere."""
    whatsapp_templates: Path | None = None
    """A file of templates that are approved from the start, beside those of the data folder."""
    whatsapp_api_version: str = WHATSAPP_API_VERSION
    """The newest there is: under a later one there is nothing."""
    out_of_order_share: float = 0.0
    """The share of ordinary WhatsApp messages whose reports come twice and in no order."""
    host: str = "127.0.0.1"
    port: int = 0
    """0: any free one."""
    timings: Timings = field(default_factory=Timings)
