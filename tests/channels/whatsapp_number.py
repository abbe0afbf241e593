"""What the tests of WhatsApp share: a number to send by, and a second opinion on what it sends."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import httpx
import pywa
from pywa.types.templates import BodyText, TemplateLanguage

from notifications.channels.base import ApprovedTemplate, Message, Outbound, SendResult
from notifications.channels.whatsapp_cloud import WhatsApp
from notifications.channels.whatsapp_messages import Body
from notifications.errors import ProviderError
from notifyproject.settings.environment import Environment
from tests.waiting import LIMIT

from ..unit.building import NOON, outbound
from ..unit.channels import wire

REFERENCE = f"{'a' * 24}.whatsapp.1"
PHONE = "+447700900999"
"""Nobody's number, and not a magic one."""
PHONE_NUMBER_ID = "100000000000001"
API_VERSION = Environment().WHATSAPP_API_VERSION
ORDER = ApprovedTemplate(name="order_shipped", language="en", parameters=("Ada", "1001"))
HELLO = ApprovedTemplate(name="hello_world", language="en_US")
"""The one template that every account has."""


@dataclass(frozen=True, kw_only=True)
class Checked(WhatsApp):
    """Our channel, each of whose messages is built by pywa, too, before it leaves."""

    def _post(self, body: Body, *, timeout: float) -> SendResult:
        assert by_pywa(body) == body
        return super()._post(body, timeout=timeout)


def number(**fields: Any) -> WhatsApp:
    """Return a number at nobody's Cloud API."""
    default: dict[str, Any] = {
        "token": "EAAsecret",
        "phone_number_id": PHONE_NUMBER_ID,
        "base_url": "http://127.0.0.1:1",
        "app_secret": "app-secret",
        "verify_token": "verify-token",
        "version": API_VERSION,
        "clock": lambda: NOON,
    }
    return Checked(**(default | fields))


def chat(text: str = "Your payment has arrived.", **fields: Any) -> Outbound:
    """Return a message to Ada; fields of the message are taken for those."""
    inner = {name: fields.pop(name) for name in list(fields) if name in Message.__slots__}
    default: dict[str, Any] = {
        "reference": REFERENCE,
        "recipient": PHONE,
        "message": Message(subject="Paid", text=text, **inner),
    }
    return outbound(**(default | fields))


def acceptance(**message: Any) -> bytes:
    """Return the documented acceptance."""
    return answer(
        {
            "messaging_product": "whatsapp",
            "contacts": [{"input": PHONE, "wa_id": PHONE[1:]}],
            "messages": [{"id": "wamid.1", **message}],
        }
    )


def refused(code: Any, *, status: int = 400, headers: tuple[str, ...] = (), **error: Any) -> bytes:
    """Return an error of the Graph API."""
    told = {"message": f"(#{code}) No", "type": "OAuthException", "code": code, "fbtrace_id": "A1"}
    return answer({"error": told | error}, status, *headers)


def answer(body: Any, status: int = 200, *headers: str) -> bytes:
    """Return a whole HTTP response."""
    return wire.response(status, json.dumps(body).encode(), *headers)


def attempt(message: Outbound, *answers: bytes) -> tuple[Any, list[dict[str, Any]]]:
    """Send one message to a server that answers so; return what came of it, and what it got."""
    got: list[dict[str, Any]] = []
    left = iter(answers)

    def handle(connection: Any) -> None:
        while request := wire.read_request(connection):
            got.append(json.loads(request.partition(b"\r\n\r\n")[2]))
            connection.sendall(next(left))

    with wire.serving(handle) as server:
        try:
            return number(base_url=server.url).send(message, timeout=LIMIT), got
        except ProviderError as error:
            return error, got


def by_pywa(body: Body) -> Mapping[str, Any]:
    """Return the same message as pywa makes it."""
    client, common = _pywa(), {"to": body["to"], "tracker": body["biz_opaque_callback_data"]}
    content = body[body["type"]]
    if body["type"] == "text":
        client.send_message(**common, text=content["body"], preview_url=content["preview_url"])
    elif body["type"] == "image":
        client.send_image(**common, image=content["link"], caption=content.get("caption"))
    else:
        values = [v["text"] for c in content.get("components", ()) for v in c["parameters"]]
        client.send_template(
            **common,
            name=content["name"],
            language=TemplateLanguage(content["language"]["code"]),
            params=[BodyText.params(*values)] if values else None,
        )
    built = _SENT.pop()
    for component in built.get("template", {}).get("components", ()):
        # Meta's own examples write it small; its API takes both.
        component["type"] = component["type"].lower()
    return built


_SENT: list[dict[str, Any]] = []


@cache
def _pywa() -> pywa.WhatsApp:
    def take(request: httpx.Request) -> httpx.Response:
        _SENT.append(json.loads(request.content))
        contacts, messages = [{"input": PHONE, "wa_id": PHONE[1:]}], [{"id": "wamid.1"}]
        return httpx.Response(200, json={"contacts": contacts, "messages": messages})

    session = httpx.Client(transport=httpx.MockTransport(take))
    return pywa.WhatsApp(phone_id=PHONE_NUMBER_ID, token="EAAsecret", session=session)
