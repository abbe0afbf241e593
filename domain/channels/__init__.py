"""Channels, each described by a module of this package. Pure.

A module with a ``SPEC`` is a channel: nothing else names it. Code asks for a trait of
:class:`~domain.channels.spec.ChannelSpec` instead of for a channel.
"""

import hashlib
import pkgutil
import re
from collections.abc import Mapping
from enum import EnumType, StrEnum
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

from ..addresses import AddressKind
from .spec import ChannelSpec, PartSpec, Shape, Targets, unknown_spec

_Member = TypeVar("_Member")
_NO_CHANNELS = frozenset({"spec"})
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}", re.ASCII)


def _find_specs() -> Mapping[str, ChannelSpec]:
    names = (module.name for module in pkgutil.iter_modules(__path__))
    modules = (import_module(f"{__name__}.{name}") for name in names if name not in _NO_CHANNELS)
    specs = sorted((module.SPEC for module in modules), key=lambda spec: (spec.order, spec.name))
    return {spec.name: spec for spec in specs}


_SPECS = _find_specs()


if TYPE_CHECKING:

    class OpenEnum(EnumType):
        """The type of an enum whose members follow from modules, which a type checker can't know.

        At run time it is that of all enums: msgspec takes no other.
        """

        def __getattr__(cls: type[_Member], name: str) -> _Member:
            """Return a member."""

else:
    OpenEnum = EnumType


class Channel(StrEnum, metaclass=OpenEnum):
    """A channel that reaches a recipient."""

    # A name that this version has no module for is a channel, too, because another version may have
    # stored it: during an upgrade, or before a return to this version. It is in no list, has no
    # address, and nothing is sent on it. Names from requests are compared with the lists.
    _ignore_ = "_name"
    for _name in _SPECS:
        vars()[_name.upper()] = _name

    @classmethod
    def _missing_(cls, value: object) -> "Channel | None":
        return (
            _unknown_channel(value) if isinstance(value, str) and _NAME.fullmatch(value) else None
        )

    @property
    def is_known(self) -> bool:
        """Whether this version can send on it."""
        return self.value in _SPECS

    @property
    def spec(self) -> ChannelSpec:
        """What is special about it."""
        return _SPECS.get(self.value) or unknown_spec(self.value)

    @property
    def address_kind(self) -> AddressKind:
        """The kind of its addresses. Raises LookupError for a channel without addresses."""
        if (kind := self.spec.address) is None:
            raise LookupError(f"{self} has no addresses")
        return kind

    @property
    def is_inbox(self) -> bool:
        """Whether a message is delivered by being stored."""
        return self is INBOX

    @property
    def is_personal(self) -> bool:
        """Whether a message goes to a person, whose preferences and limits apply."""
        return self is not ROOM

    @property
    def has_devices(self) -> bool:
        """Whether a message goes to each device of the recipient."""
        return self.spec.targets is Targets.DEVICES

    def can_reach(self, *, address: str | None, user_id: str | None, has_device: bool) -> bool:
        """Return whether a message can reach a recipient of whom this is known.

        ``address`` is of the channel's kind, and ``has_device`` may be a guess.
        """
        match self.spec.targets:
            case Targets.ADDRESS | Targets.ROOM:
                return bool(address)
            case Targets.DEVICES:
                return has_device
            case Targets.INBOX:
                return bool(user_id)
            case Targets.NOTHING:
                return False

    @property
    def pays_by_part(self) -> bool:
        """Whether the parts of a text are paid for, at the price of the recipient's country."""
        return self.spec.shape is Shape.PARTS


@lru_cache(maxsize=64)
def _unknown_channel(name: str) -> Channel:
    channel = str.__new__(Channel, name)
    channel._name_, channel._value_ = name.upper(), name
    return channel


def _with_targets(targets: Targets) -> tuple[Channel, ...]:
    return tuple(channel for channel in Channel if channel.spec.targets is targets)


(INBOX,) = _with_targets(Targets.INBOX)
"""The channel of the inbox."""
(PUSH,) = _with_targets(Targets.DEVICES)
"""The channel to devices. Devices report to it, and what they accept is one delivery."""
(ROOM,) = _with_targets(Targets.ROOM)
"""The channel to rooms."""
ADDRESS_CHANNELS = _with_targets(Targets.ADDRESS)
"""Channels with an address, which can be suppressed."""
IDENTITY_CHANNELS = tuple(channel for channel in Channel if channel.spec.has_identities)
"""Channels whose provider knows a person by other names than the address."""
PARTS: Mapping[str, PartSpec] = {
    part.name: part for channel in Channel for part in channel.spec.parts
}
"""The parts of templates that belong to one channel, in the order of the channels."""


def channels_of(kind: AddressKind) -> tuple[Channel, ...]:
    """Return the channels that send to addresses of a kind."""
    return tuple(channel for channel in Channel if channel.spec.address is kind)


def addresses_in(recipient: Mapping[str, Any]) -> list[tuple[Channel, str]]:
    """Return each address of a stored recipient, once for each channel that sends to it."""
    return [
        (channel, address)
        for channel in ADDRESS_CHANNELS
        if (kind := channel.spec.address) is not None and (address := recipient.get(kind.field))
    ]


def address_key(channel: str, address: str) -> str:
    """Return ``<channel>:<address>`` with the address folded."""
    kind = _SPECS[channel].address if channel in _SPECS else None
    return f"{channel}:{kind.fold(address) if kind is not None else address}"


def address_digest(channel: str, address: str) -> str:
    """Return the SHA-256 digest of an address: 64 hex digits.

    It is stored under a key only, since a phone number is found from its digest by trying all.
    """
    return hashlib.sha256(address_key(channel, address).encode(errors="replace")).hexdigest()
