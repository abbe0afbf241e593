"""Validates the requests for a text, as strictly as AWS or more."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ...credentials import AwsAccount
from .. import segments
from .outcomes import VALIDATION, SmsProblem

PRICE = 0.05
"""US dollars for each part."""
MAX_CONTEXT = 5
_PATTERNS: Mapping[str, re.Pattern[str]] = {
    "DestinationPhoneNumber": re.compile(r"\+?[1-9][0-9]{1,18}", re.ASCII),
    "OriginationIdentity": re.compile(r"[A-Za-z0-9_:/+-]{1,256}", re.ASCII),
    "MessageBody": re.compile(r"(?!\s*\Z)[\s\S]{1,1600}"),
    "MessageType": re.compile("TRANSACTIONAL|PROMOTIONAL"),
    "ConfigurationSetName": re.compile(r"[A-Za-z0-9_:/-]{1,256}", re.ASCII),
    "ProtectConfigurationId": re.compile(r"[A-Za-z0-9_:/-]{1,256}", re.ASCII),
    "MaxPrice": re.compile(r"[0-9]{0,2}\.[0-9]{1,5}", re.ASCII),
}
MEMBERS = frozenset({*_PATTERNS, "TimeToLive", "Context", "DryRun"})
"""Those that the service may send. AWS has more, such as Keyword."""
REQUIRED = ("DestinationPhoneNumber", "MessageBody")
LIFETIMES = range(5, 259_201)
_SENDER_ID = re.compile(r"(?=.*[A-Za-z])[A-Za-z0-9-]{1,11}", re.ASCII)
_NUMBER = re.compile(r"\+[1-9][0-9]{6,14}", re.ASCII)
_KEY, _VALUE = re.compile(r"\S{1,100}"), re.compile(r"(?!\s)[\s\S]{1,800}(?<!\s)")


def number(to: str) -> str | None:
    """Return a phone number in E.164; None if it is invalid."""
    return to if _NUMBER.fullmatch(to) else None


def recipient(body: Any) -> str:
    """Return the recipient of a request, which may be invalid."""
    found = body.get("DestinationPhoneNumber") if isinstance(body, dict) else None
    return found if isinstance(found, str) else ""


def context(body: Any) -> Mapping[str, str]:
    """Return the context of a request, which may be invalid."""
    found = body.get("Context") if isinstance(body, dict) else None
    return found if isinstance(found, dict) else {}


def problem(body: Any, *, account: AwsAccount) -> SmsProblem | None:
    """Return why a request is refused, or None."""
    return next(_problems(body, account), None)


def _invalid(field: str, text: str) -> SmsProblem:
    return SmsProblem(name=VALIDATION, message=text, reason="FIELD_VALIDATION_FAILED", field=field)


def _problems(body: Any, account: AwsAccount) -> Iterator[SmsProblem]:
    if not isinstance(body, dict):
        yield SmsProblem(name="SerializationException", message="The request isn't an object.")
        return
    yield from _member_problems(body)
    yield from _resource_problems(body, account)
    if "MaxPrice" in body and segments.count(body["MessageBody"]) * PRICE > float(body["MaxPrice"]):
        text = "The price is over MaxPrice"
        yield SmsProblem(name=VALIDATION, message=text, reason="PRICE_OVER_THRESHOLD")


def _member_problems(body: Mapping[str, Any]) -> Iterator[SmsProblem]:
    for name in REQUIRED:
        if name not in body:
            text = f"{name} is required"
            yield SmsProblem(name=VALIDATION, message=text, reason="MISSING_PARAMETER", field=name)
    for name in sorted(body.keys() - MEMBERS):
        yield SmsProblem(
            name=VALIDATION, message=f"Unknown member {name}", reason="INVALID_PARAMETER"
        )
    for name, pattern in _PATTERNS.items():
        if name in body and not (isinstance(body[name], str) and pattern.fullmatch(body[name])):
            yield _invalid(name, f"Member must satisfy the pattern of {name}")
    lifetime = body.get("TimeToLive", LIFETIMES.start)
    if not isinstance(lifetime, int) or lifetime not in LIFETIMES:
        yield _invalid("TimeToLive", "Member must be between 5 and 259200")
    if not _is_context(body.get("Context", {})):
        yield _invalid("Context", "Member must have at most five keys with valid values")
    if body.get("DryRun", False) not in (True, False):
        yield _invalid("DryRun", "Member must be true or false")


def _is_context(found: Any) -> bool:
    return (
        isinstance(found, dict)
        and len(found) <= MAX_CONTEXT
        and all(_KEY.fullmatch(key) for key in found)
        and all(isinstance(value, str) and _VALUE.fullmatch(value) for value in found.values())
    )


def _resource_problems(body: Mapping[str, Any], account: AwsAccount) -> Iterator[SmsProblem]:
    sender = body.get("OriginationIdentity", account.pool)
    if sender not in (account.pool, account.number) and not _SENDER_ID.fullmatch(sender):
        yield SmsProblem(name="ResourceNotFoundException", message=f"Resource {sender} not found")
    for name, known in (
        ("ConfigurationSetName", account.configuration_set),
        ("ProtectConfigurationId", account.protect_configuration),
    ):
        if body.get(name, known) != known:
            text = f"Resource {body[name]} not found"
            yield SmsProblem(name="ResourceNotFoundException", message=text)
