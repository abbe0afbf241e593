"""WhatsApp numbers in the sandbox, messages built by pywa, and webhooks."""

import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import httpx
import urllib3
from pywa.client import WhatsApp as PywaClient
from pywa.types.templates import BodyText, TemplateLanguage, URLButton

from domain.errors import ProviderError
from domain.time import utc_now
from notifyproject.platform.event_loop import run
from providers.contract import Message, Receipt, SendRequest, SendResult, WhatsAppTemplateMessage
from providers.inbound import InboundMessage
from providers.whatsapp.provider import Body, WhatsApp
from providers.whatsapp.variables import Settings
from providers.whatsapp.webhooks import SIGNATURE_HEADER
from sandbox.assembly import Sandbox
from sandbox.providers.whatsapp.outcomes import magic_suffix
from tests.support.clients.sandbox import Post, Receiver
from tests.support.factories.notifications import FIXED_NOON, outbound
from tests.support.fakes import socket_server
from tests.support.providers.webhook_requests import receipts_of
from tests.support.waiting import LIMIT, until


@dataclass(frozen=True, kw_only=True)
class WhatsAppNumber:
    """A number in the sandbox, with a test's reference."""

    sandbox: Sandbox
    receiver: Receiver
    reference: str = ""
    """Receipts of other tests may still arrive."""

    def number(self, **fields: Any) -> WhatsApp:
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
        """Send a message with this outcome. Return the result or error."""
        message = whatsapp_message(reference=self.reference, **fields)
        if outcome:
            message = replace(message, recipient=f"+447700{magic_suffix(outcome)}")
        try:
            return run(self.number().send(message, timeout=timeout))
        except ProviderError as error:
            return error

    def add_template(self, name: str) -> WhatsAppTemplateMessage:
        """Create an approved template with two parameters."""
        account = self.sandbox.whatsapp
        text = "Hello {{1}}, your order {{2}} has shipped."
        body = {"type": "BODY", "text": text, "example": {"body_text": [["Ada", "1001"]]}}
        wanted = {"name": name, "language": "en", "category": "UTILITY", "components": [body]}
        path = f"{API_VERSION}/{account.business_account_id}/message_templates"
        self.call("POST", path, wanted, Authorization=f"Bearer {account.access_token}")
        return replace(ORDER, name=name)

    def requests(self) -> list[dict[str, Any]]:
        return self.call("GET", f"_sandbox/requests?reference={self.reference}")["results"]

    def receipts(self, count: int) -> list[Receipt]:
        """Wait for exactly this many verified receipts."""
        until(lambda: len(self._receipts()) >= count)
        assert len(self._receipts()) == count
        return self._receipts()

    def inbound(self) -> list[InboundMessage]:
        until(lambda: bool(self._inbound()))
        return self._inbound()

    def parsed(self, post: Post, **fields: Any) -> list[Receipt]:
        headers = {name.lower(): value for name, value in post.headers.items()}
        return receipts_of(self.number(**fields), headers, post.raw)

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        with urllib3.PoolManager(retries=False) as pool:
            answer = pool.request(method, f"{self.sandbox.url}/{path}", json=body, headers=headers)
            return answer.json() if answer.data else None

    def _receipts(self) -> list[Receipt]:
        found = [receipt for post in list(self.receiver.posts) for receipt in self.parsed(post)]
        return [receipt for receipt in found if receipt.reference == self.reference]

    def _inbound(self) -> list[InboundMessage]:
        posts = list(self.receiver.posts)
        return [
            message
            for post in posts
            for message in self.number().parse_logged(post.raw).inbound.messages
        ]


REFERENCE = f"{'a' * 24}.whatsapp.1"
PHONE = "+447700900999"
"""No magic number."""
PHONE_NUMBER_ID = "100000000000001"
API_VERSION = Settings().WHATSAPP_API_VERSION
ORDER = WhatsAppTemplateMessage(name="order_shipped", language="en", parameters=("Ada", "1001"))
HELLO = WhatsAppTemplateMessage(name="hello_world", language="en_US")
"""Every account has this template."""


@dataclass(frozen=True, kw_only=True)
class Checked(WhatsApp):
    """Our provider, with a check that pywa builds the same message."""

    async def _request_message(
        self, body: Body, request: SendRequest, *, timeout: float
    ) -> SendResult:
        assert by_pywa(body) == body
        return await super()._request_message(body, request, timeout=timeout)


def number(**fields: Any) -> WhatsApp:
    """Return a provider whose API is unreachable."""
    default: dict[str, Any] = {
        "token": "EAAsecret",
        "phone_number_id": PHONE_NUMBER_ID,
        "base_url": "http://127.0.0.1:1",
        "app_secret": "app-secret",
        "verify_token": "verify-token",
        "version": API_VERSION,
        "clock": lambda: FIXED_NOON,
    }
    return Checked(**(default | fields))


def whatsapp_message(text: str = "Your payment has arrived.", **fields: Any) -> SendRequest:
    """Return a message to Ada. Fields of ``Message`` are accepted, too."""
    inner = {name: fields.pop(name) for name in list(fields) if name in Message.__slots__}
    default: dict[str, Any] = {
        "reference": REFERENCE,
        "recipient": PHONE,
        "message": Message(subject="Paid", text=text, **inner),
    }
    return outbound(**(default | fields))


def acceptance(**message: Any) -> bytes:
    return answer(
        {
            "messaging_product": "whatsapp",
            "contacts": [{"input": PHONE, "wa_id": PHONE[1:]}],
            "messages": [{"id": "wamid.1", **message}],
        }
    )


