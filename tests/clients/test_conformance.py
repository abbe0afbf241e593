"""The Python client's notifiers pass the cases that every client of the service has to pass."""

import asyncio
import importlib
import json
import re
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, get_args, get_type_hints

import httpx
import pytest
from django.conf import settings
from notifyproject_client import (
    AsyncNotifier,
    InvalidCallbackError,
    NotificationError,
    NotificationRejectedError,
    Notifier,
    RetryPolicy,
    ServiceUnavailableError,
    rest,
    verify_callback,
)
from notifyproject_client.rest.types import Unset

from domain import signing
from tests.support.clients.scripted import Received, ScriptedServer, playing
from tests.support.openapi import api_document
from tests.support.tables import each_case

FOLDER = Path(settings.BASE_DIR, "clients", "conformance")
FILES = {path.stem: json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))}
KEY = "ntf_abc_secret"
SECRETS = (KEY, "123456", "ada@example.com")
"""What no error may contain."""
KINDS: Mapping[str, type[NotificationError]] = {
    "rejected": NotificationRejectedError,
    "unavailable": ServiceUnavailableError,
}
Case = Mapping[str, Any]


def _merged(below: Any, above: Any) -> Any:
    if isinstance(below, Mapping) and isinstance(above, Mapping):
        return {**below, **{name: _merged(below.get(name), above[name]) for name in above}}
    return above


def _answer(file: Mapping[str, Any], given: Any) -> dict[str, Any]:
    """Return an answer, given by its name, or as what differs from a named one."""
    if isinstance(given, str):
        return _answer(file, file["answers"][given])
    own = {name: value for name, value in given.items() if name != "as"}
    return _merged(_answer(file, given["as"]), own) if "as" in given else own


def _case(file: Mapping[str, Any], case: Case) -> Case:
    steps = [{**step, "answer": _answer(file, step["answer"])} for step in case["exchange"]]
    calls = case.get("calls") or [case.get("call", {"method": "inbox_token", "user_id": "ada"})]
    return {**case, "exchange": steps, "calls": calls}


CASES = [_case(file, one) for file in FILES.values() for one in file["cases"] if "exchange" in one]
CALLBACKS = FILES["callbacks"]["cases"]


class Waits:
    """A clock that moves by waiting."""

    def __init__(self, *, is_endless: bool) -> None:
        self.seconds: list[float] = []
        self.is_endless = is_endless
        self.has_begun = threading.Event()

    def sleep(self, seconds: float) -> None:
        self.seconds.append(seconds)

    async def sleep_async(self, seconds: float) -> None:
        self.seconds.append(seconds)
        self.has_begun.set()
        if self.is_endless:
            await asyncio.Event().wait()

    def now(self) -> float:
        return sum(self.seconds)


def _arguments(case: Case, server: ScriptedServer, waits: Waits) -> dict[str, Any]:
    given = {"path": "", "key": KEY, **case.get("notifier", {})}
    options: dict[str, Any] = {
        "url": given.get("url", server.url + given["path"]),
        "key": given["key"],
        "retry": RetryPolicy(**case.get("retry", {})),
        "clock": waits.now,
    }
    if "timeout_seconds" in case:
        options["timeout"] = httpx.Timeout(case["timeout_seconds"])
    return options


def _module(operation: str) -> ModuleType:
    name = re.sub("([A-Z])", r"_\1", operation).lower()
    (path,) = Path(rest.__file__).parent.glob(f"api/*/{name}.py")
    return importlib.import_module(f"{rest.__name__}.api.{path.parent.name}.{name}")


def _operation_arguments(function: Callable[..., Any], call: Case) -> dict[str, Any]:
    arguments = dict(call["arguments"])
    if "body" in call:
        hint = get_type_hints(function)["body"]
        (body,) = [one for one in get_args(hint) or (hint,) if one is not Unset]
        arguments["body"] = body.from_dict(call["body"])
    return arguments


