"""Template versions: show, create, publish and test."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from django.contrib import messages
from django.contrib.admin.utils import quote
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, reverse
from django.utils.http import urlencode

from domain.channels import Channel
from domain.errors import ProviderError
from domain.time import utc_now
from domain.type_rules import Finding
from notifications import validation
from notifications.catalog import designs, types, whatsapp_templates
from notifications.catalog.designs import MovedError
from notifications.catalog.emergencies import is_managed_by_code
from notifications.catalog.whatsapp_templates import NOT_SUBMITTED, NoAccountError
from notifications.content import linting, templates, type_files, type_lint, type_writes
from notifications.content.engine import TemplateError
from notifications.content.properties import DataProperty, properties_of
from notifications.content.templates import (
    DEFAULT_LANGUAGE,
    SHIPPED_VERSION,
    Version,
    VersionConflictError,
)
from notifications.documents.catalog import EmergencyChangeDocument, NotificationTypeDocument
from notifications.intake import mismatches, preview
from notifications.models import NotificationType

from ..providers import MAY_TEST, show_not_sent, show_test_sent
from ..sends import TESTED_CHANNELS, address_of_test, offered_devices
from ..texts.labels import CHANNELS
from ..widgets import names
from ..widgets.actions import not_found, record_change, render_page, require_post
from ..widgets.links import TYPE, url_of_design_item
from ..widgets.lists import OVERTAKEN
from ..widgets.panels import email_document
from . import diff, emergencies, version_form
from . import preview as template_preview

VERSION = "admin:notifications_notificationtype_version"
TYPES = "admin:notifications_notificationtype_changelist"
WHATSAPP_SECONDS = 3.0  # Longest wait for Meta's response
WHATSAPP_STATUS = {
    "APPROVED": ("Approved", "success"),
    "PENDING": ("In review", "info"),
    "REJECTED": ("Rejected", "danger"),
    NOT_SUBMITTED: ("Not submitted", "warning"),
}
"""Label and color by Meta's status. Any other status is shown unchanged."""
NEW = "admin:notifications_notificationtype_new_version"
PUBLISH = "admin:notifications_notificationtype_publish"
TEST = "admin:notifications_notificationtype_try"
EMAIL = "admin:notifications_notificationtype_email"
MAX_FINDINGS = 10  # Maximum warnings about a new version
MAX_VERSIONS = 50  # Maximum versions on the type's page
DIGEST_PREVIEW = "digest"
"""The parameter that shows the preview of a digest instead of one message."""


def test_channels(request: HttpRequest) -> list[tuple[str, str, str]]:
    """Return the channels of test sends: name, label, and label of the address."""
    if not request.user.has_perm(MAY_TEST):
        return []
    return [
        (channel.value, CHANNELS[channel], channel.spec.reach.test_label)
        for channel in TESTED_CHANNELS
    ]


def test_view(request: HttpRequest, slug: str, number: int, admin: Any) -> HttpResponse:
    """Send a version with the type's example data; POST only."""
    if refused := require_post(
        request, allowed=admin.has_view_permission(request) and request.user.has_perm(MAY_TEST)
    ):
        return refused
    document = types.read_type(slug)
    if document is None or templates.get_version(type_slug=slug, number=number) is None:
        return not_found(request, "Version", TYPES)
    version_page = HttpResponseRedirect(reverse(VERSION, args=[slug, number]))
    name = request.POST.get("channel", "")
    if name not in TESTED_CHANNELS:
        messages.error(request, "Test not sent: select a channel.")
        return version_page
    channel, now = Channel(name), utc_now()
    language = request.POST.get("language", DEFAULT_LANGUAGE)
    try:
        notification_id = preview.send_template_test(
            slug=slug,
            version=number,
            example=document["example_data"],
            channel=channel,
            address=address_of_test(request, channel=channel),
            locale=None if language == DEFAULT_LANGUAGE else language,
            now=now,
        )
    except validation.InvalidRequestError as error:
        show_not_sent(request, error)
        return version_page
    _record(
        request, slug, f"Sent a test of version {number} by {CHANNELS[channel]}: {notification_id}."
    )
    show_test_sent(request, notification_id)
    return version_page


