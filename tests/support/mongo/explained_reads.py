"""The reads of a page, and their explained plans."""

from typing import Any

from django.test import Client
from pymongo import monitoring

from notifyproject.db.collections import database
from tests.support.mongo.written_collections import StartedListener

READS = frozenset({"find", "aggregate", "count", "distinct"})
NOT_EXPLAINED = frozenset({"lsid", "$db", "$clusterTime", "$readPreference", "maxTimeMS"})


class _Reads(StartedListener):
    """Records reads while it is on."""

    def __init__(self) -> None:
        self.commands: list[dict[str, Any]] = []
        self.is_on = False

    def started(self, event: monitoring.CommandStartedEvent) -> None:
        if self.is_on and event.command_name in READS:
            self.commands.append(dict(event.command))


reads = _Reads()
monitoring.register(reads)


class Plan:
    """The plan of a read."""

    def __init__(self, command: dict[str, Any]) -> None:
        self.collection = str(next(iter(command.values())))
        explainable = {name: value for name, value in command.items() if name not in NOT_EXPLAINED}
        self.explained = database().command("explain", explainable, verbosity="executionStats")

    @property
    def stages(self) -> set[str]:
        found: set[str] = set()
        for plan in _values(self.explained, "winningPlan"):
            # A field of a document may have this name, too.
            found |= {name for name in _values(plan, "stage") if isinstance(name, str)}
        return found

    @property
    def documents_examined(self) -> int:
        return max(_values(self.explained, "totalDocsExamined"), default=0)


def _values(node: Any, name: str) -> list[Any]:
    """Return every value under ``name``, at any depth."""
    found = []
    if isinstance(node, dict):
        found += [node[name]] if name in node else []
        found += [v for child in node.values() for v in _values(child, name)]
    elif isinstance(node, list):
        found += [v for child in node for v in _values(child, name)]
    return found


def plans(client: Client, url: str, *, of: str) -> list[Plan]:
    """Return the plans of a page's reads of one collection."""
    reads.commands.clear()
    reads.is_on = True
    try:
        response = client.get(url)
    finally:
        reads.is_on = False
    assert response.status_code == 200
    return [Plan(c) for c in reads.commands if str(next(iter(c.values()))) == of]
