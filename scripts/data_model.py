"""Writes docs/reference/data_model.md from the models and their documents: ``make data-model``."""

import ast
import importlib
import inspect
import os
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, get_args, get_origin, get_type_hints

if __name__ == "__main__":
    import django

    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "notifyproject.settings.test")
    django.setup()

from django.apps import apps
from django.db import models
from django_mongodb_backend.fields import ArrayField, EmbeddedModelArrayField, EmbeddedModelField
from django_mongodb_backend.models import EmbeddedModel

from notifyproject.db.collections import Documents

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reference" / "data_model.md"
BEGIN = "<!-- From here on, `make data-model` writes this page. -->\n"
PACKAGES = (
    *("access", "api", "callbacks", "console", "delivery", "devices", "monitoring"),
    *("notifications", "notifyproject", "privacy", "recipients", "tasks"),
)
WRITES = frozenset(
    {
        *("insert_one", "insert_many", "update_one", "update_many", "replace_one", "bulk_write"),
        *("delete_one", "delete_many", "find_one_and_update", "find_one_and_replace"),
        *("find_one_and_delete",),
    }
)
KINDS = {
    "str": "text",
    "datetime": "time",
    "int": "integer",
    "float": "number",
    "bool": "yes or no",
}
ROLE = re.compile(r":\w+:`[~.]?(?:[\w.]+\.)?(\w+)`")


def page() -> str:
    """Return the page's text."""
    own = [
        model
        for model in apps.get_models()
        if model.__module__.partition(".")[0] in PACKAGES
        and not model._meta.proxy
        and not issubclass(model, EmbeddedModel)
    ]
    head = PAGE.read_text(encoding="utf-8").partition(BEGIN)[0] if PAGE.exists() else ""
    sections = sorted(own, key=lambda model: model._meta.db_table)
    return head + BEGIN + "".join(map(_section, sections))


def _section(model: type[models.Model]) -> str:
    handle = _handles()[model._meta.db_table]
    users = {path: _use(path, handle, model) for path in _files()}
    writers = [path for path, use in users.items() if use == "write"]
    readers = [path for path, use in users.items() if use == "read"]
    packages = sorted({path.partition("/")[0] for path in readers})
    about = [
        f"Handle: `{handle}` in `{_path(_documents_of(model))}`.",
        f"Written by {_list(writers)}." if writers else "",
        f"Read in {_list(packages)}." if packages else "",
    ]
    lines = [
        f"\n## {model._meta.db_table}\n",
        f"{_text(model.__doc__)}\n",
        " ".join(filter(None, about)) + "\n",
        "| field | type | meaning |",
        "|---|---|---|",
        *_rows(model, ""),
    ]
    return "\n".join(line for line in lines if line) + "\n"


def _list(paths: list[str]) -> str:
    return ", ".join(f"`{path}`" for path in paths)


def _rows(model: type[models.Model], prefix: str) -> Iterator[str]:
    document = getattr(_documents_of(model), f"{model.__name__}Document")
    hints, meanings = get_type_hints(document), _meanings(model)
    for field in model._meta.concrete_fields:
        if field.primary_key and issubclass(model, EmbeddedModel):
            continue
        name = "_id" if field.primary_key else field.column
        embedded = getattr(field, "embedded_model", None)
        meaning = meanings.get(field.name) or (_text(embedded.__doc__) if embedded else "")
        kind = _kind(field, hints[name])
        optional = ", optional" if name in document.__optional_keys__ else ""
        yield f"| `{prefix}{name}` | {kind}{optional} | {meaning} |".replace("|  |", "| |")
        if isinstance(field, EmbeddedModelArrayField):
            yield from _rows(field.embedded_model, f"{prefix}{name}[].")
        elif isinstance(field, EmbeddedModelField):
            yield from _rows(field.embedded_model, f"{prefix}{name}.")


def _kind(field: models.Field, hint: Any) -> str:
    of = field.base_field if isinstance(field, ArrayField) else field
    if of.choices:
        words = ", ".join(f"`{value}`" for value, _ in of.flatchoices if value)
        return f"{'list of: ' if of is not field else ''}{words}"
    if isinstance(field, EmbeddedModelArrayField):
        return "list of objects"
    return "object" if isinstance(field, EmbeddedModelField) else _words(hint)