def _call(notifier: Notifier | AsyncNotifier, call: Case) -> Any:
    """Make a call; the result is to be awaited if the notifier is asynchronous."""
    if "operation" in call:
        return _operate(notifier, call)
    method = getattr(notifier, call["method"])
    key = {"idempotency_key": call["idempotency_key"]} if "idempotency_key" in call else {}
    if "requests" in call:
        return method([call["requests"]["item"]] * call["requests"]["times"], **key)
    given = [
        call[name] for name in ("type", "audience", "key", "request", "user_id") if name in call
    ]
    return method(*given, **call.get("fields", {}), **key)


def _operate(notifier: Notifier | AsyncNotifier, call: Case) -> Any:
    module = _module(call["operation"])
    # A module whose operation returns nothing has only the functions with the whole response.
    suffix = "" if hasattr(module, "sync") else "_detailed"
    name = "sync" if isinstance(notifier, Notifier) else "asyncio"
    function = getattr(module, name + suffix)
    arguments = _operation_arguments(function, call)
    if call["method"] == "iterate":
        return notifier.iterate(function, **arguments)
    return function(client=notifier.rest, **arguments)


def _as_json(value: Any) -> Any:
    if isinstance(value, list):
        return [_as_json(item) for item in value]
    if hasattr(value, "parsed"):
        return value.parsed
    return value.to_dict() if hasattr(value, "to_dict") else value


def _run(case: Case, server: ScriptedServer, waits: Waits) -> Any:
    with Notifier(**_arguments(case, server, waits), sleep=waits.sleep) as notifier:
        for call in case["calls"]:
            found = _call(notifier, call)
            result = list(found) if call["method"] == "iterate" else found
    return _as_json(result)


async def _run_async(case: Case, server: ScriptedServer, waits: Waits) -> Any:
    async def ask(notifier: AsyncNotifier) -> Any:
        for call in case["calls"]:
            found = _call(notifier, call)
            result = [one async for one in found] if call["method"] == "iterate" else await found
        return _as_json(result)

    async with AsyncNotifier(
        **_arguments(case, server, waits), sleep=waits.sleep_async
    ) as notifier:
        task = asyncio.ensure_future(ask(notifier))
        if moment := case.get("cancel"):
            event = server.is_holding if moment == "attempt" else waits.has_begun
            await asyncio.to_thread(event.wait)
            task.cancel()
        return await task


def _check_request(received: Received, wanted: Mapping[str, Any]) -> None:
    for name in {"method", "path"} & wanted.keys():
        assert getattr(received, name) == wanted[name]
    if "query" in wanted:
        # A client may also send what is the default.
        assert {tuple(one) for one in wanted["query"]} <= set(received.query)
    for name, value in wanted.get("headers", {}).items():
        assert received.headers[name] == value
    if "body" in wanted:
        body = json.loads(received.body) if received.body else None
        assert body == wanted["body"]
    if "items" in wanted:
        assert len(json.loads(received.body)["notifications"]) == wanted["items"]


def _check_requests(case: Case, received: Sequence[Received]) -> None:
    assert len(received) == len(case["exchange"])
    for one, step in zip(received, case["exchange"], strict=True):
        _check_request(one, step.get("request", {}))
    if "keys" in case:
        keys = [one.headers["Idempotency-Key"] for one in received]
        same = dict(zip(case["keys"], keys, strict=True))
        assert [same[label] for label in case["keys"]] == keys
        assert len(set(keys)) == len(same)
        assert same.get(None) is None


def _check_waits(wanted: Sequence[Any], waited: Sequence[float]) -> None:
    assert len(waited) == len(wanted)
    for seconds, one in zip(waited, wanted, strict=True):
        shortest, longest = one if isinstance(one, list) else (one, one)
        assert shortest <= seconds <= longest


