"""Labels of the reasons why a delivery waits, and the next step. Pure."""

from collections.abc import Mapping

from domain.wait_reasons import WaitReason

W = WaitReason
Label = tuple[str, str]  # The text of a chip and its color
WAIT_LABELS: Mapping[WaitReason, Label] = {
    W.SCHEDULE: ("Scheduled", "calm"),
    W.WORKER: ("Queued", "info"),
    W.RETRY: ("Retrying", "warning"),
    W.QUIET_HOURS: ("Quiet hours", "calm"),
    W.PROVIDER_PAUSED: ("Held: provider paused", "warning"),
    W.CIRCUIT_OPEN: ("Held: circuit open", "warning"),
    W.PROVIDER_UNAVAILABLE: ("Held: provider unavailable", "warning"),
    W.RATE_LIMITED: ("Rate limited", "warning"),
    W.DECRYPTION_FAILED: ("Held: decryption failed", "danger"),
    W.FALLBACK: ("Held: fallback", "calm"),
    W.RECEIPT: ("Unknown: awaiting receipt", "warning"),
}
HELD_ADVICE: Mapping[WaitReason, str] = {
    W.PROVIDER_PAUSED: "Wait, or resume the provider in Providers. No attempt is used.",
    W.CIRCUIT_OPEN: "Wait, or see the circuit in Providers. No attempt is used.",
    W.DECRYPTION_FAILED: "Restore the key in FIELD_ENCRYPTION_KEYS. No attempt is used.",
    W.PROVIDER_UNAVAILABLE: "Wait, or see the cause in Providers. No attempt is used.",
}
