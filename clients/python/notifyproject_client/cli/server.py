"""The operations of the service that ``notify`` calls."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import httpx

from .kinds import BESIDE, KINDS, LIMIT, TYPE, Item, Kind
from .rules.type_rules import Finding

API = "/api/v1"
PATH, DESIGN = f"{API}/type-files", f"{API}/design"
TIMEOUT = httpx.Timeout(60.0, connect=5.0)
PAGE = 100
CONFLICT = 409
INVALID = 422


class ServerError(Exception):
    """A response that isn't a success, or none."""


class _PointingError(Exception):
    """An answer with pointers into the request."""

    sent: Sequence[Item] = ()
    """The items of the request, in their order."""


class RefusedError(_PointingError):
    """The service refuses a request, with pointers into it."""

    def __init__(self, problems: Sequence[Finding]) -> None:
        super().__init__("invalid request")
        self.problems = problems


class ConflictError(_PointingError):
    """Items have changed on the server, with pointers into the request."""

    def __init__(self, pointers: Sequence[str]) -> None:
        super().__init__("conflict")
        self.pointers = pointers


@dataclass(frozen=True, slots=True)
class ServerItem:
    """An item as the server has it, or would have it."""

    item: Item
    revision: str
    outcome: str = "unchanged"
    version: int | None = None
    emergency_changes: Sequence[Mapping[str, str]] = ()

    @property
    def emergencies(self) -> str:
        """What staff have changed of it in emergencies since the last push, in lines."""
        return "".join(
            f"Changed on the server in an emergency, {each['at']} by {each['by']}: "
            f"{each['reason']}\n"
            for each in self.emergency_changes
        )


@dataclass(frozen=True, slots=True)
class LocalItem:
    """An item to send, and the revision that it was made from; None: it is new."""

    item: Item
    revision: str | None
    is_removed: bool = False
    """Whether it is sent without content, which removes it. A type can't be."""


class Server:
    """The service at a URL, called with an API key."""

    def __init__(
        self,
        url: str,
        *,
        key: str,
        transport: httpx.BaseTransport | None = None,
        progress: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.url = url.rstrip("/")
        self._progress = progress
        self._http = httpx.Client(
            base_url=self.url,
            headers={"Authorization": f"Bearer {key}"},
            timeout=TIMEOUT,
            transport=transport,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._http.close()

    def items(self) -> dict[str, ServerItem]:
        """Return all items by their keys. Raises ServerError."""
        pages = [*self._pages()]
        beside = {**self._send("GET", DESIGN), LIMIT.folder: pages[0].get(LIMIT.folder, [])}
        types = (each for page in pages for each in page["results"])
        return {each.item.key: each for each in _server_items(types, beside)}

    def push(
        self,
        local: Sequence[LocalItem],
        *,
        publish: bool,
        dry_run: bool,
        note: str = "",
        breaks: bool = False,
    ) -> list[ServerItem]:
        """Store items together. Return each that isn't removed, as the server has or would have it.

        ``breaks``: their schemas may refuse what the published ones take.

        Raises RefusedError, ConflictError, and ServerError.
        """
        self._progress(f"{'Checking' if dry_run else 'Storing'} {len(local)} at {self.url} …")
        body = {"publish": publish, "dry_run": dry_run, "note": note, **_lists(local)}
        if breaks:
            body["confirm_breaking"] = [each["slug"] for each in body[TYPE.folder]]
        try:
            answer = self._send("POST", PATH, json=body)
        except _PointingError as error:
            error.sent = [each.item for each in local]
            raise
        return [*_server_items(answer["results"], answer)]

    def lint(self, local: Sequence[LocalItem]) -> list[Finding]:
        """Return what the server says of items. Raises RefusedError and ServerError."""
        self._progress(f"Checking {len(local)} at {self.url} …")
        answer = self._send("POST", f"{PATH}/lint", json=_lists(local))
        return [_finding(each) for each in answer["findings"]]

    def example_data(self, slug: str) -> Mapping[str, Any]:
        """Return the example data of a type. Raises ServerError."""
        data: Mapping[str, Any] = self._send("GET", f"{API}/types/{slug}")["example_data"]
        return data

    def preview(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a message as it would be sent. Raises RefusedError and ServerError."""
        return self._send("POST", f"{API}/notifications/preview", json=body)

    def send(self, body: Mapping[str, Any], *, key: str) -> Mapping[str, Any]:
        """Send a message once by key. Raises RefusedError and ServerError."""
        headers = {"Idempotency-Key": key}
        return self._send("POST", f"{API}/notifications", json=body, headers=headers)

    def notifications(self, query: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
        """Return the first page of messages, newest first. Raises ServerError."""
        found: Sequence[Mapping[str, Any]]
        found = self._send("GET", f"{API}/notifications", params=query)["results"]
        return found

    def _pages(self) -> Iterator[Mapping[str, Any]]:
        query: dict[str, Any] = {"limit": PAGE}
        count = 0
        while True:
            self._progress(f"Reading types at {self.url} … {count or ''}")
            page = self._send("GET", PATH, params=query)
            count += len(page["results"])
            yield page
            if not page["next"]:
                return
            query["cursor"] = page["next"]

    def _send(self, method: str, path: str, **options: Any) -> Mapping[str, Any]:
        try:
            response = self._http.request(method, path, **options)
            body = response.json()
        except (httpx.HTTPError, ValueError) as error:
            raise ServerError(f"{self.url}: {error or type(error).__name__}") from error
        if not isinstance(body, dict):
            raise ServerError(f"{self.url}: {response.status_code} without a JSON object")
        errors = body.get("errors") or []
        if response.status_code == INVALID and errors:
            raise RefusedError([_finding(each) for each in errors])
        if response.status_code == CONFLICT and body.get("code") == "revision_conflict":
            raise ConflictError([each["pointer"] for each in errors])
        if not response.is_success:
            raise ServerError(f"{self.url}: {response.status_code} {body.get('detail', '')}")
        return body


def _lists(local: Sequence[LocalItem]) -> dict[str, Any]:
    """Return items as the lists of a request, one for each kind."""
    lists: dict[str, list[dict[str, Any]]] = {kind.folder: [] for kind in KINDS}
    for each in local:
        kind, name = each.item.kind, each.item.name
        given = {"name": name} if each.is_removed else kind.to_request(name, each.item.content)
        lists[kind.folder].append({**given, "revision": each.revision})
    return dict(lists)


def _finding(found: Mapping[str, Any]) -> Finding:
    return Finding(
        code=found["code"],
        pointer=found["pointer"],
        detail=found["detail"],
        line=found.get("line"),
    )


def _server_items(
    types: Iterable[Mapping[str, Any]], beside: Mapping[str, Any]
) -> Iterator[ServerItem]:
    for each in types:
        yield _server_item(TYPE, each)
    for kind in BESIDE:
        for each in beside[kind.folder]:
            if each["revision"] is not None:
                yield _server_item(kind, each)


def _server_item(kind: Kind, found: Mapping[str, Any]) -> ServerItem:
    name = found["slug"] if kind is TYPE else found["name"]
    return ServerItem(
        Item(kind, name, kind.of_response(found)),
        revision=found["revision"],
        outcome=found.get("outcome", "unchanged"),
        version=found.get("version"),
        emergency_changes=found.get("emergency_changes", ()),
    )
