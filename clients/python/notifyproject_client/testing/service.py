"""Where tests send: a service with a test key, or the one in memory."""

from dataclasses import dataclass, field
from pathlib import Path

import httpx

from ..errors import NotificationError
from ..notifier import AsyncNotifier, Notifier, rest_client
from ..rest.api.test import list_test_outbox
from . import memory
from .checks import NotInMemoryError
from .clock import Clock
from .memory import MemoryService
from .outbox import SECONDS, Outbox

CHECK_SECONDS = 10.0
NOT_THE_API = "It isn't the API of this service."


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """A service and the key of one test client.

    ``memory`` is the service in memory, and None if ``url`` is one that runs.
    """

    url: str
    key: str = field(repr=False)
    memory: MemoryService | None = None

    @property
    def transport(self) -> httpx.MockTransport | None:
        """The transport of a notifier: None for a service that runs."""
        return None if self.memory is None else self.memory.transport

    def problem(self) -> str | None:
        """Return why tests can't use the service, or None if they can."""
        if self.memory is not None:
            return None
        rest = rest_client(self.url, self.key, httpx.Timeout(CHECK_SECONDS))
        try:
            list_test_outbox.sync(client=rest, limit=1)
        except NotificationError as error:
            detail = error.problem.detail if error.problem else NOT_THE_API
            return f"NOTIFY_URL: {self.url} answers {error.status}. {detail}"
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            return f"NOTIFY_URL: {self.url} doesn't answer: {type(error).__name__}."
        except (ValueError, KeyError):
            return f"NOTIFY_URL: {self.url} answers. {NOT_THE_API}"
        finally:
            rest.get_httpx_client().close()
        return None

    def notifier(self) -> Notifier:
        """Return a new notifier. Close it at the end."""
        return Notifier(self.url, key=self.key, transport=self.transport)

    def async_notifier(self) -> AsyncNotifier:
        """Return a new notifier for asyncio. Close it at the end."""
        return AsyncNotifier(self.url, key=self.key, transport=self.transport)

    def clock(self) -> Clock:
        """Return the test clock. Close it at the end. Raises NotInMemoryError."""
        if self.memory is not None:
            raise NotInMemoryError("The service in memory has no time: set NOTIFY_URL.")
        return Clock(self.url, key=self.key)

    def outbox(self, notifier: Notifier) -> Outbox:
        """Return the outbox, which reads by a notifier of this service."""
        return Outbox(notifier, seconds=SECONDS if self.memory is None else 0)


def in_memory(types: Path | None = None) -> Service:
    """Return a service in memory, with the types of a folder. Raises FileError."""
    return Service(url=memory.URL, key=memory.KEY, memory=MemoryService(types=types))
