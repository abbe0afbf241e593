"""Console sessions of people who signed in by the provider: stored, checked, and ended.

Each has a document, and the Django session contains its key. While a person is active, one request
in 45 seconds asks the provider for the groups, and the others rely on its answer. A session ends
when its document is deleted, so the provider can end one whose Django session nobody can find.
"""

import secrets
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

import structlog
from bson import ObjectId
from django.conf import settings
from django.http import HttpRequest
from pymongo.errors import DuplicateKeyError

from notifyproject.platform import audit
from notifyproject.platform.encryption import DecryptionError, decrypt, encrypt

from ...documents import OIDC_LOGOUTS, OIDC_SESSIONS, OidcSessionDocument
from ...models import StaffUser
from . import accounts, flow
from .discovery import Provider, is_enabled, provider
from .errors import Refusal, RefusedError, UnavailableError
from .flow import Tokens
from .tokens import Identity, Logout

log = structlog.get_logger(__name__)
SESSION_KEY = "oidc_session"
CHECK_INTERVAL = timedelta(seconds=45)
"""With the time limits of the provider's responses, a removed group applies within a minute."""
MAX_UNCONFIRMED = timedelta(minutes=10)
"""How long a session lasts if the provider is unavailable to confirm the groups."""
_TOKEN_BYTES = 32


def begin(
    request: HttpRequest, user_id: ObjectId, identity: Identity, tokens: Tokens, *, now: datetime
) -> None:
    """Store the session of a person whose groups were just found."""
    key = request.session.get(SESSION_KEY) or secrets.token_urlsafe(_TOKEN_BYTES)
    fields = _fields(key, user_id, identity, tokens, now=now)
    OIDC_SESSIONS().replace_one({"_id": key}, fields, upsert=True)
    request.session[SESSION_KEY] = key


def renew(
    request: HttpRequest, user_id: ObjectId, identity: Identity, tokens: Tokens, *, now: datetime
) -> None:
    """Store the new tokens of a session, and that its person's groups were just found.

    Raises RefusedError if the session has ended, which a re-authentication doesn't undo.
    """
    key = request.session.get(SESSION_KEY, "")
    fields = _fields(key, user_id, identity, tokens, now=now)
    renewed = OIDC_SESSIONS().replace_one({"_id": key, "user_id": user_id}, fields)
    if not renewed.matched_count:
        raise RefusedError(Refusal.PROVIDER_LOGOUT)


def _fields(
    key: str, user_id: ObjectId, identity: Identity, tokens: Tokens, *, now: datetime
) -> OidcSessionDocument:
    encrypted = _encrypted(key, tokens)
    session: OidcSessionDocument = {
        "_id": key,
        "user_id": user_id,
        "issuer": settings.OIDC_ISSUER,
        "subject": identity.subject,
        "checked_at": now,
        "check_at": now + CHECK_INTERVAL,
        "expires_at": now + timedelta(seconds=settings.SESSION_COOKIE_AGE) + CHECK_INTERVAL,
        "access_token": encrypted["access_token"],
    }
    if "refresh_token" in encrypted:
        session["refresh_token"] = encrypted["refresh_token"]
    if identity.session_id is not None:
        session["provider_session"] = identity.session_id
    return session


def is_oidc_session(request: HttpRequest) -> bool:
    """Return whether the person of this session signed in by the provider."""
    return SESSION_KEY in request.session


def subject_of(request: HttpRequest) -> str | None:
    """Return the provider's subject of this session; None if there is no such session."""
    stored = _find(request.session.get(SESSION_KEY))
    return None if stored is None else stored["subject"]


def delete_session(request: HttpRequest, **_: Any) -> None:
    """Delete the document of a session that logs out. A receiver of ``user_logged_out``."""
    if key := request.session.get(SESSION_KEY):
        OIDC_SESSIONS().delete_one({"_id": key})


def check(request: HttpRequest, *, now: datetime) -> None:
    """Check that a session may go on, and apply changed groups. Raises RefusedError.

    A session that isn't the provider's may, unless it is a local account's without being a
    superuser's: such an account would outlive the person's at the provider.
    """
    key = request.session.get(SESSION_KEY)
    if key is None:
        if is_enabled() and request.user.is_authenticated and not request.user.is_superuser:
            raise RefusedError(Refusal.LOCAL)
        return
    stored = _find(key) if is_enabled() else None
    if stored is None or stored["user_id"] != request.user.pk:
        raise RefusedError(Refusal.PROVIDER_LOGOUT)
    if stored["check_at"] > now:
        return
    # Of concurrent requests, one asks: a provider takes a repeated refresh token for a theft.
    claimed = OIDC_SESSIONS().update_one(
        {"_id": key, "check_at": stored["check_at"]},
        {
            "$set": {
                "check_at": now + CHECK_INTERVAL,
                "expires_at": now + timedelta(seconds=settings.SESSION_COOKIE_AGE) + CHECK_INTERVAL,
            }
        },
    )
    if claimed.modified_count == 1:
        _confirm_groups(request.user, stored, now=now)


