"""In-app provider, which sends nothing: the inbox reads notifications from the store."""

from dataclasses import dataclass

from domain.errors import ProviderResponse

from ..contract import SendRequest, SendResult


@dataclass(frozen=True, kw_only=True)
class InAppProvider:
    """Provider whose messages count as delivered once they are due."""

    name: str = "inbox"

    @property
    def account(self) -> str:
        """The provider's name, since there are no credentials."""
        return self.name

    async def send(self, request: SendRequest, *, timeout: float) -> SendResult:
        """Return a delivered result: the inbox now shows the notification."""
        return SendResult(
            provider_id=None, response=ProviderResponse(status=200), is_delivered=True
        )
