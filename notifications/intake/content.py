"""What a notification says: the caller's words, or a rendered template."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from domain.content import Content, Recipient
from domain.states import Channel

from .. import rendering, secrecy, templates, types
from ..models.notification import SUBJECT_LENGTH
from ..templates import Memory, TemplateProblem
from ..types import NotificationKind
from .addresses import AddressProblem, check_email, has_control_characters
from .attachments import check_attachments
from .links import LinkProblem, check_deep_link, check_image_url
from .problems import Collector
from .requests import NotificationRequest

MAX_BODY_BYTES = 100 * 1024
FIRST_LINE_LENGTH = 78
"""A subject made from the body is cut to a line of mail."""


def compose(
    request: NotificationRequest,
    *,
    kind: NotificationKind,
    recipient: Recipient,
    channels: Sequence[Channel],
    problems: Collector,
    memory: Memory | None = None,
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
            names = kind.sensitive_variables | types.secret_names(template_id)
            data = secrecy.masked(request.data, names)
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


def _given_subject(subject: str | None, problems: Collector) -> str | None:
    if subject is None:
        return None
    if has_control_characters(subject):
        problems.add(
            "/content/subject",
            "control_characters",
            "A subject is one line without control characters.",
        )
        return None
    subject = templates.without_invisible(subject)
    if not subject.strip():
        problems.add("/content/subject", "blank", "A subject says something, or is left out.")
        return None
    return subject


def _check_body(body: str | None, problems: Collector) -> None:
    if body is None:
        return
    if not _first_line(body):
        problems.add("/content/body", "blank", "A body says something, or is left out.")
    elif len(body.encode(errors="surrogatepass")) > MAX_BODY_BYTES:
        problems.add("/content/body", "too_long", "A body has at most 100 KB.")


def _template(
    kind: NotificationKind, named: str | None, problems: Collector
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
    except TemplateProblem:
        return False


def _rendered(
    template_id: str,
    version: int,
    *,
    data: Mapping[str, Any],
    recipient: Recipient,
    channels: Sequence[Channel],
    problems: Collector,
    memory: Memory | None,
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
    except TemplateProblem as problem:
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
    link: str | None, pointer: str, check: Callable[[str], str], problems: Collector
) -> str | None:
    if link is None:
        return None
    try:
        return check(templates.without_invisible(link))
    except LinkProblem as problem:
        problems.add(pointer, "invalid_url", str(problem))
        return None


def _reply_to(address: str | None, problems: Collector) -> str | None:
    if address is None:
        return None
    try:
        return check_email(address)
    except AddressProblem as problem:
        problems.add("/content/reply_to", "invalid_email", str(problem))
        return None


def _first_line(body: str) -> str:
    lines = (templates.clean_line(line) for line in body.splitlines())
    return next(filter(None, lines), "")[:FIRST_LINE_LENGTH]
