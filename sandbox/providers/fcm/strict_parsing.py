"""Parsing of requests as strict as Google's: unknown fields and wrong types are errors."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import msgspec

from .schema import FIELDS, PACKAGE, EnumType, ListType, MessageType, ScalarType, Type, Violation

SMALLEST, LARGEST = -(2**31), 2**31 - 1
_DURATION = re.compile(r"-?[0-9]{1,12}(\.[0-9]{1,9})?s", re.ASCII)
_TARGETS = ("token", "fid", "topic", "condition")


def parse(body: Any) -> tuple[dict[str, Any], list[Violation]]:
    """Return a request with snake-case names, and its violations."""
    reader = _Reader()
    if not isinstance(body, dict):
        return {}, [_payload_violation("Root element must be a message.", field="")]
    found = reader.fields(body, "SendMessageRequest", path="")
    message = found.get("message", {})
    targets = [name for name in _TARGETS if message.get(name)]
    is_set = "Invalid value at 'message' (oneof), oneof field 'target' is already set."
    for extra in targets[1:]:
        reader.violations.append(Violation("message", f"{is_set} Cannot set '{extra}'"))
    return found, reader.violations


@dataclass(frozen=True, slots=True)
class _Reader:
    """Parses values by type and collects violations."""

    violations: list[Violation] = field(default_factory=list)

    def fields(self, given: Mapping[str, Any], owner: str, *, path: str) -> dict[str, Any]:
        """Parse an object of type ``owner``. A field that is null counts as missing."""
        known = FIELDS[owner]
        found: dict[str, Any] = {}
        for name, value in given.items():
            if name not in known:
                where = f" at '{path}'" if path else ""
                problem = f'Unknown name "{name}"{where}: Cannot find field.'
                self.violations.append(_payload_violation(problem, field=path))
            elif value is not None:
                snake, kind = known[name]
                found[snake] = self._value(value, kind, path=f"{path}.{snake}" if path else snake)
        return found

    def _value(self, value: Any, kind: Type, *, path: str) -> Any:
        found: Any
        match kind:
            case MessageType(name) if isinstance(value, dict):
                found = self.fields(value, name, path=path)
            case MessageType(name):
                found = self._add_violation(path, f"{PACKAGE}.{name}", value, default={})
            case ListType(of):
                listed = enumerate(value if isinstance(value, list) else [value])
                found = [self._value(item, of, path=f"{path}[{n}]") for n, item in listed]
            case EnumType(_, values) if isinstance(value, str) and value.upper() in values:
                found = value.upper()
            case EnumType(name):
                found = self._add_violation(path, f"{PACKAGE}.{name}", value)
            case ScalarType.STRING_MAP:
                found = self._string_map(value, path=path)
            case _:
                fits = _TYPE_CHECKS[kind](value)
                found = value if fits else self._add_violation(path, kind.value, value)
        return found

    def _string_map(self, value: Any, *, path: str) -> Any:
        if not isinstance(value, dict):
            return self._add_violation(path, ScalarType.STRING_MAP.value, value, default={})
        for number, item in enumerate(value.values()):
            if not isinstance(item, str):
                self._add_violation(f"{path}[{number}].value", ScalarType.STRING.value, item)
        return {name: item for name, item in value.items() if isinstance(item, str)}

    def _add_violation(self, path: str, kind: str, value: Any, *, default: Any = None) -> Any:
        text = f"Invalid value at '{path}' ({kind}), {msgspec.json.encode(value).decode()}"
        self.violations.append(Violation(path, text))
        return default


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_time(value: Any) -> bool:
    if not isinstance(value, str) or "T" not in value:
        return False
    try:
        return datetime.fromisoformat(value).tzinfo is not None
    except ValueError:
        return False


_TYPE_CHECKS: Mapping[ScalarType, Callable[[Any], bool]] = {
    ScalarType.STRING: lambda value: isinstance(value, str),
    ScalarType.BOOL: lambda value: isinstance(value, bool),
    ScalarType.INT32: lambda value: (
        _is_number(value) and value == int(value) and SMALLEST <= value <= LARGEST
    ),
    ScalarType.FLOAT: _is_number,
    ScalarType.DURATION: lambda value: isinstance(value, str) and bool(_DURATION.fullmatch(value)),
    ScalarType.TIMESTAMP: _is_time,
    ScalarType.STRUCT: lambda value: isinstance(value, dict),
}


def _payload_violation(problem: str, *, field: str) -> Violation:
    return Violation(field, f"Invalid JSON payload received. {problem}")
