"""Liquid templates to messages.

A template is a folder ``templates/notifications/<name>/`` with ``subject.txt`` and ``body.txt`` for
every channel, ``email.html`` for mail, and a folder for each language that has its own:
``pt-BR`` falls back to ``pt``, and that to the folder itself. Variables are the caller's ``data``
and ``recipient``. A variable that is missing is an error, unless the template asks for it in an
``if`` or names a ``default``.
"""

import re
from collections.abc import Callable, Mapping
from functools import cache, lru_cache, wraps
from pathlib import Path
from typing import Any

from django.conf import settings
from liquid import Environment, FalsyStrictUndefined, is_undefined
from liquid.exceptions import LiquidError, UndefinedError
from liquid.template import BoundTemplate
from markupsafe import Markup, escape

from .channels.base import Message
from .store import Content, Recipient
from .types import MASK

LAYOUT = "_layout"
MAX_OUTPUT = 256 * 1024
NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}", re.ASCII)
_INVISIBLE = dict.fromkeys(
    [
        *range(0x202A, 0x202F),  # bidirectional embeddings and overrides
        *range(0x2066, 0x206A),  # bidirectional isolates
        *(0x200E, 0x200F, 0x061C),  # bidirectional marks
        *(0x200B, 0xFEFF),  # zero-width spaces
        *range(0x2060, 0x2065),  # word joiner, invisible operators
    ]
)
_CONTROL = dict.fromkeys(
    code for code in (*range(0x20), *range(0x7F, 0xA0)) if not chr(code).isspace()
)
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*", re.ASCII)
_FILTER_FAILURES = (ArithmeticError, AttributeError, LookupError, OSError, TypeError, ValueError)
"""What a filter of Liquid's may raise for a value it was not made for: a date in the year 0."""
_VARIABLE = re.compile(r"'?([^' ]+)'? is undefined")