def end_by_provider(logout: Logout) -> int:
    """End the sessions that a logout token names, and return their number.

    Raises RefusedError if the token was accepted before, and PyMongoError. The sessions end first,
    so that the provider can repeat a call that failed.
    """
    key = f"{settings.OIDC_ISSUER} {logout.token_id}"
    if OIDC_LOGOUTS().find_one({"_id": key}) is not None:
        raise RefusedError(Refusal.CODE, "logout token was used")
    named: list[dict[str, Any]] = []
    if logout.session_id is not None:
        named.append({"provider_session": logout.session_id})
    if logout.subject is not None:
        # A session without the provider's ID ends with any session of the person.
        condition = {"provider_session": None} if logout.session_id is not None else {}
        named.append({"subject": logout.subject, **condition})
    wanted = {"issuer": settings.OIDC_ISSUER, "$or": named}
    ended = list(OIDC_SESSIONS().find(wanted, {"user_id": 1}))
    ids = [session["_id"] for session in ended]
    OIDC_SESSIONS().delete_many({"_id": {"$in": ids}})
    for user_id in {session["user_id"] for session in ended}:
        record(user_id, "Signed out by the provider.")
    try:
        OIDC_LOGOUTS().insert_one({"_id": key, "expires_at": logout.expires_at})
    except DuplicateKeyError as error:
        raise RefusedError(Refusal.CODE, "logout token was used") from error
    return len(ended)


def record(user_id: ObjectId, message: str) -> None:
    """Record a sign-in, or the end of a session, in the audit log."""
    user = StaffUser.objects.filter(pk=user_id).first()
    name = str(user_id) if user is None else user.get_username()
    audit.record(by=user_id, model=StaffUser, object_id=str(user_id), name=name, message=message)


def record_roles(user_id: ObjectId, names: Iterable[str]) -> None:
    """Record that the provider's groups changed a person's roles."""
    roles = ", ".join(sorted(names))
    log.info("oidc_roles_changed", user_id=str(user_id), roles=roles)
    record(user_id, f"Roles by the provider: {roles}.")


def _confirm_groups(user: StaffUser, stored: OidcSessionDocument, *, now: datetime) -> None:
    try:
        groups = _ask_for_groups(stored, provider=provider())
    except UnavailableError as error:
        log.warning("oidc_check_failed", user_id=str(user.pk), error=str(error))
        if now - stored["checked_at"] > MAX_UNCONFIRMED:
            raise RefusedError(Refusal.UNREACHABLE) from error
        return
    names = accounts.find_roles(groups)
    if accounts.apply_roles(user, names):
        record_roles(user.pk, names)
    OIDC_SESSIONS().update_one({"_id": stored["_id"]}, {"$set": {"checked_at": now}})


def _ask_for_groups(stored: OidcSessionDocument, *, provider: Provider) -> tuple[str, ...]:
    """Return the person's present groups. Raises RefusedError and UnavailableError.

    A refresh token is preferred: it ends with the account and outlives the access token.
    """
    key, subject = stored["_id"], stored["subject"]
    refresh_token = _decrypted(key, stored.get("refresh_token"))
    if refresh_token is None:
        tokens = Tokens(access_token=_decrypted(key, stored["access_token"]) or "")
    else:
        tokens = flow.refresh(refresh_token, provider=provider)
        # Stored before anything else can fail: the provider may have replaced the old token.
        OIDC_SESSIONS().update_one({"_id": key}, {"$set": _encrypted(key, tokens)})
    groups = flow.find_groups(tokens, None, subject=subject, provider=provider)
    return groups or ()


def _find(key: str | None) -> OidcSessionDocument | None:
    if key is None:
        return None
    wanted = {"_id": key, "issuer": settings.OIDC_ISSUER}
    return OIDC_SESSIONS().find_one(wanted)


def _encrypted(key: str, tokens: Tokens) -> dict[str, str]:
    """Return the encrypted tokens. Without a new refresh token, the previous one stays valid."""
    bound = _associated_data(key)
    fields = {"access_token": encrypt(tokens.access_token.encode(), associated_data=bound)}
    if tokens.refresh_token is not None:
        fields["refresh_token"] = encrypt(tokens.refresh_token.encode(), associated_data=bound)
    return fields


def _decrypted(key: str, text: str | None) -> str | None:
    if text is None:
        return None
    try:
        return decrypt(text, associated_data=_associated_data(key)).decode()
    except DecryptionError as error:
        raise RefusedError(Refusal.CODE, "stored token") from error


def _associated_data(key: str) -> str:
    return f"oidc session:{key}"
