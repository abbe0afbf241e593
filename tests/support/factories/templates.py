"""Template versions in the database."""

from datetime import datetime

from notifications.catalog import designs, types
from notifications.content import type_writes
from notifications.documents.catalog import EmergencyChangeDocument


def publish_version(
    *, type_slug: str, number: int, now: datetime, emergency: EmergencyChangeDocument | None = None
) -> None:
    """Publish a version of a type, without a check of its texts."""

    def publish() -> None:
        before, design = types.read_type(type_slug), designs.read_newest()
        assert before is not None
        type_writes.publish(
            type_slug, number, before=before, design=design, now=now, emergency=emergency
        )

    designs.repeat(publish)
