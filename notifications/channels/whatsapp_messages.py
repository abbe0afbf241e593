"""The bodies of the Cloud API's messages."""

import re
from collections.abc import Mapping
from typing import Any

from ..errors import FailureCode, PermanentError
from .base import ApprovedTemplate, Message, Outbound

LONGEST_TEXT = 4096
LONGEST_CAPTION = 1024
Body = Mapping[str, Any]
_LINK = re.compile(r"https?://[^\s/]")
# What WhatsApp refuses in a template's values: line breaks, tabs, and over four spaces in a row.
_GAPS = re.compile(r"\s*[\n\r\t\v\f\u0085\u2028\u2029]\s*| {5,}")


def free(outbound: Outbound) -> Body:
    """Return a message in our own words, for somebody who has written within a day.

    A picture takes the text as its caption; a text too long for one goes without the picture.
    Raises PermanentError for a text that is too long.
    """
    message = outbound.message
    text = _with_link(message)
    if len(text) > LONGEST_TEXT:
        raise PermanentError(
            f"The text is longer than the {LONGEST_TEXT:,} characters that WhatsApp takes.",
            code=FailureCode.TOO_LARGE,
        )
    if message.image_url and len(text) <= LONGEST_CAPTION:
        caption = {"caption": text} if text else {}
        return _message("image", {"link": message.image_url, **caption}, outbound)
    has_link = _LINK.search(text) is not None
    return _message("text", {"body": text, "preview_url": has_link}, outbound)


def approved(template: ApprovedTemplate, outbound: Outbound) -> Body:
    """Return a message in words that WhatsApp has approved, for anybody."""
    content: dict[str, Any] = {"name": template.name, "language": {"code": template.language}}
    if template.parameters:
        values = [{"type": "text", "text": _on_one_line(v)} for v in template.parameters]
        content["components"] = [{"type": "body", "parameters": values}]
    return _message("template", content, outbound)


def _message(kind: str, content: Body, outbound: Outbound) -> Body:
    return {
        "messaging_product": "whatsapp",
        "recipient_type": "individual",
        "to": outbound.recipient,
        "type": kind,
        kind: content,
        "biz_opaque_callback_data": outbound.reference,
    }


def _with_link(message: Message) -> str:
    """Return the text, with the link below it if it is one for a browser and not in it already."""
    link = message.deep_link
    if not link or not link.startswith("https://") or link in message.text:
        return message.text
    return f"{message.text}\n\n{link}" if message.text else link


def _on_one_line(value: str) -> str:
    return _GAPS.sub(" ", value)
