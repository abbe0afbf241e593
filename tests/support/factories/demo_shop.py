"""A shop: its client, customers, and earlier events."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from bson import ObjectId

from access.clients import registry
from access.models import APIClient, Scope, StaffUser
from devices.models import Platform
from domain.channels import Channel
from notifications.content import templates
from notifications.models import NotificationType
from notifyproject.platform import audit
from recipients import registration, suppressions
from recipients.models import Suppression, SuppressionReason
from recipients.registration import PreferenceChanges
from tests.support.factories import notifications as factories

from .templates import publish_version

PHONES = (
    (Platform.ANDROID, "Pixel 9"),
    (Platform.IOS, "iPhone 17"),
    (Platform.ANDROID, "Galaxy S25"),
)
NAMES = (
    ("Beatriz Almeida", "Europe/Lisbon"),
    ("Tomas Ferreira", "Europe/Lisbon"),
    ("Ana Carvalho", "America/Sao_Paulo"),
    ("Henrik Nyberg", "Europe/Stockholm"),
    ("Mariana Duarte", "Europe/Lisbon"),
    ("Luca Moretti", "Europe/Rome"),
    ("Ines Pacheco", "Europe/Lisbon"),
    ("Rafael Monteiro", "America/Sao_Paulo"),
    ("Clara Weiss", "Europe/Berlin"),
    ("Duarte Sampaio", "Europe/Lisbon"),
    ("Nora Lindqvist", "Europe/Stockholm"),
    ("Paulo Teixeira", "America/Sao_Paulo"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Customer:
    user_id: str
    name: str
    timezone: str
    phone: str
    device: tuple[Platform, str]

    @property
    def email(self) -> str:
        return f"{self.name.lower().replace(' ', '.')}@example.com"


CUSTOMERS = tuple(
    Customer(
        user_id=f"u-{48_213 + 377 * n}",
        name=name,
        timezone=zone,
        phone=f"+35191{(n + 3) * 761_413 % 9_999_991:07d}",
        device=PHONES[n % len(PHONES)],
    )
    for n, (name, zone) in enumerate(NAMES)
)


def open_up(*, now: datetime) -> ObjectId:
    """Store the shop's client, customers, and audit entries. Return the client's ID."""
    shop = _app(now)
    for customer in CUSTOMERS:
        _welcome(customer, now=now - timedelta(days=40))
    first, second, third, *_ = CUSTOMERS
    registration.set_preferences(
        user_id=first.user_id,
        changes=PreferenceChanges(
            by_name={"marketing": {"muted": True}},
            quiet_hours={
                "enabled": True,
                "start": "22:00",
                "end": "07:30",
                "timezone": first.timezone,
            },
        ),
        now=now - timedelta(days=3),
    )
    _hold_back(second, SuppressionReason.HARD_BOUNCE, "sendgrid", now=now - timedelta(days=1))
    _hold_back(third, SuppressionReason.UNSUBSCRIBED, "one-click", now=now - timedelta(days=5))
    _write_a_version(now - timedelta(days=6))
    _go_on_record(shop)
    return shop


def _app(now: datetime) -> ObjectId:
    """Return a client whose key is being rotated."""
    begins = now - timedelta(days=40)
    shop = registry.create_client(name="shop", scopes=list(Scope)[:7], now=begins)
    registry.issue_key(client_id=shop, now=begins, lifetime=timedelta(days=45))
    registry.issue_key(client_id=shop, now=now - timedelta(days=2))
    registry.create_client(name="warehouse", scopes=[Scope.NOTIFICATIONS_WRITE], now=begins)
    return shop


def _welcome(customer: Customer, *, now: datetime) -> None:
    registration.register(
        registration.RecipientProfile(
            user_id=customer.user_id,
            email=customer.email,
            phone=customer.phone,
            name=customer.name,
            timezone=customer.timezone,
        ),
        now=now,
    )
    platform, model = customer.device
    factories.device(
        f"{customer.user_id}:APA91b{customer.phone[1:] * 10}",
        user_id=customer.user_id,
        platform=platform,
        device_model=model,
        app_version="5.2.1",
        at=now,
    )


def _hold_back(
    customer: Customer, reason: SuppressionReason, source: str, *, now: datetime
) -> None:
    suppressions.suppress(
        channel=Channel.EMAIL,
        address=customer.email,
        reason=reason,
        source=source,
        marketing_only=reason is SuppressionReason.UNSUBSCRIBED,
        now=now,
    )


def _write_a_version(at: datetime) -> None:
    for note, push in (
        ("A shorter push", "{{ amount }} paid."),
        ("With the title", "{{ amount }} for {{ video_title }}."),
    ):
        templates.create_version(
            type_slug="payment_confirmed",
            parts={"default": {"push": push}},
            note=note,
            created_by="staff:maria",
            now=at,
        )
    publish_version(type_slug="payment_confirmed", number=1, now=at)


def _go_on_record(shop: ObjectId) -> None:
    maria = StaffUser.objects.get(username="maria").pk
    audit.record(
        by=maria, model=APIClient, object_id=str(shop), name="shop", message="Issued a key."
    )
    audit.record(
        by=maria,
        model=NotificationType,
        object_id="payment_confirmed",
        name="Payment confirmed",
        message="Published version 1 of what it says.",
    )
    audit.record(
        by=maria,
        model=Suppression,
        object_id="email",
        name="a mail address",
        message="Lifted: the person has asked for it by phone.",
    )
