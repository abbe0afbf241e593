"""A duration as a number with a unit, stored as a whole number of seconds or minutes."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.widgets import UnfoldAdminIntegerFieldWidget, UnfoldAdminSelectWidget

SECONDS: Mapping[int, str] = {1: "seconds", 60: "minutes", 3_600: "hours", 86_400: "days"}
MINUTES: Mapping[int, str] = {1: "minutes", 60: "hours", 1_440: "days"}
"""Units by the number of stored ones in each."""


class DurationWidget(forms.MultiWidget):
    """A number and a unit, side by side."""

    use_fieldset = False

    def __init__(self, units: Mapping[int, str]) -> None:
        self.units = units
        number = UnfoldAdminIntegerFieldWidget()
        choices = [(str(size), name) for size, name in units.items()]
        unit = UnfoldAdminSelectWidget(attrs={"aria-label": "Unit"}, choices=choices)
        super().__init__({"": number, "unit": unit})

    def decompress(self, value: Any) -> list[Any]:
        """Return the number and the largest unit that divides a stored value."""
        try:
            whole = int(value)
        except (TypeError, ValueError):
            return [value, str(min(self.units))]
        size = max(unit for unit in self.units if whole % unit == 0) if whole else min(self.units)
        return [whole // size, str(size)]

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        """Return the inputs. Their ID's number is that of a multi-widget."""
        number, unit = value if isinstance(value, list) else self.decompress(value)
        given, id_ = attrs or {}, (attrs or {}).get("id")
        ids = [{"id": f"{id_}_{index}"} if id_ else {} for index in range(2)]
        return format_html(
            '<span class="duration">{}{}</span>',
            self.widgets[0].render(name, number, {**given, **ids[0]}, renderer),
            self.widgets[1].render(f"{name}_unit", unit, ids[1], renderer),
        )

    def value_from_datadict(self, data: Any, files: Any, name: str) -> Any:
        """Return number and unit as sent. Without a unit, the number is of the smallest one."""
        number, unit = super().value_from_datadict(data, files, name)
        return [number, unit or str(min(self.units))]

    def id_for_label(self, id_: str) -> str:
        """Return the ID of the number."""
        return f"{id_}_0" if id_ else id_


class DurationField(forms.MultiValueField):
    """A duration. The value is a whole number of the smallest unit; None if empty."""

    widget: DurationWidget

    def __init__(
        self,
        *,
        min_value: int,
        max_value: int,
        units: Mapping[int, str] = SECONDS,
        required: bool = True,
        **options: Any,
    ) -> None:
        self.units, self.min_value, self.max_value = units, min_value, max_value
        fields = (
            forms.IntegerField(required=required, error_messages={"invalid": "Enter a number."}),
            forms.ChoiceField(choices=[(str(size), name) for size, name in units.items()]),
        )
        widget = DurationWidget(units)
        super().__init__(
            fields, required=required, widget=widget, require_all_fields=False, **options
        )

    def clean(self, value: Any) -> int | None:
        """Return the duration. Raises ValidationError for one that isn't within the bounds."""
        # The unit alone, which is always sent, is no duration.
        if not value or value[0] in (None, ""):
            if self.required:
                raise ValidationError(self.error_messages["required"], code="required")
            return None
        found: int | None = super().clean(value)
        return found

    def compress(self, values: Any) -> int | None:
        """Return the product of number and unit. Raises ValidationError out of the bounds."""
        if not values or values[0] is None:
            return None
        total = int(values[0]) * int(values[1])
        if not self.min_value <= total <= self.max_value:
            lowest, highest = map(self.text, (self.min_value, self.max_value))
            raise ValidationError(f"Expected {lowest} to {highest}.")
        return total

    def has_changed(self, initial: Any, data: Any) -> bool:
        """Return whether the duration differs, in whatever unit."""
        try:
            return self.clean(data) != initial
        except ValidationError:
            return True

    def text(self, value: int) -> str:
        """Return a duration in words: "7 days"."""
        number, size = self.widget.decompress(value)
        name = self.units[int(size)]
        return f"{number} {name.removesuffix('s') if number == 1 else name}"
