"""Checks the countries and parts of texts before a send, and counts those that were sent."""

from collections.abc import Mapping, Sequence
from datetime import datetime

import structlog
from bson import ObjectId
from pymongo.errors import PyMongoError

from domain.countries import country_of
from domain.country_units import SentUnits
from domain.errors import FailureCode
from domain.sms import encode
from domain.states import Category, DeliveryStatus
from notifications.catalog import types
from notifications.catalog.texts import country_refusal
from notifications.store import country_units
from notifications.store.claims import ClaimedDelivery, NotSent, Settlement

from .rendering import RenderedMessage

log = structlog.get_logger(__name__)


def split_refused(
    claims: Sequence[ClaimedDelivery], messages: Mapping[ObjectId, RenderedMessage]
) -> tuple[list[ClaimedDelivery], list[NotSent]]:
    """Return the texts that may be sent, and those whose country or type refuses them."""
    allowed, refused = [], []
    for claimed in claims:
        refusal = _refusal_of(claimed, messages[claimed.notification_id].message.text)
        if refusal is None:
            allowed.append(claimed)
        else:
            refused.append(NotSent(claimed, DeliveryStatus.FAILED, *refusal))
    return allowed, refused


def _refusal_of(claimed: ClaimedDelivery, text: str) -> tuple[FailureCode, str] | None:
    if reason := country_refusal(claimed.channel, claimed.recipient.address(claimed.channel)):
        return FailureCode.DESTINATION_DISABLED, reason
    if reason := types.text_rules(claimed.type).problem(encode(text, smart=False)):
        return FailureCode.TOO_LARGE, reason
    return None


def count_sent(settlements: Sequence[Settlement], *, now: datetime) -> None:
    """Count the parts of texts that providers have, or may have, accepted, by country."""
    sent = [
        SentUnits(
            provider=settlement.provider,
            country=country,
            units=settlement.units,
            is_asked=settlement.claimed.category is not Category.MARKETING,
        )
        for settlement in settlements
        if settlement.units and not settlement.claimed.is_test
        if (country := _country_of(settlement.claimed)) is not None
    ]
    try:
        country_units.count_sent(sent, now=now)
    except PyMongoError as error:
        # An alert may come late. No text is sent or held by these counters.
        log.warning("units_of_countries_not_counted", reason=type(error).__name__, texts=len(sent))


def _country_of(claimed: ClaimedDelivery) -> str | None:
    return country_of(claimed.recipient.address(claimed.channel) or "")