def _contains(found: Any, wanted: Any) -> bool:
    if isinstance(wanted, dict):
        return all(_contains(found[name], value) for name, value in wanted.items())
    if isinstance(wanted, list):
        return len(found) == len(wanted) and all(map(_contains, found, wanted))
    return bool(found == wanted)


def _check_error(case: Case, error: BaseException) -> None:
    wanted = case["error"]
    text = "".join(traceback.format_exception(error))
    given = case.get("notifier", {}).get("key")
    for secret in (*SECRETS, *([given] if given else [])):
        assert secret not in text
        assert repr(secret)[1:-1] not in text
    if wanted["kind"] == "mistake":
        assert isinstance(error, ValueError | httpx.UnsupportedProtocol | httpx.LocalProtocolError)
        return
    assert isinstance(error, KINDS[wanted["kind"]])
    for name in ("status", "code", "idempotency_key", "retry_after"):
        if name in wanted:
            assert getattr(error, name) == wanted[name]
    if "pointers" in wanted:
        assert error.problem
        assert [one.pointer for one in error.problem.errors] == wanted["pointers"]
    if "text" in wanted:
        assert str(error) == wanted["text"]


def _check(case: Case, run: Callable[[Case, ScriptedServer, Waits], Any]) -> None:
    waits = Waits(is_endless=case.get("cancel") == "wait")
    with playing(case["exchange"]) as server:
        if "error" not in case:
            assert _contains(run(case, server, waits), case["result"])
        elif case["error"]["kind"] == "cancelled":
            with pytest.raises(asyncio.CancelledError):
                run(case, server, waits)
        else:
            with pytest.raises((NotificationError, ValueError, httpx.TransportError)) as caught:
                run(case, server, waits)
            _check_error(case, caught.value)
        _check_requests(case, server.received)
    if "waits" in case:
        _check_waits(case["waits"], waits.seconds)


@each_case("case", [case for case in CASES if "cancel" not in case], at_once=True)
def test_notifier_conforms(case: Case) -> None:
    _check(case, _run)


@each_case("case", CASES, at_once=True)
def test_asynchronous_notifier_conforms(case: Case) -> None:
    def run(case: Case, server: ScriptedServer, waits: Waits) -> Any:
        return asyncio.run(_run_async(case, server, waits))

    _check(case, run)


@each_case("case", CALLBACKS)
def test_callbacks_are_verified(case: Case) -> None:
    def verify() -> dict[str, Any]:
        body = case["body"].encode()
        return verify_callback(case["headers"], body, secret=case["secrets"], now=case["now"])

    match case.get("error"):
        case None:
            assert verify() == case["event"]
        case "invalid":
            with pytest.raises(InvalidCallbackError):
                verify()
        case "mistake":
            with pytest.raises(ValueError, match="secret isn't one of the service") as caught:
                verify()
            assert not isinstance(caught.value, InvalidCallbackError)


def test_callbacks_of_the_cases_are_signed_as_the_service_signs() -> None:
    (case,) = [one for one in CALLBACKS if one["name"].endswith("endpoint's secret is genuine")]
    signed = signing.sign_headers(
        message_id=case["headers"]["webhook-id"],
        timestamp=case["now"],
        body=case["body"].encode(),
        secrets=case["secrets"],
    )
    assert signed == case["headers"]


def test_answers_of_the_cases_are_documented() -> None:
    """The client reads what the service says, so a case must not say anything else."""
    views = {"accepted": "AcceptedNotificationView", "broadcast": "BroadcastView"}
    views |= {"bulk": "BulkView", "token": "InboxTokenView", "recipient": "RecipientView"}
    schemas = api_document()["components"]["schemas"]
    for file in FILES.values():
        for name, answer in file.get("answers", {}).items():
            if name in views:
                assert answer["body"].keys() <= schemas[views[name]]["properties"].keys()
                assert {*schemas[views[name]]["required"]} <= answer["body"].keys()
