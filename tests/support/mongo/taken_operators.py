"""The MongoDB operators that commands took from a request."""

from collections.abc import Iterator
from typing import Any

from pymongo import monitoring

from tests.support.mongo.written_collections import StartedListener

MARKER = "from-a-request"
"""The operand of operators in hostile requests."""


class TakenOperators(StartedListener):
    """Records the commands with an operator whose operand is MARKER, in a filter or a pipeline."""

    def __init__(self) -> None:
        self.commands: list[str] = []

    def started(self, event: monitoring.CommandStartedEvent) -> None:
        if any(_is_taken(item) for item in _filters(event.command)):
            self.commands.append(f"{event.command_name}: {dict(event.command)!r:.300}")


taken = TakenOperators()
monitoring.register(taken)


def _filters(command: Any) -> Iterator[Any]:
    for name in ("filter", "query", "pipeline"):
        yield command.get(name)
    for name in ("updates", "deletes"):
        yield from (item.get("q") for item in command.get(name, ()))


def _is_taken(node: Any) -> bool:
    if isinstance(node, dict):
        return any(
            (str(name).startswith("$") and value == MARKER and name != "$literal")
            or _is_taken(value)
            for name, value in node.items()
        )
    return isinstance(node, list) and any(map(_is_taken, node))
