"""The page of an item of the design: its form, its preview, and its earlier versions.

A change is checked and stored by what the API calls, which also notices that somebody else has
changed the item since the page was opened.
"""

from collections.abc import Mapping
from typing import Any

from django.contrib import messages
from django.contrib.admin.models import ADDITION, CHANGE, DELETION
from django.contrib.admin.utils import quote
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.http import urlencode

from domain.time import utc_now
from notifications.catalog import designs, types
from notifications.catalog.designs import Design, Kind, UnknownDesignError
from notifications.content import design_changes, design_history, design_uses
from notifications.content.design_changes import (
    Change,
    DesignConflictError,
    Outcome,
    Planned,
    WeakenedError,
)
from notifications.content.design_history import Edition
from notifications.content.design_uses import Uses
from notifications.content.templates import DEFAULT_LANGUAGE
from notifications.documents.catalog import NOTIFICATION_TYPES
from notifications.models import Design as DesignModel
from notifications.validation import FieldProblem, InvalidRequestError

from ..types.form import WEAKEN
from ..widgets import names
from ..widgets.actions import (
    ask,
    is_confirmed,
    not_found,
    record_change,
    render_page,
    require_post,
)
from ..widgets.links import DESIGN_NUMBER, url_of_design_item
from ..widgets.panels import live_document
from . import fields, form, preview
from .form import ItemForm
from .preview import OF_TYPE, WITHOUT, Contrast

LIST = "admin:notifications_design_changelist"
NEW = "admin:notifications_design_new"
REMOVE = "admin:notifications_design_remove"
RESTORE = "admin:notifications_design_restore"
PREVIEW = "admin:notifications_design_preview"
PREVIEW_NEW = "admin:notifications_design_preview_new"
EDITION = "admin:notifications_design_change"
TYPE = "admin:notifications_notificationtype_change"
FRAME = "admin:notifications_design_frame"
MAY_CHANGE = "notifications.change_design"
MAX_EDITIONS = 20
UNNAMED = "new-item"
"""The name of a new item in its preview, until it has one."""
FLAGS = {Outcome.CREATED: ADDITION, Outcome.CHANGED: CHANGE, Outcome.REMOVED: DELETION}
LABELS = {
    Outcome.CREATED: ("Created", "success"),
    Outcome.CHANGED: ("Changed", "info"),
    Outcome.REMOVED: ("Removed", "danger"),
}
WORDS: Mapping[Kind, str] = {kind: kind.value for kind in Kind}
EFFECT = "New messages use it at once. Accepted ones keep the look that they were accepted with."
UNUSED = "Nothing uses it now."
REPLACED = "Its recipients get the texts of the wider language, or of the default one."
TAKEN = "There is a {} with this name."
NOT_ALLOWED = (
    "A critical or sensitive type has this brand. Its layout, sender, reply address, and accounts "
    "change with the permission to weaken types."
)
OVERTAKEN = "Somebody else changed it at the same time. Try again."
UNCHANGED = "No change: it was saved as it is."


def urls(admin: Any) -> list[Any]:
    """Return the URLs of items. They begin with words that no number of a design is."""
    item = "item/<slug:kind>/<slug:name>/"
    return [
        admin.url("new/<slug:kind>/", new_view, "new", admin=admin),
        admin.url("new/<slug:kind>/preview/", preview_view, "preview_new", admin=admin),
        admin.url("frame/", frame_view, "frame", admin=admin),
        admin.url(item, item_view, "item", admin=admin),
        admin.url(f"{item}preview/", preview_view, "preview", admin=admin),
        admin.url(f"{item}remove/", remove_view, "remove", admin=admin),
        admin.url(f"{item}restore/", restore_view, "restore"),
    ]


def new_view(request: HttpRequest, kind: str, admin: Any) -> HttpResponse:
    """Show the form of a new item; on POST, store it."""
    if not request.user.has_perm(MAY_CHANGE):
        raise PermissionDenied
    known = _kind(kind)
    if request.method == "POST":
        posted = form.from_post(known, "", request.POST, is_new=True)
        return _save(admin, request, posted)
    newest = designs.read_newest()
    empty = form.from_item(known, "", Design(number=newest.number))
    empty.is_new = True
    return _form_page(admin, request, empty)


def item_view(request: HttpRequest, kind: str, name: str, admin: Any) -> HttpResponse:
    """Show an item and its form; on POST, store it."""
    if not admin.has_view_permission(request):
        raise PermissionDenied
    known = _kind(kind)
    if request.method == "POST":
        if not request.user.has_perm(MAY_CHANGE):
            raise PermissionDenied
        return _save(admin, request, form.from_post(known, name, request.POST, is_new=False))
    try:
        design = _design_of(request)
    except UnknownDesignError:
        return not_found(request, "Design", LIST)
    if name not in design.items(known):
        return not_found(request, WORDS[known].capitalize(), LIST)
    return _form_page(admin, request, form.from_item(known, name, design))


