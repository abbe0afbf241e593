"""What became of the recipients of one page of a broadcast."""

from dataclasses import dataclass, field

from ..validation import InvalidRequestError

NO_ADDRESS = "no_address"
ALREADY_NOTIFIED = "already_notified"
"""Reason for skipping a recipient who has a notification of this type and entity."""


@dataclass(slots=True, kw_only=True)
class PageResult:
    """The result of one page of recipients, with their keys by reason, in its order."""

    accepted: int = 0
    skipped: dict[str, list[str]] = field(default_factory=dict)
    """Recipients that opted out, can't be reached, or are notified. Nothing is stored for them."""
    rejected: dict[str, list[str]] = field(default_factory=dict)
    """Recipients whose notifications failed validation."""

    def skip(self, key: str, code: str) -> None:
        """Record a recipient that opted out, can't be reached, or has been notified."""
        self.skipped.setdefault(code, []).append(key)

    def reject(self, key: str, refusal: InvalidRequestError) -> None:
        """Record a recipient as rejected, or as skipped if only an address is missing."""
        codes = [problem.code for problem in refusal.problems]
        if set(codes) == {NO_ADDRESS}:
            self.skip(key, NO_ADDRESS)
        else:
            self.rejected.setdefault(codes[0], []).append(key)
