"""Small field helpers shared by every app's models."""

from enum import StrEnum
from typing import Any

from django.db import models
from django_mongodb_backend.fields import ArrayField


def choices(vocabulary: type[StrEnum]) -> list[tuple[str, str]]:
    """Return a vocabulary as Django choices: the value, and the value in plain words."""
    return [(member.value, member.value.replace("_", " ").capitalize()) for member in vocabulary]


def choice_field(vocabulary: type[StrEnum], **options: Any) -> models.CharField:
    """Return a field that holds one word of ``vocabulary``."""
    return models.CharField(max_length=40, choices=choices(vocabulary), **options)


def choices_field(vocabulary: type[StrEnum], **options: Any) -> ArrayField:
    """Return a field that holds a list of words of ``vocabulary``."""
    return ArrayField(choice_field(vocabulary), default=list, blank=True, **options)


def optional_text(max_length: int, **options: Any) -> models.CharField:
    """Return a text field that may be missing from a document."""
    return models.CharField(max_length=max_length, null=True, blank=True, **options)


def optional_datetime(**options: Any) -> models.DateTimeField:
    """Return an instant that may be missing from a document."""
    return models.DateTimeField(null=True, blank=True, **options)
