"""Documents of :mod:`access.models`, which describes their fields."""

from datetime import datetime
from typing import NotRequired, TypedDict

from bson import ObjectId

from notifyproject.db.collections import Documents


class StaffUserDocument(TypedDict):
    """A stored :class:`~access.models.StaffUser`."""

    _id: ObjectId
    password: str
    last_login: NotRequired[datetime | None]
    is_superuser: bool
    username: str
    first_name: str
    last_name: str
    email: str
    is_staff: bool
    is_active: bool
    date_joined: datetime


class APIKeyDocument(TypedDict):
    """A stored :class:`~access.models.APIKey`."""

    prefix: str
    secret_hash: str
    created_at: datetime
    expires_at: NotRequired[datetime]
    revoked_at: NotRequired[datetime]
    last_used_at: NotRequired[datetime]
    requires_approval: NotRequired[bool]


class APIClientDocument(TypedDict):
    """A stored :class:`~access.models.APIClient`."""

    _id: ObjectId
    name: str
    scopes: list[str]
    is_test: bool
    is_active: bool
    keys: list[APIKeyDocument]
    created_at: datetime


class LoginFailuresDocument(TypedDict):
    """A stored :class:`~access.models.LoginFailures`."""

    _id: str
    count: int
    expires_at: datetime


class SecondFactorDocument(TypedDict):
    """A stored :class:`~access.models.SecondFactor`."""

    _id: ObjectId
    pending_key: NotRequired[str]
    invited_at: NotRequired[datetime]
    encrypted_key: NotRequired[str]
    enrolled_at: NotRequired[datetime]
    last_step: NotRequired[int]
    recovery_codes: list[str]
    tries: NotRequired[int]
    tries_until: NotRequired[datetime]


class OidcIdentityDocument(TypedDict):
    """A stored :class:`~access.models.OidcIdentity`."""

    _id: str
    user_id: ObjectId
    created_at: datetime


class OidcSessionDocument(TypedDict):
    """A stored :class:`~access.models.OidcSession`."""

    _id: str
    user_id: ObjectId
    issuer: str
    subject: str
    provider_session: NotRequired[str]
    access_token: str
    refresh_token: NotRequired[str]
    checked_at: datetime
    check_at: datetime
    expires_at: datetime


class OidcLogoutDocument(TypedDict):
    """A stored :class:`~access.models.OidcLogout`."""

    _id: str
    expires_at: datetime


class InboxRevocationDocument(TypedDict):
    """A stored :class:`~access.models.InboxRevocation`."""

    _id: str
    epoch: NotRequired[int]
    expires_at: NotRequired[datetime]


STAFF_USERS = Documents("staff_users", StaffUserDocument)
API_CLIENTS = Documents("api_clients", APIClientDocument)
LOGIN_FAILURES = Documents("login_failures", LoginFailuresDocument)
SECOND_FACTORS = Documents("second_factors", SecondFactorDocument)
OIDC_IDENTITIES = Documents("oidc_identities", OidcIdentityDocument)
OIDC_SESSIONS = Documents("oidc_sessions", OidcSessionDocument)
OIDC_LOGOUTS = Documents("oidc_logouts", OidcLogoutDocument)
INBOX_REVOCATIONS = Documents("inbox_revocations", InboxRevocationDocument)
