"""Requests, acceptances, and events of providers of email, by django-anymail.

Only this module imports it, when a provider needs it. Its messages, signals, and transport aren't
used, and its errors quote whole mails: their text goes nowhere.
"""

import mimetypes
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from email.mime.base import MIMEBase
from email.utils import quote
from functools import cached_property, lru_cache
from typing import Any, cast

import requests
from anymail.exceptions import AnymailError, AnymailUnsupportedFeature
from anymail.signals import AnymailTrackingEvent
from django.utils.module_loading import import_string
from requests.structures import CaseInsensitiveDict

from domain.errors import FailureCode, PermanentError
from domain.media_types import parse_media_type

from .contract import SendRequest
from .email_kinds import EmailKind
from .http import Request, Response
from .mail import AttachmentFile, ascii_email, cannot_build, extra_headers, sender_of

ACCEPTED = frozenset({"sent", "queued"})
MAX_ID_LENGTH = 200
BINARY = "application/octet-stream"
_INCOMPLETE = ("auth", "files", "params")
"""Parameters of a request that become part of its headers, body, or URL."""
_UNREADABLE = (
    AnymailError,
    AttributeError,
    LookupError,
    OverflowError,
    RecursionError,
    TypeError,
    ValueError,
)
"""What anymail raises for JSON that isn't what it expects."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mail:
    """The attributes of Django's EmailMessage that anymail reads, and its own.

    Django's constructor would decode attachments, and change the type of those that it can't.
    """

    from_email: str
    to: Sequence[str]
    subject: str
    body: str
    reply_to: Sequence[str]
    extra_headers: Mapping[str, str]
    alternatives: Sequence[tuple[str, str]]
    attachments: Sequence[MIMEBase]
    metadata: Mapping[str, str]
    esp_extra: Mapping[str, Any]
    content_subtype: str = "plain"


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltMail:
    """A request, and what its acceptance is read with."""

    request: Request
    backend: Any = field(repr=False)
    payload: Any = field(repr=False)

    def accepted_id(self, response: Response) -> str | None:
        """Return the message ID of an acceptance, or None for any other answer."""
        answer = requests.Response()
        answer.status_code, answer.url = response.status, self.request.url
        answer._content = response.body
        answer.headers = CaseInsensitiveDict(response.headers)
        answer.encoding, answer.reason = "utf-8", ""
        try:
            self.backend.raise_for_status(answer, self.payload, None)
            found = self.backend.parse_recipient_status(answer, self.payload, None)
            # There is one recipient, whose address some repeat in small letters.
            ids = [status.message_id for status in found.values() if status.status in ACCEPTED]
        except _UNREADABLE:
            return None
        is_id = len(ids) == 1 and isinstance(ids[0], str) and 0 < len(ids[0]) <= MAX_ID_LENGTH
        return ids[0] if is_id else None


@dataclass(frozen=True, kw_only=True)
class MailBuilder:
    """Builds the requests of one account."""

    kind: EmailKind
    options: Mapping[str, Any] = field(repr=False)
    """The arguments of anymail's backend: credentials and the URL."""
    sender: str
    """Of emails whose brand has none."""

    @cached_property
    def _backend(self) -> Any:
        return import_string(self.kind.backend)(**self.options)

    def build(
        self,
        request: SendRequest,
        *,
        reply_to: tuple[str, str] | None,
        files: Sequence[AttachmentFile],
        reference: str,
        timeout: float,
        extra: Mapping[str, Any] | None = None,
    ) -> BuiltMail:
        """Return the request of one mail. Raises PermanentError."""
        message = request.message
        try:
            sender = sender_of(message, default=self.sender)
            mail = Mail(
                from_email=_mailbox(sender.name, sender.address),
                to=(_mailbox(request.recipient_name or "", ascii_email(request.recipient)),),
                subject=message.subject or "",
                body=message.text,
                reply_to=(_mailbox(*reply_to),) if reply_to else (),
                extra_headers={**extra_headers(message), **self.kind.mail_headers(request)},
                alternatives=((message.html, "text/html"),) if message.html else (),
                attachments=tuple(self._attachments(files)),
                metadata={"reference": reference},
                esp_extra=extra or {},
            )
            payload = self._backend.build_message_payload(mail, {})
            self.kind.adapt(payload.data, request)
            url, body, headers = _prepare(payload.get_request_params(self._backend.api_url))
        except AnymailUnsupportedFeature:
            reason = f"{self.kind.label} doesn't support a part of this email."
            raise PermanentError(reason, code=FailureCode.RENDER_FAILED) from None
        except _UNREADABLE:
            raise cannot_build() from None
        return BuiltMail(
            request=Request(
                url=url,
                body=body.encode() if isinstance(body, str) else body,
                headers={**headers, **self.kind.request_headers(request)},
                timeout=timeout,
            ),
            backend=self._backend,
            payload=payload,
        )

    def _attachments(self, files: Sequence[AttachmentFile]) -> Iterator[MIMEBase]:
        for file in files:
            kind = file.content_type
            if self.kind.types_follow_names:
                kind = mimetypes.guess_type(file.filename)[0] or kind
            yield _attachment(file, kind, keeps_type=self.kind.types_follow_names)


