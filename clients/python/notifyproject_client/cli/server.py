"""The operations of the service that ``notify`` calls."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import httpx

from .files import TypeFiles
from .rules.type_rules import Finding

API = "/api/v1"
PATH = f"{API}/type-files"
TIMEOUT = httpx.Timeout(60.0, connect=5.0)
PAGE = 100
CONFLICT = 409
INVALID = 422


class ServerError(Exception):
    """A response that isn't a success, or none."""


class RefusedError(Exception):
    """The service refuses a request, with pointers into it."""

    def __init__(self, problems: Sequence[Finding]) -> None:
        super().__init__("invalid request")
        self.problems = problems


class ConflictError(Exception):
    """Types have changed on the server. ``indexes`` are their places in the request."""

    def __init__(self, indexes: Sequence[int]) -> None:
        super().__init__("conflict")
        self.indexes = indexes


@dataclass(frozen=True, slots=True)
class ServerType:
    """A type as the server has it, or would have it."""

    slug: str
    revision: str
    files: TypeFiles
    outcome: str = "unchanged"
    version: int | None = None


@dataclass(frozen=True, slots=True)
class LocalType:
    """A type to send, and the revision that it was made from; None: it is new."""

    slug: str
    files: TypeFiles
    revision: str | None


class Server:
    """The service at a URL, called with an API key."""

    def __init__(self, url: str, *, key: str, transport: httpx.BaseTransport | None = None) -> None:
        self.url = url.rstrip("/")
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

    def types(self) -> dict[str, ServerType]:
        """Return all types by slug. Raises ServerError."""
        return {each["slug"]: _server_type(each) for each in self._all()}

    def push(
        self,
        types: Sequence[LocalType],
        *,
        publish: bool,
        dry_run: bool,
        note: str = "",
        breaks: bool = False,
    ) -> list[ServerType]:
        """Store types together. Return each as the server has or would have it.

        ``breaks``: their schemas may refuse what the published ones take.

        Raises RefusedError, ConflictError, and ServerError.
        """
        body = {
            "types": [_type_body(each) for each in types],
            "publish": publish,
            "dry_run": dry_run,
            "note": note,
            **({"confirm_breaking": [each.slug for each in types]} if breaks else {}),
        }
        answer = self._send("POST", PATH, json=body)
        return [_server_type(each) for each in answer["results"]]

    def lint(self, types: Sequence[LocalType]) -> list[Finding]:
        """Return what the server says of types. Raises RefusedError and ServerError."""
        body = {"types": [_type_body(each) for each in types]}
        answer = self._send("POST", f"{PATH}/lint", json=body)
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

    def _all(self) -> Iterator[Mapping[str, Any]]:
        query: dict[str, Any] = {"limit": PAGE}
        while True:
            page = self._send("GET", PATH, params=query)
            yield from page["results"]
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
            raise ConflictError([int(each["pointer"].split("/")[2]) for each in errors])
        if not response.is_success:
            raise ServerError(f"{self.url}: {response.status_code} {body.get('detail', '')}")
        return body


def _type_body(one: LocalType) -> dict[str, Any]:
    return {
        "slug": one.slug,
        "revision": one.revision,
        "definition": one.files.definition,
        "parts": one.files.parts,
    }


def _finding(found: Mapping[str, Any]) -> Finding:
    return Finding(
        code=found["code"],
        pointer=found["pointer"],
        detail=found["detail"],
        line=found.get("line"),
    )


def _server_type(found: Mapping[str, Any]) -> ServerType:
    return ServerType(
        slug=found["slug"],
        revision=found["revision"],
        files=TypeFiles(found["definition"], found["parts"]),
        outcome=found.get("outcome", "unchanged"),
        version=found.get("version"),
    )