def preview_view(request: HttpRequest, kind: str, admin: Any, name: str = "") -> HttpResponse:
    """Return the preview of an item as it is stored or, on POST, as the form has it."""
    if not admin.has_view_permission(request):
        raise PermissionDenied
    known = _kind(kind)
    may_change = request.user.has_perm(MAY_CHANGE)
    if not name and (refused := require_post(request, allowed=may_change)):
        return refused
    if request.method != "POST":
        try:
            design = _design_of(request)
        except UnknownDesignError:
            raise Http404 from None
        if name not in design.items(known):
            raise Http404
        shown = form.from_item(known, name, design)
        return JsonResponse(_previewed(request, shown, design))
    if not may_change:
        raise PermissionDenied
    posted = form.from_post(known, name, request.POST, is_new=not name)
    newest = designs.read_newest()
    tried = _planned(posted, newest)
    if tried is None:
        return JsonResponse(_problems(posted))
    with designs.trying(tried) as design:
        return JsonResponse(_previewed(request, posted, design))


def frame_view(request: HttpRequest, admin: Any) -> HttpResponse:
    """Return the empty document of the preview's frame."""
    if not admin.has_view_permission(request):
        raise PermissionDenied
    return live_document()


def remove_view(request: HttpRequest, kind: str, name: str, admin: Any) -> HttpResponse:
    """Remove an item that nothing uses, after a question; POST only."""
    if refused := require_post(request, allowed=request.user.has_perm(MAY_CHANGE)):
        return refused
    known = _kind(kind)
    design = designs.read_newest()
    content = design.items(known).get(name)
    if content is None:
        return not_found(request, WORDS[known].capitalize(), LIST)
    revision = request.POST.get("revision", "")
    change = Change(kind=known, name=name, content=None, replaces=revision, pointer="")
    back = HttpResponseRedirect(url_of_design_item(known, name))
    try:
        if not is_confirmed(request):
            design_changes.plan([change], before=design)
            return ask(
                admin,
                request,
                question=f"Remove the {WORDS[known]} {name}?",
                consequences=[
                    REPLACED if known is Kind.TRANSLATION else UNUSED,
                    "Messages that were accepted with it keep it.",
                    "Its earlier versions stay under Changes, and can be restored.",
                ],
                button="Remove",
                back=url_of_design_item(known, name),
                hidden={"revision": revision},
            )
        planned = _store(request, change)
    except InvalidRequestError as refusal:
        messages.error(request, f"Not removed. {refusal.problems[0].detail}")
        return back
    except DesignConflictError:
        messages.error(request, OVERTAKEN)
        return back
    messages.success(request, f"Removed, in design {planned.design.number}.")
    return HttpResponseRedirect(reverse(LIST))


def restore_view(request: HttpRequest, kind: str, name: str) -> HttpResponse:
    """Store an item as it was in an earlier design; POST only."""
    if refused := require_post(request, allowed=request.user.has_perm(MAY_CHANGE)):
        return refused
    known, number = _kind(kind), request.POST.get(DESIGN_NUMBER, "")
    try:
        design = _numbered(number)
        content = design.items(known)[name]
    except (UnknownDesignError, KeyError):
        return not_found(request, WORDS[known].capitalize(), LIST)
    back = HttpResponseRedirect(url_of_design_item(known, name, number=design.number))
    replaces = request.POST.get("revision") or None
    change = Change(kind=known, name=name, content=content, replaces=replaces, pointer="")
    try:
        planned = _store(request, change, what=f"Restored from design {number}")
    except InvalidRequestError as refusal:
        messages.error(request, f"Not restored. {refusal.problems[0].detail}")
        return back
    except DesignConflictError:
        messages.error(request, OVERTAKEN)
        return back
    if planned.changed:
        messages.success(request, f"Restored, in design {planned.design.number}. {EFFECT}")
    else:
        messages.info(request, UNCHANGED)
    return HttpResponseRedirect(url_of_design_item(known, name))


def _kind(text: str) -> Kind:
    try:
        return Kind(text)
    except ValueError:
        raise Http404 from None


def _design_of(request: HttpRequest) -> Design:
    """Return the design that the request names, or the newest. Raises UnknownDesignError."""
    number = request.GET.get(DESIGN_NUMBER)
    return designs.read_newest() if number is None else _numbered(number)


def _numbered(text: str) -> Design:
    """Return the design with the number in a text. Raises UnknownDesignError."""
    number = form.number_of(text)
    if number is None:
        raise UnknownDesignError
    return designs.numbered(number)