def _prepare(params: Mapping[str, Any]) -> tuple[str, str | bytes, Mapping[str, str]]:
    """Return the URL, the body, and the headers of a request with these parameters.

    The requests of most providers are complete: a text, and headers from the settings. Requests
    would only examine the URL, a seventh of the work for a mail.
    """
    if isinstance(params["data"], str) and not any(params[name] for name in _INCOMPLETE):
        return _clean_url(params["url"]), params["data"], params["headers"]
    prepared = requests.Request(**params).prepare()
    headers = {name: _text(value) for name, value in prepared.headers.items()}
    # libcurl knows the length.
    headers.pop("Content-Length", None)
    # Streams are never given.
    return str(prepared.url), cast("str | bytes", prepared.body or b""), headers


@lru_cache(maxsize=64)
def _clean_url(url: str) -> str:
    return str(requests.Request("POST", url).prepare().url)


def _text(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode("latin-1")


def _mailbox(name: str, address: str) -> str:
    return f'"{quote(name)}" <{address}>' if name else address


def _attachment(file: AttachmentFile, content_type: str, *, keeps_type: bool) -> MIMEBase:
    """Return an attachment whose bytes anymail sends as they are.

    It decodes text, and encodes it again, for some as UTF-8. So text in another encoding than its
    type says is sent as bytes, or as Latin-1 where its type must be that of its name.
    """
    media = parse_media_type(content_type)
    name, parameters = (media.name, dict(media.parameters)) if media else (BINARY, {})
    if name.startswith("text/"):
        try:
            file.content.decode(parameters.setdefault("charset", "utf-8"))
        except (LookupError, ValueError):
            parameters["charset"] = "iso-8859-1"
            if not keeps_type:
                name, parameters = BINARY, {}
    part = MIMEBase(*name.split("/", 1), policy=None, **parameters)
    part.set_payload(file.content)
    part.add_header("Content-Disposition", "attachment", filename=file.filename)
    return part


@dataclass(frozen=True, slots=True)
class _Call:
    """The attributes of Django's HttpRequest that anymail's parsers read."""

    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str = "application/json"


def read_event(kind: EmailKind, item: bytes) -> AnymailTrackingEvent:
    """Return one event of a webhook. Raises ValueError."""
    try:
        (event,) = _reader(kind.webhook).parse_events(_Call(item))
    except _UNREADABLE:
        raise ValueError("the event can't be read") from None
    return event


@lru_cache(maxsize=32)
def _reader(path: str) -> Any:
    # Its own checks aren't used, and it warns without a secret.
    secrets = {"webhook_secret": "not:used"}
    view = import_string(path)
    if hasattr(view, "webhook_signing_key"):
        secrets["webhook_signing_key"] = "not-used"
    return view(**secrets)
