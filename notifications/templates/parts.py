"""The parts a template has, and the languages it has them in. Pure."""

import re
from collections.abc import Mapping
from enum import StrEnum

DEFAULT_LANGUAGE = "default"
"""Stands for the template's own language where languages are named."""
TEMPLATE_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}", re.ASCII)
STORED_LANGUAGE = re.compile(r"[a-z]{2,3}(-[A-Z][a-z]{3})?(-([A-Z]{2}|[0-9]{3}))?", re.ASCII)
"""A language as templates are stored under: ``pt``, ``pt-BR``, ``zh-Hant-TW``."""
_LOCALE = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*", re.ASCII)


class Part(StrEnum):
    """One text of a template."""

    SUBJECT = "subject"
    BODY = "body"
    EMAIL_HTML = "email_html"
    PUSH_TITLE = "push_title"
    PUSH = "push"
    WHATSAPP = "whatsapp"


FILES: Mapping[Part, str] = {
    Part.SUBJECT: "subject.txt",
    Part.BODY: "body.txt",
    Part.EMAIL_HTML: "email.html",
    Part.PUSH_TITLE: "push_title.txt",
    Part.PUSH: "push.txt",
    Part.WHATSAPP: "whatsapp.txt",
}
MADE_OF: Mapping[Part, Part] = {
    Part.EMAIL_HTML: Part.BODY,
    Part.PUSH_TITLE: Part.SUBJECT,
    Part.PUSH: Part.BODY,
    Part.WHATSAPP: Part.BODY,
}
"""What a part is made of where a template does not have it."""


def languages(locale: str | None) -> tuple[str, ...]:
    """Return the languages to look into: ``pt-BR``, ``pt``, the template's own."""
    if not locale or not _LOCALE.fullmatch(locale):
        return (DEFAULT_LANGUAGE,)
    words = locale.split("-")
    return (*("-".join(words[:n]) for n in range(len(words), 0, -1)), DEFAULT_LANGUAGE)