def _save(admin: Any, request: HttpRequest, posted: ItemForm) -> HttpResponse:
    if posted.errors:
        return _form_page(admin, request, posted)
    change, problems = posted.change()
    if problems:
        posted.show(problems)
        return _form_page(admin, request, posted)
    try:
        planned = _store(request, change)
    except InvalidRequestError as refused:
        posted.show(refused.problems)
        return _form_page(admin, request, posted)
    except DesignConflictError:
        return _conflict_page(admin, request, posted)
    if planned.changed:
        messages.success(request, f"Saved, in design {planned.design.number}. {EFFECT}")
    else:
        messages.info(request, UNCHANGED)
    return HttpResponseRedirect(url_of_design_item(posted.kind, posted.name))


def _store(request: HttpRequest, change: Change, *, what: str = "") -> Planned:
    """Store a change as the API does, and record it. Raises InvalidRequestError and others."""
    by, may_weaken = f"staff:{request.user.get_username()}", request.user.has_perm(WEAKEN)
    try:
        planned = design_changes.store(
            [change], created_by=by, now=utc_now(), may_weaken=may_weaken
        )
    except WeakenedError:
        raise InvalidRequestError([FieldProblem("", "not_allowed", NOT_ALLOWED)]) from None
    (outcome,) = planned.outcomes
    if outcome is not Outcome.UNCHANGED:
        message = f"{what or outcome.capitalize()}, in design {planned.design.number}."
        record_change(request, DesignModel, change.key, message, flag=FLAGS[outcome])
    return planned


def _conflict_page(admin: Any, request: HttpRequest, posted: ItemForm) -> HttpResponse:
    """Show the form again, with what others have made of the item since it was opened."""
    present = designs.read_newest()
    if posted.is_new:
        posted.errors = {form.NAME: [TAKEN.format(WORDS[posted.kind])]}
        return _form_page(admin, request, posted)
    before, now = posted.stored, present.items(posted.kind).get(posted.name)
    editions = design_history.editions_of(present, posted.kind, posted.name, limit=1)
    conflict = {
        "is_removed": now is None,
        "edition": editions[0] if editions else None,
        "by": names.author(editions[0].created_by) if editions else "",
        "theirs": form.changes_between(posted.kind, before, now) if now is not None else [],
        "ours": form.changed_values(
            posted.kind, fields.values_of(posted.kind, before), posted.values
        ),
    }
    posted.rebase(present)
    return _form_page(admin, request, posted, conflict=conflict)


def _planned(posted: ItemForm, newest: Design) -> Design | None:
    """Return the design that a form would make, or None and its problems in the form."""
    change, problems = posted.change()
    posted.show(problems)
    present = newest.items(posted.kind).get(posted.name)
    tried = Change(
        kind=posted.kind,
        name=_name_of(posted),
        content=change.content,
        replaces=None if present is None else designs.revision_of(present),
        pointer="",
    )
    try:
        design = design_changes.plan([tried], before=newest).design
    except InvalidRequestError as refused:
        posted.show(refused.problems)
        return None
    return None if posted.errors else design


def _previewed(request: HttpRequest, shown: ItemForm, design: Design) -> dict[str, Any]:
    """Return the preview with the type, the language, and the brand that the request chooses."""
    document = types.read_type(request.GET.get("type", ""))
    if document is None:
        return _problems(shown) | {"problem": "Choose a type."}
    name = _name_of(shown)
    own = name if shown.kind is Kind.TRANSLATION else DEFAULT_LANGUAGE
    requested = request.GET.get("language") or own
    languages = preview.languages(document, design, shown.kind, name, requested=requested)
    found = preview.show(
        document,
        design=design,
        kind=shown.kind,
        name=name,
        language=next(each.code for each in languages if each.is_chosen),
        brand=request.GET.get("brand", OF_TYPE),
    )
    return {
        **_problems(shown),
        **preview.json_of(found),
        "languages": [[each.code, each.name, each.is_chosen] for each in languages],
    }


def _name_of(shown: ItemForm) -> str:
    return shown.name or (preview.UNNAMED_LANGUAGE if shown.kind is Kind.TRANSLATION else UNNAMED)


def _problems(shown: ItemForm) -> dict[str, Any]:
    labels = {name: _label(shown, name) for name in shown.errors}
    found: dict[str, Any] = {"errors": shown.errors, "labels": labels}
    if shown.kind is Kind.BRAND:
        context = {"contrasts": _by_scheme(preview.contrasts(shown.values))}
        found["contrast"] = render_to_string("console/designs/contrast.html", context)
    return found


def _by_scheme(found: list[Contrast]) -> list[tuple[str, list[Contrast]]]:
    return [
        (scheme, [each for each in found if each.scheme == scheme]) for scheme in preview.SCHEMES
    ]


