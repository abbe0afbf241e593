from pymongo import monitoring

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

    def started(self, event: monitoring.CommandStartedEvent) -> None:
        if event.command_name in WRITES:
            self.names.add(event.command[event.command_name])
        for stage in event.command.get("pipeline", ()):
            if "$merge" in stage:
                self.names.add(stage["$merge"]["into"])


written = _WrittenCollections()
monitoring.register(written)
