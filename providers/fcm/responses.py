"""Classifies FCM's responses, sender mismatches included.

The FCM error code in the body has precedence over the HTTP status, since a 404 may be about a
device or about the project. Only a code about the device deactivates it. A wrong project or a
missing permission is an error of the configuration.

``SENDER_ID_MISMATCH`` may mean either: a token of another project, or a wrong service account. The
latest responses for the project decide. Each process keeps its own history; a new process is in
doubt, which costs a wait and never a device.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from threading import Lock
from typing import Any

import msgspec

from domain.errors import (
    FailureCode,
    InvalidRecipientError,
    PermanentError,
    ProviderError,
    ProviderResponse,
    ProviderUnavailableError,
    RecipientAction,
    TransientError,
)

from .. import http
from ..response_rules import ResponseKind

_FCM_ERROR = "google.firebase.fcm.v1.FcmError"


_BAD_REQUEST = "google.rpc.BadRequest"


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """What an answer other than an acceptance says."""

    status: int
    name: str | None = None
    """Google's name of the status: ``NOT_FOUND``."""
    code: str | None = None
    """FCM's own code: ``UNREGISTERED``."""
    fields: Sequence[str] = ()
    """The fields it complains about."""
    text: str = ""


def read_refusal(response: http.Response) -> Refusal:
    """Return what an answer says, as far as it is readable."""
    error = _mapping(_decode(response.body).get("error"))
    details = list(_details(error))
    code = next((d["errorCode"] for d in details if _is(d, _FCM_ERROR) and "errorCode" in d), None)
    return Refusal(
        status=response.status,
        name=_text(error.get("status")),
        code=_text(code),
        fields=tuple(_fields(details)),
        text=_text(error.get("message")) or "",
    )


def accepted_name(response: http.Response) -> str | None:
    """Return the name FCM gave the message; None if this is not FCM's documented acceptance."""
    name = _decode(response.body).get("name")
    return name if isinstance(name, str) and name else None


def _decode(body: bytes) -> Mapping[str, Any]:
    try:
        return _mapping(msgspec.json.decode(body))
    except (ValueError, RecursionError):
        return {}


def _mapping(found: Any) -> Mapping[str, Any]:
    return found if isinstance(found, dict) else {}


def _text(found: Any) -> str | None:
    return found if isinstance(found, str) else None


