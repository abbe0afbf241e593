"""Whom a request reaches: what the caller gave, filled up with what is registered."""

from domain import time
from domain.content import Recipient
from recipients.queries import KnownRecipient

from .addresses import AddressProblem, check_email, check_phone, has_control_characters
from .problems import Collector
from .requests import RecipientRequest


def resolve(
    given: RecipientRequest, person: KnownRecipient | None, problems: Collector
) -> Recipient:
    """Return the recipient; a problem of a given field is noted, and the field left out."""
    return Recipient(
        device_ids=tuple(dict.fromkeys(given.device_ids)),
        email=_email(given, problems) or (person.email if person else None),
        phone=_phone(given, problems) or (person.phone if person else None),
        name=_name(given, problems) or (person.name if person else None),
        locale=given.locale or (person.locale if person else None),
        timezone=_timezone(given, problems) or (person.timezone if person else None),
    )


def _email(given: RecipientRequest, problems: Collector) -> str | None:
    if given.email is None:
        return None
    try:
        return check_email(given.email)
    except AddressProblem as problem:
        problems.add("/recipient/email", "invalid_email", str(problem))
        return None


def _phone(given: RecipientRequest, problems: Collector) -> str | None:
    if given.phone is None:
        return None
    try:
        return check_phone(given.phone)
    except AddressProblem as problem:
        problems.add("/recipient/phone", "invalid_phone", str(problem))
        return None


def _name(given: RecipientRequest, problems: Collector) -> str | None:
    if given.name is not None and has_control_characters(given.name):
        problems.add(
            "/recipient/name",
            "control_characters",
            "A name is one line without control characters.",
        )
        return None
    return given.name


def _timezone(given: RecipientRequest, problems: Collector) -> str | None:
    if given.timezone is None:
        return None
    try:
        return time.parse_zone(given.timezone).key
    except time.InvalidTimeError as problem:
        problems.add("/recipient/timezone", problem.code, str(problem))
        return None
