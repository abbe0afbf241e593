"""Provider answers as data: one table for each provider says which class an answer belongs to."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

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


class ResponseKind(StrEnum):
    """What an answer other than success means."""

    TRANSIENT = "transient"
    AMBIGUOUS = "transient, ambiguous"
    UNAVAILABLE = "channel unavailable"
    INVALID_RECIPIENT = "invalid recipient"
    PERMANENT = "permanent"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseRule:
    """One row of a provider's table: these statuses, and this part of the answer, mean this."""

    statuses: Sequence[int] | range
    kind: ResponseKind
    reason: str
    """For people."""
    code: FailureCode = FailureCode.REJECTED
    field: str | None = None
    """Pattern of the request field the provider complains about."""
    action: RecipientAction = RecipientAction.SUSPECT

    def matches(self, *, status: int, fields: Sequence[str]) -> bool:
        """Return whether an answer with this status that names these fields is meant."""
        if status not in self.statuses:
            return False
        return self.field is None or any(re.fullmatch(self.field, name) for name in fields)


def classify(
    table: Sequence[ResponseRule],
    *,
    response: ProviderResponse,
    fields: Sequence[str],
    retry_after: float | None,
) -> ProviderError:
    """Return the error an answer is, by the first row of the table that matches.

    An unknown 4xx is permanent, an unknown 5xx transient, any other unknown answer ambiguous.
    """
    for rule in (*table, *FALLBACK_RULES):
        if rule.matches(status=response.status, fields=fields):
            return _build_error(rule, response, retry_after)
    raise AssertionError("the last row matches everything")


FALLBACK_RULES = (
    ResponseRule(
        statuses=range(400, 500),
        kind=ResponseKind.PERMANENT,
        reason="The provider refused the message.",
    ),
    ResponseRule(
        statuses=range(500, 600),
        kind=ResponseKind.TRANSIENT,
        code=FailureCode.PROVIDER_ERROR,
        reason="The provider had a problem of its own.",
    ),
    ResponseRule(
        statuses=range(1000),
        kind=ResponseKind.AMBIGUOUS,
        code=FailureCode.PROVIDER_ERROR,
        reason="The provider gave an answer that it does not document.",
    ),
)


def _build_error(
    rule: ResponseRule, response: ProviderResponse, retry_after: float | None
) -> ProviderError:
    reason = f"{rule.reason} ({response.status})"
    errors: Mapping[ResponseKind, ProviderError] = {
        ResponseKind.TRANSIENT: TransientError(
            reason, code=rule.code, response=response, retry_after=retry_after
        ),
        ResponseKind.AMBIGUOUS: TransientError(
            reason, code=rule.code, response=response, is_ambiguous=True
        ),
        ResponseKind.UNAVAILABLE: ProviderUnavailableError(
            reason, response=response, retry_after=retry_after
        ),
        ResponseKind.INVALID_RECIPIENT: InvalidRecipientError(
            reason, action=rule.action, response=response
        ),
        ResponseKind.PERMANENT: PermanentError(reason, code=rule.code, response=response),
    }
    return errors[rule.kind]
