"""Pages of one message that a member of staff sends: its type, its form, and its preview.

They do what the API does, by the same functions: preview a request, and accept it once per key. The
key is in the URL of the form, so that a reload, a second tab, and a double click send one message.
"""

from datetime import timedelta
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.models import ADDITION
from django.core import signing
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils.crypto import get_random_string
from django.utils.html import format_html
from django.utils.http import urlencode

from access.clients import registry
from access.clients.registry import TakenNameError
from domain.channels import Channel
from domain.time import utc_now
from notifications.catalog import types
from notifications.documents.catalog import NOTIFICATION_TYPES, NotificationTypeDocument
from notifications.intake import acceptance, preview
from notifications.intake.acceptance import Acceptance
from notifications.intake.requests import (
    Caller,
    KeyReusedError,
    NotificationRequest,
    ScopeRequiredError,
)
from notifications.models import Notification
from notifications.validation import InvalidRequestError
from notifyproject.platform import audit, tracing

from ..notifications import search
from ..texts.labels import CHANNELS
from ..types.preview import channel_preview, preview_of
from ..widgets.actions import record_change
from ..widgets.links import MAY_SEND, NOTIFICATION, START
from ..widgets.panels import email_document
from . import form as message_form
from . import recipients
from .form import MessageForm

COMPOSE, EMAIL, OFFERED = "send-one-form", "send-one-email", "send-one-offered"
KEY_LIFETIME = timedelta(hours=20)
"""Age at which a form is opened again, before its idempotency key is forgotten."""
KEY_SALT = "console.sending"
CHANGE, SEND = "change", "send"
"""Steps of the preview's buttons; another POST is a preview."""
SENT = "Sent from the console."
STALE = "This form was opened too long ago, or by somebody else. Preview it again."
CHANGED = "The type's template has changed since the preview. Check it again."
NOT_ALLOWED = "The type has become critical: staff can't send it."
REUSED = "From this form, another message was sent already{}. To send this one as well, preview it."
TAKEN = (
    "An API client with scopes is named “{}”, which is the name of the console's own. Have an "
    "administrator rename it."
)


def start(request: HttpRequest) -> HttpResponse:
    """Show the types to choose from."""
    _require_permission(request)
    chosen = {"user_id": user_id} if (user_id := request.GET.get("user_id")) else {}
    sendable = message_form.sendable_types()
    known = NOTIFICATION_TYPES().find(
        {"_id": {"$in": [config.slug for config in sendable]}}, {"description": 1}
    )
    descriptions = {document["_id"]: document["description"] for document in known}
    return _page(
        request,
        "types.html",
        title="Send a message",
        user_id=user_id,
        types=[
            {
                "name": config.name,
                "channels": ", ".join(CHANNELS[channel] for channel in config.channels),
                "description": descriptions.get(config.slug, ""),
                "url": _url(COMPOSE, config.slug, **chosen),
            }
            for config in sendable
        ],
    )


