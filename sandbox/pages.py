"""Template data of the outbox pages: requests, messages, and events."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

import msgspec

from .log import Record
from .providers.base import Channel, DisplayedMessage, Provider
from .recent_requests import Event, EventState, Exchange

EVERYTHING = "all"
SNIPPET = 160
KILO = 1024
MAX_RAW_LENGTH = 200_000
GOOD, BAD, WAIT, WARN, PLAIN = "good", "bad", "wait", "warn", "plain"
TONES: Mapping[str, str] = {
    **dict.fromkeys(("delivered", "read", "open", "click"), GOOD),
    **dict.fromkeys(("failed", "undelivered", "bounce", "blocked", "dropped"), BAD),
    **dict.fromkeys(("spamreport", "unsubscribe", "group_unsubscribe"), WARN),
    "deferred": WAIT,
}
SUCCESS_STATUSES = range(200, 300)
UNANSWERED: Mapping[int | str, str] = {"stalled": "no answer", "reset": "reset"}
STATES: Mapping[EventState, str] = {
    EventState.PLANNED: "planned",
    EventState.SENDING: "on its way",
    EventState.SENT: "webhook accepted",
    EventState.FAILED: "given up",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The filters of the message list, from the query of its URL."""

    shown: str
    channel: str
    search: str

    def link(self, *, before: int | None = None) -> str:
        """Return the URL of the list, or of its page of requests before ID ``before``."""
        query = {
            **({"before": str(before)} if before is not None else {}),
            "show": self.shown,
            **({"channel": self.channel} if self.channel != EVERYTHING else {}),
            **({"q": self.search} if self.search else {}),
        }
        return f"/?{urlencode(query)}"

    def includes(self, record: Record, *, channel: str) -> bool:
        """Return whether a request, to a provider of this channel, passes the filters."""
        return (
            (record.is_message or is_refused(record))
            and (self.shown == EVERYTHING or record.accepted == (self.shown == "accepted"))
            and self.channel in (EVERYTHING, channel)
            and (not self.search or matches(record, self.search))
        )

    def filters(self, *, channels: Sequence[str], shown: Sequence[str]) -> list[dict[str, Any]]:
        """Return the template data of the filter links: by channel and by result."""
        rows = (("Which channel", "channel", channels), ("Which requests", "shown", shown))
        return [
            {
                "label": label,
                "links": [
                    {
                        "label": choice.label
                        if isinstance(choice, Channel)
                        else choice.capitalize(),
                        "href": replace(self, **{name: choice}).link(),
                        "current": choice == getattr(self, name),
                    }
                    for choice in choices
                ],
            }
            for label, name, choices in rows
        ]


def is_refused(record: Record) -> bool:
    """Return whether a request was neither accepted nor answered with a success status."""
    return not record.accepted and (
        not isinstance(record.status, int) or record.status not in SUCCESS_STATUSES
    )


def row(exchange: Exchange, provider: Provider, *, copies: int) -> dict[str, Any]:
    """Return the template data of one row of the list."""
    record = exchange.record
    title = record.title or ""
    text = provider.display(record).text if record.accepted else ""
    snippet = " ".join(text[: 2 * SNIPPET].split())
    return {
        "id": record.id,
        "version": f"{exchange.version}-{copies}",
        "time": _iso(record.time),
        "clock": f"{record.time:%H:%M:%S}",
        "recipient": record.recipients[0] if record.recipients else "nobody",
        "others": max(0, len(record.recipients) - 1),
        "channel": provider.channel,
        "title": title,
        "request": f"{record.method} {record.path}",
        "snippet": "" if title and snippet.startswith(title) else snippet[:SNIPPET],
        "refused": is_refused(record),
        "reason": record.reason or "",
        "chips": chips(exchange, copies=copies),
    }


