"""Celery's transport for Valkey, which drops a text in a queue that isn't a message of Celery.

kombu's own reads what another program pushed, or a truncated message, as a fatal error: the worker
ends or connects again, and what it was about to receive waits for seconds.
"""

import base64
from collections.abc import Callable
from functools import cached_property
from typing import Any, Literal

import msgspec
import structlog
from kombu import transport
from kombu.transport import redis
from kombu.utils.encoding import bytes_to_str
from kombu.utils.json import loads
from redis.exceptions import DataError

log = structlog.get_logger(__name__)
ALIASES = {
    "redis": f"{__name__}:Transport",
    "rediss": f"{__name__}:Transport",
    "sentinel": f"{__name__}:SentinelTransport",
}


class _DeliveryInfo(msgspec.Struct):
    exchange: str
    routing_key: str


class _Properties(msgspec.Struct):
    delivery_tag: str
    delivery_info: _DeliveryInfo
    body_encoding: Literal["base64"] | None = None


class _Envelope(msgspec.Struct):
    """What kombu relies on. Other faults are the consumer's."""

    properties: _Properties
    body: str | None = None


_decoder = msgspec.json.Decoder(_Envelope)


def install() -> None:
    """Let Celery use this transport. Connections that exist keep kombu's."""
    transport.TRANSPORT_ALIASES.update(ALIASES)


def is_message(raw: bytes) -> bool:
    """Return whether kombu can turn a text from a queue into a message."""
    try:
        envelope = _decoder.decode(raw)
        # kombu's decoder refuses more, such as a date that is none.
        loads(bytes_to_str(raw))
        if envelope.body and envelope.properties.body_encoding:
            base64.b64decode(envelope.body)
    except (ValueError, LookupError, TypeError, ArithmeticError, RecursionError):
        return False
    return True


class _QoS(redis.QoS):
    """Forgets an unacknowledged message that can't be read instead of failing each time."""

    def restore_by_tag(self, tag: Any, client: Any = None, leftmost: bool = False) -> None:
        """Put an unacknowledged message back into its queue."""
        try:
            super().restore_by_tag(tag, client=client, leftmost=leftmost)
        except (ValueError, KeyError, TypeError, AttributeError, DataError):
            log.exception("unreadable_message_dropped", source="unacknowledged")
            self._remove_from_indices(tag).execute()


class Channel(redis.Channel):
    """A channel to Valkey that reads no foreign text from a queue."""

    QoS = _QoS

    @cached_property
    def client(self) -> Any:
        """The client that waits for messages."""
        client = super().client
        client.parse_response = _dropping(client.parse_response)
        return client


def _dropping(parse: Callable[..., Any]) -> Callable[..., Any]:
    def parse_response(connection: Any, command: str, **options: Any) -> Any:
        reply = parse(connection, command, **options)
        if command == "BRPOP" and reply and not is_message(reply[1]):
            queue, raw = reply
            # Without the text, which may contain anything.
            log.error("unreadable_message_dropped", source=queue.decode(), bytes=len(raw))
            # As if the wait had ended without a message.
            return None
        return reply

    return parse_response


class SentinelChannel(Channel, redis.SentinelChannel):
    """The same to the Valkey that Sentinels name."""


class Transport(redis.Transport):
    """The transport of ``redis://`` and ``rediss://``."""

    Channel = Channel


class SentinelTransport(redis.SentinelTransport):
    """The transport of ``sentinel://``."""

    Channel = SentinelChannel
