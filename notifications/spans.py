"""What became of a delivery, as spans of the trace its notification was accepted in.

Made when it is over, of what is known then: an attempt that dies with its process leaves none. A
notification that is not traced costs a comparison.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime

import structlog
from pymongo.errors import PyMongoError

from domain.errors import FailureCode, ProviderError
from domain.states import DeliveryStatus
from notifyproject.platform import tracing
from notifyproject.platform.tracing import Kind, Span
from providers.contract import Receipt, ReceiptKind

from . import queries
from .outcomes import Result
from .store import Claimed, Parked, Reference, Settlement

log = structlog.get_logger(__name__)
S = DeliveryStatus


def attempted(
    settlements: Sequence[Settlement],
    results: Sequence[Sequence[Result]],
    *,
    began_at: datetime,
    now: datetime,
) -> None:
    """Tell of attempts that are over, each with what came of it at its targets."""
    if not tracing.is_on():
        return
    for settlement, some in zip(settlements, results, strict=True):
        claimed = settlement.claimed
        if claimed.traceparent is not None:
            span = Span(
                name=f"deliver {claimed.channel}",
                kind=Kind.CONSUMER,
                began_at=began_at,
                ended_at=now,
                attributes=_about(claimed)
                | {
                    "notify.provider": settlement.answer.provider,
                    "notify.delivery.status": settlement.status.value,
                },
                error=_attempts_error(settlement),
                children=[_request(claimed, one, settlement.answer.provider) for one in some],
            )
            tracing.record(span, parent=claimed.traceparent)


def parked(ended: Sequence[Parked], *, now: datetime) -> None:
    """Tell of deliveries that ended before they were tried; what waits has not ended."""
    if not tracing.is_on():
        return
    for one in ended:
        if one.claimed.traceparent is not None and one.status is not S.PENDING:
            span = Span(
                name=f"deliver {one.claimed.channel}",
                kind=Kind.CONSUMER,
                began_at=now,
                ended_at=now,
                attributes=_about(one.claimed)
                | {"notify.delivery.status": one.status.value, "notify.reason": one.code.value},
                error=one.code.value if one.status is S.FAILED else None,
            )
            tracing.record(span, parent=one.claimed.traceparent)


def reported(
    receipts: Sequence[tuple[Receipt, Reference]],
    *,
    codes: Mapping[ReceiptKind, FailureCode],
    provider: str,
    now: datetime,
) -> None:
    """Tell of reports that changed a delivery, linked to their webhook; ``codes``: of bad news."""
    if not tracing.is_on() or not receipts:
        return
    try:
        parents = queries.traceparents({reference.notification_id for _, reference in receipts})
    except PyMongoError as error:
        # The reports are applied: who watches the work does not have them sent again.
        log.warning("spans_lost", reason=type(error).__name__)
        return
    webhook = tracing.traceparent()
    for receipt, reference in receipts:
        if (parent := parents.get(reference.notification_id)) is None:
            continue
        span = Span(
            name=f"receipt {receipt.kind}",
            kind=Kind.CONSUMER,
            began_at=min(receipt.at, now),
            ended_at=now,
            attributes={
                "notify.notification.id": str(reference.notification_id),
                "notify.channel": reference.channel.value,
                "notify.attempt": reference.attempt_number,
                "notify.provider": provider,
            },
            error=codes[receipt.kind].value if receipt.kind in codes else None,
        )
        tracing.record(span, parent=parent, link=webhook)


def _about(claimed: Claimed) -> dict[str, str | int | bool]:
    return {
        "notify.notification.id": str(claimed.notification_id),
        "notify.channel": claimed.channel.value,
        "notify.attempt": claimed.attempt_count,
        "notify.type": claimed.type,
        "notify.test": claimed.is_test,
    }


def _attempts_error(settlement: Settlement) -> str | None:
    """Return why an attempt was none, also if there will be another."""
    if settlement.status in (S.SENT, S.DELIVERED):
        return None
    return settlement.code.value if settlement.code else settlement.status.value


def _request(claimed: Claimed, result: Result, provider: str) -> Span:
    outcome = result.outcome
    answer = outcome.answer
    return Span(
        name=f"send {provider}",
        kind=Kind.CLIENT,
        began_at=result.started_at,
        ended_at=result.finished_at,
        attributes={
            "notify.delivery.id": claimed.reference_to(result.device_id),
            "notify.provider": provider,
            "notify.outcome": type(outcome).__name__,
            **({"notify.provider.status": answer.status} if answer else {}),
        },
        error=outcome.code.value if isinstance(outcome, ProviderError) else None,
    )