def _details(error: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    found = error.get("details")
    return (one for one in found if isinstance(one, dict)) if isinstance(found, list) else iter(())


def _is(detail: Mapping[str, Any], kind: str) -> bool:
    name = detail.get("@type")
    return isinstance(name, str) and name.rpartition("/")[2] == kind


def _fields(details: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for detail in details:
        violations = detail.get("fieldViolations") if _is(detail, _BAD_REQUEST) else None
        for one in violations if isinstance(violations, list) else ():
            name = _mapping(one).get("field")
            if isinstance(name, str):
                yield name


PROVEN_FOR = timedelta(hours=1)
"""A project that has taken a push within this time is one that devices belong to."""


STRANGERS = 5
"""So many different devices in a row that are another sender's are no coincidence."""


SENDER_SCOPE = "sender"
"""The circuit of a mismatch that nobody is to blame for: nothing else waits for it."""


class MismatchCause(StrEnum):
    """Who is the wrong one."""

    DEVICE = "device"
    PROJECT = "project"
    NOBODY = "nobody"
    """It cannot be told yet."""


class SenderHistory:
    """What a process has been answered of late for one account. Safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._accepted_at: datetime | None = None
        self._strangers: set[bytes] = set()
        """Devices that were another sender's since."""

    def accepted(self, *, now: datetime) -> None:
        """Note that the project has taken a push."""
        with self._lock:
            self._accepted_at = max(now, self._accepted_at or now)
            self._strangers.clear()

    def refused(self, token: str, *, now: datetime) -> MismatchCause:
        """Note that a token is said to be another sender's, and return whose fault that is."""
        with self._lock:
            if len(self._strangers) < STRANGERS:
                self._strangers.add(hashlib.sha256(token.encode()).digest())
            if len(self._strangers) >= STRANGERS:
                return MismatchCause.PROJECT
            at = self._accepted_at
        return (
            MismatchCause.DEVICE
            if at is not None and now - at <= PROVEN_FOR
            else MismatchCause.NOBODY
        )


ANY_ERROR, CLIENT_ERROR = range(400, 600), range(400, 500)


QUOTA_PAUSE = 60.0
"""Google's advice for a quota without a Retry-After, in seconds."""


MAX_CODE = 100


MISMATCH = "SENDER_ID_MISMATCH"


@dataclass(frozen=True, slots=True, kw_only=True)
class FcmRule:
    """One row of the table: an answer of which all this is true means this."""

    when: str
    """The answer in words, for people."""
    kind: ResponseKind
    reason: str
    """What a delivery's record says of it, for people."""
    statuses: Sequence[int] | range
    name: str | None = None
    code: str | None = None
    field: str | None = None
    text: str | None = None
    """Pattern of the error's text: some answers name the field nowhere else."""
    failure: FailureCode = FailureCode.REJECTED
    action: RecipientAction | None = None
    """What becomes of the device, if it is to blame."""
    pause: float | None = None
    """Seconds to wait, if the answer has no Retry-After."""
    blame: MismatchCause | None = None
    """Whose fault it is that a token is another sender's."""
    platform_only: bool = False
    """Other platforms are well: only the device's own is unavailable."""
    sender_only: bool = False
    """Other devices are well, as far as is known."""
    new_token: bool = False
    """It is about our access token: another is fetched and the message sent once more."""

    def matches(self, refusal: Refusal, blame: MismatchCause | None) -> bool:
        """Return whether this row is about such an answer."""
        return (
            refusal.status in self.statuses
            and self.blame in (None, blame)
            and self.name in (None, refusal.name)
            and self.code in (None, refusal.code)
            and (self.field is None or self.field in refusal.fields)
            and (self.text is None or re.search(self.text, refusal.text, re.IGNORECASE) is not None)
        )


ROWS: tuple[FcmRule, ...] = (
    FcmRule(
        when="UNREGISTERED, with a 404",
        statuses=CLIENT_ERROR,
        code="UNREGISTERED",
        kind=ResponseKind.INVALID_RECIPIENT,
        action=RecipientAction.DEACTIVATE,
        failure=FailureCode.INVALID_RECIPIENT,
        reason="Device token invalid",
    ),
    FcmRule(
        when="SENDER_ID_MISMATCH, with a 403, if the project took another push within the hour",
        statuses=CLIENT_ERROR,
        code=MISMATCH,
        blame=MismatchCause.DEVICE,
        kind=ResponseKind.INVALID_RECIPIENT,
        action=RecipientAction.SUSPECT,
        failure=FailureCode.INVALID_RECIPIENT,
        reason="Device token belongs to another Firebase project",
    ),
    FcmRule(
        when="SENDER_ID_MISMATCH for the fifth device, none having been accepted in between",
        statuses=CLIENT_ERROR,
        code=MISMATCH,
        blame=MismatchCause.PROJECT,
        kind=ResponseKind.UNAVAILABLE,
        failure=FailureCode.CHANNEL_UNAVAILABLE,
        reason="The devices belong to another Firebase project than the service account.",
    ),
    FcmRule(
        when="any other SENDER_ID_MISMATCH",
        statuses=CLIENT_ERROR,
        code=MISMATCH,
        kind=ResponseKind.UNAVAILABLE,
        failure=FailureCode.CHANNEL_UNAVAILABLE,
        sender_only=True,
        reason="The device and the service account belong to different Firebase projects.",
    ),
    FcmRule(
        when="THIRD_PARTY_AUTH_ERROR, with a 401",
        statuses=CLIENT_ERROR,
        code="THIRD_PARTY_AUTH_ERROR",
        kind=ResponseKind.UNAVAILABLE,
        failure=FailureCode.CHANNEL_UNAVAILABLE,
        platform_only=True,
        reason="Apple's or the browser's push service does not accept the key that Firebase has.",
    ),
    FcmRule(
        when="QUOTA_EXCEEDED, with a 429",
        statuses=ANY_ERROR,
        code="QUOTA_EXCEEDED",
        kind=ResponseKind.TRANSIENT,
        failure=FailureCode.RATE_LIMITED,
        pause=QUOTA_PAUSE,
        reason="Firebase wants fewer messages.",
    ),
    FcmRule(
        when="UNAVAILABLE, with a 503",
        statuses=ANY_ERROR,
        code="UNAVAILABLE",
        kind=ResponseKind.TRANSIENT,
        failure=FailureCode.PROVIDER_ERROR,
        reason="Firebase is overloaded.",
    ),
    FcmRule(
        when="INTERNAL, with a 500",
        statuses=ANY_ERROR,
        code="INTERNAL",
        kind=ResponseKind.TRANSIENT,
        failure=FailureCode.PROVIDER_ERROR,
        reason="Firebase had a problem of its own.",
    ),
    FcmRule(
        when="400 INVALID_ARGUMENT that names the field message.token",
        statuses=(400,),
        name="INVALID_ARGUMENT",
        field="message.token",
        kind=ResponseKind.INVALID_RECIPIENT,
        action=RecipientAction.SUSPECT,
        failure=FailureCode.INVALID_RECIPIENT,
        reason="Device token malformed",
    ),
    FcmRule(
        when="400 INVALID_ARGUMENT whose text says that the registration token is none",
        statuses=(400,),
        name="INVALID_ARGUMENT",
        text=r"not a valid FCM registration token",
        kind=ResponseKind.INVALID_RECIPIENT,
        action=RecipientAction.SUSPECT,
        failure=FailureCode.INVALID_RECIPIENT,
        reason="Device token malformed",
    ),
    FcmRule(
        when="400 whose text says that the message is too big",
        statuses=(400,),
        text=r"\bmessage is too (?:big|large)\b",
        kind=ResponseKind.PERMANENT,
        failure=FailureCode.TOO_LARGE,
        reason="The message is larger than Firebase takes.",
    ),
    FcmRule(
        when="any other 400",
        statuses=(400,),
        kind=ResponseKind.PERMANENT,
        reason="Firebase refused the message.",
    ),
    FcmRule(
        when="401 UNAUTHENTICATED, again with a new access token",
        statuses=(401,),
        name="UNAUTHENTICATED",
        kind=ResponseKind.UNAVAILABLE,
        failure=FailureCode.CHANNEL_UNAVAILABLE,
        new_token=True,
        reason="Firebase does not accept the service account's access token.",
    ),
    FcmRule(
        when="any other 401",
        statuses=(401,),
        kind=ResponseKind.UNAVAILABLE,
        failure=FailureCode.CHANNEL_UNAVAILABLE,
        reason="Something before Firebase wants credentials.",
    ),
    FcmRule(
        when="any other 403",
        statuses=(403,),
        kind=ResponseKind.UNAVAILABLE,
        failure=FailureCode.CHANNEL_UNAVAILABLE,
        reason="The service account may not send for this Firebase project.",
    ),
    FcmRule(
        when="any other 404",
        statuses=(404,),
        kind=ResponseKind.UNAVAILABLE,
        failure=FailureCode.CHANNEL_UNAVAILABLE,
        reason="Firebase knows no such project.",
    ),
    FcmRule(
        when="a redirect",
        statuses=range(300, 400),
        kind=ResponseKind.UNAVAILABLE,
        failure=FailureCode.CHANNEL_UNAVAILABLE,
        reason="Something before Firebase sends us elsewhere.",
    ),
    FcmRule(
        when="413",
        statuses=(413,),
        kind=ResponseKind.PERMANENT,
        failure=FailureCode.TOO_LARGE,
        reason="The message is larger than Firebase takes.",
    ),
    FcmRule(
        when="any other 429",
        statuses=(429,),
        kind=ResponseKind.TRANSIENT,
        failure=FailureCode.RATE_LIMITED,
        pause=QUOTA_PAUSE,
        reason="Firebase wants fewer messages.",
    ),
    FcmRule(
        when="any other 4xx",
        statuses=CLIENT_ERROR,
        kind=ResponseKind.PERMANENT,
        reason="Firebase refused the message.",
    ),
    FcmRule(
        when="any other 5xx",
        statuses=range(500, 600),
        kind=ResponseKind.TRANSIENT,
        failure=FailureCode.PROVIDER_ERROR,
        reason="Firebase had a problem of its own.",
    ),
    FcmRule(
        when="200 without a message's name, or another status",
        statuses=range(1000),
        kind=ResponseKind.AMBIGUOUS,
        failure=FailureCode.PROVIDER_ERROR,
        reason="Firebase gave an answer that it does not document.",
    ),
)
"""The first row that matches decides."""


def rule_for(refusal: Refusal, blame: MismatchCause | None = None) -> FcmRule:
    """Return what an answer means; the last row is about any."""
    return next(row for row in ROWS if row.matches(refusal, blame))


def error(
    response: http.Response,
    *,
    sender: SenderHistory,
    token: str,
    platform: str | None,
    now: datetime,
) -> ProviderError:
    """Return the error an answer is. The device's token is in nothing of it."""
    refusal = read_refusal(response)
    is_mismatch = refusal.code == MISMATCH and refusal.status in CLIENT_ERROR
    row = rule_for(refusal, sender.refused(token, now=now) if is_mismatch else None)
    said = refusal.code or refusal.name
    answer = ProviderResponse(
        status=response.status,
        code=http.redact(said)[:MAX_CODE] if said else None,
        excerpt=http.excerpt(response.text.replace(token, "[token]") if token else response.text),
    )
    pause = http.retry_after(response.headers, now=now)
    scope = SENDER_SCOPE if row.sender_only else None
    if row.platform_only:
        scope = platform
    if row.action is not None:
        return InvalidRecipientError(row.reason, action=row.action, answer=answer)
    reason = f"{row.reason} ({response.status})"
    errors: Mapping[ResponseKind, ProviderError] = {
        ResponseKind.TRANSIENT: TransientError(
            reason,
            code=row.failure,
            answer=answer,
            retry_after=row.pause if pause is None else pause,
        ),
        ResponseKind.AMBIGUOUS: TransientError(
            reason, code=row.failure, answer=answer, ambiguous=True
        ),
        ResponseKind.UNAVAILABLE: ProviderUnavailableError(
            reason, answer=answer, retry_after=pause, scope=scope
        ),
        ResponseKind.PERMANENT: PermanentError(reason, code=row.failure, answer=answer),
    }
    return errors[row.kind]
