"""Composes and checks content, attachments, and the size of a push."""

import mimetypes
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec
from bson import ObjectId
from django.conf import settings

from domain.content import Attachment, Content, Recipient, attachment_host
from domain.errors import FailureCode, PermanentError
from domain.retry import MAX_RETRIES
from domain.states import Channel, DeliveryStatus, Priority
from providers.contract import SendRequest
from providers.fcm.messages import MAX_PAYLOAD, build_payload

from ..catalog import types
from ..catalog.types import TypeConfig
from ..content import redaction, rendering, text
from ..content.engine import RenderCache, TemplateError
from ..models.notification import SUBJECT_LENGTH
from ..store import AttemptReference, NewDelivery
from ..validation import (
    InvalidAddressError,
    InvalidLinkError,
    ProblemCollector,
    check_deep_link,
    check_image_url,
    check_public_url,
    has_control_characters,
    normalize_email,
)
from .requests import AttachmentRequest, NotificationRequest

PLACE = "/content/attachments"
ANY_TYPE = "application/octet-stream"
"""What a file is whose name tells nothing."""
_TYPE = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]*/[a-z0-9][a-z0-9!#$&^_.+-]*", re.ASCII)
_MADE_OF_PARTS = ("multipart/", "message/")
_NO_NAME = re.compile(r'[/\\:*?"<>|;]|^\.|\.$')
_TYPES = mimetypes.MimeTypes(filenames=())
"""Python's own table: what the machine has besides differs from one to the next."""


def check_attachments(
    given: Sequence[AttachmentRequest], problems: ProblemCollector
) -> tuple[Attachment, ...]:
    """Return the attachments a mail is to have; what is wrong with any of them is noted.

    Their hosts must be public names that the setting ATTACHMENT_HOSTS lists, letter for letter.
    """
    if not given:
        return ()
    if not settings.ATTACHMENT_HOSTS:
        problems.add(PLACE, "not_enabled", "No host is allowed here to fetch attachments from.")
        return ()
    return tuple(_checked(one, f"{PLACE}/{i}", problems) for i, one in enumerate(given))


def _checked(one: AttachmentRequest, place: str, problems: ProblemCollector) -> Attachment:
    filename = text.without_invisible(one.filename).strip()
    _check_url(one.url, f"{place}/url", problems)
    _check_filename(filename, f"{place}/filename", problems)
    content_type = (one.content_type or _type_of(filename)).lower()
    _check_type(content_type, f"{place}/content_type", problems)
    return Attachment(url=one.url, filename=filename, content_type=content_type)


def _check_url(url: str, place: str, problems: ProblemCollector) -> None:
    try:
        check_public_url(url, schemes=("https",))
    except InvalidLinkError as problem:
        problems.add(place, "invalid_url", str(problem))
        return
    host = attachment_host(url)
    if host is None or not url.isascii():
        problems.add(place, "invalid_url", "Expected a URL in ASCII, without a port.")
    elif host not in settings.ATTACHMENT_HOSTS:
        problems.add(place, "host_not_allowed", "Attachments are not fetched from this host.")


def _check_filename(name: str, place: str, problems: ProblemCollector) -> None:
    if not name:
        problems.add(place, "blank", "A file has a name.")
    elif has_control_characters(name) or _NO_NAME.search(name):
        problems.add(place, "invalid_filename", "Expected the name of a file such as invoice.pdf.")


def _check_type(content_type: str, place: str, problems: ProblemCollector) -> None:
    if not _TYPE.fullmatch(content_type) or content_type.startswith(_MADE_OF_PARTS):
        problems.add(place, "invalid_content_type", "Expected a media type such as text/csv.")


def _type_of(filename: str) -> str:
    """Return the type a name tells of; a packed file is that, whatever is in it."""
    content_type, packing = _TYPES.guess_type(filename)
    if content_type is None or packing is not None or content_type.startswith(_MADE_OF_PARTS):
        return ANY_TYPE
    return content_type


S = DeliveryStatus
DEVICE = "f" * 64
"""A device's id, of which there is one in every push."""
LARGEST_FRAME = 512
"""Bytes at most of what is in every push, whatever it says: names of fields, and our ids."""
LARGEST_WORDS = 4 * (rendering.PUSH_TITLE_LENGTH + rendering.PUSH_BODY_LENGTH)
"""Bytes at most of a title and a text, which are cut to what a phone shows."""


def check_push_size(
    content: Content,
    deliveries: Sequence[NewDelivery],
    *,
    data: Mapping[str, Any],
    recipient: Recipient,
    priority: Priority,
    problems: ProblemCollector,
    now: datetime,
) -> None:
    """Note it if there is a push and it would be larger than Firebase takes: it could never arrive.

    Only what may be too large is rendered for it: a payload or links of over about 1 KB. Nothing is
    looked at that has problems already.
    """
    is_pushed = any(one.channel is Channel.PUSH and one.status is S.PENDING for one in deliveries)
    if problems.problems or not is_pushed:
        return
    if LARGEST_FRAME + LARGEST_WORDS + _besides(content) <= MAX_PAYLOAD:
        return
    place = "/content/payload" if content.payload else "/content"
    try:
        message = rendering.render_message(
            channel=Channel.PUSH, content=content, data=data, recipient=recipient
        )
        build_payload(
            SendRequest(
                reference=str(AttemptReference(ObjectId(), Channel.PUSH, MAX_RETRIES, DEVICE)),
                notification_id=str(ObjectId()),
                recipient=DEVICE,
                message=message,
                category="",
                priority=priority,
            ),
            now=now,
        )
    except TemplateError as problem:
        problems.add("/data", problem.code, str(problem))
    except PermanentError as error:
        # A key that Firebase keeps for itself is told when it is sent: other channels take it.
        if error.code is FailureCode.TOO_LARGE:
            problems.add(place, "too_long", "A push has at most 4 KB: its texts, links, payload.")


def _besides(content: Content) -> int:
    """Return the bytes at most of what a push carries besides its words."""
    links = sum(len(link.encode()) for link in (content.image_url, content.deep_link) if link)
    return links + (len(msgspec.json.encode(content.payload)) if content.payload else 0)


MAX_BODY_BYTES = 100 * 1024
FIRST_LINE_LENGTH = 78
"""A subject made from the body is cut to a line of mail."""


def compose_content(
    request: NotificationRequest,
    *,
    kind: TypeConfig,
    recipient: Recipient,
    channels: Sequence[Channel],
    problems: ProblemCollector,
    memory: RenderCache | None = None,
) -> Content:
    """Return the content; problems with any part of it are noted.

    A body of the caller's is used as it is, whatever it looks like. Without one the template
    supplies subject and body, and a subject of the caller's replaces the template's. What these
    channels say besides is rendered when they send, by the version that is published now.
    """
    given = request.content
    subject = _given_subject(given.subject, problems)
    _check_body(given.body, problems)
    image_url = _checked_link(given.image_url, "/content/image_url", check_image_url, problems)
    deep_link = _checked_link(given.deep_link, "/content/deep_link", check_deep_link, problems)
    body, template_id, version = given.body, None, None
    data: Mapping[str, Any] = request.data
    if body is None:
        template_id, version = _template(kind, given.template_id, problems)
        if template_id is not None:
            # As it may be shown: what is stored rendered is shown in many places.
            names = kind.sensitive_variables | types.sensitive_variables(template_id)
            data = redaction.mask(request.data, names)
            rendered = _rendered(
                template_id,
                version,
                data=data,
                recipient=recipient,
                channels=channels,
                problems=problems,
                memory=memory,
            )
            subject, body = subject or rendered[0], rendered[1]
    elif subject is None:
        subject = _first_line(body)
    return Content(
        subject=subject,
        body=body,
        template_id=template_id,
        template_version=version if template_id is not None else None,
        is_masked=template_id is not None and data != request.data,
        image_url=image_url,
        deep_link=deep_link,
        payload=given.payload,
        reply_to=_reply_to(given.reply_to, problems),
        attachments=check_attachments(given.attachments, problems),
    )


def _given_subject(subject: str | None, problems: ProblemCollector) -> str | None:
    if subject is None:
        return None
    if has_control_characters(subject):
        problems.add(
            "/content/subject",
            "control_characters",
            "A subject is one line without control characters.",
        )
        return None
    subject = text.without_invisible(subject)
    if not subject.strip():
        problems.add("/content/subject", "blank", "A subject says something, or is left out.")
        return None
    return subject


def _check_body(body: str | None, problems: ProblemCollector) -> None:
    if body is None:
        return
    if not _first_line(body):
        problems.add("/content/body", "blank", "A body says something, or is left out.")
    elif len(body.encode(errors="surrogatepass")) > MAX_BODY_BYTES:
        problems.add("/content/body", "too_long", "A body has at most 100 KB.")


def _template(
    kind: TypeConfig, named: str | None, problems: ProblemCollector
) -> tuple[str | None, int]:
    """Return the name of the template and its published version; None if there is none."""
    name = named or kind.slug
    version = kind.template_version if name == kind.slug else types.template_version(name)
    if _exists(name, version):
        return name, version
    if named is not None:
        problems.add("/content/template_id", "unknown_template", "There is no such template.")
    else:
        problems.add("/content/body", "required", "This type has no template: say what to send.")
    return None, version


def _exists(name: str, version: int) -> bool:
    try:
        return rendering.exists(name, version=version)
    except TemplateError:
        return False


def _rendered(
    template_id: str,
    version: int,
    *,
    data: Mapping[str, Any],
    recipient: Recipient,
    channels: Sequence[Channel],
    problems: ProblemCollector,
    memory: RenderCache | None,
) -> tuple[str | None, str | None]:
    try:
        subject, body = rendering.render_text(
            name=template_id, version=version, data=data, recipient=recipient, memory=memory
        )
        rendering.check_channels(
            channels,
            name=template_id,
            version=version,
            data=data,
            recipient=recipient,
            memory=memory,
        )
    except TemplateError as problem:
        problems.add(_place(problem.variable), problem.code, str(problem))
        return None, None
    if len(subject) > SUBJECT_LENGTH:
        problems.add("/data", "too_long", f"The subject has over {SUBJECT_LENGTH} characters.")
    if len(body.encode()) > MAX_BODY_BYTES:
        problems.add("/data", "too_long", "The rendered body has over 100 KB.")
    return subject, body


def _place(variable: str | None) -> str:
    """Return the pointer to where a template's variable is given."""
    if variable is None:
        return "/data"
    path = variable.replace(".", "/")
    return f"/{path}" if variable.startswith("recipient.") else f"/data/{path}"


def _checked_link(
    link: str | None, pointer: str, check: Callable[[str], str], problems: ProblemCollector
) -> str | None:
    if link is None:
        return None
    try:
        return check(text.without_invisible(link))
    except InvalidLinkError as problem:
        problems.add(pointer, "invalid_url", str(problem))
        return None


def _reply_to(address: str | None, problems: ProblemCollector) -> str | None:
    if address is None:
        return None
    try:
        return normalize_email(address)
    except InvalidAddressError as problem:
        problems.add("/content/reply_to", "invalid_email", str(problem))
        return None


def _first_line(body: str) -> str:
    lines = (text.clean_line(line) for line in body.splitlines())
    return next(filter(None, lines), "")[:FIRST_LINE_LENGTH]
