"""Search of recipients by user ID, address, or name, also while it is typed; each has an index."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import structlog
from pymongo.errors import OperationFailure

from recipients.documents import RECIPIENTS
from recipients.masking import can_search_addresses
from recipients.registration import NAME_WORDS, name_words

from ..widgets.search import searched_addresses, without_separators

MAX_RESULTS = 200
MIN_BEGINNING = 2
"""Characters from which a beginning is searched for: fewer begin too much."""
MIN_DIGITS = 4
MAX_WORDS = 8
INDEX_NOT_FOUND = 27
"""MongoDB's code for a search of words without a text index."""
log = structlog.get_logger(__name__)
_WORD = re.compile(r"\w+")
_LAST = "\uffff"
"""Sorts after every character that an ID or an address begins with."""


def find_ids(text: str, *, user: Any, cap: int = MAX_RESULTS) -> list[str]:
    """Return the user IDs that a text may mean, the exact ones first.

    Exact are a user ID, an address, and whole words of a name. Then come those that begin with the
    text, at most ``cap`` of each kind: user IDs, the words of a name in any order, and addresses,
    unless the user sees them masked.
    """
    found = dict.fromkeys(_read({"_id": text}, cap=cap))
    addresses = searched_addresses(text, user=user)
    for spelling in addresses.emails:
        found |= dict.fromkeys(_read({"email": spelling}, cap=cap))
    if addresses.phone:
        found |= dict.fromkeys(_read({"phone": addresses.phone}, cap=cap))
    words = _WORD.findall(text)
    # An address and an ID aren't names: their words, such as "com", are in many documents.
    if words and "@" not in text and any(word.isalpha() for word in words):
        found |= dict.fromkeys(_named(words, cap=cap))
    if not addresses.is_refused:
        for condition in _beginnings(text, user=user):
            if len(found) < cap:
                found |= dict.fromkeys(_read(condition, cap=cap))
    return list(found)


def _beginnings(text: str, *, user: Any) -> list[Mapping[str, Any]]:
    """Return the conditions for what begins with a text, each a range of one index."""
    if len(text) < MIN_BEGINNING:
        return []
    conditions: list[Mapping[str, Any]] = [{"_id": _range(text)}]
    if words := name_words(text):
        conditions.append({"$and": [{NAME_WORDS: {"$regex": f"^{re.escape(w)}"}} for w in words]})
    # To begin an address is to search by it: who sees masked ones could guess letter by letter.
    if can_search_addresses(user):
        conditions += [{"email": _range(beginning)} for beginning in sorted({text, text.lower()})]
        number = without_separators(text)
        if number.startswith("+") and len(number) > MIN_DIGITS:
            conditions.append({"phone": _range(number)})
    return conditions


def _range(text: str) -> dict[str, str]:
    return {"$gte": text, "$lt": text + _LAST}


def _named(words: Sequence[str], *, cap: int) -> list[str]:
    every_word = " ".join(f'"{word}"' for word in words[:MAX_WORDS])
    try:
        return _read({"$text": {"$search": every_word}}, cap=cap)
    except OperationFailure as error:
        if error.code != INDEX_NOT_FOUND:
            raise
        log.warning("name_index_missing", index="rcp_name")
        return []


def _read(condition: Mapping[str, Any], *, cap: int) -> list[str]:
    found = RECIPIENTS().find(condition, {"_id": 1}, limit=cap)
    return [row["_id"] for row in found]
