"""Verifies and parses WhatsApp webhooks: receipts, inbound messages, and opt-outs."""

import hashlib
import hmac
import json
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from domain.errors import FailureCode, RecipientAction

from .. import http
from ..contract import (
    AddressEffect,
    InvalidSignatureError,
    InvalidVerifyTokenError,
    Receipt,
    ReceiptKind,
    WebhookResult,
)
from ..inbound import (
    ClosedWindow,
    Identity,
    IdentityChange,
    Inbound,
    InboundMessage,
    MarketingPreference,
)
from ..json_items import read_text, read_time
from ..response_rules import ResponseKind
from .responses import MAX_CODE, MAX_ID_LENGTH, append_code, explain, rule_for

SIGNATURE_HEADER = "x-hub-signature-256"
OBJECT = "whatsapp_business_account"
MESSAGES_FIELD = "messages"
PREFERENCES_FIELD = "user_preferences"
"""The field of webhooks with marketing preferences."""
USER_IDS_FIELD = "user_id_update"
"""The field of webhooks with changed user IDs. Any other field is ignored."""
PREFERENCE_VALUES = {"stop": False, "resume": True}
MARKETING_CATEGORY = "marketing_messages"
OPT_OUT_WORDS = frozenset(
    {
        "stop",
        "stop all",
        "stopall",
        "stop promotions",
        "unsubscribe",
        "opt out",
        "optout",
        "arret",
        "arrêt",
        "parar",
        "parar promoções",
        "sair",
    }
)
"""What a person writes or taps to opt out of marketing, as a whole message: Meta's button *Stop
promotions*, and what mobile operators and Twilio accept, without words of other meanings, such as
*cancel*."""
OPT_IN_WORDS = frozenset({"start", "unstop"})
MAX_CHALLENGE_LENGTH = 200
MAX_CHOICE_LENGTH = 40
"""Longer texts are no opt-out: "Stop" may begin any sentence."""
STATUS_KINDS: Mapping[str, ReceiptKind] = {
    "sent": ReceiptKind.SENT,
    "delivered": ReceiptKind.DELIVERED,
    "read": ReceiptKind.READ,
    "failed": ReceiptKind.FAILED,
}
"""By message status; further statuses are ignored."""
SYSTEM_MESSAGE_TYPES = frozenset({"system", "request_welcome"})
"""Inbound messages that no person wrote, such as a changed number or an opened chat."""
_SIGNATURE = re.compile(r"sha256=([0-9a-f]{64})", re.ASCII)
_CHALLENGE = re.compile(rf"[\w.-]{{1,{MAX_CHALLENGE_LENGTH}}}", re.ASCII)
_PUNCTUATION = re.compile(r"[\W_]+")
_REFERENCE = re.compile(rf"[!-~]{{1,{MAX_ID_LENGTH}}}", re.ASCII)
_DIGITS = re.compile(r"[1-9]\d{6,14}", re.ASCII)
_USER_ID = re.compile(r"[A-Z]{2}\.(?:ENT\.)?[A-Za-z0-9]{1,128}", re.ASCII)
"""Meta's ID of a person for one business, whose number it may leave out."""
_ID = re.compile(rf"[!-~]{{1,{MAX_ID_LENGTH}}}", re.ASCII)
Item = Mapping[str, Any]
_MESSAGE_KEYS = (
    "id",
    "from",
    "from_user_id",
    "from_parent_user_id",
    "group_id",
    "timestamp",
    "type",
    "system",
)
_SYSTEM_KEYS = ("type", "customer", "wa_id", "new_wa_id", "user_id", "parent_user_id", "marketing")
_UPDATE_KEYS = ("wa_id", "user_id", "parent_user_id", "timestamp")
_PREFERENCE_KEYS = ("wa_id", "user_id", "category", "value", "timestamp")
_PUBLIC_ITEMS: Mapping[str, Mapping[str, Sequence[str] | None]] = {
    MESSAGES_FIELD: {"contacts": ("wa_id", "user_id"), "statuses": None, "messages": _MESSAGE_KEYS},
    PREFERENCES_FIELD: {"contacts": ("wa_id", "user_id"), "user_preferences": _PREFERENCE_KEYS},
    USER_IDS_FIELD: {"contacts": ("wa_id", "user_id"), "user_id_update": _UPDATE_KEYS},
}
"""By field: lists with the keys that are stored; None: all of them."""


