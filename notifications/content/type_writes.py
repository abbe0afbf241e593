"""Writes of a type as it was checked: with the type as it was then, and the design that it uses."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pymongo.client_session import ClientSession

from ..catalog import designs, types
from ..catalog.designs import Design, DesignMovedError, MovedError
from ..documents.catalog import (
    NOTIFICATION_TYPES,
    TEMPLATE_VERSIONS,
    EmergencyChangeDocument,
    NotificationTypeDocument,
)
from . import looks, templates
from .templates import SHIPPED_VERSION, UnknownVersionError


class TypeMovedError(MovedError):
    """The type, or the design that it uses, has changed since what is stored was checked."""


def store(
    slug: str,
    fields: Mapping[str, Any],
    *,
    before: NotificationTypeDocument | None,
    design: Design,
    now: datetime,
    emergency: EmergencyChangeDocument | None = None,
) -> None:
    """Store fields of a type, which were checked with the type as it was, and with a design.

    Its other fields stay. Raises TypeMovedError, with nothing stored.
    """
    uses_design = does_use_design(slug, dict(before or {}) | dict(fields))

    def write_with_design(session: ClientSession) -> None:
        write(slug, fields, before=before, now=now, session=session, emergency=emergency)
        if uses_design:
            designs.rely_on(design, session=session)

    try:
        with NOTIFICATION_TYPES().database.client.start_session() as session:
            session.with_transaction(write_with_design)
    except DesignMovedError as moved:
        raise TypeMovedError from moved
    types.invalidate_types()


def publish(
    slug: str,
    number: int,
    *,
    before: NotificationTypeDocument,
    design: Design,
    now: datetime,
    emergency: EmergencyChangeDocument | None = None,
) -> None:
    """Use a version for new notifications. Raises UnknownVersionError, and as :func:`store`."""
    if templates.get_version(type_slug=slug, number=number) is None:
        raise UnknownVersionError
    fields = {"template_version": number}
    store(slug, fields, before=before, design=design, now=now, emergency=emergency)


def write(
    slug: str,
    fields: Mapping[str, Any],
    *,
    before: NotificationTypeDocument | None,
    now: datetime,
    session: ClientSession,
    emergency: EmergencyChangeDocument | None = None,
) -> None:
    """Store fields of a type in a transaction. Raises TypeMovedError.

    Processes know it once :func:`types.invalidate_types` was called.
    """
    if NOTIFICATION_TYPES().find_one({"_id": slug}, session=session) != before:
        raise TypeMovedError
    types.store_type(slug, fields, now=now, emergency=emergency, session=session)
    if (number := fields.get("template_version", SHIPPED_VERSION)) != SHIPPED_VERSION:
        TEMPLATE_VERSIONS().update_one(
            {"_id": templates.version_id(slug, number)},
            {"$set": {"published_at": now}},
            session=session,
        )


def does_use_design(slug: str, fields: Mapping[str, Any]) -> bool:
    """Return whether a type names a brand or a layout, or its published texts need a design."""
    if fields.get("brand") or fields.get("layout"):
        return True
    number = fields.get("template_version") or SHIPPED_VERSION
    version = templates.get_version(type_slug=slug, number=number)
    texts = version.parts.values() if version else ()
    return any(looks.needs_design(text) for by_part in texts for text in by_part.values())
