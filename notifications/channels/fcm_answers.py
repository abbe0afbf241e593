"""What FCM's answers mean: one table, and how an answer is looked up in it.

FCM's own code in the body comes before the HTTP status, for a 404 may be about a device or about
the project. Only a code that says so condemns a device: a wrong project or a missing permission is
nobody's fault but the configuration's. One code may mean either: see :mod:`.fcm_sender`.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from ..errors import (
    Answer,
    ChannelUnavailable,
    FailureCode,
    InvalidRecipient,
    PermanentError,
    ProviderError,
    RecipientAction,
    TransientError,
)
from . import http
from .answers import Kind
from .fcm_refusals import Refusal, read
from .fcm_sender import SCOPE, Blame, Sender

ANY_ERROR, CLIENT_ERROR = range(400, 600), range(400, 500)
QUOTA_PAUSE = 60.0
"""Google's advice for a quota without a Retry-After, in seconds."""
MAX_CODE = 100
MISMATCH = "SENDER_ID_MISMATCH"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row of the table: an answer of which all this is true means this."""

    when: str
    """The answer in words, for people."""
    kind: Kind
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
    blame: Blame | None = None
    """Whose fault it is that a token is another sender's."""
    platform_only: bool = False
    """Other platforms are well: only the device's own is unavailable."""
    sender_only: bool = False
    """Other devices are well, as far as is known."""
    new_token: bool = False
    """It is about our access token: another is fetched and the message sent once more."""

    def matches(self, refusal: Refusal, blame: Blame | None) -> bool:
        """Return whether this row is about such an answer."""
        return (
            refusal.status in self.statuses
            and self.blame in (None, blame)
            and self.name in (None, refusal.name)
            and self.code in (None, refusal.code)
            and (self.field is None or self.field in refusal.fields)
            and (self.text is None or re.search(self.text, refusal.text, re.IGNORECASE) is not None)
        )


