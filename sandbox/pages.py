"""What the pages show of requests, messages and events, as plain data for the templates."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from .log import Record
from .memory import Event, EventState, Exchange
from .providers.base import Provider

SNIPPET = 160
LONGEST_RAW = 200_000
"""Characters of a request that its page shows."""
GOOD, BAD, WAIT, WARN, PLAIN = "good", "bad", "wait", "warn", "plain"
TONES: Mapping[str, str] = {
    "delivered": GOOD,
    "open": GOOD,
    "click": GOOD,
    "deferred": WAIT,
    "bounce": BAD,
    "blocked": BAD,
    "dropped": BAD,
    "spamreport": WARN,
    "unsubscribe": WARN,
    "group_unsubscribe": WARN,
}
UNANSWERED: Mapping[int | str, str] = {"stalled": "no answer", "reset": "reset"}
STATES: Mapping[EventState, str] = {
    EventState.PLANNED: "planned",
    EventState.SENDING: "on its way",
    EventState.SENT: "taken by the receiver",
    EventState.FAILED: "given up",
}


def row(exchange: Exchange, provider: Provider) -> dict[str, Any]:
    """Return one line of the list."""
    record = exchange.record
    snippet = " ".join(provider.show(record).text[: 2 * SNIPPET].split()) if record.accepted else ""
    return {
        "id": record.id,
        "version": exchange.version,
        "time": _iso(record.time),
        "clock": f"{record.time:%H:%M:%S}",
        "recipient": record.recipients[0] if record.recipients else "nobody",
        "others": max(0, len(record.recipients) - 1),
        "title": record.title or "",
        "request": f"{record.method} {record.path}",
        "snippet": snippet[:SNIPPET],
        "refused": not record.accepted,
        "reason": record.reason or "",
        "chips": chips(exchange),
    }


def chips(exchange: Exchange) -> list[dict[str, str]]:
    """Return the state of a request in a few words: how it was answered, then its events."""
    record = exchange.record
    found = []
    if record.status in UNANSWERED:
        found.append(_chip(UNANSWERED[record.status], WARN, "The client got no answer."))
    elif not record.accepted:
        found.append(_chip(str(record.status), BAD, f"Answered {record.status}: {record.outcome}."))
    elif record.outcome in ("truncated", "dripping", "slow"):
        found.append(_chip(record.outcome, WARN, "The answer was spoiled on purpose."))
    latest = {
        event.kind: event for event in exchange.events if event.state is not EventState.PLANNED
    }
    found += [
        _chip(kind, TONES.get(kind, PLAIN), _taken(event), pending=event.state != EventState.SENT)
        for kind, event in latest.items()
    ]
    if record.accepted and not found:
        found.append(_chip("accepted", PLAIN, "No event yet."))
    return found


def message(exchange: Exchange, provider: Provider) -> dict[str, Any]:
    """Return what the page of one request shows beside its content."""
    record = exchange.record
    shown = provider.show(record) if record.accepted else None
    return {
        **row(exchange, provider),
        "sender": shown.sender if shown else "",
        "recipients": list(record.recipients),
        "provider": record.provider,
        "outcome": record.outcome,
        "status": UNANSWERED.get(record.status, str(record.status)),
        "references": list(record.references),
        "message_id": record.message_id or "",
        "has_html": bool(shown and shown.html),
        "text": shown.text if shown else "",
        "headers": sorted(record.headers.items()),
        "events": [_event(event) for event in exchange.events],
    }


def raw(record: Record) -> tuple[str, bool]:
    """Return a request's body for people to read, and whether that is all of it."""
    if record.text is not None:
        return record.text, True
    if bytes(record.body) == b"null":
        return "", True
    text = msgspec.json.format(bytes(record.body), indent=2).decode()
    return text[:LONGEST_RAW], len(text) <= LONGEST_RAW


def matches(record: Record, words: str) -> bool:
    """Return whether a search finds a request: in its recipients, subject, reference or id."""
    texts = (*record.recipients, *record.references, record.title or "", record.message_id or "")
    haystack = "\n".join(texts).lower()
    return all(word in haystack for word in words.lower().split())


def _chip(label: str, tone: str, hint: str, *, pending: bool = False) -> dict[str, str]:
    return {"label": label, "tone": tone, "hint": hint, "pending": "pending" if pending else ""}


def _taken(event: Event) -> str:
    """Return how far an event has come, in words."""
    words = STATES[event.state]
    return f"{words} ({event.answer})" if event.answer else words


def _event(event: Event) -> dict[str, Any]:
    moment = event.sent_at or event.planned_at
    return {
        "kind": event.kind,
        "tone": TONES.get(event.kind, PLAIN),
        "pending": "" if event.state is EventState.SENT else "pending",
        "state": _taken(event),
        "tries": event.tries,
        "time": _iso(moment),
        "clock": f"{moment:%H:%M:%S}",
        "payload": msgspec.json.format(msgspec.json.encode(event.payload), indent=2).decode(),
    }


def _iso(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds")