def urls(admin: Any) -> list[URLPattern]:
    """Return the URLs of a type's template versions."""
    version = "<path:slug>/templates/<int:number>/"
    return [
        admin.url("<path:slug>/templates/new/", new_view, "new_version", admin=admin),
        admin.url(version, version_view, "version", admin=admin),
        admin.url(f"{version}publish/", publish_view, "publish", admin=admin),
        admin.url(f"{version}try/", test_view, "try", admin=admin),
        admin.url(f"{version}email/", email_view, "email", admin=admin),
    ]


def type_page_context(admin: Any, request: HttpRequest, slug: str) -> dict[str, Any]:
    """Return the context of a type's page; empty for an unknown type."""
    document = types.read_type(slug)
    if document is None:
        return {}
    number = document.get("template_version") or SHIPPED_VERSION
    published = templates.get_version(type_slug=slug, number=number)
    listed = templates.list_versions(type_slug=slug, limit=MAX_VERSIONS)
    shipped = templates.get_version(type_slug=slug, number=SHIPPED_VERSION)
    rows = [*listed, *([shipped] if shipped else [])]
    return {
        "slug": slug,
        "look_links": [
            (kind, name, url_of_design_item(kind, name))
            for kind, name in (("brand", document.get("brand")), ("layout", document.get("layout")))
            if name
        ],
        "published": published,
        "rows": [_row(version, number) for version in rows],
        "may_edit_here": emergencies.may_change(admin, request, document)
        and (not is_managed_by_code(document) or emergencies.is_begun(request)),
        **emergencies.notice_context(admin, request, document),
        "variables": template_preview.variables(document["example_data"]),
        "properties": [_property(one) for one in properties_of(document)],
        "has_schema": bool(document.get("schema")),
        "findings": _findings(document, published),
        "mismatches": mismatches.read(slug, document.get("schema") or "", now=utc_now()),
        **_whatsapp_context(document),
        **_preview(request, document, published),
    }


def _property(one: DataProperty) -> dict[str, Any]:
    kinds = one.schema.get("type", ())
    return {
        "property": one,
        "kinds": [kinds] if isinstance(kinds, str) else kinds,
        "description": one.schema.get("description", ""),
    }


def _findings(document: NotificationTypeDocument, version: Version | None) -> list[dict[str, str]]:
    """Return what the rules find in a type with its published texts."""
    if version is None:
        return []
    definition = type_files.definition_of(document)
    found = type_lint.find_advice(document["_id"], definition, version.parts)
    return [{"code": each.code, "text": _described(each)} for each in found[:MAX_FINDINGS]]


