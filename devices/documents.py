"""Documents of :mod:`devices.models`, which describes their fields."""

from datetime import datetime
from typing import NotRequired, TypedDict

from notifyproject.db.collections import Documents


class DeviceQuietHoursDocument(TypedDict):
    """A stored :class:`~devices.models.DeviceQuietHours`."""

    enabled: bool
    start: str
    end: str
    timezone: NotRequired[str]


class DevicePreferencesDocument(TypedDict):
    """A stored :class:`~devices.models.DevicePreferences`."""

    enabled: bool
    categories: dict[str, bool]
    quiet_hours: NotRequired[DeviceQuietHoursDocument]


class DeactivationEvidenceDocument(TypedDict):
    """A stored :class:`~devices.models.DeactivationEvidence`."""

    at: datetime
    source: str
    code: NotRequired[str]
    notification_id: NotRequired[str]


class PushSubscriptionDocument(TypedDict):
    """A stored :class:`~devices.models.PushSubscription`."""

    host: str
    fingerprint: str
    secrets: str


class DeviceDocument(TypedDict):
    """A stored :class:`~devices.models.Device`."""

    _id: str
    user_id: str
    device_token: NotRequired[str]
    subscription: NotRequired[PushSubscriptionDocument]
    platform: str
    app_version: NotRequired[str]
    device_model: NotRequired[str]
    os_version: NotRequired[str]
    language: NotRequired[str]
    timezone: NotRequired[str]
    notification_preferences: NotRequired[DevicePreferencesDocument]
    is_active: bool
    deactivated_at: NotRequired[datetime]
    deactivation_reason: NotRequired[str]
    deactivation_evidence: NotRequired[DeactivationEvidenceDocument]
    replaced_by: NotRequired[str]
    replaces: NotRequired[list[str]]
    token_rejections: int
    suspected_at: NotRequired[datetime]
    last_accepted_at: NotRequired[datetime]
    last_receipt_at: NotRequired[datetime]
    proven_at: NotRequired[datetime]
    created_at: datetime
    updated_at: datetime
    last_seen: NotRequired[datetime]


DEVICES = Documents("devices", DeviceDocument)