def verify(headers: Mapping[str, str], raw: bytes, *, app_secret: str) -> None:
    """Raise InvalidSignatureError unless the body is signed with the app secret."""
    if not app_secret:
        raise InvalidSignatureError("no app secret is configured")
    signature = _SIGNATURE.fullmatch(headers.get(SIGNATURE_HEADER, ""))
    if signature is None:
        raise InvalidSignatureError("the signature is missing or malformed")
    expected = hmac.digest(app_secret.encode(), raw, hashlib.sha256).hex()
    if not hmac.compare_digest(signature[1], expected):
        raise InvalidSignatureError("the signature is wrong")


def challenge(query: Mapping[str, str], *, verify_token: str) -> str:
    """Return the response to Meta's webhook handshake. Raises InvalidVerifyTokenError."""
    if not verify_token:
        raise InvalidVerifyTokenError("no verify token is configured")
    token = query.get("hub.verify_token", "").encode(errors="replace")
    is_known = hmac.compare_digest(token, verify_token.encode())
    if not is_known or query.get("hub.mode") != "subscribe":
        raise InvalidVerifyTokenError("the verify token is wrong")
    text = query.get("hub.challenge", "")
    if not _CHALLENGE.fullmatch(text):
        raise InvalidVerifyTokenError("the challenge is missing or malformed")
    return text


def parse_webhook(raw: bytes, *, phone_number_id: str) -> WebhookResult:
    """Return the contents of a webhook. Messages and preferences are those for our number.

    Raises ValueError if it is no webhook about a WhatsApp account.
    """
    reader = _Reader(phone_number_id)
    reader.read(_decode(raw))
    inbound = Inbound(
        messages=tuple(reader.messages),
        preferences=tuple(sorted(reader.preferences, key=lambda preference: preference.at)),
        closed_windows=tuple(reader.closed_windows),
        identities=tuple(dict.fromkeys(reader.identities)),
        changes=tuple(dict.fromkeys(reader.changes)),
    )
    return WebhookResult(
        receipts=tuple(reader.receipts),
        unreadable_count=reader.unreadable_count,
        inbound=inbound,
    )


class UnreadableItemError(ValueError):
    """An item of a webhook has not the documented form."""


