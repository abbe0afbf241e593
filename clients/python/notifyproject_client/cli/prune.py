"""What ``notify push --prune`` takes away: what the server has and the files no longer have.

A type is disabled, since its messages name it, and all else is removed. What something uses is
kept, of which the server decides.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from .kinds import TYPE, Item, locate
from .lock import Lock
from .server import LocalItem, RefusedError, ServerItem

IN_USE = "in_use"
_ACTIVE = "is_active"


@dataclass(frozen=True, slots=True)
class Gone:
    """An item that the files no longer have."""

    item: Item
    """As the server has it."""
    revision: str
    """The one that it had when the files had it, or by force, that of the server."""

    @property
    def is_removed(self) -> bool:
        """Whether the server removes it: it disables a type."""
        return self.item.kind is not TYPE

    @property
    def taken_away(self) -> str:
        """What is done to it, as a participle."""
        return "removed" if self.is_removed else "disabled"

    @property
    def sent(self) -> LocalItem:
        """What takes it away."""
        if self.is_removed:
            return LocalItem(self.item, self.revision, is_removed=True)
        content = self.item.content
        disabled = replace(content, definition={**content.definition, _ACTIVE: False})
        return LocalItem(replace(self.item, content=disabled), self.revision)


def find_gone(
    there: Mapping[str, ServerItem], lock: Lock, *, local: Collection[str], force: bool
) -> list[Gone]:
    """Return the items that the lock knows, the server has, and the files don't.

    A type that is disabled already is none. ``force``: they are replaced as they are now.
    """
    return [
        Gone(present.item, present.revision if force else known.revision)
        for key, known in lock.items()
        if key not in local
        and (present := there.get(key)) is not None
        and not is_disabled(present.item)
    ]


def find_settled(
    there: Mapping[str, ServerItem], lock: Lock, *, local: Collection[str]
) -> tuple[list[str], dict[str, str]]:
    """Return what the lock knows, the files don't have, and needs nothing more.

    That is what the server doesn't have, and the revisions of the types that are disabled already.
    """
    missing = [key for key, _ in lock.items() if key not in local]
    present = {key: there[key] for key in missing if key in there}
    disabled = {key: each.revision for key, each in present.items() if is_disabled(each.item)}
    return [key for key in missing if key not in present], disabled


def is_disabled(item: Item) -> bool:
    """Return whether it is a type that is disabled."""
    return item.kind is TYPE and item.content.definition.get(_ACTIVE) is False


def part_used(
    gone: Sequence[Gone], send: Callable[[Sequence[LocalItem]], object]
) -> tuple[list[Gone], list[tuple[Gone, str]]]:
    """Return what nothing uses, and what is used, each with the server's reason.

    ``send`` tries a set of removals with all else that is pushed. Raises what it raises otherwise.
    """
    # The types that are disabled aren't sent with them: they still use what they use.
    removed = [each for each in gone if each.is_removed]
    used: list[tuple[Gone, str]] = []
    while removed:
        try:
            send([each.sent for each in removed])
            break
        except RefusedError as refused:
            reasons = _reasons(removed, refused)
            if not reasons:
                raise
            used += [(each, reasons[each.item.key]) for each in removed if each.item.key in reasons]
            removed = [each for each in removed if each.item.key not in reasons]
    kept = {each.item.key for each, _ in used}
    return [each for each in gone if each.item.key not in kept], used


def _reasons(removed: Sequence[Gone], refused: RefusedError) -> dict[str, str]:
    """Return why items can't be removed, by their keys."""
    keys = {each.item.key for each in removed}
    reasons: dict[str, str] = {}
    for each in refused.problems:
        item, _, _ = locate(refused.sent, each.pointer)
        if each.code == IN_USE and item is not None and item.key in keys:
            reasons.setdefault(item.key, each.detail)
    return reasons
