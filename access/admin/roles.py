"""The form of a role: the permissions the admin asks for, grouped by what they are on."""

from collections.abc import Iterator
from itertools import groupby
from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.auth.models import Group, Permission
from django.contrib.contenttypes.models import ContentType
from django.db.models import QuerySet
from django.forms.models import ModelChoiceIterator
from django.utils.text import capfirst
from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget, UnfoldAdminTextInputWidget

from notifyproject.db.admin import ReadOnlyAdmin

_WRITING = ("add_", "change_", "delete_")


class _ByKind(ModelChoiceIterator):
    """Permissions as choices, in groups named after what they are on."""

    def __iter__(self) -> Iterator[Any]:
        permissions = sorted(self.queryset, key=lambda p: (_kind(p), p.codename))
        for kind, some in groupby(permissions, key=_kind):
            yield kind, [self.choice(permission) for permission in some]


class PermissionsField(forms.ModelMultipleChoiceField):
    """A choice of permissions, shown as boxes to tick."""

    widget = UnfoldAdminCheckboxSelectMultipleWidget
    iterator = _ByKind

    def label_from_instance(self, obj: Any) -> str:
        """Return what the permission allows."""
        return str(obj.name)


class RoleForm(forms.ModelForm):
    """A role's name and what its members may do."""

    name = forms.CharField(max_length=150, widget=UnfoldAdminTextInputWidget)
    permissions = PermissionsField(queryset=Permission.objects.none(), required=False)

    class Meta:
        """The model and the fields that are filled in."""

        model = Group
        fields = ("name", "permissions")

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fields["permissions"].queryset = meaningful_permissions()


def _kind(permission: Permission) -> str:
    """Return what a permission is on, in words."""
    return capfirst(ContentType.objects.get_for_id(permission.content_type_id).name)


def meaningful_permissions() -> QuerySet[Permission]:
    """Return the permissions the admin asks for: what nothing can change is only looked at."""
    kinds = ContentType.objects.get_for_models(*admin.site._registry)
    read_only = {
        kinds[model].pk
        for model, model_admin in admin.site._registry.items()
        if isinstance(model_admin, ReadOnlyAdmin)
    }
    found = Permission.objects.filter(content_type_id__in=[kind.pk for kind in kinds.values()])
    wanted = [
        permission.pk
        for permission in found.order_by()
        if not (
            permission.content_type_id in read_only and permission.codename.startswith(_WRITING)
        )
    ]
    return Permission.objects.filter(pk__in=wanted).order_by("codename")