class _Reader:
    """Reads the items of a webhook one by one."""

    def __init__(self, phone_number_id: str) -> None:
        self.receipts: list[Receipt] = []
        self.messages: list[InboundMessage] = []
        self.preferences: list[MarketingPreference] = []
        self.closed_windows: list[ClosedWindow] = []
        self.identities: list[Identity] = []
        self.changes: list[IdentityChange] = []
        self.unreadable_count = 0
        self._phone_number_id = phone_number_id

    def read(self, webhook: Item) -> None:
        for entry in self._items(webhook, "entry"):
            for change in self._items(entry, "changes"):
                self._read_change(change)

    def _read_change(self, change: Item) -> None:
        name, value = change.get("field"), change.get("value")
        if name not in (MESSAGES_FIELD, PREFERENCES_FIELD, USER_IDS_FIELD):
            # A webhook of another kind is none of ours, but a change without a name is invalid.
            self.unreadable_count += not isinstance(name, str)
            return
        if not isinstance(value, dict):
            self.unreadable_count += 1
            return
        number_id = http.as_object(value.get("metadata")).get("phone_number_id")
        is_ours = number_id is None or str(number_id) == self._phone_number_id
        for contact in self._items(value, "contacts", is_optional=True):
            self._learn(_user_id(contact, "user_id"), _phone(contact, "wa_id"))
        self._read_value(name, value, is_ours=is_ours)

    def _read_value(self, name: str, value: Item, *, is_ours: bool) -> None:
        if name == MESSAGES_FIELD:
            for status in self._items(value, "statuses", is_optional=True):
                self._read_item(partial(self._read_status, is_ours=is_ours), status)
            for message in self._items(value, "messages", is_optional=True) if is_ours else ():
                self._read_item(self._read_message, message)
        elif name == USER_IDS_FIELD:
            for update in self._items(value, "user_id_update", is_optional=True):
                self._read_item(self._read_update, update)
        elif is_ours:
            for preference in self._items(value, "user_preferences", is_optional=True):
                self._read_item(self._read_preference, preference)

    def _items(self, parent: Item, name: str, *, is_optional: bool = False) -> Iterator[Item]:
        found = parent.get(name)
        if not isinstance(found, list):
            self.unreadable_count += not (is_optional and found is None)
            return
        for item in found:
            if isinstance(item, dict):
                yield item
            else:
                self.unreadable_count += 1

    def _read_item(self, read: Callable[[Item], None], item: Item) -> None:
        try:
            read(item)
        except ValueError:
            self.unreadable_count += 1

    def _learn(self, user_id: str | None, phone: str | None, reference: str | None = None) -> None:
        if user_id is not None and (phone or reference):
            self.identities.append(Identity(user_id=user_id, phone=phone, reference=reference))

    def _read_status(self, status: Item, *, is_ours: bool) -> None:
        name, status_id = status.get("status"), status.get("id")
        if not (isinstance(name, str) and isinstance(status_id, str) and _ID.fullmatch(status_id)):
            raise UnreadableItemError("a status has a name and the message's ID")
        at = read_time(status.get("timestamp"))
        found = read_text(status, "biz_opaque_callback_data") or ""
        reference = found if _REFERENCE.fullmatch(found) else None
        phone = _phone(status, "recipient_id")
        user_id = _user_id(status, "recipient_user_id") or _user_id(status, "recipient_id")
        self._learn(user_id, phone, reference)
        self._learn(_user_id(status, "recipient_parent_user_id"), phone, reference)
        if name in STATUS_KINDS:
            base = Receipt(
                reference=reference,
                provider_id=status_id,
                kind=STATUS_KINDS[name],
                at=at,
                reason=None,
                event_id=f"{status_id}:{name}",
                address=phone,
            )
            error = _error(status.get("errors"))
            self.receipts += _build_receipts(base, error)
            rule = rule_for(error[0]) if error and base.kind is ReceiptKind.FAILED else None
            is_closed = rule is not None and rule.code is FailureCode.WINDOW_CLOSED
            # A window is between a person and one number of the business.
            if is_ours and is_closed and (phone or user_id):
                self.closed_windows.append(ClosedWindow(phone=phone, user_id=user_id, at=at))

    def _read_message(self, message: Item) -> None:
        kind, at = message.get("type"), read_time(message.get("timestamp"))
        if kind is not None and not isinstance(kind, str):
            raise UnreadableItemError("a message's type is a text")
        phone = _phone(message, "from")
        user_id = _user_id(message, "from_user_id") or _user_id(message, "from")
        system = http.as_object(message.get("system")) if kind in SYSTEM_MESSAGE_TYPES else {}
        # Earlier versions of the API name the number new_wa_id.
        new_phone = _phone(system, "wa_id") or _phone(system, "new_wa_id")
        # The number that a person gave up may be somebody else's soon.
        self._learn(user_id, new_phone or phone)
        self._learn(_user_id(message, "from_parent_user_id"), new_phone or phone)
        new_user_id = _user_id(system, "user_id")
        self._learn(new_user_id, new_phone)
        self._replace((_phone(system, "customer"), phone, user_id), (new_phone, new_user_id))
        # A message to a group opens no window of its writer's own.
        is_personal = message.get("group_id") is None
        if is_personal and (choice := _choice(message)) is not None and (phone or user_id):
            self.preferences.append(
                MarketingPreference(phone=phone, user_id=user_id, is_wanted=choice, at=at)
            )
        if kind in SYSTEM_MESSAGE_TYPES or not is_personal:
            return
        if not (phone or user_id):
            raise UnreadableItemError("a message names a person")
        self.messages.append(InboundMessage(phone=phone, user_id=user_id, at=at))

    def _read_update(self, update: Item) -> None:
        ids = [http.as_object(update.get(name)) for name in ("user_id", "parent_user_id")]
        current = [_user_id(user, "current") for user in ids]
        if not any(current):
            raise UnreadableItemError("an update names the new user ID")
        # Its number may be the earlier one, so it isn't learned.
        previous = [_phone(update, "wa_id"), *(_user_id(user, "previous") for user in ids)]
        self._replace(previous, current)

    def _replace(self, earlier: Sequence[str | None], current: Sequence[str | None]) -> None:
        self.changes += [
            IdentityChange(previous=old, current=new)
            for old in earlier
            for new in current
            if old and new and old != new
        ]

    def _read_preference(self, preference: Item) -> None:
        value, category = preference.get("value"), preference.get("category")
        at = read_time(preference.get("timestamp"))
        phone = _phone(preference, "wa_id")
        user_id = _user_id(preference, "user_id") or _user_id(preference, "wa_id")
        self._learn(user_id, phone)
        if not isinstance(value, str) or not isinstance(category, str | None):
            raise UnreadableItemError("a preference has a value and a category")
        if category == MARKETING_CATEGORY and value.lower() in PREFERENCE_VALUES:
            wanted = PREFERENCE_VALUES[value.lower()]
            if not (phone or user_id):
                raise UnreadableItemError("a preference names a person")
            self.preferences.append(
                MarketingPreference(phone=phone, user_id=user_id, is_wanted=wanted, at=at)
            )


