"""The inbox inside the calling app: there is nobody to send anything to."""

from collections.abc import Mapping
from dataclasses import dataclass

from domain.errors import ProviderResponse

from .contract import Receipt, SendRequest, SendResult


@dataclass(frozen=True, kw_only=True)
class InAppProvider:
    """In-app notifications are read where they are stored; only scheduled ones come this way."""

    name: str = "inbox"

    @property
    def account(self) -> str:
        """Ours: it has no credentials."""
        return self.name

    def send(self, request: SendRequest, *, timeout: float) -> SendResult:
        """Return that it is delivered: from now on feeds show it."""
        return SendResult(
            provider_id=None, response=ProviderResponse(status=200), is_delivered=True
        )

    def parse_receipts(self, headers: Mapping[str, str], raw: bytes) -> list[Receipt]:
        """Return nothing: nobody reports anything."""
        return []
