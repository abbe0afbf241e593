"""Validation of the JSON body of a send request."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from . import validation_optional
from .answers import BAD_ADDRESS, Problem, help_url, wrong_type

MAX_RECIPIENTS = 1000
MAX_PERSONALIZATIONS = 1000
MAX_ADDRESS = 254
PLAIN, HTML = "text/plain", "text/html"
_ADDRESS = re.compile(
    r"[a-z0-9!#$%&'*+/=?^_`{|}~.-]{1,64}@(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9-]{2,63}",
    re.ASCII | re.IGNORECASE,
)


def problems(body: Any) -> list[Problem]:
    """Return all errors of a body; empty if it is valid."""
    if not isinstance(body, dict):
        return [wrong_type("(root)", "object", body)]
    reply_to = body.get("reply_to")
    return [
        *_personalizations(body),
        *_sender(body),
        *(_person(reply_to, "reply_to", "reply_to") if reply_to is not None else ()),
        *_subject(body),
        *_content(body),
        *validation_optional.attachments(body.get("attachments")),
        *validation_optional.headers(body.get("headers"), "headers"),
        *validation_optional.custom_args(body.get("custom_args"), "custom_args", shared={}),
    ]


def _personalizations(body: Mapping[str, Any]) -> Iterator[Problem]:
    field = "personalizations"
    listed = body.get(field, [])
    message = ""
    if listed is None or listed == []:
        message = f"The {field} field is required and must have at least one personalization."
    elif not isinstance(listed, list):
        yield wrong_type(field, "array", listed)
        return
    elif len(listed) > MAX_PERSONALIZATIONS:
        message = (
            "The personalization block is limited to 1000 personalizations per API "
            f"request. You have provided {len(listed)} personalizations. Please consider "
            "splitting this into multiple requests and resending your request."
        )
    elif (
        sum(
            _count(personalization)
            for personalization in listed
            if isinstance(personalization, dict)
        )
        > MAX_RECIPIENTS
    ):
        message = "There is a limit of 1000 total recipients (to + cc + bcc) per request."
    if message:
        yield Problem(message, field, help_url("-Personalizations-Errors"))
        return
    shared = body.get("custom_args")
    for number, personalization in enumerate(listed):
        yield from _personalization(
            personalization, f"{field}.{number}", shared=shared if isinstance(shared, dict) else {}
        )


def _count(personalization: Mapping[str, Any]) -> int:
    lists = (personalization.get(name) for name in ("to", "cc", "bcc"))
    return sum(len(people) for people in lists if isinstance(people, list))


def _personalization(
    personalization: Any, field: str, *, shared: Mapping[str, Any]
) -> Iterator[Problem]:
    if not isinstance(personalization, dict):
        yield wrong_type(field, "object", personalization)
        return
    if not personalization.get("to"):
        yield Problem(
            "The to array is required for all personalization objects, and must have at "
            "least one email object with a valid email address.",
            f"{field}.to",
            help_url("message.personalizations.to"),
        )
    seen: set[str] = set()
    for name in ("to", "cc", "bcc"):
        people = personalization.get(name) or []
        if not isinstance(people, list):
            yield wrong_type(f"{field}.{name}", "array", people)
            continue
        for number, person in enumerate(people):
            yield from _person(person, f"{field}.{name}.{number}", f"personalizations.{name}")
            yield from _duplicate(person, seen, f"{field}.{name}")
    yield from validation_optional.headers(personalization.get("headers"), f"{field}.headers")
    yield from validation_optional.substitutions(
        personalization.get("substitutions"), f"{field}.substitutions"
    )
    yield from validation_optional.custom_args(
        personalization.get("custom_args"), f"{field}.custom_args", shared=shared
    )


def _person(person: Any, field: str, anchor: str) -> Iterator[Problem]:
    if not isinstance(person, dict):
        yield wrong_type(field, "object", person)
    elif not _is_address(person.get("email")):
        yield Problem(BAD_ADDRESS, f"{field}.email", help_url(f"message.{anchor}"))
    elif not isinstance(person.get("name", ""), str):
        yield wrong_type(f"{field}.name", "string", person["name"])


def _duplicate(person: Any, seen: set[str], field: str) -> Iterator[Problem]:
    address = person.get("email") if isinstance(person, dict) else None
    if not isinstance(address, str):
        return
    if address.lower() in seen:
        yield Problem(
            "Each email address in the personalization block should be unique between "
            f"to, cc, and bcc. We found the first duplicate instance of [{address}] in the "
            f"{field} field.",
            field.rpartition(".")[0],
            help_url("message.recipient-errors"),
        )
    seen.add(address.lower())


def _sender(body: Mapping[str, Any]) -> Iterator[Problem]:
    sender = body.get("from")
    if sender is None or (isinstance(sender, dict) and not sender.get("email")):
        yield Problem(
            "The from object must be provided for every email send. It is an object that "
            "requires the email parameter, but may also contain a name parameter.  e.g. "
            '{"email" : "example@example.com"}  or '
            '{"email" : "example@example.com", "name" : "Example Recipient"}.',
            "from.email",
            help_url("message.from"),
        )
    else:
        yield from _person(sender, "from", "from")


def _subject(body: Mapping[str, Any]) -> Iterator[Problem]:
    subject = body.get("subject")
    if subject is not None and not isinstance(subject, str):
        yield wrong_type("subject", "string", subject)
    elif not subject and not body.get("template_id") and not _each_has_subject(body):
        yield Problem(
            "The subject is required. You can get around this requirement if you use a "
            "template with a subject defined or if every personalization has a subject defined.",
            "subject",
            help_url("message.subject"),
        )


def _each_has_subject(body: Mapping[str, Any]) -> bool:
    listed = body.get("personalizations")
    if not isinstance(listed, list) or not listed:
        return False
    subjects = [
        personalization.get("subject") if isinstance(personalization, dict) else None
        for personalization in listed
    ]
    return all(isinstance(subject, str) and subject for subject in subjects)


def _content(body: Mapping[str, Any]) -> Iterator[Problem]:
    content = body.get("content")
    if not content:
        if not body.get("template_id"):
            yield Problem(
                "Unless a valid template_id is provided, the content parameter is "
                "required. There must be at least one defined content block. We typically "
                "suggest both text/plain and text/html blocks are included, but only one block "
                "is required.",
                "content",
                help_url("message.content"),
            )
        return
    if not isinstance(content, list):
        yield wrong_type("content", "array", content)
        return
    for number, part in enumerate(content):
        yield from _content_part(part, f"content.{number}")
    kinds = [part.get("type") for part in content if isinstance(part, dict)]
    ranks = [{PLAIN: 0, HTML: 1}.get(kind, 2) if isinstance(kind, str) else 2 for kind in kinds]
    if ranks != sorted(ranks):
        yield Problem(
            "If present, text/plain and text/html must be the first and second content: "
            "text/plain must be first, followed by text/html, followed by any other content.",
            "content",
            help_url("message.content"),
        )


def _content_part(part: Any, field: str) -> Iterator[Problem]:
    if not isinstance(part, dict):
        yield wrong_type(field, "object", part)
        return
    for name in ("type", "value"):
        value = part.get(name)
        if not isinstance(value, str) or not value or (name == "type" and "/" not in value):
            text = f"The content {name} must be a string at least one character in length."
            yield Problem(text, f"{field}.{name}", help_url(f"message.content.{name}"))


def _is_address(value: Any) -> bool:
    return (
        isinstance(value, str)
        and len(value) <= MAX_ADDRESS
        and _ADDRESS.fullmatch(value) is not None
    )
