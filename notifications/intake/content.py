"""Composes content from a request, and checks it, its attachments, and the size of a push."""

import difflib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple

import msgspec
from bson import ObjectId
from django.conf import settings

from domain.addresses import InvalidAddressError, normalize_email
from domain.channels import PUSH, Channel
from domain.content import Attachment, Content, Look, PushOptions, Recipient, attachment_host
from domain.errors import NO_DEVICE, FailureCode, PermanentError
from domain.media_types import guess_media_type, parse_media_type
from domain.retry import MAX_RETRIES
from domain.sms import TextRules, encode
from domain.states import DeliveryStatus, Priority
from notifications.store.new_notifications import NewDelivery
from notifications.store.references import AttemptReference
from providers.contract import SendRequest
from providers.fcm.messages import MAX_PAYLOAD, build_payload

from ..catalog import types
from ..catalog.designs import BRAND_VARIABLE, UnknownBrandError
from ..catalog.types import TypeConfig
from ..content import looks, redaction, rendering, text
from ..content.engine import RenderCache, TemplateError
from ..content.templates import SHIPPED_VERSION
from ..models.notification import SUBJECT_LENGTH
from ..validation import (
    InvalidLinkError,
    ProblemCollector,
    check_deep_link,
    check_image_url,
    check_public_url,
    has_control_characters,
)
from .requests import AttachmentRequest, NotificationRequest

ATTACHMENTS_POINTER = "/content/attachments"
_INVALID_FILENAME = re.compile(r'[/\\:*?"<>|;]|^\.|\.$')
S = DeliveryStatus
EXAMPLE_DEVICE_ID = "f" * 64  # A device ID of the usual length; every push contains one
MAX_FRAME_BYTES = 512  # Upper bound of a push's fixed part: field names and IDs
MAX_TEXT_BYTES = 4 * (rendering.PUSH_TITLE_LENGTH + rendering.PUSH_BODY_LENGTH)
"""Upper bound of a push's title and text, which are truncated."""
MAX_BODY_BYTES = 100 * 1024
MAX_MISSING = 20  # Missing variables of a template that are reported, each by another rendering
MAX_COMPARED = 100  # Given variables that are compared with a missing one
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}", re.ASCII)
MAX_DERIVED_SUBJECT_LENGTH = 78  # A subject derived from the body is truncated to one email line


def check_attachments(
    requests: Sequence[AttachmentRequest], problems: ProblemCollector
) -> tuple[Attachment, ...]:
    """Return the attachments. Add a problem for each that is invalid or on a host not allowed."""
    if not requests:
        return ()
    if not settings.ATTACHMENT_HOSTS:
        reason = "Attachments are disabled: no host is allowed."
        problems.add(ATTACHMENTS_POINTER, "not_enabled", reason)
        return ()
    return tuple(
        _check_attachment(attachment, f"{ATTACHMENTS_POINTER}/{i}", problems)
        for i, attachment in enumerate(requests)
    )


def _check_attachment(
    request: AttachmentRequest, pointer: str, problems: ProblemCollector
) -> Attachment:
    filename = text.without_invisible(request.filename).strip()
    _check_url(request.url, f"{pointer}/url", problems)
    if not filename:
        problems.add(f"{pointer}/filename", "blank", "`filename` is required.")
    elif has_control_characters(filename) or _INVALID_FILENAME.search(filename):
        reason = "Expected a file name such as invoice.pdf."
        problems.add(f"{pointer}/filename", "invalid_filename", reason)
    given = request.content_type
    kind = parse_media_type(given) if given is not None else guess_media_type(filename)
    if kind is None:
        reason = "Expected a media type such as text/csv, or text/calendar; method=REQUEST."
        problems.add(f"{pointer}/content_type", "invalid_content_type", reason)
    return Attachment(url=request.url, filename=filename, content_type=str(kind))


