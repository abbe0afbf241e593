"""Why a device or a callback endpoint is disabled: the text of its chip, and what it means."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from callbacks.events import DisabledReason
from devices.models import DeactivationReason


class Explained(NamedTuple):
    """A reason as text."""

    label: str
    meaning: str


def explained(reason: str | None, texts: Mapping[Any, Explained]) -> Explained:
    """Return the text of a stored reason: itself, if only another version knows it."""
    return texts.get(reason, Explained(f"Disabled: {reason}", _OTHER_VERSION))


_OTHER_VERSION = "Another version disabled it, for a reason that this one doesn't know."
_ENABLING = "The client enables it by registering the endpoint again, or staff enable it here."
ENDPOINTS: Mapping[DisabledReason, Explained] = {
    DisabledReason.GONE: Explained(
        "Disabled: 410 Gone", f"The endpoint responded with 410 Gone. {_ENABLING}"
    ),
    DisabledReason.FAILING: Explained(
        "Disabled: 5 days of failures", f"All deliveries failed for five days. {_ENABLING}"
    ),
    DisabledReason.STUCK: Explained(
        "Disabled: workers ended",
        f"Five workers in a row ended while they called it: see their logs. {_ENABLING}",
    ),
    DisabledReason.BY_OPERATOR: Explained(
        "Disabled by staff", "Staff disabled it. The client can't enable it."
    ),
}
DEVICES: Mapping[DeactivationReason, Explained] = {
    DeactivationReason.UNREGISTERED: Explained(
        "Unregistered",
        "The push provider reports that the app was removed or has a new token. The device is "
        "enabled again when the recipient opens the app.",
    ),
    DeactivationReason.SENDER_MISMATCH: Explained(
        "Sender mismatch",
        "The push provider reports that the token belongs to another project. Build the app with "
        "the credentials of this project.",
    ),
    DeactivationReason.SUSPECT: Explained(
        "Invalid token",
        "The push provider rejected the token as malformed three times in a row. The device is "
        "enabled again when the app registers again.",
    ),
    DeactivationReason.REPLACED: Explained(
        "Replaced", "The app has a new token, which is listed as another device."
    ),
    DeactivationReason.BY_USER: Explained(
        "Disabled by app",
        "The app disabled it, for example because its user signed out. The device is enabled again "
        "when the app registers again.",
    ),
    DeactivationReason.BY_OPERATOR: Explained(
        "Disabled by staff", "Staff disabled it. See the audit log."
    ),
}
