"""Notification types and the versions of their templates."""

from typing import Any

from django.db import models
from django_mongodb_backend.fields import ArrayField, EmbeddedModelArrayField
from django_mongodb_backend.models import EmbeddedModel

from domain.channels import Channel
from domain.retry import DEFAULT_MAX_RETRIES, UnknownPolicy
from domain.states import Category, ManagedBy, Priority, SchemaMode
from notifyproject.db.fields import choice_field, choices_field, optional_datetime, optional_text

SLUG_LENGTH = 64
NAME_LENGTH = 120
VARIABLE_LENGTH = 64
NOTE_LENGTH = 200
AUTHOR_LENGTH = 160
URL_LENGTH = 2048
REASON_LENGTH = 300


class EmergencyChange(EmbeddedModel):
    """What staff changed of a type that is managed by code."""

    reason = models.CharField(max_length=REASON_LENGTH)
    by = models.CharField(max_length=AUTHOR_LENGTH)
    """As ``staff:ana``."""
    at = models.DateTimeField()
    pushed_at = optional_datetime()
    """When the files were pushed, which settles it. Missing: since then, they haven't been."""


class NotificationType(models.Model):
    """A kind of notification with its defaults, shipped or defined by operators."""

    slug = models.SlugField(primary_key=True, db_column="_id", max_length=SLUG_LENGTH)
    name = models.CharField(max_length=NAME_LENGTH)
    description = models.TextField(blank=True)
    category = choice_field(Category)
    categories = choices_field(Category, editable=False)
    """The category and earlier ones, which its older notifications have."""
    priority = choice_field(Priority, default=Priority.NORMAL)
    max_priority = choice_field(Priority, null=True, blank=True)
    """Highest priority of a request; empty: high for marketing, otherwise critical."""
    channels = choices_field(Channel)
    """Default when neither the request nor the recipient's preferences name channels."""
    room = optional_text(64)
    """The room of messages that name none; missing: none."""
    max_retries = models.IntegerField(default=DEFAULT_MAX_RETRIES)
    ttl_seconds = models.IntegerField(null=True, blank=True)
    """Lifetime after the send time; empty: unlimited."""
    notify_before_seconds = models.IntegerField(null=True, blank=True)
    """Lead time of a reminder before its event, unless the recipient chose another; empty: not a
    reminder."""
    on_unknown = choice_field(UnknownPolicy, default=UnknownPolicy.RETRY)
    example_data = models.JSONField(default=dict, blank=True)
    """Variables for previews; their names document what the templates need."""
    schema = models.TextField(blank=True)
    """JSON Schema of a request's ``data``, as a text, because its keys may begin with ``$``; empty:
    none."""
    schema_mode = choice_field(SchemaMode, default=SchemaMode.REJECT)
    """What happens to a request whose data differs from the schema."""
    sensitive_variables = ArrayField(
        models.CharField(max_length=VARIABLE_LENGTH), default=list, blank=True
    )
    template_version = models.IntegerField(default=0, editable=False)
    """The published template version; 0 is the files of the release."""
    fallback_channel = choice_field(Channel, null=True, blank=True)
    """Used only if no other channel has delivered in time, as a plan of two steps; empty: none."""
    fallback_after_seconds = models.IntegerField(default=600)
    plan = models.JSONField(null=True, blank=True)
    """Channels in steps: ``{"until": "read", "steps": [{"channels": ["push"], "after": 0}, …]}``;
    empty: all at once, or as the fallback channel says."""
    digest = models.JSONField(null=True, blank=True)
    """Messages to one recipient are sent as one: channels, window, and more; empty: each by
    itself."""
    sms = models.JSONField(null=True, blank=True)
    """What an SMS may cost: ``{"max_units": 3, "allow_unicode": true}``, which is the default."""
    actions = models.JSONField(null=True, blank=True)
    """Buttons in the inbox: ``[{"id": "approve", "label": "Approve", "style": "primary", "link":
    null}]``."""
    approved_templates = models.JSONField(default=list, blank=True)
    """WhatsApp templates: ``[{"locale": "pt", "name": "order_shipped", "language": "pt_PT",
    "parameters": ["order"]}]``; the parameters are variables, in the order of the placeholders."""
    brand = optional_text(SLUG_LENGTH)
    """The brand of messages that name none; missing: none."""
    layout = optional_text(SLUG_LENGTH)
    """The frame of its emails; missing: that of the brand, or the built-in one."""
    console_send = models.BooleanField(default=False)
    """Whether staff may send one message of it from the console. Never of a critical type."""
    approval = models.JSONField(null=True, blank=True)
    """Which broadcasts another person approves: ``{"above": 500, "by": "approvers"}``; empty: only
    those that the setting for marketing names."""
    managed_by = choice_field(ManagedBy, default=ManagedBy.CONSOLE)
    """Where it is changed: in the console, or in files that are pushed."""
    repository = optional_text(URL_LENGTH)
    """Where the files are that it is pushed from; missing: managed by the console."""
    emergency_changes = EmbeddedModelArrayField(
        EmergencyChange, default=list, blank=True, editable=False
    )
    """The last changes by staff while it was managed by code."""
    is_active = models.BooleanField(default=True)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        db_table = "notification_types"
        ordering = ("slug",)
        permissions = (
            ("weaken_notificationtype", "Can weaken critical and sensitive types"),
            (
                "override_notificationtype",
                "Can change a type that is managed by code, with a reason and an alert",
            ),
        )

    def __str__(self) -> str:
        return self.name

    def save(self, *args: Any, **options: Any) -> None:
        """Store the type. Its categories are only ever added to, by the catalog."""
        if self._state.adding:
            self.categories = [self.category]
        super().save(*args, **options)


