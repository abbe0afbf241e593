"""Renders messages of rooms as HTML, from each provider's own markup.

What members of a room would see: a mention is highlighted, a link is a link, and the rest is text.
"""

import html
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

STYLE = """<style>
body { margin: 0; padding: 20px; font: 15px/1.46 system-ui, -apple-system, "Segoe UI", sans-serif;
  color: #1d1c1d; background: #fff; overflow-wrap: anywhere }
h1 { font-size: 18px; line-height: 1.3; margin: 0 0 6px } p { margin: 0 0 8px }
p { white-space: pre-wrap }
.card { border-left: 4px solid #4f46e5; padding: 2px 0 2px 14px }
code, pre { background: #f1f1f3; border-radius: 4px; padding: 1px 4px; font-size: 13px }
pre { padding: 8px; white-space: pre-wrap } .mention { background: #ffe8a3; border-radius: 3px }
.buttons { display: flex; flex-wrap: wrap; gap: 8px; padding: 0; margin: 8px 0 0; list-style: none }
.buttons a { border: 1px solid #aaa; border-radius: 5px; padding: 5px 12px; color: inherit;
  text-decoration: none; font-weight: 600; font-size: 14px } small { color: #616061 }
</style>"""
_TAG = re.compile(r"<[^>]*>")


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A message as members of a room see it."""

    title: str
    text: str
    html: str
    buttons: tuple[str, ...] = ()


def build(
    *, title: str, paragraphs: Sequence[str], buttons: Sequence[tuple[str, str]] = ()
) -> Card:
    """Return the card of a title, of paragraphs that are HTML, and of labels with their links."""
    heading = f"<h1>{html.escape(title)}</h1>" if title else ""
    body = "".join(f"<p>{paragraph}</p>" for paragraph in paragraphs)
    items = "".join(
        f'<li><a href="{html.escape(link)}">{html.escape(label)}</a></li>'
        for label, link in buttons
    )
    shown = f'<ul class="buttons">{items}</ul>' if items else ""
    return Card(
        title=title,
        text="\n\n".join(html.unescape(_TAG.sub("", paragraph)) for paragraph in paragraphs),
        html=f'{STYLE}<div class="card">{heading}{body}{shown}</div>',
        buttons=tuple(label for label, _ in buttons),
    )


def _link(address: str, label: str) -> str:
    return f'<a href="{html.escape(address)}">{label}</a>'


_SLACK = re.compile(
    r"```(?P<block>.+?)```|`(?P<code>[^`\n]+)`|<(?P<angle>[^<>\n]+)>"
    r"|(?<![\w*])\*(?P<bold>[^\s\u200b*](?:[^*\n]*[^\s\u200b*])?)\*(?![\w*])"
    r"|(?<![\w_])_(?P<italic>[^\s\u200b_](?:[^_\n]*[^\s\u200b_])?)_(?![\w_])",
    re.DOTALL,
)


def slack(text: str) -> str:
    """Return mrkdwn as HTML. Its only escapes are ``&amp;``, ``&lt;``, and ``&gt;``."""

    def piece(found: re.Match[str]) -> str:
        if found["block"] is not None:
            return f"<pre>{_slack_text(found['block'])}</pre>"
        if found["code"] is not None:
            return f"<code>{_slack_text(found['code'])}</code>"
        if found["bold"] is not None:
            return f"<b>{slack(found['bold'])}</b>"
        if found["italic"] is not None:
            return f"<i>{slack(found['italic'])}</i>"
        address, _, label = found["angle"].partition("|")
        if address[0] in "!@#":
            return f'<span class="mention">@{html.escape(label or address[1:])}</span>'
        return _link(html.unescape(address), _slack_text(label or address))

    return _replace(_SLACK, text, piece, _slack_text)


def _slack_text(text: str) -> str:
    return html.escape(html.unescape(text))


_MARKDOWN = re.compile(
    r"\\(?P<escaped>[!-/:-@\[-`{-~])|`(?P<code>[^`\n]+)`|\*\*(?P<bold>.+?)(?<!\\)\*\*"
    r"|(?<![\w\\])[*_](?P<italic>[^\s*_](?:.*?[^\s\\])?)(?<!\\)[*_](?!\w)"
    r"|\[(?P<label>(?:\\.|[^\]\\\n])+)\]\((?P<address>(?:\\.|[^)\s])+)\)"
    r"|(?P<mention>@everyone|@here|<@[!&]?\d+>)|<(?P<auto>https?://[^\s<>]+)>",
)


def markdown(text: str) -> str:
    """Return the Markdown of Discord and of Adaptive Cards as HTML."""

    def piece(found: re.Match[str]) -> str:
        kind = found.lastgroup or ""
        if kind == "address":
            address = re.sub(r"\\(.)", r"\1", found["address"])
            return _link(address, markdown(found["label"]))
        shown = found[kind]
        if kind in ("bold", "italic"):
            return f"<{kind[0]}>{markdown(shown)}</{kind[0]}>"
        escaped = html.escape(shown)
        wrapped = {
            "code": f"<code>{escaped}</code>",
            "mention": f'<span class="mention">{escaped}</span>',
            "auto": _link(shown, escaped),
        }
        return wrapped.get(kind, escaped)

    return _replace(_MARKDOWN, text, piece, html.escape)


def _replace(
    pattern: re.Pattern[str],
    text: str,
    piece: Callable[[re.Match[str]], str],
    plain: Callable[[str], str],
) -> str:
    parts, at = [], 0
    for found in pattern.finditer(text):
        parts += [plain(text[at : found.start()]), piece(found)]
        at = found.end()
    return "".join([*parts, plain(text[at:])])


def texts_of(value: Any, name: str) -> Iterator[str]:
    """Yield the texts under a name anywhere in JSON, in order."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            if key == name and isinstance(item, str):
                yield item
            else:
                yield from texts_of(item, name)
    elif isinstance(value, list):
        for item in value:
            yield from texts_of(item, name)
