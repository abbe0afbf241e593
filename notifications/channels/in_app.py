"""The inbox inside the calling app: there is nobody to send anything to."""

from collections.abc import Mapping
from dataclasses import dataclass

from ..errors import Answer
from .base import Outbound, Receipt, SendResult


@dataclass(frozen=True, kw_only=True)
class Inbox:
    """In-app notifications are read where they are stored; only scheduled ones come this way."""

    name: str = "inbox"

    @property
    def account(self) -> str:
        """Ours: it has no credentials."""
        return self.name

    def send(self, outbound: Outbound, *, timeout: float) -> SendResult:
        """Return that it is delivered: from now on feeds show it."""
        return SendResult(provider_id=None, answer=Answer(status=200), delivered=True)

    def parse_receipts(self, headers: Mapping[str, str], raw: bytes) -> list[Receipt]:
        """Return nothing: nobody reports anything."""
        return []
