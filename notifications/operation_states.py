"""The vocabulary of bulk operations and the stages one may pass through. Pure."""

from enum import StrEnum


class Action(StrEnum):
    """What a bulk operation does to each notification of its cohort."""

    RETRY = "retry"
    """Re-open the failed deliveries."""
    RESEND = "resend"
    """Say the same again in a new, linked notification."""
    CANCEL = "cancel"
    """Withdraw what has not been sent."""
    RESCHEDULE = "reschedule"
    """Send at another time what has not been tried."""
    RUN_NOW = "run_now"
    """Send now what was to be sent later."""


class Stage(StrEnum):
    """Where a bulk operation stands."""

    PREVIEWING = "previewing"
    """The cohort is being counted and judged; nothing is done to it."""
    READY = "ready"
    """A person has to look at the preview and start it."""
    RUNNING = "running"
    PAUSED = "paused"
    CANCELLED = "cancelled"
    """Stopped by a person; what was done stays done."""
    COMPLETED = "completed"


class Outcome(StrEnum):
    """What became of one delivery in a bulk operation."""

    WAITING = "waiting"
    """It was in the preview; its turn has not come."""
    BEGUN = "begun"
    """A worker is about to act, or stopped while it did."""
    DONE = "done"
    SKIPPED = "skipped"
    """Left out: by its verdict, or because it has changed since the preview."""
    FAILED = "failed"
    """It was to be done, and could not be."""


STEPS: dict[Stage, frozenset[Stage]] = {
    Stage.PREVIEWING: frozenset({Stage.READY, Stage.CANCELLED}),
    Stage.READY: frozenset({Stage.RUNNING, Stage.CANCELLED}),
    Stage.RUNNING: frozenset({Stage.PAUSED, Stage.CANCELLED, Stage.COMPLETED}),
    Stage.PAUSED: frozenset({Stage.RUNNING, Stage.CANCELLED}),
    Stage.CANCELLED: frozenset(),
    Stage.COMPLETED: frozenset(),
}
"""Every step a bulk operation may take."""

WORKED_ON = frozenset({Stage.PREVIEWING, Stage.RUNNING})
"""A worker has something to do."""
SETTLED = frozenset({Outcome.DONE, Outcome.SKIPPED, Outcome.FAILED})
"""Nothing more becomes of it."""
