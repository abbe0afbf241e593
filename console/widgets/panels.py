"""Panels that several pages show."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db.models import Model

from .formats import EMPTY
from .names import staff_names

AUDIT_LINES = 50


def times(
    document: Mapping[str, Any], fields: Iterable[tuple[str, str]]
) -> list[tuple[str, datetime]]:
    """Return a label and a time for each of ``fields`` that the document has."""
    return [(label, document[name]) for label, name in fields if document.get(name)]


def audit_log(model: type[Model], object_id: Any) -> list[dict[str, Any]]:
    """Return the newest audit entries of one object, for ``console/widgets/audit.html``."""
    content_type = ContentType.objects.get_for_model(model)
    entries = LogEntry.objects.filter(content_type_id=content_type.pk, object_id=str(object_id))
    found = list(entries.order_by("-id")[:AUDIT_LINES])
    users = staff_names({entry.user_id for entry in found})
    return [
        {
            "at": entry.action_time,
            "who": users.get(entry.user_id, EMPTY),
            "what": entry.get_change_message(),
        }
        for entry in found
    ]
