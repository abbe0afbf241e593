"""Our number at the sandbox's Cloud API, and where its webhooks go."""

from dataclasses import dataclass, replace
from typing import Any

import urllib3

from notifications.channels.base import ApprovedTemplate, Receipt, SendResult
from notifications.channels.whatsapp_cloud import WhatsApp
from notifications.channels.whatsapp_webhooks import Inbound
from notifications.errors import ProviderError
from notifications.timing import utc_now
from sandbox.providers.whatsapp.outcomes import digits
from sandbox.server import Sandbox
from tests.waiting import LIMIT

from ..sandbox.conftest import Post, Receiver, until
from .whatsapp_number import API_VERSION, ORDER, chat, number


@dataclass(frozen=True, kw_only=True)
class Line:
    """What a test does with the number."""

    sandbox: Sandbox
    receiver: Receiver
    reference: str = ""
    """Of this test's messages: the reports of others' may still be on their way."""

    def number(self, **fields: Any) -> WhatsApp:
        """Return our own channel, with the sandbox as its provider."""
        account = self.sandbox.whatsapp
        default: dict[str, Any] = {
            "token": account.access_token,
            "phone_number_id": account.phone_number_id,
            "base_url": self.sandbox.url,
            "app_secret": account.app_secret,
            "verify_token": account.verify_token,
            "clock": utc_now,
        }
        return number(**(default | fields))

    def send(
        self, outcome: str = "", *, timeout: float = LIMIT, **fields: Any
    ) -> SendResult | ProviderError:
        """Send a message to whom the outcome happens; return what came of it."""
        message = chat(reference=self.reference, **fields)
        if outcome:
            message = replace(message, recipient=f"+447700{digits(outcome)}")
        try:
            return self.number().send(message, timeout=timeout)
        except ProviderError as error:
            return error

    def add_template(self, name: str) -> ApprovedTemplate:
        """Have a template with two places approved."""
        account = self.sandbox.whatsapp
        body = {"type": "BODY", "text": "Hello {{1}}, your order {{2}} has shipped."}
        wanted = {"name": name, "language": "en", "category": "UTILITY", "components": [body]}
        path = f"{API_VERSION}/{account.business_account_id}/message_templates"
        self.call("POST", path, wanted, Authorization=f"Bearer {account.access_token}")
        return replace(ORDER, name=name)

    def requests(self) -> list[dict[str, Any]]:
        """Return what the sandbox got of this test's messages, newest first."""
        return self.call("GET", f"_sandbox/requests?reference={self.reference}")["results"]

    def receipts(self, count: int) -> list[Receipt]:
        """Wait for so many reports; return them, each webhook's signature verified."""
        until(lambda: len(self._receipts()) >= count)
        assert len(self._receipts()) == count
        return self._receipts()

    def inbound(self) -> list[Inbound]:
        """Wait until somebody has written; return who, and when."""
        until(lambda: bool(self._inbound()))
        return self._inbound()

    def parsed(self, post: Post, **fields: Any) -> list[Receipt]:
        """Return the reports of one webhook."""
        headers = {name.lower(): value for name, value in post.headers.items()}
        return self.number(**fields).parse_receipts(headers, post.raw)

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """Call the sandbox; return the JSON of its answer."""
        with urllib3.PoolManager(retries=False) as pool:
            answer = pool.request(method, f"{self.sandbox.url}/{path}", json=body, headers=headers)
            return answer.json() if answer.data else None

    def _receipts(self) -> list[Receipt]:
        found = [receipt for post in list(self.receiver.posts) for receipt in self.parsed(post)]
        return [receipt for receipt in found if receipt.reference == self.reference]

    def _inbound(self) -> list[Inbound]:
        posts = list(self.receiver.posts)
        return [one for post in posts for one in self.number().parse_inbound(post.raw)]
