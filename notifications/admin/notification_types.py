"""Kinds of notification: what operators may change about them."""

from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern
from django.utils.safestring import SafeString
from unfold.widgets import (
    UnfoldAdminCheckboxSelectMultipleWidget,
    UnfoldAdminIntegerFieldWidget,
    UnfoldAdminRadioSelectWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
)

from notifyproject.db.admin import MongoModelAdmin

from .. import approved, types
from ..models import NotificationType
from ..models.types import SLUG_LENGTH
from ..retry import MAX_RETRIES, UnknownPolicy
from ..states import Channel
from ..timing import MAX_TTL
from . import columns, templates
from .explanations import CHANNELS


class NotificationTypeForm(forms.ModelForm):
    """A type's fields, checked."""

    slug = forms.CharField(
        max_length=SLUG_LENGTH,
        widget=UnfoldAdminTextInputWidget,
        help_text="What callers write, such as order_shipped. It cannot be changed later.",
    )
    channels = forms.MultipleChoiceField(
        choices=[(channel.value, words) for channel, words in CHANNELS.items()],
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
        help_text="Used when neither the caller nor the recipient's preferences name any.",
    )
    description = forms.CharField(
        required=False,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 3}),
    )
    on_unknown = forms.ChoiceField(
        label="When nobody knows whether it went",
        choices=(
            (UnknownPolicy.RETRY.value, "Send it again: twice is better than never"),
            (UnknownPolicy.FAIL.value, "Do not: twice is worse than never"),
        ),
        initial=UnknownPolicy.RETRY.value,
        widget=UnfoldAdminRadioSelectWidget,
    )
    max_retries = forms.IntegerField(
        min_value=0,
        max_value=MAX_RETRIES,
        widget=UnfoldAdminIntegerFieldWidget,
        help_text="Tries after the first one.",
    )
    ttl_seconds = forms.IntegerField(
        label="Time to live (seconds)",
        min_value=1,
        max_value=int(MAX_TTL.total_seconds()),
        required=False,
        widget=UnfoldAdminIntegerFieldWidget,
        help_text="How long after its send time it is worth sending, at most 30 days; "
        "empty: for ever.",
    )
    sensitive_variables = forms.CharField(
        required=False,
        widget=UnfoldAdminTextInputWidget,
        help_text="Names of variables that are secrets, separated by commas. "
        "They are shown to nobody.",
    )
    example_data = forms.JSONField(
        required=False,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 5}),
        help_text="Variables for previews, as a JSON object.",
    )

    fallback_channel = forms.ChoiceField(
        label="Stand-in channel",
        required=False,
        choices=[("", "None: all channels at once"), *((c.value, CHANNELS[c]) for c in Channel)],
        widget=UnfoldAdminSelectWidget,
        help_text="Used only if the first other channel has not delivered in time.",
    )
    fallback_after_seconds = forms.IntegerField(
        label="After (seconds)",
        required=False,
        min_value=1,
        max_value=int(MAX_TTL.total_seconds()),
        widget=UnfoldAdminIntegerFieldWidget,
        help_text="How long the other channel has. If it fails, nothing is waited for.",
    )
    approved_templates = forms.JSONField(
        label="Approved templates",
        required=False,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 5}),
        help_text="What Meta has approved for people who have not written for a day: "
        '[{"locale": "pt", "name": "order_shipped", "language": "pt_PT", '
        '"parameters": ["order"]}].',
    )

    class Meta:
        """The model and the fields that are filled in."""

        model = NotificationType
        exclude = ("created_at", "updated_at", "template_version")

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if self.instance.slug:
            self.initial["sensitive_variables"] = ", ".join(self.instance.sensitive_variables)

    def clean_slug(self) -> str:
        """Return the slug; lower case, digits and underscores only."""
        slug: str = self.cleaned_data["slug"]
        if not types.SLUG.fullmatch(slug):
            raise forms.ValidationError(
                "Write lower-case letters, digits and underscores, beginning with a letter."
            )
        if NotificationType.objects.filter(pk=slug).exists():
            raise forms.ValidationError("There is a type of this name.")
        return slug

    def clean_channels(self) -> list[str]:
        """Return the channels in their usual order."""
        chosen = self.cleaned_data["channels"]
        return [channel.value for channel in Channel if channel.value in chosen]

    def clean_sensitive_variables(self) -> list[str]:
        """Return the names as a list."""
        names = [n.strip() for n in self.cleaned_data["sensitive_variables"].split(",")]
        names = [name for name in dict.fromkeys(names) if name]
        if wrong := [name for name in names if not types.VARIABLE.fullmatch(name)]:
            raise forms.ValidationError(f"Not a variable's name: {', '.join(wrong)}.")
        return names

    def clean_fallback_channel(self) -> str | None:
        """Return the channel; None for none."""
        return self.cleaned_data["fallback_channel"] or None

    def clean_fallback_after_seconds(self) -> int:
        """Return the seconds; left out, the usual ones."""
        return self.cleaned_data["fallback_after_seconds"] or types.FALLBACK_AFTER

    def clean_approved_templates(self) -> list[dict[str, Any]]:
        """Return the wordings, each complete."""
        try:
            return approved.check(self.cleaned_data["approved_templates"] or [])
        except ValueError as error:
            raise forms.ValidationError(str(error)) from error

    def clean_example_data(self) -> dict[str, Any]:
        """Return the variables; an object, nothing else."""
        data = self.cleaned_data["example_data"]
        if data in (None, ""):
            return {}
        if not isinstance(data, dict):
            raise forms.ValidationError('Write an object, such as {"order": "12345"}.')
        return data


