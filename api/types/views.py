"""Types and template versions: list, create, publish."""

from collections.abc import Sequence
from functools import partial

from django.contrib.admin.models import ADDITION, CHANGE

from access.models import Scope
from domain.time import utc_now
from notifications.catalog import definitions, designs, types
from notifications.catalog.definitions import TypeRequest
from notifications.content import linting, templates, type_writes
from notifications.content.templates import SHIPPED_VERSION, Version
from notifications.documents.catalog import NotificationTypeDocument
from notifications.models import NotificationType
from notifications.validation import FieldProblem, InvalidRequestError
from notifyproject.db.paging import Page
from notifyproject.platform import audit

from ..http import paging
from ..http.body import read_json, read_request
from ..http.paging import PageRequest
from ..http.paths import found_or_404, path_parameter
from ..http.problems import (
    EMPTY_BODY,
    INSUFFICIENT_SCOPE,
    MALFORMED_JSON,
    TOO_LARGE,
    UNSUPPORTED_MEDIA_TYPE,
    VALIDATION_FAILED,
    VERSION_CONFLICT,
    ApiError,
)
from ..http.rendering import Response
from ..http.requests import ClientRequest
from ..openapi.operations import operation
from .schemas import (
    EmptyRequest,
    TemplateRequest,
    TemplateVersionList,
    TemplateVersionView,
    TypeList,
    TypeView,
    template_parts,
    type_view,
    version_view,
)

LIST, TYPES = "template", "types"


def version_page(
    type_slug: str, page_request: PageRequest
) -> tuple[Sequence[Version], dict[str, str | None]]:
    """Return a page of a type's versions and its links. The built-in version is the last."""
    cursor, limit = page_request.cursor, page_request.limit
    is_backwards = cursor is not None and cursor.backwards
    number = cursor.values[0] if cursor is not None else None
    versions = templates.list_versions(
        type_slug=type_slug,
        limit=limit + 1,
        below=None if is_backwards else number,
        above=number if is_backwards else None,
    )
    if not is_backwards and number != SHIPPED_VERSION and len(versions) <= limit:
        shipped = templates.get_version(type_slug=type_slug, number=SHIPPED_VERSION)
        versions = [*versions, *([shipped] if shipped else [])]
    has_more = len(versions) > limit
    # Backwards, the versions are read in ascending order, so the surplus one is the newest.
    versions = versions[-limit:] if is_backwards else versions[:limit]
    page = Page(
        [{"number": version.number} for version in versions],
        has_next=is_backwards or has_more,
        has_previous=has_more if is_backwards else cursor is not None,
    )
    return versions, paging.page_links(page, list_name=LIST, order=[("number", -1)])


TEMPLATES = Scope.TEMPLATES_WRITE
SLUG = path_parameter("slug", "The type's slug", example="payment_confirmed")
NUMBER = path_parameter(
    "number", "The version's number; 0 is the built-in one", example="1", pattern="[0-9]{1,6}"
)


@operation(scope=TEMPLATES, response=TypeList, parameters=paging.PARAMETERS)
def list_types(request: ClientRequest) -> Response:
    """List the types by slug, including disabled types."""
    page_request = paging.parse_page_request(request.query_params, list_name=TYPES)
    page = types.page(limit=page_request.limit, cursor=page_request.cursor)
    links = paging.page_links(page, list_name=TYPES, order=types.BY_SLUG)
    return Response(TypeList(results=[type_view(kind) for kind in page.documents], **links))


@operation(scope=TEMPLATES, response=TypeView, parameters=(SLUG,))
def get_type(_request: ClientRequest, slug: str) -> Response:
    """Get a type."""
    return Response(type_view(_type_or_404(slug)))


@operation(
    scope=TEMPLATES,
    request=TypeRequest,
    response=TypeView,
    also_status=201,
    problems=(VERSION_CONFLICT,),
    parameters=(SLUG,),
)
def put_type(request: ClientRequest, slug: str) -> Response:
    """Create or replace a type; 201 for a new one.

    Removing a sensitive variable makes its values readable from then on. It needs the scope
    `types:admin`, and the variable's name in `confirm_not_sensitive`. So does switching off a
    critical type, such as one of login codes, or lowering its priority, but without a confirmation.
    So does changing the category, channels, room, plan, fallback, lifetime, lead time, WhatsApp
    templates, schema, rules of SMS, or `console_send` of a type that is critical or has sensitive
    variables, and loosening the approval of any type.
    A variable that the published template may put into a request can't become sensitive.
    A schema that refuses what the stored one takes is refused with the pointer of each such place,
    until `confirm_breaking` has them.
    """
    check = partial(definitions.validate_type, slug, before=types.read_type(slug))
    body = read_request(request, TypeRequest, check=check)
    return designs.repeat(partial(_put_type, request, slug, body))


