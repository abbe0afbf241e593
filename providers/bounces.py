"""What the bounces of email say about addresses, by whichever provider."""

import re
from collections.abc import Mapping
from typing import Any

from .contract import AddressEffect
from .mail_replies import Reply, Step, Subject

MAX_ADDRESS = 320
"""Characters of a mailbox and a domain at most."""
PERMANENT_FAILURE = 550
SUBJECTS: Mapping[Subject, AddressEffect] = {
    Subject.RECIPIENT: AddressEffect.HARD_BOUNCE,
    Subject.FULL_MAILBOX: AddressEffect.SOFT_BOUNCE,
    Subject.BUSY_MAILBOX: AddressEffect.SOFT_BOUNCE,
    Subject.UNCLEAR: AddressEffect.SOFT_BOUNCE,
}
"""The effect of a bounce on the address by what the receiving server's reply speaks of. Without
one, it isn't about the address."""
_IN_BRACKETS = re.compile(r"<([^<>]*)>\s*\Z")
_LIST = re.compile("[,;<>]")


def subject_of(status: int, text: str) -> Subject:
    """Return what the receiving server's reply speaks of."""
    return Reply(step=Step.RECIPIENT, status=status, text=text).subject


def effect_of(text: str, status: int = PERMANENT_FAILURE) -> AddressEffect | None:
    """Return the effect of a bounce by the receiving server's reply. None: not the address's."""
    return SUBJECTS.get(subject_of(status, text))


def reply_in(diagnostic: str) -> str:
    """Return the receiving server's reply, such as that in ``smtp; 550 5.1.1 user unknown``."""
    return diagnostic.partition(";")[2].strip() or diagnostic


def email_address(value: Any) -> str | None:
    """Return an email address of an event. Anything else is none."""
    if not isinstance(value, str):
        return None
    found = _IN_BRACKETS.search(value)
    address = (found[1] if found else value).strip()
    is_one = "@" in address and len(address) <= MAX_ADDRESS and address.isprintable()
    is_plain = address.startswith('"') or not _LIST.search(address)
    return address if is_one and is_plain and " " not in address else None
