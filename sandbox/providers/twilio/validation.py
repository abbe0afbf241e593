"""Validation of the parameters of a send request."""

import re
from collections.abc import Callable, Iterator, Mapping
from urllib.parse import parse_qsl, urlsplit

from ...credentials import TwilioAccount

MAX_BODY_LENGTH = 1600
MAX_VALIDITY = 36_000
KNOWN = frozenset(
    {
        "To",
        "From",
        "MessagingServiceSid",
        "Body",
        "StatusCallback",
        "ValidityPeriod",
        "RiskCheck",
        "ApplicationSid",
        "ProvideFeedback",
        "Attempt",
        "ForceDelivery",
        "ContentRetention",
        "AddressRetention",
        "MaxPrice",
        "Tags",
    }
)
"""Twilio's parameters. Those that the service never sends, such as MediaUrl, are not among them."""
EMPTY_SERVICE = "MG00000000000000000000000000000002"
"""A messaging service without a number."""
_NUMBER = re.compile(r"\+[1-9][0-9]{6,14}", re.ASCII)
_SHORT_CODE = re.compile(r"\+?[0-9]{3,6}", re.ASCII)
_SENDER_ID = re.compile(r"(?=.*[A-Za-z])[A-Za-z0-9 +_&-]{1,11}", re.ASCII)
_SERVICE = re.compile(r"MG[0-9a-f]{32}", re.ASCII)
_COUNT = re.compile(r"[0-9]{1,9}", re.ASCII)
Form = Mapping[str, str]


def read_form(body: bytes, *, content_type: str) -> dict[str, str]:
    """Return the parameters of a form. Anything else has none, as at Twilio."""
    kind = content_type.partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        return {}
    try:
        text = body.decode("ascii")
        return dict(parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=100))
    except ValueError:
        return {}


def number(to: str) -> str | None:
    """Return a phone number in E.164; None if it is invalid."""
    text = to.strip()
    return text if _NUMBER.fullmatch(text) else None


def problem(form: Form, *, account: TwilioAccount) -> int | None:
    """Return the code of the first error of a request; None if it is valid."""
    return next(_problems(form, account=account), None)


def _problems(form: Form, *, account: TwilioAccount) -> Iterator[int]:
    if not form.get("To"):
        yield 21604
    elif _SHORT_CODE.fullmatch(form["To"]):
        yield 21265
    elif number(form["To"]) is None:
        yield 21211
    yield from _sender(form, account=account)
    if not form.get("Body", "").strip():
        yield 21602
    elif len(form["Body"]) > MAX_BODY_LENGTH:
        yield 21617
    for name, (is_valid, code) in _CHECKS.items():
        if name in form and not is_valid(form[name]):
            yield code
    if form.keys() - KNOWN:
        yield 20001


def _sender(form: Form, *, account: TwilioAccount) -> Iterator[int]:
    service, sender = form.get("MessagingServiceSid"), form.get("From")
    if not service and not sender:
        yield 21603
    elif service:
        if not _SERVICE.fullmatch(service):
            yield 21702
        elif service == EMPTY_SERVICE:
            yield 21703
        elif service != account.messaging_service_sid:
            yield 21701
    elif sender == form.get("To"):
        yield 21266
    elif sender != account.number and not _SENDER_ID.fullmatch(sender or ""):
        yield 21606 if number(sender or "") else 21212


def _is_callback(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    host = parts.hostname or ""
    return parts.scheme in ("http", "https") and bool(host) and "_" not in host


def _is_validity(text: str) -> bool:
    return bool(_COUNT.fullmatch(text)) and 1 <= int(text) <= MAX_VALIDITY


_CHECKS: Mapping[str, tuple[Callable[[str], bool], int]] = {
    "StatusCallback": (_is_callback, 21609),
    "ValidityPeriod": (_is_validity, 21624),
    "RiskCheck": (lambda text: text in ("enable", "disable"), 20001),
}
