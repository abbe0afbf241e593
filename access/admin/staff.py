"""Staff and their roles in the admin."""

from collections.abc import Sequence
from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.models import Group
from django.http import HttpRequest
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm
from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget

from notifyproject.db.admin import MongoModelAdmin

from ..models import StaffUser
from .roles import RoleForm


@admin.register(StaffUser)
class StaffUserAdmin(UserAdmin, MongoModelAdmin):
    """Who works in the admin. Only a superuser changes superusers or makes some."""

    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm
    list_display = ("username", "full_name", "email", "is_active", "is_superuser", "last_login")
    list_filter = ()
    filter_horizontal = ()
    fieldsets = (
        (None, {"fields": ("username", "password")}),
        ("Person", {"fields": ("first_name", "last_name", "email")}),
        ("Access", {"fields": ("is_active", "is_staff", "is_superuser", "groups")}),
        ("Times", {"fields": ("last_login", "date_joined")}),
    )
    search_fields = ("username__startswith", "email__exact")
    search_help_text = "Beginning of the username, or the email"
    ordering = ("username",)

    @admin.display(description="Name")
    def full_name(self, row: Any) -> str:
        """First and last name."""
        return row.get_full_name() or "-"

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Sequence[str]:
        """Return what the user may not change: who is not a superuser makes none."""
        own = ("last_login", "date_joined")
        return own if request.user.is_superuser else (*own, "is_superuser")

    def formfield_for_manytomany(
        self, db_field: Any, request: HttpRequest, **options: Any
    ) -> forms.ModelMultipleChoiceField | None:
        """Return the field for the roles, as boxes to tick."""
        options["widget"] = UnfoldAdminCheckboxSelectMultipleWidget()
        field = super().formfield_for_manytomany(db_field, request, **options)
        field.help_text = "Roles: what the person may do."
        return field

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return whether the user may change an account; see the class."""
        return super().has_change_permission(request, obj) and _may_touch(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return whether the user may delete an account; nobody deletes their own."""
        allowed = super().has_delete_permission(request, obj) and _may_touch(request, obj)
        return allowed and (obj is None or obj.pk != request.user.pk)

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        """Return no actions: accounts are changed one by one."""
        return {}


admin.site.unregister(Group)


@admin.register(Group)
class RoleAdmin(MongoModelAdmin):
    """Roles: what their members may do."""

    form = RoleForm
    list_display = ("name",)
    search_fields = ("name__startswith",)
    search_help_text = "Beginning of the name"
    ordering = ("name",)


def _may_touch(request: HttpRequest, account: Any) -> bool:
    return account is None or request.user.is_superuser or not account.is_superuser
