"""Classifies provider responses by tables of rules."""

import re
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from enum import StrEnum

from domain.errors import (
    FailureCode,
    InvalidRecipientError,
    PermanentError,
    ProviderError,
    ProviderResponse,
    ProviderUnavailableError,
    Reach,
    RecipientAction,
    TransientError,
)


class ResponseKind(StrEnum):
    """The class of a response other than success."""

    TRANSIENT = "transient"
    AMBIGUOUS = "transient, ambiguous"
    UNAVAILABLE = "channel unavailable"
    INVALID_RECIPIENT = "invalid recipient"
    PERMANENT = "permanent"

    @property
    def failure_code(self) -> FailureCode:
        """The failure code for a rule without a code of its own."""
        if self is ResponseKind.INVALID_RECIPIENT:
            return FailureCode.INVALID_RECIPIENT
        has_failed = self in (ResponseKind.TRANSIENT, ResponseKind.AMBIGUOUS)
        return FailureCode.PROVIDER_ERROR if has_failed else FailureCode.REJECTED

    @property
    def reach(self) -> Reach:
        """The reach for a rule without one of its own."""
        if self in (ResponseKind.INVALID_RECIPIENT, ResponseKind.PERMANENT):
            return Reach.RECIPIENT
        return Reach.ACCOUNT


@dataclass(frozen=True, slots=True)
class ResponseRule:
    """One row of a provider's table: classifies responses by status, and by what they name."""

    statuses: Sequence[int]
    kind: ResponseKind
    reason: str
    code: FailureCode | None = None
    _: KW_ONLY
    field: str | None = None
    """Regular expression for what the response names: a field of the request, or an error."""
    reach: Reach | None = None
    """None: that of ``kind``."""
    is_of_scope: bool = False
    """It is about the scope of the request, if that has one, and affects no other message."""

    def matches(self, *, status: int, fields: Sequence[str]) -> bool:
        """Return whether the rule applies to a response with this status and these fields."""
        if status not in self.statuses:
            return False
        return self.field is None or any(re.fullmatch(self.field, name) for name in fields)


def classify(
    table: Sequence[ResponseRule],
    *,
    response: ProviderResponse,
    fields: Sequence[str],
    retry_after: float | None,
    scope: str | None = None,
) -> ProviderError:
    """Return the error for a response, by the first rule that matches or else by its status.

    ``scope`` is that of the request.
    """
    for rule in (*table, *FALLBACK_RULES):
        if rule.matches(status=response.status, fields=fields):
            return build_error(
                rule.kind,
                f"{rule.reason} ({response.status})",
                code=rule.code,
                response=response,
                retry_after=retry_after,
                scope=scope if rule.is_of_scope else None,
                reach=rule.reach,
            )
    raise AssertionError("the last rule matches everything")


FALLBACK_RULES = (
    ResponseRule(range(400, 500), ResponseKind.PERMANENT, "The provider rejected the message."),
    # The gateway passed the request on: the provider may have the message.
    ResponseRule(
        (504, 524), ResponseKind.AMBIGUOUS, "A gateway got no answer of the provider in time."
    ),
    ResponseRule(range(500, 600), ResponseKind.TRANSIENT, "Provider error."),
    ResponseRule(
        range(1000), ResponseKind.AMBIGUOUS, "The provider sent an undocumented response."
    ),
)


def build_error(
    kind: ResponseKind,
    reason: str,
    *,
    code: FailureCode | None,
    action: RecipientAction = RecipientAction.SUSPECT,
    response: ProviderResponse,
    retry_after: float | None,
    scope: str | None = None,
    reach: Reach | None = None,
) -> ProviderError:
    """Return the error for a response of class ``kind``.

    ``code`` applies to all but an unavailable provider. ``scope`` limits an outage, a failure, or a
    rate limit, as in :class:`domain.errors.ProviderError`. Without a ``reach``, that of the class
    applies.
    """
    code, reach = code or kind.failure_code, reach or kind.reach
    match kind:
        case ResponseKind.UNAVAILABLE:
            return ProviderUnavailableError(
                reason, response=response, retry_after=retry_after, scope=scope, reach=reach
            )
        case ResponseKind.INVALID_RECIPIENT:
            return InvalidRecipientError(
                reason, action=action, code=code, response=response, reach=reach
            )
        case ResponseKind.PERMANENT:
            return PermanentError(reason, code=code, response=response, reach=reach)
        case ResponseKind.AMBIGUOUS:
            return TransientError(
                reason,
                code=code,
                response=response,
                is_ambiguous=True,
                reach=reach,
                scope=scope,
            )
        case ResponseKind.TRANSIENT:
            return TransientError(
                reason,
                code=code,
                response=response,
                retry_after=retry_after,
                reach=reach,
                scope=scope,
            )