def _phone(item: Item, name: str) -> str | None:
    found = item.get(name)
    is_number = isinstance(found, int) and not isinstance(found, bool)
    digits = str(found).removeprefix("+") if is_number or isinstance(found, str) else ""
    return f"+{digits}" if _DIGITS.fullmatch(digits) else None


def _user_id(item: Item, name: str) -> str | None:
    found = read_text(item, name)
    return found if found is not None and _USER_ID.fullmatch(found) else None


def _choice(message: Item) -> bool | None:
    """Return whether a message opts in to marketing (True) or out of it, or None.

    The log has the choice in place of the text.
    """
    for holder in (message, http.as_object(message.get("system"))):
        told = holder.get("marketing")
        if isinstance(told, str) and told.lower() in PREFERENCE_VALUES:
            return PREFERENCE_VALUES[told.lower()]
    words = {_as_words(text) for text in _texts(message)}
    if words & OPT_OUT_WORDS:
        return False
    return True if words & OPT_IN_WORDS else None


def _texts(message: Item) -> Iterator[str]:
    """Yield a message's text, or the label and the payload of the button that was tapped."""
    interactive = http.as_object(message.get("interactive"))
    for holder, names in (
        (message.get("text"), ("body",)),
        (message.get("button"), ("text", "payload")),
        (interactive.get("button_reply"), ("title", "id")),
        (interactive.get("list_reply"), ("title", "id")),
    ):
        for name in names:
            text = read_text(http.as_object(holder), name, limit=MAX_CHOICE_LENGTH, is_prose=True)
            if text is not None:
                yield text


def _as_words(text: str) -> str:
    composed = unicodedata.normalize("NFC", text).casefold()
    return _PUNCTUATION.sub(" ", composed).strip()


def _error(errors: Any) -> tuple[int, Item] | None:
    """Return the first error that has a code, with the code."""
    for item in errors if isinstance(errors, list) else ():
        error = http.as_object(item)
        code = error.get("code")
        text = str(code) if isinstance(code, int | str) and not isinstance(code, bool) else ""
        if text.isascii() and text.isdigit() and int(text[:9]) < MAX_CODE:
            return int(text[:9]), error
    return None


