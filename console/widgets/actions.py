"""Helpers for views of the console, and bases for objects that staff enable, disable, or replay."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bson import ObjectId
from django.contrib import admin, messages
from django.contrib.admin.models import CHANGE
from django.core.exceptions import PermissionDenied
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, reverse
from django.utils.safestring import SafeString

from notifications.actions.actions import Staff
from notifyproject.platform import audit

from .links import page_of_action
from .lists import ReadOnlyAdmin


def require_post(request: HttpRequest, *, allowed: bool) -> HttpResponse | None:
    """Return None for a POST. Raises PermissionDenied unless ``allowed``.

    A GET changes nothing and leads to the page that has the action. The browser sends one from its
    history, or after a sign-in that interrupted the action.
    """
    if not allowed:
        raise PermissionDenied
    if request.method == "POST":
        return None
    if request.method not in {"GET", "HEAD"}:
        return HttpResponseNotAllowed(["GET", "HEAD", "POST"])
    messages.warning(request, "Nothing has been done. Start the action again from here.")
    return HttpResponseRedirect(page_of_action(request))


def permission_check(*permissions: str) -> Callable[..., bool]:
    """Return a method of an admin that checks the user's permissions."""

    def check(_admin: Any, request: HttpRequest, *_args: Any, **_options: Any) -> bool:
        return bool(request.user.has_perms(permissions))

    return check


def record_change(
    request: HttpRequest,
    model: type[Model],
    key: Any,
    message: str,
    *,
    name: str = "",
    flag: int = CHANGE,
) -> None:
    """Record the user's action on an object in the audit log. The name defaults to the key."""
    audit.record(
        by=request.user.pk,
        model=model,
        object_id=str(key),
        name=name or str(key),
        message=message,
        flag=flag,
    )


def staff_of(request: HttpRequest) -> Staff:
    """Return the user as the actor of an action on notifications."""
    return Staff(id=request.user.pk, username=request.user.get_username())


def parse_id(text: str) -> ObjectId | None:
    """Return the ID in a URL; None if the text isn't an ID."""
    return ObjectId(text) if ObjectId.is_valid(text) else None


def is_confirmed(request: HttpRequest) -> bool:
    """Return whether the user has confirmed this request on the confirmation page."""
    return request.POST.get("confirmed") == "yes"


def render_page(
    admin: Any, request: HttpRequest, template: str, *, title: str, **context: Any
) -> TemplateResponse:
    """Return a page within the admin's frame."""
    request.current_app = admin.admin_site.name
    frame = admin.admin_site.each_context(request)
    return TemplateResponse(
        request, template, {**frame, "title": title, "opts": admin.opts, **context}
    )


def ask(
    admin: Any,
    request: HttpRequest,
    *,
    question: str,
    consequences: Sequence[str | SafeString],
    button: str,
    back: str,
    hidden: Mapping[str, str] | None = None,
) -> TemplateResponse:
    """Return a page that asks before a POST takes effect, and posts it again once confirmed."""
    return render_page(
        admin,
        request,
        "console/widgets/confirm.html",
        title=question,
        consequences=consequences,
        button=button,
        back=back,
        hidden=hidden or {},
    )


def not_found(request: HttpRequest, what: str, list_url: str) -> HttpResponse:
    """Redirect to a list with a notice that an object doesn't exist."""
    messages.warning(request, f"{what} not found. It might have been deleted.")
    return HttpResponseRedirect(reverse(list_url))


class EnableDisableAdmin(ReadOnlyAdmin):
    """A read-only admin with a button that enables or disables an object on its page."""

    change_form_outer_after_template = "console/widgets/enable_disable.html"
    object_label: str
    enable_consequence: str
    disable_consequence: str

    def is_enabled(self, obj: Any) -> bool:
        """Return whether an object is enabled."""
        raise NotImplementedError

    def can_set_enabled(self, request: HttpRequest, *, enabled: bool) -> bool:
        """Return whether the user may enable or disable objects."""
        raise NotImplementedError

    def set_enabled(self, request: HttpRequest, obj: Any, *, enabled: bool) -> None:
        """Enable or disable an object, record the change, and show a message."""
        raise NotImplementedError

    def own_urls(self) -> list[URLPattern]:
        """Return the URLs that enable and disable one object."""
        view = self.set_enabled_view
        return [
            self.url(f"<path:object_id>/{verb}/", view, verb, enabled=verb == "enable")
            for verb in ("enable", "disable")
        ]

    def set_enabled_view(
        self, request: HttpRequest, object_id: str, *, enabled: bool
    ) -> HttpResponse:
        """Enable or disable one object; POST only."""
        if refused := require_post(request, allowed=self.can_set_enabled(request, enabled=enabled)):
            return refused
        obj = self.get_object(request, object_id)
        if obj is None:
            return not_found(request, self.object_label, f"admin:{self.url_name}_changelist")
        self.set_enabled(request, obj, enabled=enabled)
        return HttpResponseRedirect(reverse(f"admin:{self.url_name}_change", args=[obj.pk]))

    def page_context(self, request: HttpRequest, object_id: str) -> dict[str, Any]:
        """Return the context of the button that enables or disables the object."""
        obj = self.get_object(request, object_id)
        if obj is None:
            return {}
        is_enabled = self.is_enabled(obj)
        verb = "disable" if is_enabled else "enable"
        return {
            "is_enabled": is_enabled,
            "can_set_enabled": self.can_set_enabled(request, enabled=not is_enabled),
            "set_enabled_url": reverse(f"admin:{self.url_name}_{verb}", args=[obj.pk]),
            "consequence": self.disable_consequence if is_enabled else self.enable_consequence,
        }


class ReplayAdmin(ReadOnlyAdmin):
    """A read-only admin whose objects staff replay: selected ones, or one on its page."""

    actions = ("replay_selected",)
    change_form_outer_after_template = "console/widgets/replay.html"
    object_label: str
    replay_consequence: str

    def has_replay_permission(self, request: HttpRequest) -> bool:
        """Return whether the user may replay objects."""
        raise NotImplementedError

    def can_replay(self, obj: Any) -> bool:
        """Return whether an object can be replayed in its state."""
        return True

    def replay(self, request: HttpRequest, keys: Sequence[Any]) -> None:
        """Replay objects, record each in the audit log, and show a message."""
        raise NotImplementedError

    def own_urls(self) -> list[URLPattern]:
        """Return the URL that replays one object."""
        return [self.url("<path:object_id>/replay/", self.replay_view, "replay")]

    @admin.action(description="Replay", permissions=["replay"])
    def replay_selected(self, request: HttpRequest, queryset: QuerySet) -> None:
        """Replay the selected objects."""
        self.replay(request, [row.pk for row in queryset.only("pk")])

    def replay_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Replay one object; POST only."""
        allowed = self.has_view_permission(request) and self.has_replay_permission(request)
        if refused := require_post(request, allowed=allowed):
            return refused
        obj = self.get_object(request, object_id)
        if obj is None:
            return not_found(request, self.object_label, f"admin:{self.url_name}_changelist")
        self.replay(request, [obj.pk])
        return HttpResponseRedirect(reverse(f"admin:{self.url_name}_change", args=[obj.pk]))

    def page_context(self, request: HttpRequest, object_id: str) -> dict[str, Any]:
        """Return the context of the button that replays the object."""
        obj = self.get_object(request, object_id)
        if obj is None:
            return {}
        return {
            "may_replay": self.can_replay(obj) and self.has_replay_permission(request),
            "replay_url": reverse(f"admin:{self.url_name}_replay", args=[obj.pk]),
            "consequence": self.replay_consequence,
        }