def compose(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the form of one message or its preview, and send it."""
    _require_permission(request)
    document = _sendable(slug)
    if document is None:
        messages.warning(request, "This type can't be sent from the console.")
        return HttpResponseRedirect(reverse(START))
    key = _read_key(request)
    if request.method != "POST":
        return _open(request, document, has_key=key is not None)
    form = MessageForm(request.POST, document=document, user=request.user)
    step = request.POST.get("step")
    if key is None:
        form.add_error(None, STALE)
        return _form_page(request, form, key=_new_key(request))
    if step == CHANGE:
        return _form_page(request, form, key=request.GET["key"], shows_errors=False)
    if not form.is_valid():
        form.show(form.find_mismatches())
        return _form_page(request, form, key=request.GET["key"])
    return _preview_or_send(request, form, key=key, is_confirmed=step == SEND)


def _open(
    request: HttpRequest, document: NotificationTypeDocument, *, has_key: bool
) -> HttpResponse:
    """Show an empty form, or lead to its URL with a new key."""
    user_id = request.GET.get("user_id")
    if not has_key:
        chosen = {"user_id": user_id} if user_id else {}
        key = _new_key(request)
        return HttpResponseRedirect(_url(COMPOSE, document["_id"], key=key, **chosen))
    initial = {"recipient": user_id, "meant": recipients.key_of(user_id)} if user_id else {}
    form = MessageForm(document=document, user=request.user, initial=initial)
    return _form_page(request, form, key=request.GET["key"])


def _preview_or_send(
    request: HttpRequest, form: MessageForm, *, key: str, is_confirmed: bool
) -> HttpResponse:
    shown_key = request.GET["key"]
    try:
        asked = form.request()
        caller = _caller(key=key)
        if is_confirmed and request.POST.get("version") == version_of(form.document):
            return _sent(request, acceptance.accept(asked, caller=caller, now=utc_now()))
        shown = _preview(request, asked, caller)
    except InvalidRequestError as refused:
        form.show(refused.problems)
    except ScopeRequiredError:
        form.add_error(None, NOT_ALLOWED)
    except TakenNameError as error:
        form.add_error(None, TAKEN.format(error))
    except KeyReusedError:
        form.add_error(None, format_html(REUSED, _earlier(request, key)))
        shown_key = _new_key(request)
    else:
        notice = CHANGED if is_confirmed else ""
        return _preview_page(request, form, shown, key=shown_key, notice=notice)
    return _form_page(request, form, key=shown_key)


def email(request: HttpRequest, slug: str) -> HttpResponse:
    """Return the previewed email of a form, for a frame of the preview. Raises Http404 without."""
    _require_permission(request)
    document = _sendable(slug)
    if document is None or request.method != "POST":
        raise Http404
    form = MessageForm(request.POST, document=document, user=request.user)
    if not form.is_valid():
        raise Http404
    try:
        shown = _preview(request, form.request(), _caller())
    except (InvalidRequestError, ScopeRequiredError, TakenNameError):
        raise Http404 from None
    for channel in shown.channels:
        if channel.message is not None and channel.message.html is not None:
            return email_document(channel.message.html)
    raise Http404


def offered(request: HttpRequest) -> HttpResponse:
    """Return the recipients that the typed text may mean, as options of the input."""
    _require_permission(request)
    text = request.POST.get("recipient", "")
    found = recipients.offer(text, user=request.user)
    return render(request, "console/sending/offered.html", {"offered": found})


def _require_permission(request: HttpRequest) -> None:
    if not request.user.has_perm(MAY_SEND):
        raise PermissionDenied


def _sendable(slug: str) -> NotificationTypeDocument | None:
    config = types.find_type(slug)
    return types.read_type(slug) if config and config.is_sendable_by_staff else None


def _caller(*, key: str | None = None) -> Caller:
    """Return the console as a client. Raises TakenNameError."""
    return Caller(
        client_id=registry.console_client_id(now=utc_now()),
        traceparent=tracing.traceparent(),
        idempotency_key=key,
    )


def _preview(request: HttpRequest, asked: NotificationRequest, caller: Caller) -> preview.Preview:
    return preview.preview(
        asked,
        caller=caller,
        shows_registry=request.user.has_perm(recipients.MAY_VIEW),
        shows_secrets=False,
        now=utc_now(),
    )


def version_of(document: NotificationTypeDocument) -> str:
    """Return the version of a type's template, as a form carries it."""
    return str(document.get("template_version") or 0)


def _new_key(request: HttpRequest) -> str:
    return signing.dumps([str(request.user.pk), get_random_string(20)], salt=KEY_SALT)


def _read_key(request: HttpRequest) -> str | None:
    """Return the idempotency key in the URL; None if it is missing, old, or another user's."""
    try:
        owner, token = signing.loads(
            request.GET.get("key", ""), salt=KEY_SALT, max_age=KEY_LIFETIME
        )
    except signing.BadSignature:
        return None
    return f"console-{token}" if owner == str(request.user.pk) else None


def _sent(request: HttpRequest, accepted: Acceptance) -> HttpResponse:
    """Record and show what was sent. A repeated request completes what a stopped one began."""
    key = accepted.document["_id"]
    if not accepted.is_replayed or not audit.find_entries(str(key), cap=1):
        name = f"{accepted.document['type']} {key}"
        record_change(request, Notification, key, SENT, name=name, flag=ADDITION)
    is_later = accepted.document.get("scheduled_at") is not None
    messages.success(request, "Message scheduled." if is_later else "Message accepted.")
    may_see = request.user.has_perm("notifications.view_notification")
    return HttpResponseRedirect(reverse(NOTIFICATION, args=[key]) if may_see else reverse(START))


def _earlier(request: HttpRequest, key: str) -> str:
    """Return a link to the message that a key was used for."""
    found = search.find_ids(key, user=request.user, cap=1)
    if not found:
        return ""
    return format_html(
        ' (<a class="text-link" href="{}">view it</a>)', reverse(NOTIFICATION, args=found)
    )


def _url(name: str, *args: str, **query: str) -> str:
    url = reverse(name, args=args)
    return f"{url}?{urlencode(query)}" if query else url


def _form_page(
    request: HttpRequest, form: MessageForm, *, key: str, shows_errors: bool = True
) -> HttpResponse:
    return _page(
        request,
        "form.html",
        title=form.document["name"],
        form=form,
        document=form.document,
        # Without the error summary, the page is the one to which the preview leads back.
        shows_errors=shows_errors and bool(form.errors),
        action=f"?{urlencode({'key': key})}",
    )


def _preview_page(
    request: HttpRequest, form: MessageForm, shown: preview.Preview, *, key: str, notice: str
) -> HttpResponse:
    channels = [
        {
            "shown": channel_preview(one.channel, one.message, form.document)
            if one.message
            else None,
            "name": CHANNELS[one.channel],
            "icon": one.channel.spec.icon,
            "kind": one.channel.spec.preview,
            "problem": one.problem,
            "reason": one.not_sent_reason,
            "opens_at": one.opens_at,
        }
        for one in shown.channels
        if one.not_sent_reason != preview.CHANNEL_NOT_CHOSEN
    ]
    return _page(
        request,
        "preview.html",
        title=f"Preview: {form.document['name']}",
        form=form,
        document=form.document,
        target=form.target,
        channels=channels,
        preview=preview_of(()),
        slug=form.document["_id"],
        warnings=[
            {"channel": CHANNELS[Channel(one.channel)] if one.channel else "", "text": one.detail}
            for one in shown.warnings
        ],
        notice=notice,
        is_masked=bool(form.document["sensitive_variables"]),
        at=shown.notification.scheduled_at,
        is_time_adjusted=shown.is_time_adjusted,
        version=version_of(form.document),
        action=f"?{urlencode({'key': key})}",
    )


def _page(request: HttpRequest, template: str, *, title: str, **context: Any) -> TemplateResponse:
    frame = admin.site.each_context(request)
    return TemplateResponse(
        request, f"console/sending/{template}", {**frame, "title": title, **context}
    )


urlpatterns = [
    path("", admin.site.admin_view(start), name=START),
    # Of two parts, as no type's form is: a type's slug may be any word.
    path("recipients/offered/", admin.site.admin_view(offered), name=OFFERED),
    path("<slug:slug>/", admin.site.admin_view(compose), name=COMPOSE),
    path("<slug:slug>/email/", admin.site.admin_view(email), name=EMAIL),
]
