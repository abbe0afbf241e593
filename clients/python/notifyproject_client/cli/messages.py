"""``notify preview``, ``send``, and ``tail``: single messages of a type, at a server."""

import argparse
import json
import tempfile
import uuid
import webbrowser
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from time import sleep
from typing import Any

from .files import FileError
from .rules.type_rules import Finding
from .screen import Screen
from .server import RefusedError, Server, ServerError

OK, REFUSED, INVALID_USE = range(3)
COMMANDS = PREVIEW, SEND, TAIL = "preview", "send", "tail"
TEST_KEY = "ntf_test_"
"""How a key begins whose messages go to the sandbox."""
EXAMPLE_ADDRESSES = {"email": "ada@example.com", "phone": "+351912345678"}
"""Nothing is sent to them: a preview has to be to somebody."""
ROUND_SECONDS = 2.0
"""Between two looks of ``tail``."""
PAGE = 100
FIELDS = ("id", "type", "status", "channels", "created_at")
Message = Mapping[str, Any]


def add_commands(commands: Any) -> list[argparse.ArgumentParser]:
    """Add the commands to a parser. Return them."""
    preview = commands.add_parser(PREVIEW, help="show a message as the server would send it")
    preview.add_argument("--channel", help="this channel alone")
    preview.add_argument("--language", help="the recipient's, such as pt-BR")
    preview.add_argument("--open", action="store_true", help="in the browser, by default the email")
    send = commands.add_parser(SEND, help="send one message")
    send.add_argument("--to", required=True, help="an email address, a phone number, or a user ID")
    send.add_argument("--channel", action="append", help="of the type's channels, only these")
    send.add_argument("--key", help="the idempotency key, to repeat what perhaps was sent")
    send.add_argument("--test", action="store_true", help="refuse a key that isn't a test key")
    for command in (preview, send):
        command.add_argument("slug", metavar="TYPE")
        command.add_argument("--data", type=Path, metavar="FILE", help="the data, as JSON")
    tail = commands.add_parser(TAIL, help="show messages, and what becomes of them")
    tail.add_argument("--type", dest="slug", help="of this type alone")
    tail.add_argument("--last", type=int, default=10, help="how many earlier ones, by default 10")
    tail.add_argument("--once", action="store_true", help="show the earlier ones, and end")
    return [preview, send, tail]


def run(options: argparse.Namespace, server: Server, screen: Screen, *, is_test_key: bool) -> int:
    """Run one of the commands. Return its exit code. Raises FileError and ServerError."""
    try:
        if options.command == TAIL:
            return _tail(options, server, screen)
        if options.command == SEND:
            return _send(options, server, screen, is_test_key=is_test_key)
        return _preview(options, server, screen)
    except RefusedError as refused:
        for problem in refused.problems:
            screen.warn(f"{problem.pointer.removeprefix('/')}: {problem.detail}")
        if options.json:
            screen.say(json.dumps({"errors": [_refusal(each) for each in refused.problems]}))
        return REFUSED


def _refusal(problem: Finding) -> Mapping[str, str]:
    return {"pointer": problem.pointer, "code": problem.code, "detail": problem.detail}


def _preview(options: argparse.Namespace, server: Server, screen: Screen) -> int:
    recipient = EXAMPLE_ADDRESSES | ({"locale": options.language} if options.language else {})
    data = _given(options.data) if options.data else server.example_data(options.slug)
    body = {"type": options.slug, "recipient": recipient, "data": data}
    shown = server.preview(body)
    wanted = options.channel or ("email" if options.open else None)
    channels = [each for each in shown["channels"] if wanted in (None, each["channel"])]
    if not channels:
        names = ", ".join(each["channel"] for each in shown["channels"])
        screen.warn(f"There is no channel {wanted}, but {names}.")
        return INVALID_USE
    if options.json:
        screen.say(json.dumps({**shown, "channels": channels}, ensure_ascii=False))
    elif not options.open:
        for each in channels:
            screen.say(_described(each))
    if options.open:
        path = _written(channels[0])
        screen.warn(str(path))
        webbrowser.open(path.as_uri())
    return OK


def _described(channel: Message) -> str:
    notes = (channel.get("reason"), channel.get("problem"))
    state = "" if channel["would_send"] else " (not sent)"
    lines = [f"== {channel['channel']}{state}", *(note for note in notes if note)]
    if channel.get("subject"):
        lines.append(f"Subject: {channel['subject']}")
    return "\n".join([*lines, channel.get("text") or "", ""])


def _written(channel: Message) -> Path:
    """Return a new file with a channel's message for a browser."""
    text = channel.get("html") or f"<pre>{escape(_described(channel))}</pre>"
    with tempfile.NamedTemporaryFile(
        "w", suffix=".html", prefix="notify-", delete=False, encoding="utf-8"
    ) as file:
        file.write(text)
    return Path(file.name)


def _send(options: argparse.Namespace, server: Server, screen: Screen, *, is_test_key: bool) -> int:
    if options.test and not is_test_key:
        screen.warn(f"The key isn't a test key, which begins with {TEST_KEY}. Nothing sent.")
        return INVALID_USE
    # An example is sent to nobody but the sandbox.
    example = server.example_data(options.slug) if options.test and not options.data else {}
    body = {
        "type": options.slug,
        **_recipient(options.to),
        "data": _given(options.data) if options.data else example,
        **({"channels": options.channel} if options.channel else {}),
    }
    key = options.key or str(uuid.uuid4())
    try:
        accepted = server.send(body, key=key)
    except ServerError:
        screen.warn(f"Perhaps it was accepted. Repeat it with --key {key}: it is sent once.")
        raise
    shown = {name: accepted[name] for name in FIELDS}
    for warning in accepted["warnings"]:
        place = warning["pointer"] or warning["channel"] or ""
        screen.warn(f"{place.removeprefix('/')}: {warning['detail']}")
    screen.say(json.dumps(shown, ensure_ascii=False) if options.json else _line(shown))
    return OK


def _recipient(to: str) -> dict[str, Any]:
    if "@" in to:
        return {"recipient": {"email": to}}
    return {"recipient": {"phone": to}} if to.startswith("+") else {"user_id": to}


def _given(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise FileError(path, str(error)) from error


def _tail(options: argparse.Namespace, server: Server, screen: Screen) -> int:
    seen: dict[str, str] = {}
    for number, found in enumerate(_rounds(options, server)):
        # Newest first, and those before the first look only as far as they are asked for.
        shown = found[: options.last] if number == 0 else found
        for each in reversed(shown):
            if seen.get(each["id"]) != each["status"]:
                screen.say(json.dumps(each, ensure_ascii=False) if options.json else _line(each))
        seen = {each["id"]: each["status"] for each in found}
    return OK


def _rounds(options: argparse.Namespace, server: Server) -> Iterator[Sequence[Message]]:
    query = {"limit": PAGE, "fields": ",".join(FIELDS)}
    if options.slug:
        query["type"] = options.slug
    yield server.notifications(query)
    try:
        while not options.once:
            sleep(ROUND_SECONDS)
            yield server.notifications(query)
    except KeyboardInterrupt:
        return


def _line(one: Message) -> str:
    return " ".join(
        (one["created_at"], one["id"], one["type"], one["status"], ",".join(one["channels"]))
    )
