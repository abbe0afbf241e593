"""A version of what a type says, sent to the address of somebody who wants to see it arrive."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.html import format_html

from domain.states import Channel
from domain.time import utc_now
from notifyproject.console.posts import refusal
from notifyproject.platform import audit

from .. import validation
from ..catalog import types
from ..content import templates
from ..content.templates import DEFAULT_LANGUAGE
from ..intake import preview
from ..models import NotificationType
from .explanations import CHANNELS
from .operation_views import DETAIL
from .providers_page import ADDRESS_LENGTH, ADDRESSES, MAY_TEST

VERSION = "admin:notifications_notificationtype_version"
TYPES = "admin:notifications_notificationtype_changelist"


def offered(request: HttpRequest) -> list[tuple[str, str, str]]:
    """Return the channels a version may be tried on: name, words, and what its address is."""
    if not request.user.has_perm(MAY_TEST):
        return []
    return [(one.value, CHANNELS[one], address) for one, (address, _) in ADDRESSES.items()]


def try_view(request: HttpRequest, slug: str, number: int, admin: Any) -> HttpResponse:
    """Send a version with the type's example; POST only."""
    if refused := refusal(
        request, may=admin.has_view_permission(request) and request.user.has_perm(MAY_TEST)
    ):
        return refused
    document = types.read_type(slug)
    if document is None or templates.get_version(type_slug=slug, number=number) is None:
        messages.warning(request, "There is no such version.")
        return HttpResponseRedirect(reverse(TYPES))
    here = HttpResponseRedirect(reverse(VERSION, args=[slug, number]))
    name = request.POST.get("channel", "")
    if name not in ADDRESSES:
        messages.error(request, "Nothing was sent: choose a channel.")
        return here
    channel, now = Channel(name), utc_now()
    language = request.POST.get("language", DEFAULT_LANGUAGE)
    try:
        sent = preview.send_template_test(
            slug=slug,
            version=number,
            example=document["example_data"],
            channel=channel,
            address=request.POST.get("address", "").strip()[:ADDRESS_LENGTH],
            locale=None if language == DEFAULT_LANGUAGE else language,
            now=now,
        )
    except validation.InvalidRequestError as error:
        detail = " ".join(dict.fromkeys(problem.detail for problem in error.problems))
        messages.error(request, f"Nothing was sent: {detail}")
        return here
    audit.record(
        by=request.user.pk,
        model=NotificationType,
        object_id=slug,
        name=document["name"],
        message=f"Sent a test of version {number} by {CHANNELS[channel]}: {sent}.",
    )
    link = reverse(DETAIL, args=[sent])
    told = format_html('The test is on its way: <a href="{}">follow it</a>.', link)
    messages.success(request, told)
    return here
