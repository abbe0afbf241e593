"""The Python module that a program imports to have its data checked by a type checker."""

import keyword
import re
from collections.abc import Iterator

from .declarations import Declaration, Field, Module, Notation, TypeData, comment

HEAD = '''\
"""Notification types and their data. ``notify types generate`` writes this file."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NotRequired, TypedDict, Unpack, overload

import notifyproject_client as client

__all__ = ["AsyncNotifier", "Notifier"]
'''
PYTHON = Notation(
    names={
        "string": "str",
        "integer": "int",
        "number": "float",
        "boolean": "bool",
        "null": "None",
        "any": "Any",
    },
    value=ascii,
    one_of="Literal[{}]",
    between_values=", ",
    list_of="Sequence[{}]",
    map_of="Mapping[str, {}]",
)
# Names with two leading low lines would be mangled in a class.
_ATTRIBUTE = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


def python_code(module: Module) -> str:
    """Return the module: a TypedDict of each type's data, and notifiers that know them."""
    blocks = [HEAD, *(_declaration(each) for each in module.declarations)]
    if module.types:
        blocks += [
            _notifier(module.types, name="Notifier", prefix=""),
            _notifier(module.types, name="AsyncNotifier", prefix="async "),
        ]
    else:
        blocks.append("Notifier, AsyncNotifier = client.Notifier, client.AsyncNotifier\n")
    return "\n\n".join(blocks)


def _declaration(declaration: Declaration) -> str:
    if all(_is_attribute(each.name) for each in declaration.fields):
        note = comment(declaration.note).replace("\\", r"\\").replace('"', r"\"")
        lines = [f"class {declaration.name}(TypedDict):"]
        lines += [f'    """{note}"""', ""] if note else []
        lines += _fields(declaration.fields, "{name}: {shape}")
    else:
        lines = [f'{declaration.name} = TypedDict(\n    "{declaration.name}",\n    {{']
        lines += [f"    {line}" for line in _fields(declaration.fields, "{key}: {shape},")]
        lines.append("    },\n)")
    return "\n".join(lines) + "\n"


def _is_attribute(name: str) -> bool:
    return bool(_ATTRIBUTE.fullmatch(name)) and not keyword.iskeyword(name)


def _fields(fields: tuple[Field, ...], form: str) -> Iterator[str]:
    for each in fields:
        if note := comment(each.note):
            yield f"    # {note}"
        shape = PYTHON.write(each.shape)
        shape = shape if each.is_required else f"NotRequired[{shape}]"
        yield "    " + form.format(name=each.name, key=ascii(each.name), shape=shape)


def _notifier(types: list[TypeData], *, name: str, prefix: str) -> str:
    lines = [f"class {name}(client.{name}):", f'    """A {name} that knows the data of types."""']
    is_overloaded = len(types) > 1
    for index, each in enumerate(types):
        # Narrower than the method of the class above, which takes any type and any data.
        ignored = "  # type: ignore[override]" if index == 0 else ""
        data = (
            PYTHON.write(each.shape)
            if each.is_required
            else f"{PYTHON.write(each.shape)} | None = None"
        )
        lines += [
            "",
            *([f"    @overload{ignored}"] if is_overloaded else []),
            f"    {prefix}def notify({'' if is_overloaded else ignored}",
            "        self,",
            f"        type_slug: Literal[{each.slug!r}],",
            "        *,",
            f"        data: {data},",
            "        idempotency_key: str | None = None,",
            "        **fields: Unpack[client.NotificationFields],",
            "    ) -> client.AcceptedNotificationView:" + (" ..." if is_overloaded else ""),
        ]
    wait = "await " if prefix else ""
    if is_overloaded:
        lines += [
            "",
            f"    {prefix}def notify(",
            "        self, type_slug: str, **fields: Any",
            "    ) -> client.AcceptedNotificationView:",
            '        """Send a notification of a type that this module knows."""',
            f"        return {wait}super().notify(type_slug, **fields)",
        ]
    else:
        lines += [
            '        """Send a notification of the type that this module knows."""',
            f"        return {wait}super().notify(",
            "            type_slug, data=data, idempotency_key=idempotency_key, **fields",
            "        )",
        ]
    return "\n".join(lines) + "\n"
