"""Whom a typed text means: a registered recipient, or an address that is typed as a whole."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from devices import queries as devices
from domain.addresses import EMAIL_ADDRESS, PHONE_NUMBER, AddressKind, InvalidAddressError
from notifications import queries as notifications
from recipients.documents import RECIPIENTS, RecipientDocument
from recipients.masking import can_see_addresses

from ..recipients import search
from ..widgets import columns
from ..widgets.search import entered_address, pasted, searched_addresses

OFFERED = 8
"""Recipients that an input offers."""
MAY_VIEW = "recipients.view_recipient"
ADDRESS = "address"
"""The choice of the typed address itself."""
EMPTY = "Enter a user ID, a name, an email address, or a phone number."
ERASING = "This recipient is being erased."
NOT_A_PHONE = "No recipient has this user ID, and it's no phone number with a country code."
SEVERAL = "Choose who is meant."
_USER = "user:"
_FIELDS = {"name": 1, "email": 1, "phone": 1, "is_active": 1}
_HAS_LETTER = re.compile(r"[^\W\d_]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A recipient to whom a message can be sent. Either a user ID or an address is given."""

    key: str
    """Its value as a choice."""
    label: str
    note: str = ""
    """Addresses, masked unless the user may see them."""
    user_id: str | None = None
    email: str | None = None
    phone: str | None = None
    is_registered: bool = False


class UnclearRecipientError(ValueError):
    """A text means nobody, or one of several. The message says what to do."""

    def __init__(self, reason: str, *, choices: Sequence[Target] = ()) -> None:
        super().__init__(reason)
        self.choices = choices


def find_target(entered: str, *, meant: str = "", user: Any) -> Target:
    """Return whom a text means. ``meant`` is the chosen one of several.

    A user ID means its user, registered or not. If an unregistered user's ID is an address as well,
    both are offered. Raises UnclearRecipientError.
    """
    text = pasted(entered)
    if not text:
        raise UnclearRecipientError(EMPTY)
    if meant.startswith(_USER):
        return _known(meant.removeprefix(_USER), user=user)
    kind = _kind_of(text)
    if meant == ADDRESS and kind is not None:
        return _typed(kind, text)
    # An ID may contain what a copied address loses.
    ids = dict.fromkeys((entered.strip(), text))
    same_id = next(filter(None, (_with_id(one, user=user) for one in ids)), None)
    if same_id is not None and (same_id.is_registered or not _is_address(kind, text)):
        return same_id
    if kind is None:
        return _found_by_search(text, user=user)
    typed = _typed(kind, text)
    owners = _owners(kind, typed, text, user=user)
    others = owners if same_id is None else [same_id, *owners]
    if others:
        raise UnclearRecipientError(SEVERAL, choices=(*others, typed))
    return typed


def key_of(user_id: str) -> str:
    """Return the choice of a user, as a link to the form has it."""
    return f"{_USER}{user_id}"


def offer(entered: str, *, user: Any) -> list[Target]:
    """Return the recipients that a text may mean, while it is typed."""
    text = pasted(entered)
    return [_registered(person, user=user) for person in _search(text, user=user)]


def _kind_of(text: str) -> AddressKind | None:
    if "@" in text:
        return EMAIL_ADDRESS
    return None if _HAS_LETTER.search(text) else PHONE_NUMBER


def _is_address(kind: AddressKind | None, text: str) -> bool:
    if kind is None:
        return False
    try:
        kind.normalize(entered_address(kind, text))
    except InvalidAddressError:
        return False
    return True


def _typed(kind: AddressKind, text: str) -> Target:
    try:
        address = kind.normalize(entered_address(kind, text))
    except InvalidAddressError as error:
        reason = str(error) if kind is EMAIL_ADDRESS else f"{NOT_A_PHONE} {error}"
        raise UnclearRecipientError(reason) from error
    own: dict[str, Any] = {kind.field: address}
    # Who typed it may read it.
    return Target(key=ADDRESS, label=address, note="this address alone", **own)


def _found_by_search(text: str, *, user: Any) -> Target:
    found = offer(text, user=user)
    # Who has an ID that begins with the text may be somebody else than the one whose ID it is.
    if len(found) > 1 or any((one.user_id or "").startswith(text) for one in found):
        raise UnclearRecipientError(SEVERAL, choices=found)
    if found:
        return found[0]
    raise UnclearRecipientError(f"No recipient matches “{text[:80]}”. {EMPTY}")


def _owners(kind: AddressKind, typed: Target, text: str, *, user: Any) -> list[Target]:
    """Return the registered recipients with a typed address."""
    wanted = kind.fold(getattr(typed, kind.field))
    return [
        _registered(person, user=user)
        for person in _search(text, user=user)
        if kind.fold(str(person.get(kind.field) or "")) == wanted
    ]


def _search(text: str, *, user: Any) -> list[RecipientDocument]:
    may_search = user.has_perm(MAY_VIEW) and not searched_addresses(text, user=user).is_refused
    if not text or not may_search:
        return []
    ids = search.find_ids(text, user=user, cap=OFFERED)[:OFFERED]
    found = _read(ids)
    return [found[key] for key in ids if key in found and found[key]["is_active"]]


def _known(user_id: str, *, user: Any) -> Target:
    if (found := _with_id(user_id, user=user)) is not None:
        return found
    raise UnclearRecipientError(f"The recipient “{user_id[:80]}” is gone. {EMPTY}")


def _with_id(user_id: str, *, user: Any) -> Target | None:
    if (person := _read([user_id]).get(user_id)) is not None:
        return _registered(person, user=user)
    return _unregistered(user_id) if _is_unregistered_user(user_id) else None


def _registered(person: RecipientDocument, *, user: Any) -> Target:
    if not person["is_active"]:
        raise UnclearRecipientError(ERASING)
    user_id, name = person["_id"], person.get("name")
    may_view, unmasked = user.has_perm(MAY_VIEW), can_see_addresses(user)
    addresses = [
        columns.address(address, unmasked=unmasked)
        for address in (person.get("email"), person.get("phone"))
        if address and may_view
    ]
    return Target(
        key=key_of(user_id),
        label=f"{name} ({user_id})" if name and may_view else user_id,
        note=" · ".join(addresses),
        user_id=user_id,
        is_registered=True,
    )


def _unregistered(user_id: str) -> Target:
    return Target(key=key_of(user_id), label=user_id, note="not registered", user_id=user_id)


def _is_unregistered_user(user_id: str) -> bool:
    """Return whether a user who isn't registered has a device, or was sent to before."""
    if devices.page(user_id=user_id, limit=1).documents:
        return True
    return notifications.was_sent_to(user_id)


def _read(ids: Sequence[str]) -> dict[str, RecipientDocument]:
    return {row["_id"]: row for row in RECIPIENTS().find({"_id": {"$in": [*ids]}}, _FIELDS)}