class TemplateProblem(ValueError):
    """A message cannot be made from a template. ``variable`` names the one that is missing."""

    def __init__(self, code: str, message: str, *, variable: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.variable = variable


class _Liquid(Environment):
    """Liquid with limits: a template or its data cannot hold up a worker."""

    context_depth_limit = 10
    loop_iteration_limit = 1_000
    local_namespace_limit = 64 * 1024
    output_stream_limit = MAX_OUTPUT


def _environment(*, autoescape: bool) -> Environment:
    environment = _Liquid(undefined=FalsyStrictUndefined, autoescape=autoescape)
    for name, function in list(environment.filters.items()):
        if name != "default":
            environment.add_filter(name, _strict(function))
    return environment


def _strict(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a filter that needs its variables: Liquid's own make 0 or an empty text of them."""

    @wraps(function)
    def strict(*args: Any, **options: Any) -> Any:
        for value in (*args, *options.values()):
            if is_undefined(value):
                str(value)  # raises UndefinedError, naming it
        return function(*args, **options)

    return strict


_TEXT = _environment(autoescape=False)
_HTML = _environment(autoescape=True)


def exists(name: str) -> bool:
    """Return whether there is a template of this name."""
    return NAME.fullmatch(name) is not None and _find(name, "body.txt", None) is not None


def render_text(*, name: str, data: Mapping[str, Any], recipient: Recipient) -> tuple[str, str]:
    """Return subject and body in the recipient's language; raises TemplateProblem."""
    variables = _variables(data, recipient)
    subject = _render(name, "subject.txt", recipient.locale, variables)
    body = _render(name, "body.txt", recipient.locale, variables)
    if subject is None or body is None:
        raise TemplateProblem("unknown_template", "There is no such template.")
    return clean_line(subject), body.strip()


def render_message(*, content: Content, data: Mapping[str, Any], recipient: Recipient) -> Message:
    """Return the whole message of a stored notification; raises TemplateProblem.

    Subject and text were rendered when it was accepted, unless they hold secrets; the HTML of mail
    is made here. A subject without a mask has no secret, or is the caller's: it stays.
    """
    subject, text = content.subject, content.body or ""
    if content.is_masked and content.template_id is not None:
        whole, text = render_text(name=content.template_id, data=data, recipient=recipient)
        subject = whole if subject is None or MASK in subject else subject
    return Message(
        subject=subject,
        text=text,
        html=_html(content, subject, text, data, recipient),
        image_url=content.image_url,
        deep_link=content.deep_link,
        payload=content.payload,
    )


def clean_line(text: str) -> str:
    """Return ``text`` as one line without control, invisible and direction-changing characters."""
    return " ".join(without_invisible(text).translate(_CONTROL).split())


def without_invisible(text: str) -> str:
    """Return ``text`` without zero-width and direction-changing characters.

    The joiners that emoji and some scripts are written with stay.
    """
    return text.translate(_INVISIBLE)


def _html(
    content: Content,
    subject: str | None,
    text: str,
    data: Mapping[str, Any],
    recipient: Recipient,
) -> str:
    body = None
    if content.template_id is not None:
        variables = _variables(data, recipient)
        body = _render(content.template_id, "email.html", recipient.locale, variables)
    frame = {
        "subject": subject or "",
        # Escaped already, by its own template or here: the layout takes it as it is.
        "content": body if body is not None else str(_paragraphs(text)),
        "image_url": content.image_url,
        "deep_link": _web_link(content.deep_link),
        "language": recipient.locale or "en",
        "preheader": clean_line(text[:1_000])[:120],
    }
    html = _render(LAYOUT, "email.html", recipient.locale, frame)
    if html is None:
        raise TemplateProblem("unknown_template", "The layout of mail is missing.")
    return html


def _web_link(link: str | None) -> str | None:
    """Return a link a mail program can open; ``app://`` ones are for devices."""
    return link if link and link.startswith("https://") else None


def _paragraphs(text: str) -> Markup:
    paragraphs = [escape(p).replace("\n", Markup("<br>")) for p in re.split(r"\n\s*\n", text)]
    return Markup("\n").join(Markup("<p>%s</p>") % p for p in paragraphs)


def _variables(data: Mapping[str, Any], recipient: Recipient) -> dict[str, Any]:
    known = {"name": recipient.name, "locale": recipient.locale}
    return {**data, "recipient": {k: v for k, v in known.items() if v is not None}}


def _render(name: str, part: str, locale: str | None, variables: Mapping[str, Any]) -> str | None:
    """Return a rendered part, or None if the template has no such part."""
    path = _find(name, part, locale)
    if path is None:
        return None
    try:
        template = _parsed(path)
    except LiquidError as error:
        raise _failed(error) from error
    try:
        return template.render(variables)
    except UndefinedError as error:
        match = _VARIABLE.search(str(error.args[0]))
        variable = match[1] if match else None
        raise TemplateProblem(
            "missing_variable",
            f"The template needs the variable {variable!r}.",
            variable=variable,
        ) from error
    except (LiquidError, *_FILTER_FAILURES) as error:
        raise _failed(error) from error


def _failed(error: Exception) -> TemplateProblem:
    return TemplateProblem(
        "template_failed", f"The template cannot be rendered: {type(error).__name__}."
    )


@lru_cache(maxsize=4096)
def _find(name: str, part: str, locale: str | None) -> Path | None:
    """Return the file of a template's part in the nearest language."""
    folder = Path(settings.BASE_DIR) / "templates" / "notifications" / name
    for language in _languages(locale):
        path = folder / language / part
        if path.is_file():
            return path
    return None


def _languages(locale: str | None) -> list[str]:
    """Return the folders to look into: ``pt-BR``, ``pt``, the template's own."""
    if not locale or not _LANGUAGE.fullmatch(locale):
        return [""]
    parts = locale.split("-")
    return ["-".join(parts[:n]) for n in range(len(parts), 0, -1)] + [""]


@cache
def _parsed(path: Path) -> BoundTemplate:
    environment = _HTML if path.suffix == ".html" else _TEXT
    return environment.from_string(path.read_text(encoding="utf-8"), name=path.name)
