"""Documents of :mod:`notifications.models.policies`, which describes their fields."""

from datetime import datetime
from typing import NotRequired, TypedDict

from bson import ObjectId

from notifyproject.db.collections import Documents
from notifyproject.db.documents import ClaimDocument


class ProviderStateDocument(TypedDict):
    """A stored :class:`~notifications.models.policies.ProviderState`."""

    _id: str
    paused_at: NotRequired[datetime]
    paused_by: NotRequired[str]
    reason: NotRequired[str]


class LimitDocument(TypedDict):
    """A stored :class:`~notifications.models.policies.Limit`."""

    _id: str
    types: list[str]
    categories: list[str]
    channels: list[str]
    max: int
    period_seconds: int
    min_gap_seconds: int
    overflow: str
    created_at: datetime
    updated_at: datetime


class CountedUse(TypedDict):
    """A message that counts, in :attr:`LimitUsesDocument.uses`."""

    d: str
    at: datetime


class LimitPlace(TypedDict):
    """A delivery that waits, in :attr:`LimitUsesDocument.waiting`."""

    d: str
    due: datetime
    until: datetime
    refused: NotRequired[bool]


class OwnLimit(TypedDict, total=False):
    """A recipient's own values, in :attr:`LimitUsesDocument.own`."""

    max: int
    min_gap_seconds: int


class LimitUsesDocument(TypedDict):
    """A stored :class:`~notifications.models.policies.LimitUses`."""

    _id: str
    limit: str
    user_id: NotRequired[str]
    uses: NotRequired[list[CountedUse]]
    waiting: NotRequired[list[LimitPlace]]
    own: NotRequired[OwnLimit]
    purge_at: NotRequired[datetime]


class DailyUnitsDocument(TypedDict):
    """A stored :class:`~notifications.models.policies.DailyUnits`."""

    _id: str
    client_id: ObjectId
    units: int
    abroad: int
    purge_at: datetime


class CountryUnitsDocument(TypedDict):
    """A stored :class:`~notifications.models.policies.CountryUnits`."""

    _id: str
    country: str
    provider: str
    units: int
    day: NotRequired[str]
    asked: NotRequired[int]
    blocks: NotRequired[int]
    purge_at: datetime


class RetentionPolicyDocument(TypedDict):
    """A stored :class:`~notifications.models.policies.RetentionPolicy`."""

    _id: str
    content_days: NotRequired[int | None]
    metadata_days: NotRequired[int | None]
    removed_until: NotRequired[datetime | None]


class DigestDocument(TypedDict):
    """A stored :class:`~notifications.models.policies.Digest`."""

    _id: ObjectId
    group: str
    status: str
    outcome: NotRequired[str]
    client_id: ObjectId
    user_id: NotRequired[str]
    type: str
    channel: str
    is_test: bool
    key: NotRequired[str]
    leader: NotRequired[str]
    max_items: int
    min_items: int
    template_version: NotRequired[int]
    opened_at: datetime
    window_ends_at: datetime
    closes_at: datetime
    due_at: NotRequired[datetime]
    is_cancelled: bool
    epoch: int
    claim: NotRequired[ClaimDocument]
    claim_count: int
    count: NotRequired[int]
    dropped: NotRequired[int]
    carrier_id: NotRequired[ObjectId]
    sealed_at: NotRequired[datetime]
    closed_at: NotRequired[datetime]
    erased_at: NotRequired[datetime]
    purge_at: NotRequired[datetime]


PROVIDER_STATES = Documents("provider_states", ProviderStateDocument)
LIMITS = Documents("limits", LimitDocument)
LIMIT_USES = Documents("limit_uses", LimitUsesDocument)
DAILY_UNITS = Documents("daily_units", DailyUnitsDocument)
COUNTRY_UNITS = Documents("country_units", CountryUnitsDocument)
RETENTION_POLICIES = Documents("retention_policies", RetentionPolicyDocument)
DIGESTS = Documents("digests", DigestDocument)
