"""Search of recipients by user ID, address, or words of the name; each has an index."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import structlog
from pymongo.errors import OperationFailure

from notifyproject.db.collections import collection

from ..widgets.search import searched_addresses

MAX_RESULTS = 200
MAX_WORDS = 8
INDEX_NOT_FOUND = 27
"""MongoDB's code for a search of words without a text index."""
log = structlog.get_logger(__name__)
_WORD = re.compile(r"\w+")


def find_ids(text: str, *, user: Any, cap: int = MAX_RESULTS) -> list[str]:
    """Return the user IDs that a text may mean, at most ``cap`` of each kind.

    A name is found by whole words in any order, case, and accents.
    """
    found = dict.fromkeys(_read({"_id": text}, cap=cap))
    addresses = searched_addresses(text, user=user)
    for spelling in addresses.emails:
        found |= dict.fromkeys(_read({"email": spelling}, cap=cap))
    if addresses.phone:
        found |= dict.fromkeys(_read({"phone": addresses.phone}, cap=cap))
    words = _WORD.findall(text)[:MAX_WORDS]
    # An address and an ID aren't names: their words, such as "com", are in many documents.
    if words and "@" not in text and any(word.isalpha() for word in words):
        found |= dict.fromkeys(_named(words, cap=cap))
    return list(found)


def _named(words: Sequence[str], *, cap: int) -> list[str]:
    every_word = " ".join(f'"{word}"' for word in words)
    try:
        return _read({"$text": {"$search": every_word}}, cap=cap)
    except OperationFailure as error:
        if error.code != INDEX_NOT_FOUND:
            raise
        log.warning("name_index_missing", index="rcp_name")
        return []


def _read(condition: Mapping[str, Any], *, cap: int) -> list[str]:
    found = collection("recipients").find(condition, {"_id": 1}, limit=cap)
    return [row["_id"] for row in found]
