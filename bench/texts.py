"""The text messages that the benchmark of SMS sends."""

from dataclasses import replace
from datetime import datetime

from domain.channels import Channel

from . import mail

FIRST_NUMBER = 447_700_000_000
ENVIRONMENT = {
    "TWILIO_ACCOUNT_SID": "ACbench",
    "TWILIO_AUTH_TOKEN": "b" * 32,
    "TWILIO_FROM": "Bench",
    "PROVIDER_MAX_PER_SECOND": "twilio:0",
    "SMS_COUNTRIES": "GB",
    # Counted for each text, and never reached.
    "SMS_DAILY_UNITS": "1000000000",
}


def store_due(count: int, *, at: datetime) -> None:
    """Store due text messages of one part, each to a number of its own."""
    from domain.content import Recipient
    from notifications.store import acceptance
    from notifications.store.new_notifications import NewDelivery

    for start in range(0, count, mail.BATCH):
        batch = [
            replace(
                mail.new_notification(number, at=at),
                recipient=Recipient(phone=f"+{FIRST_NUMBER + number}"),
                deliveries=(NewDelivery(channel=Channel("sms")),),
            )
            for number in range(start, min(start + mail.BATCH, count))
        ]
        acceptance.accept(batch, now=at)