class TemplateVersion(models.Model):
    """One version of a type's template. Only ``published_at`` ever changes."""

    id = models.CharField(primary_key=True, db_column="_id", max_length=SLUG_LENGTH + 8)
    """Slug of the type, and number: unique also in a sharded collection."""
    type = models.CharField(max_length=SLUG_LENGTH)
    number = models.IntegerField()
    parts = models.JSONField()
    """Texts by language and part: ``{"default": {"subject": "…", "body": "…"}, "pt": {…}}``."""
    note = models.CharField(max_length=NOTE_LENGTH, blank=True)
    created_at = models.DateTimeField()
    created_by = models.CharField(max_length=AUTHOR_LENGTH)
    published_at = optional_datetime()

    class Meta:
        db_table = "template_versions"
        ordering = ("-id",)
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.type}, version {self.number}"


class Design(models.Model):
    """Brands, layouts, partials, and translations as they were at one time: they never change."""

    number = models.IntegerField(primary_key=True, db_column="_id")
    """Each change makes the design with the next number."""
    partials = models.JSONField(default=dict, blank=True)
    """Texts by name, language, and kind: ``{"footer": {"default": {"html": "…"}}}``."""
    layouts = models.JSONField(default=dict, blank=True)
    """HTML by name."""
    brands = models.JSONField(default=dict, blank=True)
    """Names, logos, colours, and senders by name, as the API takes them."""
    translations = models.JSONField(default=dict, blank=True)
    """Nested texts by language: ``{"pt": {"order": {"title": "Encomenda {number}"}}}``."""
    changed_in = models.JSONField(default=dict, blank=True)
    """The design that made each item what it is, by kind and name: ``{"brand/acme": 7}``."""
    created_at = models.DateTimeField()
    created_by = models.CharField(max_length=AUTHOR_LENGTH)
    touches = models.IntegerField(null=True, blank=True)
    """How often it was relied on by what was stored beside it, or replaced; missing: never."""

    class Meta:
        db_table = "designs"
        ordering = ("-number",)
        default_permissions = ("change", "view")

    def __str__(self) -> str:
        return f"Design {self.number}"