def _check_url(url: str, pointer: str, problems: ProblemCollector) -> None:
    try:
        check_public_url(url, schemes=("https",))
    except InvalidLinkError as problem:
        problems.add(pointer, "invalid_url", str(problem))
        return
    host = attachment_host(url)
    if host is None or not url.isascii():
        problems.add(pointer, "invalid_url", "Expected a URL in ASCII, without a port.")
    elif host not in settings.ATTACHMENT_HOSTS:
        problems.add(pointer, "host_not_allowed", "Host not allowed.")


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
    """Add a problem if the push would exceed Firebase's size limit."""
    # Renders the push only if payload and links exceed about 1 KB. A push without a device is
    # checked, too: a preview knows the devices and must refuse what an acceptance refuses.
    has_push = any(
        delivery.channel.has_devices
        and (delivery.status is S.PENDING or delivery.failure_reason == NO_DEVICE)
        for delivery in deliveries
    )
    if problems.problems or not has_push:
        return
    links = sum(len(link.encode()) for link in (content.image_url, content.deep_link) if link)
    payload = len(msgspec.json.encode(content.payload)) if content.payload else 0
    if MAX_FRAME_BYTES + MAX_TEXT_BYTES + links + payload <= MAX_PAYLOAD:
        return
    example = AttemptReference(ObjectId(), PUSH, MAX_RETRIES, EXAMPLE_DEVICE_ID)
    try:
        message = rendering.render_message(
            channel=PUSH, content=content, data=data, recipient=recipient
        )
        build_payload(
            SendRequest(
                reference=str(example),
                notification_id=str(example.notification_id),
                recipient=EXAMPLE_DEVICE_ID,
                message=message,
                category="",
                priority=priority,
            ),
            now=now,
        )
    except TemplateError as problem:
        problems.add("/data", problem.code, problem.text)
    except PermanentError as error:
        # A key that Firebase reserves fails at send time: other channels accept it.
        if error.code is FailureCode.TOO_LARGE:
            pointer = "/content/payload" if content.payload else "/content"
            problems.add(pointer, "too_long", "The push exceeds 4 KB: texts, links, and payload.")


def check_texts(
    content: Content,
    deliveries: Sequence[NewDelivery],
    *,
    data: Mapping[str, Any],
    recipient: Recipient,
    rules: TextRules,
    are_channels_named: bool,
    problems: ProblemCollector,
) -> None:
    """Add a problem for a text on a named channel that the rules of its type refuse."""
    for delivery in () if problems.problems or not are_channels_named else deliveries:
        if delivery.channel.pays_by_part and delivery.status is S.PENDING:
            reason = find_text_problem(
                delivery.channel, content, data=data, recipient=recipient, rules=rules
            )
            if reason is not None:
                pointer = "/content" if content.template_id is None else "/data"
                label = delivery.channel.spec.label
                problems.add(pointer, FailureCode.TOO_LARGE.value, f"{label}: {reason}")


def find_text_problem(
    channel: Channel,
    content: Content,
    *,
    data: Mapping[str, Any],
    recipient: Recipient,
    rules: TextRules,
) -> str | None:
    """Return why the rules of its type refuse a text, as a sentence, or None."""
    text = text_of(channel, content, data=data, recipient=recipient)
    return None if text is None else rules.problem(encode(text, smart=False))


def text_of(
    channel: Channel, content: Content, *, data: Mapping[str, Any], recipient: Recipient
) -> str | None:
    """Return the text of a message, or None if its template can't be rendered."""
    try:
        message = rendering.render_message(
            channel=channel, content=content, data=data, recipient=recipient
        )
    except TemplateError:
        # Found by the check of the template.
        return None
    return message.text