def redact_webhook(raw: bytes) -> str:
    """Return a webhook for the log, without message texts and names. Raises ValueError.

    It has the same contents as the original. Of an item that is no object, it has the JSON type.
    """
    webhook = _decode(raw)
    entries = [
        {"changes": _redact_items(entry.get("changes"), _redact_change)}
        if isinstance(entry, dict)
        else _json_type(entry)
        for entry in _as_list(webhook.get("entry"))
    ]
    entry: Any = entries if isinstance(webhook.get("entry"), list) else entries[0]
    return json.dumps({"object": OBJECT, "entry": entry}, separators=(",", ":"))


def _redact_change(change: Item) -> dict[str, Any]:
    name = change.get("field")
    lists = _PUBLIC_ITEMS.get(name) if isinstance(name, str) else None
    if lists is None:
        return {"field": name} if isinstance(name, str) else {}
    value = change.get("value")
    if not isinstance(value, dict):
        return {"field": name, "value": _json_type(value)}
    redacted = {"metadata": value["metadata"]} if isinstance(value.get("metadata"), dict) else {}
    for key, kept in lists.items():
        if value.get(key) is not None:
            redacted[key] = _redact_items(value[key], partial(_pick, names=kept))
    return {"field": name, "value": redacted}


def _redact_items(found: Any, redact: Callable[[Item], dict[str, Any]]) -> Any:
    if not isinstance(found, list):
        return _json_type(found)
    return [redact(item) if isinstance(item, dict) else _json_type(item) for item in found]


def _as_list(found: Any) -> list[Any]:
    return found if isinstance(found, list) else [found]


def _json_type(value: Any) -> str | None:
    return None if value is None else f"<{type(value).__name__}>"


def _pick(found: Item, *, names: Sequence[str] | None) -> dict[str, Any]:
    picked = {name: found[name] for name in (found if names is None else names) if name in found}
    if names is not _MESSAGE_KEYS:
        return picked
    if "system" in picked:
        # Its text has the person's name.
        picked["system"] = _pick(http.as_object(picked["system"]), names=_SYSTEM_KEYS)
    elif (choice := _choice(found)) is not None:
        picked["marketing"] = "resume" if choice else "stop"
    return picked


def _decode(raw: bytes) -> Item:
    try:
        # Not msgspec: it rejects the whole webhook for a text that was cut within an emoji.
        webhook = json.loads(raw.decode(errors="replace"), parse_int=_int)
    except RecursionError as error:
        raise ValueError("the JSON is nested too deeply") from error
    if not isinstance(webhook, dict) or webhook.get("object") != OBJECT:
        raise ValueError("the webhook is not about a WhatsApp account")
    return webhook


def _int(digits: str) -> int | str:
    # Python converts no number of thousands of digits.
    return int(digits) if len(digits) <= MAX_ID_LENGTH else "<int>"


def _build_receipts(base: Receipt, error: tuple[int, Item] | None) -> Iterator[Receipt]:
    rule = rule_for(error[0]) if error else None
    receipt = base
    if base.kind is ReceiptKind.FAILED:
        receipt = replace(
            base,
            kind=rule.receipt_kind if rule else base.kind,
            event_id=f"{base.event_id}:{int(base.at.timestamp())}",
            reason=_reason(error),
        )
    is_undeliverable = (
        rule is not None
        and rule.kind is ResponseKind.INVALID_RECIPIENT
        and rule.action is RecipientAction.SUSPECT
    )
    yield replace(receipt, effect=AddressEffect.SOFT_BOUNCE) if is_undeliverable else receipt
    if rule and rule.action is RecipientAction.UNSUBSCRIBE:
        event_id = f"{receipt.event_id}:unsubscribed"
        yield replace(receipt, kind=ReceiptKind.UNSUBSCRIBED, event_id=event_id)


def _reason(found: tuple[int, Item] | None) -> str | None:
    if found is None:
        return None
    code, error = found
    rule = rule_for(code)
    if rule is not None:
        return explain(rule, error)
    title = read_text(error, "title", is_prose=True)
    details = read_text(http.as_object(error.get("error_data")), "details", is_prose=True)
    told = ": ".join(dict.fromkeys(text for text in (title, details) if text))
    return append_code(http.excerpt(told or "WhatsApp gave no reason."), code)
