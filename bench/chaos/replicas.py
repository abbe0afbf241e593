"""A MongoDB replica set for one run: one member, or three, of which one may fail."""

import contextlib
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pymongo import MongoClient
from pymongo.errors import AutoReconnect, PyMongoError

from notifyproject.stack import servers
from notifyproject.stack.servers import HOST, REPLICA_SET, Server

from ..processes import wait_until

ELECTION_SECONDS = 60.0


class ReplicaSet:
    """Members that can be killed and restarted."""

    def __init__(self, *, folder: Path, members: int, parameters: tuple[str, ...] = ()) -> None:
        folders = (folder / f"mongod-{number}" for number in range(members))
        self.members: Sequence[Server] = [
            servers.mongod(data_dir=folder, port=servers.free_port(), parameters=parameters)
            for folder in folders
        ]

    def uri(self, database: str) -> str:
        """Return the URI of a database."""
        hosts = ",".join(f"{HOST}:{member.port}" for member in self.members)
        return f"mongodb://{hosts}/{database}?replicaSet={REPLICA_SET}"

    def start(self) -> None:
        """Start every member and wait for a primary."""
        for member in self.members:
            member.start()
        hosts = enumerate(f"{HOST}:{member.port}" for member in self.members)
        members = [{"_id": number, "host": host} for number, host in hosts]
        configuration: dict[str, Any] = {"_id": REPLICA_SET, "members": members}
        configuration["settings"] = {"electionTimeoutMillis": 1000}
        with _direct(self.members[0]) as client:
            client.admin.command("replSetInitiate", configuration)
        wait_until(self.primary, timeout=ELECTION_SECONDS, what="there is no primary")

    def primary(self) -> Server | None:
        """Return the current primary; None during an election."""
        running = (member for member in self.members if member.process is not None)
        return next(filter(_is_primary, running), None)

    def kill_primary(self) -> Server:
        """Kill the primary and return its server, whose ``start()`` restarts it."""
        while (primary := self.primary()) is None:
            time.sleep(0.1)
        primary.kill()
        return primary

    def step_down(self, *, seconds: int) -> None:
        """Make the primary step down, and not become primary again for some seconds."""
        primary = self.primary()
        if primary is not None:
            with _direct(primary) as client, contextlib.suppress(AutoReconnect):
                client.admin.command("replSetStepDown", seconds, force=True)

    def wait_healthy(self) -> None:
        """Wait until there is a primary and every other member follows it."""
        wait_until(self._is_healthy, timeout=ELECTION_SECONDS, what="the set is not whole again")

    def _is_healthy(self) -> bool:
        primary = self.primary()
        if primary is None:
            return False
        with _direct(primary) as client:
            members = client.admin.command("replSetGetStatus")["members"]
        states = sorted(member["stateStr"] for member in members)
        return states == ["PRIMARY"] + ["SECONDARY"] * (len(self.members) - 1)

    def stop(self) -> None:
        """Kill every member."""
        for member in self.members:
            member.kill()


def _is_primary(server: Server) -> bool:
    try:
        with _direct(server) as client:
            return bool(client.admin.command("hello").get("isWritablePrimary"))
    except PyMongoError:
        return False


def _direct(server: Server) -> MongoClient[dict[str, Any]]:
    return MongoClient(HOST, server.port, directConnection=True, serverSelectionTimeoutMS=2_000)