def compose_content(
    request: NotificationRequest,
    *,
    type_config: TypeConfig,
    recipient: Recipient,
    channels: Sequence[Channel],
    event_at: datetime | None = None,
    problems: ProblemCollector,
    render_cache: RenderCache | None = None,
    accepted: Look | None = None,
    design: int | None = None,
) -> Content:
    """Return the content to store. Add a problem for each invalid part.

    ``accepted`` is the look of the messages in whose place it is sent, and ``design`` the number of
    the one that was approved.
    """
    # A body from the request is used unchanged. Without a body, the template supplies subject and
    # body, and a subject from the request replaces the template's. Parts for single channels are
    # rendered at send time, with the template version that is published now.
    given = request.content
    checked = check_content(request, problems)
    subject = checked.subject
    body, template_id, version = given.body, None, SHIPPED_VERSION
    data: Mapping[str, Any] = request.data
    if body is None:
        template_id, version = _resolve_template(type_config, given.template_id, problems)
    look = _resolve_look(
        request, type_config, template_id, version, problems, accepted=accepted, design=design
    )
    if template_id is not None:
        # Masked, because rendered content is stored and shown in many places.
        names = type_config.sensitive_variables | types.sensitive_variables(template_id)
        data = redaction.mask(request.data, names)
        own_subject, body = _render(
            template_id,
            version,
            data=data,
            recipient=recipient,
            channels=channels,
            look=look,
            problems=problems,
            cache=render_cache,
        )
        subject = subject or own_subject
    elif body is not None and subject is None:
        subject = _first_line(body)
    return Content(
        subject=subject,
        body=body,
        template_id=template_id,
        template_version=version if template_id is not None else None,
        is_masked=template_id is not None and data != request.data,
        image_url=checked.image_url,
        deep_link=checked.deep_link,
        payload=given.payload,
        reply_to=checked.reply_to,
        attachments=checked.attachments,
        has_own_subject=template_id is not None and given.subject is not None,
        event_at=event_at if template_id is not None else None,
        push=PushOptions(**msgspec.structs.asdict(given.push)) if given.push else None,
        look=look,
    )


def _resolve_look(
    request: NotificationRequest,
    type_config: TypeConfig,
    template_id: str | None,
    version: int,
    problems: ProblemCollector,
    *,
    accepted: Look | None,
    design: int | None,
) -> Look | None:
    """Return the look of a message: its brand and layout, and the design of its partials.

    None if it has none of them, which then costs nothing.
    """
    brand = request.brand or type_config.brand
    try:
        look = looks.find_look(
            name=template_id,
            version=version,
            brand=brand,
            layout=type_config.layout,
            accepted=accepted,
            pinned=design,
        )
    except UnknownBrandError:
        problems.add("/brand", "unknown_brand", "Unknown brand.")
        return None
    if brand is not None and BRAND_VARIABLE in request.data:
        reason = "Reserved for the brand of the message."
        problems.add(f"/data/{BRAND_VARIABLE}", "reserved", reason)
    return look


class CheckedContent(NamedTuple):
    """The checked parts of a request's content; None for a part that is missing or invalid."""

    subject: str | None
    image_url: str | None
    deep_link: str | None
    reply_to: str | None
    attachments: tuple[Attachment, ...]


def check_content(request: NotificationRequest, problems: ProblemCollector) -> CheckedContent:
    """Return a request's own content, without a template's. Add a problem for each invalid part."""
    given = request.content
    if given.body is not None:
        # The template isn't used, so nothing else checks its name.
        problems.check_one_line(given.template_id, "/content/template_id")
        if not _first_line(given.body):
            problems.add("/content/body", "blank", "Must not be blank.")
        elif len(given.body.encode(errors="surrogatepass")) > MAX_BODY_BYTES:
            problems.add("/content/body", "too_long", "The body exceeds 100 KB.")
    return CheckedContent(
        subject=_check_subject(given.subject, problems),
        image_url=_check_link(given.image_url, "image_url", check_image_url, problems),
        deep_link=_check_link(given.deep_link, "deep_link", check_deep_link, problems),
        reply_to=_check_reply_to(given.reply_to, problems),
        attachments=check_attachments(given.attachments, problems),
    )


def _check_subject(subject: str | None, problems: ProblemCollector) -> str | None:
    if subject is None:
        return None
    if has_control_characters(subject):
        reason = "Must be one line without control characters."
        problems.add("/content/subject", "control_characters", reason)
        return None
    subject = text.without_invisible(subject)
    if not subject.strip():
        problems.add("/content/subject", "blank", "Must not be blank.")
        return None
    return subject


