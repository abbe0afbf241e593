"""The parts of an SMS that the outbox and the log show."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs, urlsplit

from .. import segments
from ..base import DisplayedMessage
from .validation import number

MAX_TITLE_LENGTH = 80


def recipient(form: Mapping[str, str]) -> str:
    """Return the recipient of a message: a valid number in E.164, anything else as given."""
    to = form.get("To", "")
    return number(to) or to


def references(form: Mapping[str, str]) -> tuple[str, ...]:
    """Return the service's reference in the URL of the status callback, if any."""
    try:
        query = urlsplit(form.get("StatusCallback", "")).query
    except ValueError:
        return ()
    return tuple(parse_qs(query).get("ref", ())[:1])


def log_fields(form: Mapping[str, str]) -> dict[str, Any]:
    """Return the log fields of a message, which may be invalid."""
    to, text = recipient(form), " ".join(form.get("Body", "").split())
    return {
        "title": text[:MAX_TITLE_LENGTH] or None,
        "recipients": (to,) if to else (),
        "references": references(form),
    }


def display(form: Mapping[str, str]) -> DisplayedMessage:
    """Return an accepted message as its recipient sees it."""
    text = form["Body"]
    facts = {"Parts": f"{segments.count(text)} ({segments.encoding(text)})"}
    names = {
        "MessagingServiceSid": "Service",
        "ValidityPeriod": "Validity period",
        "RiskCheck": "Risk check",
        "StatusCallback": "Status callback",
    }
    facts |= {label: form[name] for name, label in names.items() if name in form}
    return DisplayedMessage(
        sender=form.get("From", ""),
        recipients=(recipient(form),),
        text=text,
        facts=tuple(facts.items()),
    )
