from pymongo import monitoring

READS = frozenset({"find", "aggregate", "count", "getMore"})
WRITES = frozenset({"insert", "update", "delete", "findAndModify"})


class StartedListener(monitoring.CommandListener):
    def succeeded(self, event: monitoring.CommandSucceededEvent) -> None:
        pass

    def failed(self, event: monitoring.CommandFailedEvent) -> None:
        pass


class _WrittenCollections(StartedListener):
    """Records the collections that a test writes to, so that only those are emptied."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.by_others = False
        """Whether another process has written, too."""

    def forget(self) -> None:
        """Begin anew: what is stored by now stays after the next test."""
        self.names.clear()
        self.by_others = False

    def started(self, event: monitoring.CommandStartedEvent) -> None:
        if event.command_name in WRITES:
            self.names.add(event.command[event.command_name])
        for stage in event.command.get("pipeline", ()):
            if "$merge" in stage:
                self.names.add(stage["$merge"]["into"])


class _CountedReads(StartedListener):
    """Counts the reads of this process; the server counts those of others as well."""

    def __init__(self) -> None:
        self.count = 0

    def started(self, event: monitoring.CommandStartedEvent) -> None:
        self.count += event.command_name in READS


reads = _CountedReads()
monitoring.register(reads)
written = _WrittenCollections()
monitoring.register(written)
