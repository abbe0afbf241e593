"""Staff accounts and roles."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.hashers import is_password_usable
from django.contrib.auth.models import Group, Permission
from django.contrib.contenttypes.models import ContentType
from django.db.models import QuerySet
from django.forms.models import ModelChoiceIterator
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import capfirst
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm
from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget, UnfoldAdminTextInputWidget

from access.models import SecondFactor, StaffUser
from access.staff.permissions import ROLE_SUMMARIES
from monitoring import saved_views

from ..widgets.columns import active_column, text_column, time_column
from ..widgets.lists import ReadOnlyAdmin, section
from ..widgets.reauthentication import ReauthenticatedAdmin, require_reauthentication

ACCOUNT_TEXTS = {
    "username": ("Username", "Letters, digits, and @ . + - _"),
    "is_active": ("Active", "Turn it off instead of deleting the account."),
    "is_superuser": ("Superuser", "Has every permission, whatever the roles."),
    "email": ("Email", ""),
}
ACCESS = "Access"
OWN_ACCESS = "Only somebody else can deactivate or demote your own account."
_WRITING = ("add_", "change_", "delete_")


class _ByKind(ModelChoiceIterator):
    def __iter__(self) -> Iterator[Any]:
        permissions = sorted(self.queryset, key=lambda p: (_kind(p), p.codename))
        for kind, group in groupby(permissions, key=_kind):
            yield kind, [self.choice(permission) for permission in group]


class PermissionsField(forms.ModelMultipleChoiceField):
    """A choice of permissions as checkboxes."""

    widget = UnfoldAdminCheckboxSelectMultipleWidget
    iterator = _ByKind

    def label_from_instance(self, obj: Any) -> str:
        """Return the permission's name."""
        return str(obj.name)


class RoleForm(forms.ModelForm):
    """Form of a role."""

    name = forms.CharField(max_length=150, widget=UnfoldAdminTextInputWidget)
    permissions = PermissionsField(
        label="Allows", queryset=Permission.objects.none(), required=False
    )

    class Meta:
        """The model and its editable fields."""

        model = Group
        fields = ("name", "permissions")

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        own = self.instance.permissions.all() if self.instance.pk is not None else ()
        self.fields["permissions"].queryset = console_permissions(
            besides=[permission.pk for permission in own]
        )


def role_label(role: Any) -> str:
    """Return the name of a role with what it allows."""
    return f"{role.name}: {ROLE_SUMMARIES.get(role.name) or 'see the role'}"


def _kind(permission: Permission) -> str:
    return capfirst(ContentType.objects.get_for_id(permission.content_type_id).name)


def console_permissions(*, besides: Sequence[Any] = ()) -> QuerySet[Permission]:
    """Return the permissions that the console checks, without writing on read-only pages.

    Those with the keys ``besides`` are included: a role may have others from before.
    """
    kinds = ContentType.objects.get_for_models(*admin.site._registry)
    read_only = {
        kinds[model].pk
        for model, model_admin in admin.site._registry.items()
        if isinstance(model_admin, ReadOnlyAdmin)
    }
    found = Permission.objects.filter(content_type_id__in=[kind.pk for kind in kinds.values()])
    shown = [
        permission.pk
        for permission in found.order_by()
        if not (
            permission.content_type_id in read_only and permission.codename.startswith(_WRITING)
        )
    ]
    return Permission.objects.filter(pk__in=[*shown, *besides]).order_by("codename")


