"""The browsers of the benchmark of web push, and the pushes to them.

The pushes are those of a test client, which all go to the sandbox's address.
"""

from dataclasses import replace
from datetime import datetime

from domain.channels import Channel

from . import mail

HOST = "updates.push.services.mozilla.com"


def create_browsers(count: int, *, at: datetime) -> str:
    """Register a browser of each recipient. Return the service's private key."""
    from devices import registration
    from devices.models import Platform
    from devices.push_keys import new_key
    from domain.web_push import Subscription

    own, browser = new_key(), new_key()
    for number in range(count):
        subscription = Subscription(
            endpoint=f"https://{HOST}/wpush/v2/{number}",
            host=HOST,
            p256dh=browser.public,
            auth=bytes(16),
            fingerprint=own.fingerprint,
        )
        new = registration.Registration(
            user_id=f"user-{number}", token=subscription, platform=Platform.WEB
        )
        registration.register(new, now=at)
    return own.private_text


def store_due(count: int, *, at: datetime) -> None:
    """Store due pushes, one for each recipient."""
    from notifications.store import acceptance
    from notifications.store.new_notifications import NewDelivery

    for start in range(0, count, mail.BATCH):
        batch = [
            replace(
                mail.new_notification(number, at=at),
                deliveries=(NewDelivery(channel=Channel("push")),),
                is_test=True,
            )
            for number in range(start, min(start + mail.BATCH, count))
        ]
        acceptance.accept(batch, now=at)
