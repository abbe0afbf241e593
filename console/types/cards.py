"""Shows a message to a room as Slack, Teams, and Discord show it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from domain.markdown import Line, LineKind, Run, parse
from providers.contract import Message, MessageLink

LOOKS = (("slack", "Slack"), ("teams", "Microsoft Teams"), ("discord", "Discord"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A message as one of the services shows it."""

    look: str
    name: str
    title: str | None
    body: SafeString
    links: Sequence[MessageLink]


def cards_of(message: Message) -> list[Card]:
    """Return a message once for each look."""
    lines = parse(message.text)
    return [
        Card(
            look=look,
            name=name,
            title=message.subject,
            body=_body(lines, look),
            links=message.links,
        )
        for look, name in LOOKS
    ]


def _body(lines: Iterable[Line], look: str) -> SafeString:
    return format_html_join("", "{}", ((_line(line, look),) for line in lines))


def _line(line: Line, look: str) -> SafeString:
    runs = format_html_join("", "{}", ((_run(run, look),) for run in line.runs))
    match line.kind:
        case LineKind.BLANK:
            return format_html('<p class="{}"></p>', "card-gap")
        case LineKind.CODE:
            return format_html('<p class="card-code">{}</p>', runs)
        case LineKind.ITEM:
            sign = "•" if line.number is None else f"{line.number}."
            return format_html('<p class="card-item">{} {}</p>', sign, runs)
        case LineKind.TEXT:
            return format_html("<p>{}</p>", runs)


def _run(run: Run, look: str) -> SafeString:
    shown = format_html("{}", run.text)
    if run.mention is not None and look == "slack":
        return format_html("<mark>{}</mark>", shown)
    if run.is_code and look != "teams":
        shown = format_html("<code>{}</code>", shown)
    if run.link is not None:
        shown = format_html('<span class="card-link" title="{}">{}</span>', run.link, shown)
    if run.is_italic:
        shown = format_html("<em>{}</em>", shown)
    return format_html("<strong>{}</strong>", shown) if run.is_bold else shown
