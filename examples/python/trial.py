"""The messages of a small app."""

from dataclasses import dataclass

from notifyproject_client import AcceptedNotificationView, Notifier

APP = "Sunrise"


@dataclass(frozen=True)
class Customer:
    """Somebody who tries the app."""

    id: str
    email: str
    phone: str


class Messages:
    """What the app tells its customers."""

    def __init__(self, notifier: Notifier) -> None:
        self._notifier = notifier

    def welcome(self, customer: Customer) -> AcceptedNotificationView:
        """Begin the plan of three days, which the type has. Once for each customer."""
        return self._notifier.notify(
            "trial_started",
            user_id=customer.id,
            email=customer.email,
            phone=customer.phone,
            entity_id=f"trial-{customer.id}",
            data={"app": APP},
            idempotency_key=f"trial-{customer.id}",
        )

    def comment(self, customer: Customer, *, document: str, author: str) -> None:
        """Say that somebody commented. Several are sent as one."""
        self._notifier.notify(
            "document_commented",
            user_id=customer.id,
            email=customer.email,
            data={"document": document, "author": author},
        )

    def receipt(self, customer: Customer, *, amount: str) -> None:
        """Send a receipt."""
        self._notifier.notify("trial_receipt", email=customer.email, data={"amount": amount})

    def live(self, customer: Customer, *, title: str) -> None:
        """Say that a stream has begun, which is over after 45 minutes."""
        self._notifier.notify(
            "live_started",
            user_id=customer.id,
            phone=customer.phone,
            ttl=45 * 60,
            data={"title": title},
        )
