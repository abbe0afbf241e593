"""Validation of the optional parts of a mail."""

import base64
import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from .answers import Problem, help_url, wrong_type

MAX_ARGS_BYTES = 10_000
MAX_SUBSTITUTIONS = 100
MAX_SUBSTITUTIONS_BYTES = 10_000
DISPOSITIONS = ("attachment", "inline")
_INVITATION = re.compile(r"text/calendar; ?method=[A-Za-z]+", re.ASCII)
"""Taken in spite of its parameter: https://github.com/sendgrid/sendgrid-nodejs/issues/1313."""
AT_LEAST_ONE = "at least one character in length."
RESERVED_HEADERS = frozenset(
    {
        "x-sg-id",
        "x-sg-eid",
        "received",
        "dkim-signature",
        "content-type",
        "content-transfer-encoding",
        "to",
        "from",
        "subject",
        "reply-to",
        "cc",
        "bcc",
    }
)
"""In any case of letters."""


def attachments(listed: Any) -> Iterator[Problem]:
    """Validate the attachments of a mail."""
    if listed is None:
        return
    if not isinstance(listed, list):
        yield wrong_type("attachments", "array", listed)
        return
    for number, attachment in enumerate(listed):
        field = f"attachments.{number}"
        if isinstance(attachment, dict):
            for part, message in (*_file_problems(attachment), *_kind_problems(attachment)):
                yield Problem(message, f"{field}.{part}", help_url(f"message.attachments.{part}"))
        else:
            yield wrong_type(field, "object", attachment)


def _file_problems(attachment: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    content, filename = attachment.get("content"), attachment.get("filename")
    if not isinstance(content, str) or not content:
        yield "content", f"The attachment content must be a string {AT_LEAST_ONE}"
    elif not _is_base64(content):
        yield "content", "The attachment content must be base64 encoded."
    if filename is None:
        yield "filename", "filename is required."
    elif not isinstance(filename, str) or not filename:
        yield "filename", "The filename of your attachment must be a string."
    elif _has_line_break(filename):
        yield "filename", "The filename of your attachment can't contain CRLF characters."


def _kind_problems(attachment: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    kind, disposition = (
        attachment.get("type", "text/plain"),
        attachment.get("disposition", "attachment"),
    )
    if not isinstance(kind, str) or not kind:
        yield "type", f"The attachment type must be a string and {AT_LEAST_ONE}"
    elif (";" in kind and not _INVITATION.fullmatch(kind)) or _has_line_break(kind):
        yield "type", "The type can't contain ';', or CRLF characters."
    if disposition not in DISPOSITIONS:
        message = 'The disposition of your attachment can be either "inline" or "attachment".'
        yield "disposition", f"{message} You provided {disposition}."
    content_id = attachment.get("content_id", "")
    if not isinstance(content_id, str):
        message = "The content ID of your attachment must be a string."
        yield "content_id", f"{message} You provided {content_id}."
    elif _has_line_break(content_id):
        yield "content_id", "The content ID of your attachment can't contain CRLF characters."


def headers(given: Any, field: str) -> Iterator[Problem]:
    """Validate the headers of a mail or of a personalization."""
    if given is None:
        return
    anchor = help_url("message.headers")
    if not isinstance(given, dict):
        yield wrong_type(field, "object", given)
        return
    seen: set[str] = set()
    for name, value in given.items():
        if not isinstance(value, str):
            message = "The header values must be strings."
        elif not name.isascii() or not name or any(c.isspace() for c in name):
            message = "Header keys can't contain non-ASCII characters and empty spaces."
        elif name.lower() in RESERVED_HEADERS:
            message = "Header can not be one of the reserved keys."
        elif name.lower() in seen:
            message = "The headers can't contain duplicate keys."
        else:
            seen.add(name.lower())
            continue
        yield Problem(message, f"{field}.{name}", anchor)


def substitutions(given: Any, field: str) -> Iterator[Problem]:
    """Validate the substitutions of a personalization."""
    if given is None:
        return
    anchor = help_url("message.personalizations.substitutions")
    if not isinstance(given, dict) or not all(isinstance(value, str) for value in given.values()):
        message = (
            "The substitution values must be an object of key/value pairs, where the values are "
            "all strings."
        )
        yield Problem(message, field, anchor)
        return
    text = "Substitutions are limited to"
    if len(given) > MAX_SUBSTITUTIONS:
        items = f"{MAX_SUBSTITUTIONS} items per personalization block."
        yield Problem(f"{text} {items}", field, anchor)
    size = sum(len(name.encode()) + len(value.encode()) for name, value in given.items())
    if size > MAX_SUBSTITUTIONS_BYTES:
        yield Problem(f"{text} {MAX_SUBSTITUTIONS_BYTES:,} bytes.", field, anchor)


def custom_args(args: Any, field: str, *, shared: Mapping[str, Any]) -> Iterator[Problem]:
    """Validate custom arguments. ``shared`` has the mail's, which count towards the size."""
    if args is None:
        return
    if not isinstance(args, dict):
        yield wrong_type(field, "object", args)
        return
    wrong = [name for name, value in args.items() if not isinstance(value, str)]
    for name in wrong:
        yield wrong_type(f"{field}.{name}", "string", args[name])
    texts = {name: value for name, value in shared.items() if isinstance(value, str)} | args
    if not wrong and len(msgspec.json.encode(texts)) > MAX_ARGS_BYTES:
        message = "The combined size of custom arguments cannot exceed 10,000 bytes."
        yield Problem(message, field, help_url("message.custom_args"))


def _is_base64(content: str) -> bool:
    try:
        base64.b64decode(content, validate=True)
    except ValueError:
        return False
    return True


def _has_line_break(text: str) -> bool:
    return "\r" in text or "\n" in text
