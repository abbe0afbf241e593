"""The inputs of a type's plan, digest, inbox actions, and WhatsApp templates."""

from typing import Any

from django import forms
from unfold.widgets import (
    UnfoldAdminCheckboxSelectMultipleWidget,
    UnfoldAdminIntegerFieldWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
    UnfoldBooleanSwitchWidget,
)

from domain.channels import Channel
from domain.digests import MAX_ITEMS, MAX_MINUTES, MIN_MINUTES, Every
from domain.plans import MAX_STEPS
from domain.sms import MAX_UNITS
from notifications.catalog.definitions import (
    MAX_ACTIONS,
    MAX_WHATSAPP_BODY,
    MAX_WHATSAPP_TEMPLATES,
)
from notifications.catalog.digests import DAYS, DEFAULT_AT, DEFAULT_CHANNEL, RECIPIENT_ZONE
from notifications.catalog.plans import MAX_AFTER_SECONDS
from notifications.catalog.texts import DEFAULT_RULES
from notifications.catalog.types import ActionStyle
from notifications.models.catalog import VARIABLE_LENGTH
from notifications.models.notification import ACTION_LENGTH

from ..texts.labels import CHANNELS
from ..widgets.durations import MINUTES, DurationField
from ..widgets.structures import StructureField

EVERY_LABELS = {Every.HOUR: "Every hour", Every.DAY: "Every day", Every.WEEK: "Every week"}
DAY_LABELS = dict(
    zip(
        DAYS,
        ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
        strict=True,
    )
)
IN_MINUTES = "minutes"
_CHANNEL_CHOICES = [(channel.value, CHANNELS[channel]) for channel in Channel]


class NamesField(forms.CharField):
    """Names as a text, separated by commas. The value is a list, stored and cleaned."""

    widget = UnfoldAdminTextInputWidget

    def prepare_value(self, value: Any) -> Any:
        """Return the text of a list; a text stays as it was sent."""
        return ", ".join(value) if isinstance(value, list | tuple) else value

    def to_python(self, value: Any) -> Any:
        """Return the names as a list, each once."""
        text = super().to_python(self.prepare_value(value))
        return [name for name in dict.fromkeys(map(str.strip, text.split(","))) if name]

    def has_changed(self, initial: Any, data: Any) -> bool:
        """Return whether the names differ, in any spelling of the text."""
        return bool(self.to_python(initial or "") != self.to_python(data or ""))


def _text(label: str, max_length: int, *, required: bool = True, **options: Any) -> forms.CharField:
    return forms.CharField(
        label=label,
        max_length=max_length,
        required=required,
        widget=UnfoldAdminTextInputWidget,
        **options,
    )


def _channels(*, required: bool = True) -> forms.MultipleChoiceField:
    return forms.MultipleChoiceField(
        label="Channels",
        choices=_CHANNEL_CHOICES,
        required=required,
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
    )


def _switch(label: str, help_text: str) -> forms.BooleanField:
    field = forms.BooleanField(
        label=label, required=False, widget=UnfoldBooleanSwitchWidget, help_text=help_text
    )
    field.is_box = True
    return field


def _wide(field: forms.Field) -> forms.Field:
    field.is_wide = True
    return field


def _for(field: forms.Field, *choices: str) -> forms.Field:
    field.shown_for = " ".join(choices)
    return field


def plan_field() -> StructureField:
    """Return the field of a plan's steps."""
    return StructureField(
        {
            "channels": _wide(_channels()),
            "after": DurationField(
                label="Begins after",
                min_value=0,
                max_value=MAX_AFTER_SECONDS,
                required=False,
                help_text="From the send time. Empty for the first step.",
            ),
            "skip_if_late": DurationField(
                label="Skip if it is late by",
                min_value=1,
                max_value=MAX_AFTER_SECONDS,
                required=False,
                help_text="For example because of quiet hours. Empty: never skipped.",
            ),
        },
        label="Steps",
        rows=MAX_STEPS,
        noun="step",
        spare=MAX_STEPS,
        help_text="At least two. A later step is used only if no earlier one has reached the "
        "recipient. Without steps, all channels are used at once.",
    )