ROWS: tuple[Row, ...] = (
    Row(
        when="UNREGISTERED, with a 404",
        statuses=CLIENT_ERROR,
        code="UNREGISTERED",
        kind=Kind.INVALID_RECIPIENT,
        action=RecipientAction.DEACTIVATE,
        failure=FailureCode.INVALID_RECIPIENT,
        reason="Device token invalid",
    ),
    Row(
        when="SENDER_ID_MISMATCH, with a 403, if the project took another push within the hour",
        statuses=CLIENT_ERROR,
        code=MISMATCH,
        blame=Blame.DEVICE,
        kind=Kind.INVALID_RECIPIENT,
        action=RecipientAction.SUSPECT,
        failure=FailureCode.INVALID_RECIPIENT,
        reason="Device token belongs to another Firebase project",
    ),
    Row(
        when="SENDER_ID_MISMATCH for the fifth device, none having been accepted in between",
        statuses=CLIENT_ERROR,
        code=MISMATCH,
        blame=Blame.PROJECT,
        kind=Kind.UNAVAILABLE,
        failure=FailureCode.CHANNEL_UNAVAILABLE,
        reason="The devices belong to another Firebase project than the service account.",
    ),
    Row(
        when="any other SENDER_ID_MISMATCH",
        statuses=CLIENT_ERROR,
        code=MISMATCH,
        kind=Kind.UNAVAILABLE,
        failure=FailureCode.CHANNEL_UNAVAILABLE,
        sender_only=True,
        reason="The device and the service account belong to different Firebase projects.",
    ),
    Row(
        when="THIRD_PARTY_AUTH_ERROR, with a 401",
        statuses=CLIENT_ERROR,
        code="THIRD_PARTY_AUTH_ERROR",
        kind=Kind.UNAVAILABLE,
        failure=FailureCode.CHANNEL_UNAVAILABLE,
        platform_only=True,
        reason="Apple's or the browser's push service does not accept the key that Firebase has.",
    ),
    Row(
        when="QUOTA_EXCEEDED, with a 429",
        statuses=ANY_ERROR,
        code="QUOTA_EXCEEDED",
        kind=Kind.TRANSIENT,
        failure=FailureCode.RATE_LIMITED,
        pause=QUOTA_PAUSE,
        reason="Firebase wants fewer messages.",
    ),
    Row(
        when="UNAVAILABLE, with a 503",
        statuses=ANY_ERROR,
        code="UNAVAILABLE",
        kind=Kind.TRANSIENT,
        failure=FailureCode.PROVIDER_ERROR,
        reason="Firebase is overloaded.",
    ),
    Row(
        when="INTERNAL, with a 500",
        statuses=ANY_ERROR,
        code="INTERNAL",
        kind=Kind.TRANSIENT,
        failure=FailureCode.PROVIDER_ERROR,
        reason="Firebase had a problem of its own.",
    ),
    Row(
        when="400 INVALID_ARGUMENT that names the field message.token",
        statuses=(400,),
        name="INVALID_ARGUMENT",
        field="message.token",
        kind=Kind.INVALID_RECIPIENT,
        action=RecipientAction.SUSPECT,
        failure=FailureCode.INVALID_RECIPIENT,
        reason="Device token malformed",
    ),
    Row(
        when="400 INVALID_ARGUMENT whose text says that the registration token is none",
        statuses=(400,),
        name="INVALID_ARGUMENT",
        text=r"not a valid FCM registration token",
        kind=Kind.INVALID_RECIPIENT,
        action=RecipientAction.SUSPECT,
        failure=FailureCode.INVALID_RECIPIENT,
        reason="Device token malformed",
    ),
    Row(
        when="400 whose text says that the message is too big",
        statuses=(400,),
        text=r"\bmessage is too (?:big|large)\b",
        kind=Kind.PERMANENT,
        failure=FailureCode.TOO_LARGE,
        reason="The message is larger than Firebase takes.",
    ),
    Row(
        when="any other 400",
        statuses=(400,),
        kind=Kind.PERMANENT,
        reason="Firebase refused the message.",
    ),
    Row(
        when="401 UNAUTHENTICATED, again with a new access token",
        statuses=(401,),
        name="UNAUTHENTICATED",
        kind=Kind.UNAVAILABLE,
        failure=FailureCode.CHANNEL_UNAVAILABLE,
        new_token=True,
        reason="Firebase does not accept the service account's access token.",
    ),
    Row(
        when="any other 401",
        statuses=(401,),
        kind=Kind.UNAVAILABLE,
        failure=FailureCode.CHANNEL_UNAVAILABLE,
        reason="Something before Firebase wants credentials.",
    ),
    Row(
        when="any other 403",
        statuses=(403,),
        kind=Kind.UNAVAILABLE,
        failure=FailureCode.CHANNEL_UNAVAILABLE,
        reason="The service account may not send for this Firebase project.",
    ),
    Row(
        when="any other 404",
        statuses=(404,),
        kind=Kind.UNAVAILABLE,
        failure=FailureCode.CHANNEL_UNAVAILABLE,
        reason="Firebase knows no such project.",
    ),
    Row(
        when="a redirect",
        statuses=range(300, 400),
        kind=Kind.UNAVAILABLE,
        failure=FailureCode.CHANNEL_UNAVAILABLE,
        reason="Something before Firebase sends us elsewhere.",
    ),
    Row(
        when="413",
        statuses=(413,),
        kind=Kind.PERMANENT,
        failure=FailureCode.TOO_LARGE,
        reason="The message is larger than Firebase takes.",
    ),
    Row(
        when="any other 429",
        statuses=(429,),
        kind=Kind.TRANSIENT,
        failure=FailureCode.RATE_LIMITED,
        pause=QUOTA_PAUSE,
        reason="Firebase wants fewer messages.",
    ),
    Row(
        when="any other 4xx",
        statuses=CLIENT_ERROR,
        kind=Kind.PERMANENT,
        reason="Firebase refused the message.",
    ),
    Row(
        when="any other 5xx",
        statuses=range(500, 600),
        kind=Kind.TRANSIENT,
        failure=FailureCode.PROVIDER_ERROR,
        reason="Firebase had a problem of its own.",
    ),
    Row(
        when="200 without a message's name, or another status",
        statuses=range(1000),
        kind=Kind.AMBIGUOUS,
        failure=FailureCode.PROVIDER_ERROR,
        reason="Firebase gave an answer that it does not document.",
    ),
)
"""The first row that matches decides."""


def row_for(refusal: Refusal, blame: Blame | None = None) -> Row:
    """Return what an answer means; the last row is about any."""
    return next(row for row in ROWS if row.matches(refusal, blame))


def error(
    response: http.Response, *, sender: Sender, token: str, platform: str | None, now: datetime
) -> ProviderError:
    """Return the error an answer is. The device's token is in nothing of it."""
    refusal = read(response)
    is_mismatch = refusal.code == MISMATCH and refusal.status in CLIENT_ERROR
    row = row_for(refusal, sender.refused(token, now=now) if is_mismatch else None)
    said = refusal.code or refusal.name
    answer = Answer(
        status=response.status,
        code=http.redact(said)[:MAX_CODE] if said else None,
        excerpt=http.excerpt(response.text.replace(token, "[token]") if token else response.text),
    )
    pause = http.retry_after(response.headers, now=now)
    scope = SCOPE if row.sender_only else None
    if row.platform_only:
        scope = platform
    if row.action is not None:
        return InvalidRecipient(row.reason, action=row.action, answer=answer)
    reason = f"{row.reason} ({response.status})"
    errors: Mapping[Kind, ProviderError] = {
        Kind.TRANSIENT: TransientError(
            reason,
            code=row.failure,
            answer=answer,
            retry_after=row.pause if pause is None else pause,
        ),
        Kind.AMBIGUOUS: TransientError(reason, code=row.failure, answer=answer, ambiguous=True),
        Kind.UNAVAILABLE: ChannelUnavailable(reason, answer=answer, retry_after=pause, scope=scope),
        Kind.PERMANENT: PermanentError(reason, code=row.failure, answer=answer),
    }
    return errors[row.kind]