def _put_type(request: ClientRequest, slug: str, body: TypeRequest) -> Response:
    """Check and store a type. Raises TypeMovedError if another write has preceded it."""
    before, design = types.read_type(slug), designs.read_newest()
    removed = definitions.removed_secrets(before, body)
    is_admin = request.client.has_scope(Scope.TYPES_ADMIN)
    if removed and not is_admin:
        raise INSUFFICIENT_SCOPE.error(scope=Scope.TYPES_ADMIN)
    fields = definitions.validate_type(slug, body, before=before, design=design)
    if not is_admin and definitions.weakened_fields(before, fields):
        raise INSUFFICIENT_SCOPE.error(scope=Scope.TYPES_ADMIN)
    number = _published_number(before) if before else SHIPPED_VERSION
    if faults := linting.find_exposures_of_version(slug, fields, number, design=design):
        raise InvalidRequestError(
            [FieldProblem("/sensitive_variables", fault.code, fault.place) for fault in faults]
        )
    if broken := definitions.unconfirmed_breaks(before, body, confirmed=body.confirm_breaking):
        raise InvalidRequestError(broken)
    type_writes.store(slug, fields, before=before, design=design, now=utc_now())
    document, is_new = _type_or_404(slug), before is None
    message = audit.describe_change(before, document, fields=fields) or "Saved without changes."
    if removed:
        message += f" No longer sensitive: {', '.join(removed)}."
    _record(request, slug, message, flag=ADDITION if is_new else CHANGE)
    return Response(type_view(document), status=201 if is_new else 200)


@operation(scope=TEMPLATES, response=TemplateVersionList, parameters=(SLUG, *paging.PARAMETERS))
def list_template_versions(request: ClientRequest, slug: str) -> Response:
    """List the template versions of a type, newest first; the built-in one is the last."""
    published = _published_number(_type_or_404(slug))
    page_request = paging.parse_page_request(request.query_params, list_name=LIST)
    versions, links = version_page(slug, page_request)
    results = [version_view(version, published_number=published) for version in versions]
    return Response(TemplateVersionList(results=results, **links))


@operation(
    scope=TEMPLATES,
    request=TemplateRequest,
    response=TemplateVersionView,
    status=201,
    problems=(VERSION_CONFLICT,),
    parameters=(SLUG,),
    headers={201: ("Location",)},
)
def create_template_version(request: ClientRequest, slug: str) -> Response:
    """Create a template version. It isn't used until it's published."""
    document = _type_or_404(slug)
    parts, note = template_parts(read_json(request))
    if faults := linting.lint_parts(slug, document, parts):
        raise InvalidRequestError([linting.field_problem(fault) for fault in faults])
    version = templates.create_version(
        type_slug=slug,
        parts=parts,
        note=note,
        created_by=f"app:{request.client.name}",
        now=utc_now(),
    )
    _record(request, slug, f"Template version {version.number} created.")
    view = version_view(version, published_number=_published_number(document))
    location = f"{request.path.rstrip('/')}/versions/{version.number}"
    return Response(view, status=201, headers={"Location": location})


@operation(scope=TEMPLATES, response=TemplateVersionView, parameters=(SLUG, NUMBER))
def get_template_version(_request: ClientRequest, slug: str, number: str) -> Response:
    """Get a template version."""
    return Response(_version_view_or_404(slug, number))


@operation(
    scope=TEMPLATES,
    response=TemplateVersionView,
    problems=(
        MALFORMED_JSON,
        TOO_LARGE,
        UNSUPPORTED_MEDIA_TYPE,
        VALIDATION_FAILED,
        VERSION_CONFLICT,
    ),
    parameters=(SLUG, NUMBER),
)
def publish_template_version(request: ClientRequest, slug: str, number: str) -> Response:
    """Publish a template version. New notifications use it; 0 is the built-in one.

    A version that couldn't be stored now is refused: its partials, its translations, or the type
    may have changed since.
    """
    try:
        read_request(request, EmptyRequest)
    except ApiError as problem:
        if problem.type is not EMPTY_BODY:
            raise
    designs.repeat(partial(_publish, slug, int(number)))
    _record(request, slug, f"Template version {int(number)} published.")
    return Response(_version_view_or_404(slug, number))


def _publish(slug: str, number: int) -> None:
    """Check and publish a version. Raises TypeMovedError if another write has preceded it."""
    before, design = _type_or_404(slug), designs.read_newest()
    if faults := linting.find_unpublishable(slug, before, number, design=design):
        raise InvalidRequestError([linting.field_problem(fault) for fault in faults])
    type_writes.publish(slug, number, before=before, design=design, now=utc_now())


def _record(request: ClientRequest, slug: str, message: str, *, flag: int = CHANGE) -> None:
    audit.record_client_action(
        request.client, model=NotificationType, object_id=slug, message=message, flag=flag
    )


def _type_or_404(slug: str) -> NotificationTypeDocument:
    return found_or_404(types.read_type(slug))


def _published_number(document: NotificationTypeDocument) -> int:
    return document.get("template_version") or SHIPPED_VERSION


def _version_view_or_404(slug: str, number: str) -> TemplateVersionView:
    document = _type_or_404(slug)
    version = found_or_404(templates.get_version(type_slug=slug, number=int(number)))
    return version_view(version, published_number=_published_number(document))
