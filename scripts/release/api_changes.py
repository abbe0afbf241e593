"""Which changes between two OpenAPI documents break a program that calls the API. Pure.

A program that was written for the old document must go on with the service of the new one. What
concerns the names of the clients' methods counts, too.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from domain.schema_changes import as_mapping

from .schema_pairs import Change, Schemas, Writer

_METHODS = ("get", "put", "post", "delete", "patch", "head", "options", "trace")
Part = Mapping[str, Any]


def compare(before: Part, after: Part) -> list[Change]:
    """Return the changes that break a program, and those that a changelog should name."""
    return sorted(set(_Comparison(before, after).changes()))


class _Comparison:
    def __init__(self, before: Part, after: Part) -> None:
        self._before, self._after = before, after
        self._schemas = Schemas(before, after)

    def changes(self) -> Iterator[Change]:
        old, new = (dict(_operations(each)) for each in (self._before, self._after))
        for where, operation in old.items():
            if where in new:
                yield from self._operation(operation, new[where], where)
            else:
                yield Change(where, "It is removed.")
        for where in new.keys() - old.keys():
            yield Change(where, "It is new.", breaks=False)
        sent = as_mapping(self._after.get("webhooks"))
        for name, callback in as_mapping(self._before.get("webhooks")).items():
            where = f"callback {name}"
            if name not in sent:
                yield Change(where, "It is no longer sent.")
                continue
            bodies = (each.get("post", {}).get("requestBody") for each in (callback, sent[name]))
            yield from self._contents(*bodies, where=where, writer=Writer.SERVICE)

    def _operation(self, old: Part, new: Part, where: str) -> Iterator[Change]:
        for name in ("operationId", "x-scope"):
            if old.get(name) != new.get(name):
                yield Change(where, f"{name} is {new.get(name)}, and was {old.get(name)}.")
        had, has = (
            each.get("security", document.get("security")) or [{}]
            for each, document in ((old, self._before), (new, self._after))
        )
        if not all(any(set(one) <= set(other) for one in has) for other in had):
            yield Change(where, "It refuses a key that it took.")
        yield from self._parameters(old, new, where)
        was, now = (
            self._schemas.old(old.get("requestBody")),
            self._schemas.new(new.get("requestBody")),
        )
        if now.get("required") and not was.get("required"):
            yield Change(f"{where} body", "It is newly required.")
        yield from self._contents(was, now, where=f"{where} body", writer=Writer.CLIENT)
        yield from self._answers(old, new, where)

    def _parameters(self, old: Part, new: Part, where: str) -> Iterator[Change]:
        had = {_place(each): each for each in map(self._schemas.old, old.get("parameters", ()))}
        has = {_place(each): each for each in map(self._schemas.new, new.get("parameters", ()))}
        for place, now in has.items():
            if now.get("required") and not had.get(place, {}).get("required"):
                yield Change(f"{where} {place}", "It is newly required.")
        for place, was in had.items():
            if place not in has:
                yield Change(f"{where} {place}", "It is no longer taken.")
                continue
            now = has[place]
            if any(was.get(name) != now.get(name) for name in ("style", "explode")):
                yield Change(f"{where} {place}", "It is written in another way.")
            yield from self._schemas.compare(
                was.get("schema", True),
                now.get("schema", True),
                where=f"{where} {place}",
                writer=Writer.CLIENT,
            )

    def _answers(self, old: Part, new: Part, where: str) -> Iterator[Change]:
        for code, answer in old.get("responses", {}).items():
            place = f"{where} {code}"
            if code not in new.get("responses", {}):
                yield Change(place, "It is no longer answered.")
                continue
            was, now = self._schemas.old(answer), self._schemas.new(new["responses"][code])
            yield from self._contents(was, now, where=place, writer=Writer.SERVICE)
            headers = as_mapping(now.get("headers"))
            for name in as_mapping(was.get("headers")):
                if name not in headers:
                    yield Change(f"{place} {name}", "It is no longer answered.")

    def _contents(self, old: Any, new: Any, *, where: str, writer: Writer) -> Iterator[Change]:
        has = as_mapping(self._schemas.new(new).get("content"))
        for kind, content in as_mapping(self._schemas.old(old).get("content")).items():
            if kind not in has:
                yield Change(where, f"{kind} is no longer its type.")
                continue
            yield from self._schemas.compare(
                content.get("schema", True),
                has[kind].get("schema", True),
                where=where,
                writer=writer,
            )


def _operations(document: Part) -> Iterator[tuple[str, Part]]:
    for path, item in as_mapping(document.get("paths")).items():
        shared = item.get("parameters", [])
        for method in _METHODS:
            if method in item:
                parameters = [*shared, *item[method].get("parameters", [])]
                yield f"{method.upper()} {path}", {**item[method], "parameters": parameters}


def _place(parameter: Part) -> str:
    return f"{parameter['in']} {parameter['name']}"