def chips(exchange: Exchange, *, copies: int) -> list[dict[str, str]]:
    """Return the status labels of a request: duplicates, the answer, and the latest events."""
    record = exchange.record
    found = []
    if record.status in UNANSWERED:
        found.append(_chip(UNANSWERED[record.status], WARN, "The client got no answer."))
    elif is_refused(record):
        found.append(_chip(str(record.status), BAD, f"Answered {record.status}: {record.outcome}."))
    elif not record.accepted:
        found.append(_chip(record.outcome, PLAIN, "Nothing was sent."))
    elif record.outcome in ("truncated", "dripping", "slow"):
        found.append(_chip(record.outcome, WARN, "The answer was spoiled on purpose."))
    latest = {
        event.kind: event for event in exchange.events if event.state is not EventState.PLANNED
    }
    for kind, event in latest.items():
        tone, is_pending = TONES.get(kind, PLAIN), event.state != EventState.SENT
        found.append(_chip(kind, tone, _state_text(event), pending=is_pending))
    if record.accepted and not found:
        found.append(_chip("accepted", PLAIN, "Nothing was reported yet."))
    if copies > 1:
        tooltip = f"This reference was accepted {copies} times for this recipient."
        found.insert(0, _chip(f"{copies} copies", WARN, tooltip))
    return found


def message(
    exchange: Exchange, provider: Provider, *, copies: Sequence[int], to: int
) -> dict[str, Any]:
    """Return the template data of a request's page, with the message of the recipient at ``to``."""
    record = exchange.record
    displayed = provider.display(record, to=to) if record.accepted else DisplayedMessage()
    return {
        **row(exchange, provider, copies=len(copies)),
        "to": to,
        "sender": displayed.sender,
        "recipients": list(record.recipients),
        "provider": provider.title,
        "copies": list(copies) if len(copies) > 1 else [],
        "outcome": record.outcome,
        "status": UNANSWERED.get(record.status, str(record.status)),
        "references": list(record.references),
        "message_id": record.message_id or "",
        "has_html": bool(displayed.html),
        "text": displayed.text,
        "heading": displayed.title,
        "attachments": [
            {"name": attachment.name, "kind": attachment.kind, "size": _size(attachment.size)}
            for attachment in displayed.attachments
        ],
        "image": displayed.image,
        "link": displayed.link,
        "small_print": displayed.small_print,
        "buttons": list(displayed.buttons),
        "facts": list(displayed.facts),
        "headers": sorted(record.headers.items()),
        "events": [_event(event) for event in exchange.events],
    }


def raw(record: Record) -> tuple[str, bool]:
    """Return a request's body as text, and whether the text is complete."""
    if record.text is not None:
        return record.text, True
    if bytes(record.body) == b"null":
        return "", True
    text = msgspec.json.format(bytes(record.body), indent=2).decode()
    return text[:MAX_RAW_LENGTH], len(text) <= MAX_RAW_LENGTH


def matches(record: Record, search: str) -> bool:
    """Return whether a search matches the recipients, subject, references, or message ID."""
    texts = (*record.recipients, *record.references, record.title or "", record.message_id or "")
    haystack = "\n".join(texts).lower()
    return all(word in haystack for word in search.lower().split())


def _size(count: int) -> str:
    if count < KILO:
        return f"{count} byte{'' if count == 1 else 's'}"
    if count < KILO**2:
        return f"{count / KILO:.1f} KB"
    return f"{count / KILO**2:.1f} MB"


def _chip(label: str, tone: str, tooltip: str, *, pending: bool = False) -> dict[str, str]:
    return {
        "label": label,
        "tone": tone,
        "tooltip": tooltip,
        "pending": "pending" if pending else "",
    }


def _state_text(event: Event) -> str:
    words = STATES[event.state]
    return f"{words} ({event.answer})" if event.answer else words


def _event(event: Event) -> dict[str, Any]:
    moment = event.sent_at or event.planned_at
    return {
        "kind": event.kind,
        "tone": TONES.get(event.kind, PLAIN),
        "pending": "" if event.state is EventState.SENT else "pending",
        "state": _state_text(event),
        "tries": event.tries,
        "time": _iso(moment),
        "clock": f"{moment:%H:%M:%S}",
        "payload": msgspec.json.format(msgspec.json.encode(event.payload), indent=2).decode(),
    }


def _iso(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds")