class DigestField(StructureField):
    """A digest: how it ends, what it contains, and when it isn't used."""

    def __init__(self) -> None:
        schedule = tuple(every.value for every in Every)
        every_mode = (IN_MINUTES, *schedule)
        modes = [("", "Each message by itself"), (IN_MINUTES, "Some time after the first message")]
        items = {"min_value": 1, "max_value": MAX_ITEMS, "widget": UnfoldAdminIntegerFieldWidget}
        super().__init__(
            {
                "mode": _wide(
                    forms.ChoiceField(
                        label="Sent",
                        required=False,
                        choices=[*modes, *((every.value, EVERY_LABELS[every]) for every in Every)],
                        widget=UnfoldAdminSelectWidget,
                    )
                ),
                "minutes": _for(
                    DurationField(
                        label="After the first message",
                        units=MINUTES,
                        min_value=MIN_MINUTES,
                        max_value=MAX_MINUTES,
                        required=False,
                    ),
                    IN_MINUTES,
                ),
                "at": _for(
                    _text(
                        "Time of day",
                        5,
                        required=False,
                        initial=DEFAULT_AT,
                        help_text="Such as 18:00. Every hour uses the minutes.",
                    ),
                    *schedule,
                ),
                "zone": _for(
                    _text(
                        "Time zone",
                        64,
                        required=False,
                        initial=RECIPIENT_ZONE,
                        help_text="Such as Europe/Lisbon. recipient: that of each recipient.",
                    ),
                    *schedule,
                ),
                "days": _wide(
                    _for(
                        forms.MultipleChoiceField(
                            label="Days",
                            required=False,
                            choices=list(DAY_LABELS.items()),
                            widget=UnfoldAdminCheckboxSelectMultipleWidget,
                            help_text="None: all days, or Monday for every week.",
                        ),
                        Every.DAY.value,
                        Every.WEEK.value,
                    )
                ),
                "channels": _wide(_for(self._own_channels(), *every_mode)),
                "key": _for(
                    _text(
                        "A digest for each value of",
                        VARIABLE_LENGTH,
                        required=False,
                        help_text="A variable, such as document_id. Empty: one digest for all.",
                    ),
                    *every_mode,
                ),
                "min_items": _for(
                    forms.IntegerField(
                        label="Minimum messages",
                        required=False,
                        initial=2,
                        help_text="Fewer are sent one by one.",
                        **{**items, "min_value": 2},
                    ),
                    *every_mode,
                ),
                "max_items": _for(
                    forms.IntegerField(
                        label="Messages in the text",
                        required=False,
                        initial=20,
                        help_text="Templates know how many more there are.",
                        **items,
                    ),
                    *every_mode,
                ),
                "leading": _for(
                    _switch("Send the first message at once", "Only later ones are a digest."),
                    *every_mode,
                ),
                "sliding": _for(
                    _switch("Each message moves the end", "At most to four times the time above."),
                    IN_MINUTES,
                ),
                "only_over_limit": _for(
                    _switch(
                        "Only messages over a limit", "A limit that adds them to a digest refuses."
                    ),
                    *every_mode,
                ),
            },
            noun="digest",
        )

    def _own_channels(self) -> forms.MultipleChoiceField:
        field = _channels(required=False)
        field.initial = [DEFAULT_CHANNEL.value]
        field.help_text = "Each channel has its own digest. In-app has none."
        return field

    def built(self, values: dict[str, Any]) -> Any:
        """Return the digest, whose window has the inputs of the chosen way only."""
        mode = values.pop("mode", "")
        if not mode:
            return None
        schedule = {name: values.pop(name, None) for name in ("at", "zone", "days")}
        minutes = values.pop("minutes", None)
        if mode == IN_MINUTES:
            values["window"] = {"minutes": minutes}
        else:
            values.pop("sliding", None)
            filled = {name: value for name, value in schedule.items() if value}
            values["window"] = {"every": mode, **filled}
        return values

    def taken_apart(self, value: Any) -> Any:
        """Return a stored digest as the inputs show it."""
        window = value.get("window") or {}
        mode = IN_MINUTES if window.get("minutes") else window.get("every") or ""
        return {**value, **window, "mode": mode}


class TextRulesField(StructureField):
    """What an SMS may cost."""

    def __init__(self) -> None:
        super().__init__(
            {
                "max_units": forms.IntegerField(
                    label="Most parts",
                    min_value=1,
                    max_value=MAX_UNITS,
                    required=False,
                    widget=UnfoldAdminIntegerFieldWidget,
                    help_text="A longer text isn't sent: each part is paid for. "
                    f"Empty: {DEFAULT_RULES.max_units}.",
                ),
                "is_plain": _switch(
                    "No Unicode",
                    "Refuse letters such as \u00e7, and emoji: with one, a part has 70 characters.",
                ),
            },
            label="Text",
            noun="text",
        )

    def built(self, values: dict[str, Any]) -> Any:
        """Return the rules."""
        most = values.get("max_units") or DEFAULT_RULES.max_units
        return {"max_units": most, "allow_unicode": not values.get("is_plain")}

    def taken_apart(self, value: Any) -> Any:
        """Return stored rules as the inputs show them."""
        return {"max_units": value["max_units"], "is_plain": not value["allow_unicode"]}


def actions_field() -> StructureField:
    """Return the field of a type's buttons in the inbox."""
    styles = [(style.value, style.value.capitalize()) for style in ActionStyle]
    return StructureField(
        {
            "label": _text("Label", 40),
            "id": _text("ID", ACTION_LENGTH, help_text="In callbacks, such as approve."),
            "style": forms.ChoiceField(
                label="Style",
                choices=styles,
                initial=ActionStyle.DEFAULT.value,
                widget=UnfoldAdminSelectWidget,
            ),
            "link": _text("Link", 2_048, required=False, help_text="Followed once it is chosen."),
        },
        label="Inbox actions",
        rows=MAX_ACTIONS,
        noun="action",
        spare=MAX_ACTIONS,
        help_text="Buttons, of which the recipient can choose one.",
    )


def whatsapp_templates_field() -> StructureField:
    """Return the field of a type's WhatsApp templates."""
    return StructureField(
        {
            "locale": _text("Recipients' language", 35, help_text="Such as pt or pt-BR."),
            "language": _text("Meta's language code", 8, help_text="Such as pt_PT."),
            "name": _text("Name at Meta", 512),
            "parameters": NamesField(
                label="Parameters",
                required=False,
                help_text="Variables in the order of the placeholders, separated by commas.",
            ),
            "body": _wide(
                forms.CharField(
                    label="Wording to submit",
                    required=False,
                    max_length=MAX_WHATSAPP_BODY,
                    strip=False,
                    widget=UnfoldAdminTextareaWidget(attrs={"rows": 3}),
                    help_text="With {{1}} for the first parameter. Empty: submitted elsewhere.",
                )
            ),
            "button": _text(
                "Variable of the code",
                VARIABLE_LENGTH,
                required=False,
                help_text="For an authentication template: the button copies it.",
            ),
        },
        label="WhatsApp templates",
        rows=MAX_WHATSAPP_TEMPLATES,
        noun="template",
        spare=3,
        help_text="Approved by Meta, and used outside the 24-hour service window.",
    )