def _words(hint: Any) -> str:
    if get_origin(hint) is list:
        return f"list of {_words(get_args(hint)[0])}"
    if get_origin(hint) is dict or hint is Any:
        return "object"
    named = [part for part in get_args(hint) if part is not type(None)]
    if named:
        return " or ".join(dict.fromkeys(map(_words, named)))
    name = getattr(hint, "__name__", str(hint))
    return KINDS.get(name, "object" if hasattr(hint, "__required_keys__") else name)


def _meanings(model: type[models.Model]) -> dict[str, str]:
    """Return what the models' source says about each field: a string or a comment after it."""
    found: dict[str, str] = {}
    for base in reversed(model.__mro__):
        if not issubclass(base, models.Model) or base.__module__.startswith("django"):
            continue
        source = inspect.getsource(base)
        (body,) = (node.body for node in ast.parse(source).body if isinstance(node, ast.ClassDef))
        for statement, after in zip(body, [*body[1:], None], strict=True):
            if not isinstance(statement, ast.Assign):
                continue
            name = ast.unparse(statement.targets[0])
            line = source.splitlines()[(statement.end_lineno or 1) - 1]
            if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
                found[name] = _text(str(after.value.value))
            elif "  # " in line:
                found[name] = _text(line.partition("  # ")[2])
    return found


def _text(text: str | None) -> str:
    words = " ".join((text or "").split()).replace("``", "`").replace("|", "\\|")
    return ROLE.sub(r"`\1`", words)


def _documents_of(model: type[models.Model]) -> ModuleType:
    package, _, rest = model.__module__.partition(".models")
    return importlib.import_module(f"{package}.documents{rest}")


def _path(module: ModuleType) -> str:
    return Path(module.__file__ or "").relative_to(ROOT).as_posix()


@cache
def _handles() -> dict[str, str]:
    """Return the name of each collection's handle."""
    return {
        value.name: name
        for model in apps.get_models()
        if model.__module__.partition(".")[0] in PACKAGES
        for name, value in vars(_documents_of(model)).items()
        if isinstance(value, Documents)
    }


@cache
def _files() -> tuple[str, ...]:
    return tuple(
        path.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
        if not {"migrations", "mongo_migrations", "models", "documents"} & {*path.parts, path.stem}
    )


@cache
def _tree(path: str) -> ast.Module:
    return ast.parse((ROOT / path).read_text(encoding="utf-8"))


@cache
def _aliases() -> dict[str, str]:
    """Return the store's own names of handles."""
    return {
        ast.unparse(node.targets[0]): ast.unparse(node.value)
        for node in _tree("notifications/store/collections.py").body
        if isinstance(node, ast.Assign) and ast.unparse(node.value) in _handles().values()
    }


@cache
def _used(path: str) -> dict[str, str]:
    """Return the models, documents, and handles that a file imports, and how it uses each."""
    known = {
        imported.asname or imported.name: imported.name
        for node in ast.walk(_tree(path))
        if isinstance(node, ast.ImportFrom) and {"documents", "models"} & {*_module(node)}
        for imported in node.names
    }
    if path.startswith("notifications/store/"):
        known |= _aliases()
    found: dict[str, str] = {}
    for node in ast.walk(_tree(path)):
        name = known.get(_name(node) or "")
        if name is not None:
            found.setdefault(name, "read")
        if isinstance(node, ast.Attribute) and node.attr in WRITES:
            written = _name(node.value.func if isinstance(node.value, ast.Call) else node.value)
        elif isinstance(node, ast.Call) and _name(node.func) == "Leases":
            (written,) = (_name(one.value) for one in node.keywords if one.arg == "collection")
        elif isinstance(node, ast.Call) and _name(node.func) == "insert_shared":
            written = _name(node.args[0])
        else:
            continue
        if written in known:
            found[known[written]] = "write"
    return found


def _module(node: ast.ImportFrom) -> list[str]:
    return (node.module or "").split(".")


def _name(node: ast.AST) -> str | None:
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else None


def _use(path: str, handle: str, model: type[models.Model]) -> str | None:
    """Return how a file uses a collection: write, read, or None if it doesn't."""
    used = _used(path)
    if used.get(handle) == "write":
        return "write"
    return "read" if used.keys() & {handle, model.__name__, f"{model.__name__}Document"} else None


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
