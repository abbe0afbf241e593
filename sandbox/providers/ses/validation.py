"""Validates the requests for a mail, as strictly as SES or more."""

import base64
import binascii
import re
from collections.abc import Iterator, Mapping, Sequence
from email import message_from_bytes
from email.message import Message
from email.utils import parseaddr
from typing import Any

from ...credentials import AwsAccount
from ..aws.signature import AwsProblem

MEMBERS = frozenset(
    {
        "FromEmailAddress",
        "FromEmailAddressIdentityArn",
        "Destination",
        "ReplyToAddresses",
        "FeedbackForwardingEmailAddress",
        "FeedbackForwardingEmailAddressIdentityArn",
        "Content",
        "EmailTags",
        "ConfigurationSetName",
        "EndpointId",
        "TenantName",
        "ListManagementOptions",
    }
)
MAX_RECIPIENTS, MAX_TAGS, MAX_LINE = 50, 50, 998
MAX_LENGTH = 40 * 1024 * 1024
UNVERIFIED = "unverified.example"
"""The domain whose addresses may not send."""
_TAG = re.compile(r"[A-Za-z0-9_-]{1,256}", re.ASCII)
_ADDRESS = re.compile(r"[!-?A-~]{1,64}@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+", re.ASCII)


def bad_request(message: str) -> AwsProblem:
    """Return the error for an invalid request."""
    return AwsProblem(400, "BadRequestException", message)


def raw_mail(body: Any) -> bytes | None:
    """Return the mail of a request, or None without a valid one."""
    content = body.get("Content") if isinstance(body, dict) else None
    raw = content.get("Raw") if isinstance(content, dict) else None
    data = raw.get("Data") if isinstance(raw, dict) else None
    try:
        return base64.b64decode(data, validate=True) if isinstance(data, str) else None
    except binascii.Error:
        return None


def recipients(body: Any) -> list[str]:
    """Return the addresses to which a request sends. The body may be invalid."""
    destination = body.get("Destination") if isinstance(body, dict) else None
    found: list[str] = []
    for name in ("ToAddresses", "CcAddresses", "BccAddresses"):
        listed = destination.get(name) if isinstance(destination, dict) else None
        found += [item for item in listed or () if isinstance(item, str)]
    return found


def tags(body: Any) -> dict[str, str]:
    """Return the tags of a request. The body may be invalid."""
    listed = body.get("EmailTags") if isinstance(body, dict) else None
    return {
        str(tag.get("Name")): str(tag.get("Value"))
        for tag in (listed if isinstance(listed, list) else ())
        if isinstance(tag, dict)
    }


def problem(body: Any, *, account: AwsAccount) -> AwsProblem | None:
    """Return why a request is refused, or None."""
    return next(_problems(body, account), None)


def _problems(body: Any, account: AwsAccount) -> Iterator[AwsProblem]:
    if not isinstance(body, dict):
        yield AwsProblem(400, "SerializationException", "The request isn't an object.")
        return
    for name in sorted(body.keys() - MEMBERS):
        yield bad_request(f"SES has no member {name}.")
    raw = raw_mail(body)
    if not isinstance(body.get("Content"), dict) or len(body["Content"]) != 1 or raw is None:
        yield bad_request("Content must have one member: Raw, with Data in base64.")
        return
    found = recipients(body)
    if not found or len(found) > MAX_RECIPIENTS:
        yield bad_request(f"Recipient count must be from 1 to {MAX_RECIPIENTS}.")
    for address in found:
        if not _ADDRESS.fullmatch(address):
            yield bad_request(
                "Missing final '@domain'" if "@" not in address else "Illegal address"
            )
    yield from _tag_problems(body.get("EmailTags"))
    yield from _mail_problems(raw)
    name = body.get("ConfigurationSetName", account.configuration_set)
    if name != account.configuration_set:
        text = f"Configuration set <{name}> does not exist."
        yield AwsProblem(404, "NotFoundException", text)
    sender = parseaddr(body.get("FromEmailAddress") or message_from_bytes(raw)["From"])[1]
    if sender.endswith(f"@{UNVERIFIED}"):
        text = (
            "Email address is not verified. The following identities failed the check in region "
            f"{account.region.upper()}: {sender}"
        )
        yield AwsProblem(400, "MessageRejected", text)


def _tag_problems(listed: Any) -> Iterator[AwsProblem]:
    if listed is None:
        return
    is_list = isinstance(listed, list) and len(listed) <= MAX_TAGS
    if not is_list or not all(isinstance(tag, Mapping) for tag in listed):
        yield bad_request(f"EmailTags is a list of at most {MAX_TAGS} objects.")
        return
    for tag in listed:
        for part in ("Name", "Value"):
            text = tag.get(part)
            if not isinstance(text, str) or not _TAG.fullmatch(text):
                yield bad_request(
                    f"Invalid tag {part.lower()} <{text}>: only alphanumeric ASCII characters, "
                    "'_', and '-' are allowed."
                )


def _mail_problems(raw: bytes) -> Iterator[AwsProblem]:
    if len(raw) > MAX_LENGTH:
        text = f"Message length is more than {MAX_LENGTH} bytes long: '{len(raw)}'."
        yield bad_request(text)
    if not raw.isascii():
        yield bad_request("The message has 8-bit data.")
    lines = raw.split(b"\r\n")
    if any(b"\n" in line or b"\r" in line or len(line) > MAX_LINE for line in lines):
        yield bad_request("A line of the message ends without CRLF, or is longer than 998 octets.")
    mail: Message = message_from_bytes(raw)
    for name in ("From", "To", "Subject", "Date", "MIME-Version"):
        values: Sequence[Any] = mail.get_all(name, [])
        if not values:
            yield bad_request(f"Missing required header '{name}'.")
        elif len(values) > 1:
            yield bad_request(f"Duplicate header '{name}'.")