def _form_page(
    admin: Any,
    request: HttpRequest,
    shown: ItemForm,
    *,
    conflict: Mapping[str, Any] | None = None,
) -> HttpResponse:
    newest = designs.read_newest()
    kind, name = shown.kind, shown.name
    present = None if shown.is_new else newest.items(kind).get(name)
    is_old = DESIGN_NUMBER in request.GET and request.method != "POST"
    used = design_uses.read_uses(newest).get((kind, name), Uses()) if present else Uses()
    number = shown.base.number if is_old else None
    may_change = request.user.has_perm(MAY_CHANGE)
    title = f"New {WORDS[kind]}" if shown.is_new else f"{WORDS[kind].capitalize()} {name}"
    original = DesignModel(number=newest.number)
    original.page_title = title
    previewed = (
        reverse(PREVIEW_NEW, args=[kind]) if shown.is_new else reverse(PREVIEW, args=[kind, name])
    )
    context = {
        "title": title,
        "original": original,
        "form": shown,
        "word": WORDS[kind],
        "is_editable": may_change and not is_old,
        "conflict": conflict,
        "layouts": sorted(newest.layouts),
        "contrasts": _by_scheme(preview.contrasts(shown.values)) if kind is Kind.BRAND else (),
        "errors": _listed(shown),
        "users": users_of(request, used),
        "is_removable": not (used.types or used.items)
        or (kind is Kind.TRANSLATION and name != DEFAULT_LANGUAGE),
        "revision": "" if present is None else designs.revision_of(present),
        "remove_url": None if shown.is_new else reverse(REMOVE, args=[kind, name]),
        "restore_url": None if shown.is_new else reverse(RESTORE, args=[kind, name]),
        "old_number": number,
        "differences": form.changes_between(kind, present, shown.stored) if is_old else [],
        "editions": [] if shown.is_new else _editions(newest, kind, name),
        "language": "" if kind is Kind.TRANSLATION else DEFAULT_LANGUAGE,
        "is_gone": not shown.is_new and present is None,
        "back": reverse(LIST),
        "types": _types(used),
        "brands": [] if kind is Kind.BRAND else _brands(newest),
        "preview_url": f"{previewed}?{urlencode({DESIGN_NUMBER: number})}" if is_old else previewed,
        "frame_url": reverse(FRAME),
    }
    return render_page(admin, request, "console/designs/item.html", **context)


def _listed(shown: ItemForm) -> list[tuple[str, str, str]]:
    """Return the ID of the input, the label, and the text of each error."""
    return [
        (
            name if shown.kind is Kind.PARTIAL else name.replace("/", "-"),
            _label(shown, name),
            text,
        )
        for name, texts in shown.errors.items()
        for text in texts
    ]


def _label(shown: ItemForm, name: str) -> str:
    if name in ("", form.NAME):
        return name.capitalize()
    return fields.label_of(shown.kind, name, shown.values)


def users_of(request: HttpRequest, used: Uses) -> list[tuple[str, str, str | None]]:
    """Return what uses an item: what it is, its name, and the page that the user may open."""
    named = names.type_names(used.types)
    may_open = request.user.has_perm("notifications.view_notificationtype")
    found = [
        ("type", named[slug], reverse(TYPE, args=[quote(slug)]) if may_open else None)
        for slug in used.types
    ]
    return [
        *found,
        *((WORDS[kind], name, url_of_design_item(kind, name)) for kind, name in used.items),
    ]


def _editions(design: Design, kind: Kind, name: str) -> list[dict[str, Any]]:
    found = design_history.editions_of(design, kind, name, limit=MAX_EDITIONS)
    return [
        {
            **edition_row(edition),
            "outcome": next(
                LABELS[each.outcome]
                for each in edition.changes
                if (each.kind, each.name) == (kind, name)
            ),
            "is_present": edition is found[0],
            "item_url": url_of_design_item(kind, name, number=edition.number),
        }
        for edition in found
    ]


def edition_row(edition: Edition) -> dict[str, Any]:
    """Return who made a design, when, and its page."""
    return {
        "edition": edition,
        "by": names.author(edition.created_by),
        "url": reverse(EDITION, args=[edition.number]),
    }


def _types(used: Uses) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return the types to preview: those that use the item, and the others."""
    found = NOTIFICATION_TYPES().find({}, {"name": 1}).sort("name", 1)
    named = [(each["_id"], each["name"]) for each in found]
    groups = (
        ("Use it", [each for each in named if each[0] in used.types]),
        ("Other types", [each for each in named if each[0] not in used.types]),
    )
    return [group for group in groups if group[1]]


def _brands(design: Design) -> list[tuple[str, str]]:
    named = [(name, brand["name"]) for name, brand in sorted(design.brands.items())]
    return [(OF_TYPE, "That of the type"), (WITHOUT, "None"), *named]
