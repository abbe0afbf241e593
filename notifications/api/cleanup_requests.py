"""What a clean-up is asked for, and answered with."""

from typing import Annotated

import msgspec
from msgspec import Meta

from privacy.purge import MAX_DAYS, MIN_DAYS


class CleanupRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How old is old."""

    older_than_days: Annotated[
        int,
        Meta(ge=MIN_DAYS, le=MAX_DAYS, description="Nothing has happened to them for so long."),
    ]
    dry_run: Annotated[bool, Meta(description="Count, and delete nothing.")] = False


class CleanupView(msgspec.Struct, kw_only=True, frozen=True):
    """What was deleted, or would be."""

    notifications: int
    attempts: Annotated[int | None, Meta(description="Not counted in a dry run.")]
    dry_run: bool
    complete: Annotated[bool, Meta(description="False: there is more to delete.")]
