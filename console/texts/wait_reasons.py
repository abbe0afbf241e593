"""Texts of the reasons why a delivery waits: labels, and the next step while it is held. Pure."""

from collections.abc import Mapping

from domain.plans import Until
from domain.wait_reasons import WaitReason

W = WaitReason
Label = tuple[str, str]  # The text of a chip and its color
WAIT_LABELS: Mapping[WaitReason, Label] = {
    W.SCHEDULE: ("Scheduled", "calm"),
    W.WORKER: ("Queued", "info"),
    W.RETRY: ("Retrying", "warning"),
    W.QUIET_HOURS: ("Quiet hours", "calm"),
    W.OVER_LIMIT: ("Held: over a limit", "calm"),
    W.DAILY_UNITS: ("Held: daily cap", "warning"),
    W.DIGEST: ("Held: digest", "calm"),
    W.PROVIDER_PAUSED: ("Held: provider paused", "warning"),
    W.CIRCUIT_OPEN: ("Held: circuit open", "warning"),
    W.PROVIDER_UNAVAILABLE: ("Held: provider unavailable", "warning"),
    W.RATE_LIMITED: ("Rate limited", "warning"),
    W.DECRYPTION_FAILED: ("Held: decryption failed", "danger"),
    W.STEP: ("Held: later step", "calm"),
    W.UNKNOWN_CHANNEL: ("Held: unknown channel", "warning"),
    W.RECEIPT: ("Unknown: awaiting receipt", "warning"),
}
WAITS_UNTIL: Mapping[WaitReason, str] = {
    W.SCHEDULE: "Scheduled for {}",
    W.RETRY: "Retry at {}",
    W.QUIET_HOURS: "Quiet hours until {}",
    W.OVER_LIMIT: "Held: over a limit until {}",
    W.DAILY_UNITS: "Held: daily cap until {}",
    W.DIGEST: "Held: digest at {}",
    W.RATE_LIMITED: "Rate limited until {}",
    W.STEP: "Held: later step at {}",
    W.RECEIPT: "Unknown: awaiting a receipt until {}",
}
"""Texts of the reasons that end at a time. The others end when their cause does."""
GOALS: Mapping[str, str] = {
    Until.DELIVERED: "delivered",
    Until.READ: "read",
    Until.ACTED: "acted on",
}
"""What makes a later step of a plan unnecessary."""
HELD_ADVICE: Mapping[WaitReason, str] = {
    W.QUIET_HOURS: "Wait. The recipient's quiet hours end at that time. No attempt is used.",
    W.OVER_LIMIT: "Wait. A limit for the recipient allows it at that time. No attempt is used.",
    W.DAILY_UNITS: "Wait. The client has used its parts of the day, which ends at that time. Or "
    "raise SMS_DAILY_UNITS or SMS_DAILY_UNITS_ABROAD, and send it now. No attempt is used.",
    W.DIGEST: "Wait. It is sent with others as one message at that time, or send it now.",
    W.PROVIDER_PAUSED: "Wait, or resume the provider in Providers. No attempt is used.",
    W.CIRCUIT_OPEN: "Wait, or see the circuit in Providers. No attempt is used.",
    W.PROVIDER_UNAVAILABLE: "Wait, or see the cause in Providers. No attempt is used.",
    W.RATE_LIMITED: "Wait. The provider's rate limit is reached. No attempt is used.",
    W.DECRYPTION_FAILED: "Restore the key in FIELD_ENCRYPTION_KEYS. No attempt is used.",
    W.STEP: "Wait. It is sent at that time unless an earlier step has reached the recipient.",
    W.UNKNOWN_CHANNEL: "Run the version that has the channel, or cancel it. No attempt is used.",
}