class AccountForm(UserChangeForm):
    """Form of an account. The password is changed on a page of its own."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if "password" in self.fields:
            password = self.fields["password"]
            password.widget = PasswordState()
            password.help_text = ""
        for name, (label, help_text) in ACCOUNT_TEXTS.items():
            if name in self.fields:
                self.fields[name].label, self.fields[name].help_text = label, help_text


class PasswordState(forms.Widget):
    """Whether an account has a password, and a link to the page that changes it."""

    read_only = True

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        """Return the state and the link."""
        is_set = bool(value) and is_password_usable(value)
        state = "Set" if is_set else "None: signs in by the provider"
        return format_html(
            '<span id="{}" class="password-state">{} <a class="text-link" href="{}">{}</a></span>',
            (attrs or {}).get("id", ""),
            state,
            "../password/",
            "Change password" if is_set else "Set a password",
        )

    def id_for_label(self, id_: str) -> str:
        """Return nothing: there is no input."""
        return ""


class NewAccountForm(UserCreationForm):
    """Form of a new account, which can sign in at once: it has a password and a role."""

    # The account of a person who signs in by a provider is created at their first sign-in.
    usable_password = None

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        roles = self.fields["groups"]
        for field in (self.fields["password1"], self.fields["password2"], roles):
            field.required = True
        if not roles.queryset.exists():
            roles.help_text = "No roles yet: add one under Roles, or run manage.py create_roles."


@admin.register(StaffUser)
class StaffUserAdmin(UserAdmin, ReauthenticatedAdmin):
    """The staff accounts. Only a superuser can create or change superusers."""

    form = AccountForm
    noun = "account"
    add_form = NewAccountForm
    add_form_template = None
    change_password_form = AdminPasswordChangeForm
    list_display = (
        *("username", "full_name", "email", "roles", "second_factor", "active", "last_sign_in"),
    )
    active = active_column()
    list_filter = ()
    filter_horizontal = ()
    fieldsets = (
        section(None, "username", "password"),
        section("Profile", "first_name", "last_name", "email"),
        section(ACCESS, "is_active", "groups", "is_superuser"),
        section("Activity", "last_sign_in", "joined"),
    )
    add_fieldsets = (
        section(None, "username", "password1", "password2", "groups"),
        section("Profile", "first_name", "last_name", "email"),
    )
    search_fields = ("username__startswith", "email__exact")
    search_help_text = "Beginning of the username, or the email"
    ordering = ("username",)
    last_sign_in = time_column("Last sign-in", "last_login", empty="Never")
    joined = time_column("Created", "date_joined")

    @admin.display(description="Name")
    def full_name(self, row: Any) -> str:
        """Return the first and last name."""
        return row.get_full_name() or "-"

    def prepare_rows(self, request: HttpRequest, rows: Sequence[Any]) -> None:
        """Add the roles to the rows."""
        through = StaffUser.groups.through
        pairs = through.objects.filter(staffuser_id__in=[row.pk for row in rows])
        pairs = list(pairs.values_list("staffuser_id", "group_id"))
        names = dict(Group.objects.values_list("pk", "name"))
        enrolled = SecondFactor.objects.filter(
            pk__in=[row.pk for row in rows], enrolled_at__isnull=False
        )
        with_factor = set(enrolled.values_list("pk", flat=True))
        for row in rows:
            row.has_second_factor = row.pk in with_factor
            own = sorted(names[role] for user, role in pairs if user == row.pk and role in names)
            row.role_names = [*(["Superuser"] if row.is_superuser else []), *own]

    @admin.display(description="Role")
    def roles(self, row: Any) -> str:
        """Return the roles, and whether the account is a superuser."""
        return ", ".join(row.role_names) or "None"

    @admin.display(description="Second factor", boolean=True)
    def second_factor(self, row: Any) -> bool:
        """Return whether the account has a second factor."""
        return bool(row.has_second_factor)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Store the account. Every account is for the console; ``is_active`` turns it off."""
        had_access, obj.is_staff = obj.is_staff, True
        super().save_model(request, obj, form, change)
        if change and not had_access:
            obj.save(update_fields=["is_staff"])

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        """Delete an account, and its saved views. Those that it has shared stay for the others."""
        key = obj.pk
        super().delete_model(request, obj)
        saved_views.delete_of(key)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Sequence[str]:
        """Return the read-only fields; only a superuser may set ``is_superuser``."""
        own = ("last_sign_in", "joined")
        return own if request.user.is_superuser else (*own, "is_superuser")

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Sequence[Any]:
        """Return the sections of the form.

        Nobody deactivates or demotes their own account, so that a superuser always remains.
        """
        found = super().get_fieldsets(request, obj)
        if not _is_own(request, obj):
            return found
        own = {"fields": ("groups",), "description": OWN_ACCESS}
        return [(title, own if title == ACCESS else options) for title, options in found]

    def formfield_for_manytomany(
        self, db_field: Any, request: HttpRequest, **options: Any
    ) -> forms.ModelMultipleChoiceField | None:
        """Return the roles' field, as checkboxes."""
        options["widget"] = UnfoldAdminCheckboxSelectMultipleWidget()
        field = super().formfield_for_manytomany(db_field, request, **options)
        field.label, field.help_text = "Roles", ""
        field.label_from_instance = role_label
        return field

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **options: Any) -> Any:
        """Return a field. The roles have no menu that adds or changes one from here."""
        field = super().formfield_for_dbfield(db_field, request, **options)
        if db_field.name == "groups":
            field.widget = getattr(field.widget, "widget", field.widget)
        return field

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return whether the user may change accounts, or the account ``obj``."""
        return super().has_change_permission(request, obj) and _can_edit(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return whether the user may delete an account other than their own."""
        allowed = super().has_delete_permission(request, obj) and _can_edit(request, obj)
        return allowed and not _is_own(request, obj)

    def user_change_password(
        self, request: HttpRequest, *args: Any, **options: Any
    ) -> HttpResponse:
        """Show the form of an account's password. On POST, require re-authentication first."""
        if request.method == "POST" and (refused := require_reauthentication(request)):
            return refused
        response: HttpResponse = super().user_change_password(request, *args, **options)
        return response

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        """Return no actions: accounts are changed individually."""
        return {}


admin.site.unregister(Group)


@admin.register(Group)
class RoleAdmin(ReauthenticatedAdmin):
    """The roles."""

    form = RoleForm
    noun = "role"
    list_display = ("name", "summary", "member_count", "permission_count")
    search_fields = ("name__startswith",)
    search_help_text = "Beginning of the name"
    ordering = ("name",)
    member_count = text_column("Members", "members")
    permission_count = text_column("Permissions", "allowed")

    def prepare_rows(self, request: HttpRequest, rows: Sequence[Any]) -> None:
        """Add the numbers of members and permissions, in one read each."""
        keys = [row.pk for row in rows]
        through = StaffUser.groups.through.objects.filter(group_id__in=keys)
        members = Counter(through.values_list("group_id", flat=True))
        allowed = Group.permissions.through.objects.filter(group_id__in=keys)
        permissions = Counter(allowed.values_list("group_id", flat=True))
        for row in rows:
            row.members, row.allowed = members[row.pk], permissions[row.pk]

    @admin.display(description="Allows")
    def summary(self, row: Any) -> str:
        """Return what a role allows. A role of the installation's own has no summary."""
        return ROLE_SUMMARIES.get(row.name, "An own role: open it to see its permissions")


def _can_edit(request: HttpRequest, account: Any) -> bool:
    return account is None or request.user.is_superuser or not account.is_superuser


def _is_own(request: HttpRequest, account: Any) -> bool:
    return account is not None and account.pk == request.user.pk