def refused(code: Any, *, status: int = 400, headers: tuple[str, ...] = (), **error: Any) -> bytes:
    details = {
        "message": f"(#{code}) No",
        "type": "OAuthException",
        "code": code,
        "fbtrace_id": "A1",
    }
    return answer({"error": details | error}, status, *headers)


def answer(body: Any, status: int = 200, *headers: str) -> bytes:
    return socket_server.response(status, json.dumps(body).encode(), *headers)


def attempt(message: SendRequest, *answers: bytes) -> tuple[Any, list[dict[str, Any]]]:
    """Send a message to a server with these answers. Return the outcome and the requests."""
    got: list[dict[str, Any]] = []
    left = iter(answers)

    def handle(connection: Any) -> None:
        while request := socket_server.read_request(connection):
            got.append(json.loads(request.partition(b"\r\n\r\n")[2]))
            connection.sendall(next(left))

    with socket_server.serving(handle) as server:
        try:
            return run(number(base_url=server.url).send(message, timeout=LIMIT)), got
        except ProviderError as error:
            return error, got


def by_pywa(body: Body) -> Mapping[str, Any]:
    """Return the message as pywa builds it."""
    client, common = _pywa(), {"to": body["to"], "tracker": body["biz_opaque_callback_data"]}
    content = body[body["type"]]
    if body["type"] == "text":
        client.send_message(**common, text=content["body"], preview_url=content["preview_url"])
    elif body["type"] == "image":
        client.send_image(**common, image=content["link"], caption=content.get("caption"))
    else:
        client.send_template(
            **common,
            name=content["name"],
            language=TemplateLanguage(content["language"]["code"]),
            params=[_params(component) for component in content.get("components", ())] or None,
        )
    built = _SENT.pop()
    for component in built.get("template", {}).get("components", ()):
        # Meta's own examples write them small, and the index as text; its API takes both.
        for name in {"type", "sub_type", "index"} & component.keys():
            component[name] = str(component[name]).lower()
    return built


def _params(component: Body) -> Any:
    values = [value["text"] for value in component["parameters"]]
    if component["type"] == "body":
        return BodyText.params(*values)
    return URLButton.params(url_variable=values[0], index=int(component["index"]))


_SENT: list[dict[str, Any]] = []


@cache
def _pywa() -> PywaClient:
    def take(request: httpx.Request) -> httpx.Response:
        _SENT.append(json.loads(request.content))
        contacts, messages = [{"input": PHONE, "wa_id": PHONE[1:]}], [{"id": "wamid.1"}]
        return httpx.Response(200, json={"contacts": contacts, "messages": messages})

    session = httpx.Client(transport=httpx.MockTransport(take))
    return PywaClient(phone_id=PHONE_NUMBER_ID, token="EAAsecret", session=session)


SECRET = "app-secret"
EPOCH = int(FIXED_NOON.timestamp())


def status(kind: str = "delivered", **fields: Any) -> dict[str, Any]:
    """Return a status of Ada's message. The value ... leaves a field out."""
    default = {
        "id": "wamid.1",
        "status": kind,
        "timestamp": str(EPOCH),
        "recipient_id": PHONE[1:],
        "biz_opaque_callback_data": REFERENCE,
        "conversation": {"id": "c-1", "origin": {"type": "utility"}},
        "pricing": {"billable": True, "category": "utility"},
    }
    return {name: value for name, value in (default | fields).items() if value is not ...}


def failed(code: Any = 131026, **fields: Any) -> dict[str, Any]:
    error = {"code": code, "title": "No", "href": "https://x"}
    return status("failed", **{"errors": [error], **fields})


def written(text: str = "Hello", **fields: Any) -> dict[str, Any]:
    """Return an inbound message. The value ... leaves a field out."""
    default = {
        "from": PHONE[1:],
        "id": "wamid.in.1",
        "timestamp": str(EPOCH),
        "type": "text",
        "text": {"body": text},
    }
    return {name: value for name, value in (default | fields).items() if value is not ...}


def change(
    *statuses: Any, messages: Any = (), number: str = PHONE_NUMBER_ID, **fields: Any
) -> dict[str, Any]:
    value: dict[str, Any] = {
        "messaging_product": "whatsapp",
        "metadata": {"display_phone_number": "15550100000", "phone_number_id": number},
    }
    if statuses:
        value["statuses"] = list(statuses)
    if messages:
        value["contacts"] = [{"wa_id": PHONE[1:], "profile": {"name": "Ada Lovelace"}}]
        value["messages"] = list(messages)
    return {"field": "messages", "value": value, **fields}


def preference(value: str = "stop", **fields: Any) -> dict[str, Any]:
    """Return Ada's preference. The value ... leaves a field out."""
    default = {
        "wa_id": PHONE[1:],
        "detail": "User requested to stop marketing messages",
        "category": "marketing_messages",
        "value": value,
        "timestamp": EPOCH,
    }
    return {name: field for name, field in (default | fields).items() if field is not ...}


def preferences_change(*values: Any, number: str = PHONE_NUMBER_ID) -> dict[str, Any]:
    value = {
        "messaging_product": "whatsapp",
        "metadata": {"display_phone_number": "15550100000", "phone_number_id": number},
        "contacts": [{"wa_id": PHONE[1:], "profile": {"name": "Ada Lovelace"}}],
        "user_preferences": list(values),
    }
    return {"field": "user_preferences", "value": value}


def webhook(*changes: Any, **fields: Any) -> bytes:
    entry = {"id": "200000000000002", "changes": list(changes)}
    return json.dumps({"object": "whatsapp_business_account", "entry": [entry], **fields}).encode()


def signed(raw: bytes, *, secret: str = SECRET) -> dict[str, str]:
    signature = hmac.new(secret.encode(), raw, hashlib.sha256).hexdigest()
    return {SIGNATURE_HEADER: f"sha256={signature}"}