def _whatsapp_context(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a type's WhatsApp templates with their status, or why the status is unknown."""
    slug = document["_id"]
    try:
        found = whatsapp_templates.read_templates(type_slug=slug, timeout=WHATSAPP_SECONDS)
    except (NoAccountError, ProviderError) as error:
        return {"whatsapp_error": str(error)}
    rows = []
    for template in found:
        label, color = WHATSAPP_STATUS.get(
            template.status, (template.status.capitalize(), "warning")
        )
        rows.append({"template": template, "label": label, "color": color})
    return {"whatsapp_rows": rows}


def version_view(request: HttpRequest, slug: str, number: int, admin: Any) -> HttpResponse:
    """Show one version."""
    if not admin.has_view_permission(request):
        raise PermissionDenied
    document = types.read_type(slug)
    version = templates.get_version(type_slug=slug, number=number) if document else None
    if document is None or version is None:
        messages.warning(request, "Version not found. It might have been deleted.")
        return HttpResponseRedirect(reverse(TYPES) if document is None else _type_url(slug))
    context = {
        "title": _name(number),
        "slug": slug,
        "version": version,
        "row": _row(version, document.get("template_version") or SHIPPED_VERSION),
        "may_change_templates": emergencies.may_change(admin, request, document),
        **emergencies.notice_context(admin, request, document),
        "sources": _sources(version),
        "differences": _differences(document, version),
        "test_channels": test_channels(request),
        "test_devices": offered_devices(request),
        "test_url": reverse(TEST, args=[slug, number]),
        "back": _type_url(slug),
        **_preview(request, document, version),
    }
    return _page(admin, request, "version.html", document, context)


def email_view(request: HttpRequest, slug: str, number: int, admin: Any) -> HttpResponse:
    """Return the previewed email of a version. Raises Http404 if there is none."""
    if not admin.has_view_permission(request):
        raise PermissionDenied
    if (document := types.read_type(slug)) is not None:
        version = templates.get_version(type_slug=slug, number=number)
        for channel in _preview(request, document, version)["preview"].channels:
            if channel.html is not None:
                return email_document(channel.html)
    raise Http404


def new_view(request: HttpRequest, slug: str, admin: Any) -> HttpResponse:
    """Show the form of a new version; on POST, store it."""
    document = types.read_type(slug)
    if not emergencies.may_change(admin, request, document):
        raise PermissionDenied
    if document is None:
        return not_found(request, "Type", TYPES)
    if request.method == "POST":
        form = version_form.from_post(request.POST)
        emergency = emergencies.posted_change(request, document)
        if emergencies.lacks_reason(emergency):
            form = replace(form, errors=[*form.errors, emergencies.NO_REASON])
        faults = linting.lint_parts(slug, document, form.non_empty_parts)
        form = form.with_faults(faults)
        if not form.errors and not form.faults:
            return _store(request, document, form, emergency)
    else:
        form = version_form.VersionForm(parts=_initial_texts(document), note="", new_language="")
    context = {
        "title": "New version",
        "slug": slug,
        "form": form,
        "variables": template_preview.variables(document["example_data"]),
        "recipient_variables": ("name", "locale", "timezone"),
        "back": _type_url(slug),
        **emergencies.notice_context(admin, request, document),
    }
    return _page(admin, request, "new_version.html", document, context)


def publish_view(request: HttpRequest, slug: str, number: int, admin: Any) -> HttpResponse:
    """Publish a version for new notifications; POST only."""
    try:
        return designs.repeat(partial(_publish, request, slug, number, admin))
    except MovedError:
        messages.error(request, f"Not published. {OVERTAKEN}")
        return HttpResponseRedirect(reverse(VERSION, args=[slug, number]))


def _publish(request: HttpRequest, slug: str, number: int, admin: Any) -> HttpResponse:
    """Check and publish a version. Raises TypeMovedError if another write has preceded it."""
    document, design = types.read_type(slug), designs.read_newest()
    allowed = emergencies.may_change(admin, request, document)
    if refused := require_post(request, allowed=allowed):
        return refused
    if document is None:
        return not_found(request, "Version", TYPES)
    emergency = emergencies.posted_change(request, document)
    if emergencies.lacks_reason(emergency):
        messages.error(request, f"Not published. {emergencies.NO_REASON}")
        return HttpResponseRedirect(reverse(VERSION, args=[slug, number]))
    if faults := linting.find_unpublishable(slug, document, number, design=design):
        messages.error(request, f"{_name(number)} can't be published. {faults[0].place}")
        return HttpResponseRedirect(_type_url(slug))
    try:
        type_writes.publish(
            slug, number, before=document, design=design, now=utc_now(), emergency=emergency
        )
    except templates.UnknownVersionError:
        return not_found(request, "Version", TYPES)
    message = f"Published {_name(number).lower()} of the template."
    _record(request, slug, emergencies.audited(message, emergency))
    messages.success(request, f"{_name(number)} published. New notifications use it.")
    return HttpResponseRedirect(_type_url(slug))


def _store(
    request: HttpRequest,
    document: NotificationTypeDocument,
    form: version_form.VersionForm,
    emergency: EmergencyChangeDocument | None,
) -> HttpResponse:
    slug = document["_id"]
    try:
        version = templates.create_version(
            type_slug=slug,
            parts=form.non_empty_parts,
            note=form.note,
            created_by=f"staff:{request.user.get_username()}",
            now=utc_now(),
        )
    except VersionConflictError:
        messages.error(request, "Another version was saved at the same time. Try again.")
        return HttpResponseRedirect(reverse(NEW, args=[slug]))
    message = f"Saved version {version.number} of the template."
    _record(request, slug, emergencies.audited(message, emergency))
    messages.success(request, f"Version {version.number} saved. Publish it to use it.")
    definition = type_files.definition_of(document)
    for finding in type_lint.find_advice(slug, definition, version.parts)[:MAX_FINDINGS]:
        messages.warning(request, _described(finding))
    return HttpResponseRedirect(reverse(VERSION, args=[slug, version.number]))


def _described(finding: Finding) -> str:
    """Return what a rule found in a text, after its place."""
    _, _, language, part = finding.pointer.split("/")
    label, _ = version_form.LABELS[templates.Part(part)]
    line = "" if finding.line is None else f", line {finding.line}"
    return f"{label} ({template_preview.language_name(language)}){line}: {finding.detail}"


def _initial_texts(document: NotificationTypeDocument) -> Mapping[str, Mapping[str, str]]:
    try:
        return templates.effective_texts(
            document["_id"], document.get("template_version") or SHIPPED_VERSION
        )
    except TemplateError:
        return templates.effective_texts(document["_id"], SHIPPED_VERSION)


def _preview(
    request: HttpRequest, document: NotificationTypeDocument, version: Version | None
) -> dict[str, Any]:
    requested = request.GET.get("language", DEFAULT_LANGUAGE)
    languages = template_preview.languages(document, version, requested=requested)
    chosen = next(language.code for language in languages if language.is_chosen)
    slug, number = document["_id"], version.number if version else SHIPPED_VERSION
    has_digest = document.get("digest") is not None
    is_digest = has_digest and DIGEST_PREVIEW in request.GET
    query = {"language": chosen} | ({DIGEST_PREVIEW: 1} if is_digest else {})
    return {
        "languages": languages,
        "language": chosen,
        "has_digest": has_digest,
        "is_digest": is_digest,
        "preview": template_preview.preview(
            document, version=number, language=chosen, is_digest=is_digest
        ),
        "email_url": f"{reverse(EMAIL, args=[slug, number])}?{urlencode(query)}",
    }


def _differences(document: NotificationTypeDocument, version: Version) -> Mapping[str, Any]:
    """Return the diff to the published version or, for that version, to the previous one."""
    slug, number = document["_id"], version.number
    published = document.get("template_version") or SHIPPED_VERSION
    other = published if number != published else max(number - 1, SHIPPED_VERSION)
    if other == number:
        return {}
    try:
        before, after = (templates.effective_texts(slug, n) for n in (other, number))
    except TemplateError:
        return {}
    return {"from": _name(other).lower(), "changes": diff.changes(before, after)}


def _row(version: Version, published: int) -> dict[str, Any]:
    return {
        "version": version,
        "name": _name(version.number),
        "is_published": version.number == published,
        "publish_label": "Roll back" if version.number < published else "Publish",
        "by": names.author(version.created_by or ""),
        "languages": [template_preview.language_name(code) for code in version.parts],
        "url": reverse(VERSION, args=[version.type, version.number]),
        "publish_url": reverse(PUBLISH, args=[version.type, version.number]),
    }


def _sources(version: Version) -> list[dict[str, Any]]:
    return [
        {
            "name": template_preview.language_name(language),
            "texts": [
                (version_form.LABELS[part][0], texts[part])
                for part in templates.Part
                if part in texts
            ],
        }
        for language, texts in version.parts.items()
    ]


def _name(number: int) -> str:
    return "Built-in" if number == SHIPPED_VERSION else f"Version {number}"


def _type_url(slug: str) -> str:
    # The admin quotes underscores in its URLs.
    return reverse(TYPE, args=[quote(slug)])


def _page(
    admin: Any,
    request: HttpRequest,
    name: str,
    document: NotificationTypeDocument,
    context: dict[str, Any],
) -> HttpResponse:
    return render_page(
        admin,
        request,
        f"console/types/{name}",
        original=NotificationType(pk=document["_id"], name=document["name"]),
        media=admin.media,
        **context,
    )


def _record(request: HttpRequest, slug: str, message: str) -> None:
    stored = types.read_type(slug)
    name = stored["name"] if stored else ""
    record_change(request, NotificationType, slug, message, name=name)
