"""Reading a request as Google does: what is unknown or of another type is an error."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import msgspec

from .answers import Violation
from .schema import BY_EITHER_NAME, PACKAGE, Fields, Many, OneOf, Plain, Type

SMALLEST, LARGEST = -(2**31), 2**31 - 1
_DURATION = re.compile(r"-?[0-9]{1,12}(\.[0-9]{1,9})?s", re.ASCII)
_TARGETS = ("token", "fid", "topic", "condition")


def read(body: Any) -> tuple[dict[str, Any], list[Violation]]:
    """Return a request with its names in snake case, and what is wrong with its shape."""
    reader = _Reader()
    if not isinstance(body, dict):
        return {}, [_payload("Root element must be a message.", field="")]
    found = reader.fields(body, "SendMessageRequest", path="")
    message = found.get("message", {})
    targets = [name for name in _TARGETS if message.get(name)]
    for extra in targets[1:]:
        text = (
            "Invalid value at 'message' (oneof), oneof field 'target' is already set. "
            f"Cannot set '{extra}'"
        )
        reader.violations.append(Violation(field="message", description=text))
    return found, reader.violations


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads values by their types, and notes what does not fit."""

    violations: list[Violation] = field(default_factory=list)

    def fields(self, given: Mapping[str, Any], owner: str, *, path: str) -> dict[str, Any]:
        """Read an object; a field that is null is not there."""
        known = BY_EITHER_NAME[owner]
        found: dict[str, Any] = {}
        for name, value in given.items():
            if name not in known:
                where = f" at '{path}'" if path else ""
                problem = f'Unknown name "{name}"{where}: Cannot find field.'
                self.violations.append(_payload(problem, field=path))
            elif value is not None:
                snake, kind = known[name]
                found[snake] = self._value(value, kind, path=f"{path}.{snake}" if path else snake)
        return found

    def _value(self, value: Any, kind: Type, *, path: str) -> Any:
        found: Any
        match kind:
            case Fields(name) if isinstance(value, dict):
                found = self.fields(value, name, path=path)
            case Fields(name):
                found = self._misfit(path, f"{PACKAGE}.{name}", value, instead={})
            case Many(of):
                listed = enumerate(value if isinstance(value, list) else [value])
                found = [self._value(one, of, path=f"{path}[{n}]") for n, one in listed]
            case OneOf(_, values) if isinstance(value, str) and value.upper() in values:
                found = value.upper()
            case OneOf(name):
                found = self._misfit(path, f"{PACKAGE}.{name}", value)
            case Plain.STRINGS_BY_NAME:
                found = self._strings_by_name(value, path=path)
            case _:
                fits = _FITS[kind](value)
                found = value if fits else self._misfit(path, kind.value, value)
        return found

    def _strings_by_name(self, value: Any, *, path: str) -> Any:
        if not isinstance(value, dict):
            return self._misfit(path, Plain.STRINGS_BY_NAME.value, value, instead={})
        for number, one in enumerate(value.values()):
            if not isinstance(one, str):
                self._misfit(f"{path}[{number}].value", Plain.STRING.value, one)
        return {name: one for name, one in value.items() if isinstance(one, str)}

    def _misfit(self, path: str, kind: str, value: Any, *, instead: Any = None) -> Any:
        """Note a value that does not fit; return what is read in its place."""
        text = msgspec.json.encode(value).decode()
        description = f"Invalid value at '{path}' ({kind}), {text}"
        self.violations.append(Violation(field=path, description=description))
        return instead


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_whole(value: Any) -> bool:
    return _is_number(value) and value == int(value) and SMALLEST <= value <= LARGEST


def _is_time(value: Any) -> bool:
    if not isinstance(value, str) or "T" not in value:
        return False
    try:
        return datetime.fromisoformat(value).tzinfo is not None
    except ValueError:
        return False


_FITS: Mapping[Plain, Callable[[Any], bool]] = {
    Plain.STRING: lambda value: isinstance(value, str),
    Plain.BOOL: lambda value: isinstance(value, bool),
    Plain.INT32: _is_whole,
    Plain.FLOAT: _is_number,
    Plain.DURATION: lambda value: isinstance(value, str) and bool(_DURATION.fullmatch(value)),
    Plain.TIMESTAMP: _is_time,
    Plain.STRUCT: lambda value: isinstance(value, dict),
}


def _payload(problem: str, *, field: str) -> Violation:
    return Violation(field=field, description=f"Invalid JSON payload received. {problem}")