@admin.register(NotificationType)
class NotificationTypeAdmin(MongoModelAdmin):
    """The registered types. They are switched off, not deleted: notifications name them."""

    class Media:
        """What templates look like."""

        css = {"all": ("console/templates.css",)}

    form = NotificationTypeForm
    list_display = (
        *("name", "slug", "category", "priority", "on_channels", "tries"),
        *("says", "is_active"),
    )
    change_form_outer_after_template = f"{templates.FOLDER}/templates.html"
    ordering = ("slug",)
    search_fields = ("slug__startswith",)
    search_help_text = "Beginning of the slug"
    fieldsets = (
        (None, {"fields": ("slug", "name", "description", "is_active")}),
        ("Sending", {"fields": ("category", "priority", "channels")}),
        ("Trying again", {"fields": ("max_retries", "ttl_seconds", "on_unknown")}),
        ("If it does not arrive", {"fields": ("fallback_channel", "fallback_after_seconds")}),
        ("WhatsApp", {"fields": ("approved_templates",)}),
        ("Variables", {"fields": ("example_data", "sensitive_variables")}),
    )

    @admin.display(description="Channels")
    def on_channels(self, row: Any) -> SafeString | str:
        """The default channels."""
        return ", ".join(CHANNELS[Channel(c)] for c in row.channels) or columns.NOTHING

    @admin.display(description="Tries")
    def tries(self, row: Any) -> int:
        """How often it is tried in all."""
        return int(row.max_retries) + 1

    @admin.display(description="Template")
    def says(self, row: Any) -> str:
        """The published version of what it says."""
        number = row.template_version
        return f"Version {number}" if number else "The release's own"

    def get_urls(self) -> list[URLPattern]:
        """Return the admin's URLs, and those of templates."""
        return templates.urls(self) + super().get_urls()

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show a type and what it says."""
        says = templates.on_type_page(self, request, unquote(object_id))
        return super().change_view(request, object_id, form_url, says | (extra_context or {}))

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        """Return what cannot be changed: the slug of a type that exists."""
        return ("slug",) if obj else ()

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return False: see the class."""
        return False

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Store the type; this process reads it anew at once, the others within seconds.

        Of one that exists, what the form has: meanwhile another version may have been published.
        """
        if change:
            obj.save(update_fields=[*form.changed_data, "updated_at"])
        else:
            super().save_model(request, obj, form, change)
        types.forget()