def _resolve_template(
    type_config: TypeConfig, requested: str | None, problems: ProblemCollector
) -> tuple[str | None, int]:
    """Return the template's name, None if there is no such template, and its published version."""
    name = requested or type_config.slug
    is_own = name == type_config.slug
    version = type_config.template_version if is_own else types.get_template_version(name)
    with suppress(TemplateError):
        if rendering.exists(name, version=version):
            return name, version
    if requested is not None:
        problems.add("/content/template_id", "unknown_template", "Unknown template.")
    else:
        problems.add("/content/body", "required", "This type has no template; provide `content`.")
    return None, version


def _render(
    name: str,
    version: int,
    *,
    data: Mapping[str, Any],
    recipient: Recipient,
    channels: Sequence[Channel],
    look: Look | None,
    problems: ProblemCollector,
    cache: RenderCache | None,
) -> tuple[str | None, str | None]:
    render = partial(
        rendering.render_text,
        name=name,
        version=version,
        recipient=recipient,
        channels=channels,
        look=look,
    )
    try:
        subject, body = render(data=data, render_cache=cache)
    except TemplateError as first:
        for problem in _all_problems(first, data, render):
            hint = _near_miss(problem.variable, data)
            problems.add(_variable_pointer(problem.variable), problem.code, problem.text + hint)
        return None, None
    if len(subject) > SUBJECT_LENGTH:
        problems.add("/data", "too_long", f"The subject exceeds {SUBJECT_LENGTH} characters.")
    if len(body.encode()) > MAX_BODY_BYTES:
        problems.add("/data", "too_long", "The rendered body exceeds 100 KB.")
    return subject, body


def _all_problems(
    first: TemplateError, data: Mapping[str, Any], render: Callable[..., object]
) -> Iterator[TemplateError]:
    """Yield the problem of a template, and those that a value for each missing variable shows."""
    filled, seen, problem = dict(data), set[str | None](), first
    while problem.variable not in seen and len(seen) < MAX_MISSING:
        yield problem
        seen.add(problem.variable)
        if problem.variable is None or not _fill(filled, problem.variable.split(".")):
            return
        try:
            render(data=filled)
        except TemplateError as following:
            problem = following
        else:
            return


def _fill(data: dict[str, Any], path: Sequence[str]) -> bool:
    """Set a variable to a text. Return False if it is part of another value, or is set."""
    *parents, last = path
    for name in parents:
        inner = data.get(name, {})
        if not isinstance(inner, dict):
            return False
        data[name] = data = dict(inner)
    if last in data:
        return False
    data[last] = "x"
    return True


def _near_miss(variable: str | None, data: Mapping[str, Any]) -> str:
    """Return which given variable may be a missing one, misspelt, or nothing."""
    if variable is None or "." in variable:
        return ""
    plain = {_plain(name): name for name in data if _PLAIN_NAME.fullmatch(name)}
    similar = difflib.get_close_matches(
        _plain(variable), list(plain)[:MAX_COMPARED], n=1, cutoff=0.75
    )
    return f" Is it `{plain[similar[0]]}`?" if similar else ""


def _plain(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()


def _variable_pointer(variable: str | None) -> str:
    if variable is None:
        return "/data"
    path = variable.replace(".", "/")
    return f"/{path}" if variable.startswith("recipient.") else f"/data/{path}"


def _check_link(
    link: str | None, field: str, check: Callable[[str], str], problems: ProblemCollector
) -> str | None:
    try:
        return None if link is None else check(text.without_invisible(link))
    except InvalidLinkError as problem:
        problems.add(f"/content/{field}", "invalid_url", str(problem))
        return None


def _check_reply_to(address: str | None, problems: ProblemCollector) -> str | None:
    try:
        return None if address is None else normalize_email(address)
    except InvalidAddressError as problem:
        problems.add("/content/reply_to", "invalid_email", str(problem))
        return None


def _first_line(body: str) -> str:
    lines = (text.clean_line(line) for line in body.splitlines())
    return next(filter(None, lines), "")[:MAX_DERIVED_SUBJECT_LENGTH]
