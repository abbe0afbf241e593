"""Field helpers for models."""

from enum import StrEnum
from functools import partial
from typing import Any

from django.db import models
from django_mongodb_backend.fields import ArrayField


def choices(vocabulary: type[StrEnum]) -> list[tuple[str, str]]:
    """Return an enum as Django choices: each value, and its label."""
    return [(member.value, member.value.replace("_", " ").capitalize()) for member in vocabulary]


def choice_field(vocabulary: type[StrEnum], **options: Any) -> models.CharField:
    """Return a field for one value of an enum."""
    # Migrations name the enum, so that a new value needs none.
    return models.CharField(max_length=40, choices=partial(choices, vocabulary), **options)


def choices_field(vocabulary: type[StrEnum], **options: Any) -> ArrayField:
    """Return a field for a list of values of an enum."""
    return ArrayField(choice_field(vocabulary), default=list, blank=True, **options)


def optional_text(max_length: int, **options: Any) -> models.CharField:
    """Return an optional text field."""
    return models.CharField(max_length=max_length, null=True, blank=True, **options)


def optional_datetime(**options: Any) -> models.DateTimeField:
    """Return an optional instant."""
    return models.DateTimeField(null=True, blank=True, **options)
