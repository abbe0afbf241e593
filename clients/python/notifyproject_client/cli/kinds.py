"""The kinds of items that have files: types, and what stands beside them. One table.

A kind says where the files of its items are, what they say, and which fields of requests have the
same. All else is alike: the lock, differences, conflicts, and names. A type is named by its slug,
and an item of another kind by its folder, too: ``brands/acme``.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from . import files
from .files import LANGUAGE, OWN_LANGUAGE, Content, FileError

_SLUG = re.compile(r"[a-z][a-z0-9_]{0,63}")
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_HTML = "html"


class Kind(ABC):
    """A kind of items. ``folder`` is that of its files, and its list in requests."""

    pattern = _NAME
    """The names of its items."""

    def __init__(self, name: str, folder: str) -> None:
        self.name, self.folder = name, folder

    def key(self, name: str) -> str:
        """Return the name of an item among those of all kinds."""
        return f"{self.folder}/{name}"

    @abstractmethod
    def names(self, folder: Path) -> Iterator[str]:
        """Yield the names of the items in the folder of their kind. Some may be repeated."""

    @abstractmethod
    def read(self, folder: Path, name: str) -> Content:
        """Return an item in the folder of its kind. Raises FileError."""

    @abstractmethod
    def texts_of(self, name: str, content: Content, folder: Path | None = None) -> dict[str, str]:
        """Return the text of each file of an item, by its name in the folder of the kind.

        What ``folder`` already says the same keeps its form. Raises FileError for a name that can't
        be one of a file.
        """

    @abstractmethod
    def paths(self, folder: Path, name: str) -> Iterator[Path]:
        """Yield the present files of an item."""

    @abstractmethod
    def place(self, name: str, content: Content, tokens: Sequence[str]) -> tuple[str, str]:
        """Return the file and the path in it that a pointer into an item of a request means."""

    @abstractmethod
    def to_request(self, name: str, content: Content) -> dict[str, Any]:
        """Return an item as an object of a request."""

    @abstractmethod
    def of_response(self, found: Mapping[str, Any]) -> Content:
        """Return an item of a response."""

    def write(self, folder: Path, name: str, content: Content) -> list[Path]:
        """Write an item, and delete files that it doesn't have. Return the files that changed.

        Raises FileError for a name that can't be one of a file.
        """
        if not self.pattern.fullmatch(name):
            raise FileError(folder, f"{name!r} can't be the name of a {self.name}.")
        texts = self.texts_of(name, content, folder)
        present = [*self.paths(folder, name)]
        return files.write_texts({folder / path: text for path, text in texts.items()}, present)


class _Types(Kind):
    """Folders with ``type.yaml``."""

    pattern = _SLUG

    def key(self, name: str) -> str:
        return name

    def names(self, folder: Path) -> Iterator[str]:
        yield from files.type_names(folder)

    def read(self, folder: Path, name: str) -> Content:
        return files.read_type(folder / name)

    def texts_of(self, name: str, content: Content, folder: Path | None = None) -> dict[str, str]:
        texts = files.texts_of_type(content, folder and folder / name)
        return {f"{name}/{path}": text for path, text in texts.items()}

    def paths(self, folder: Path, name: str) -> Iterator[Path]:
        yield from files.paths_of_type(folder / name)

    def place(self, name: str, content: Content, tokens: Sequence[str]) -> tuple[str, str]:
        file, within = files.place_in_type(tokens)
        return f"{name}/{file}", within

    def to_request(self, name: str, content: Content) -> dict[str, Any]:
        return {"slug": name, "definition": content.definition, "parts": content.parts}

    def of_response(self, found: Mapping[str, Any]) -> Content:
        return Content(found["definition"], found["parts"])


class _Fields(Kind):
    """Files with fields, such as ``acme.yaml``. ``field`` has them in requests."""

    def __init__(self, name: str, folder: str, *, field: str) -> None:
        super().__init__(name, folder)
        self.field = field

    def names(self, folder: Path) -> Iterator[str]:
        for path in sorted(folder.glob("*.yaml")):
            yield path.stem

    def read(self, folder: Path, name: str) -> Content:
        return Content(files.read_fields(folder / f"{name}.yaml"))

    def texts_of(self, name: str, content: Content, folder: Path | None = None) -> dict[str, str]:
        path = f"{name}.yaml"
        return {path: files.fields_text(folder and folder / path, content.definition)}

    def paths(self, folder: Path, name: str) -> Iterator[Path]:
        if (path := folder / f"{name}.yaml").is_file():
            yield path

    def place(self, name: str, content: Content, tokens: Sequence[str]) -> tuple[str, str]:
        return f"{name}.yaml", "/".join(tokens[1:] if tokens[:1] == [self.field] else ())

    def to_request(self, name: str, content: Content) -> dict[str, Any]:
        return {"name": name, self.field: content.definition}

    def of_response(self, found: Mapping[str, Any]) -> Content:
        return Content(found[self.field])


class _Translations(_Fields):
    """Nested texts of a language: ``pt.yaml``, and ``default.yaml``."""

    pattern = re.compile(rf"{OWN_LANGUAGE}|{LANGUAGE.pattern}")


class _Limits(_Fields):
    """Limits for recipients, such as ``weekly_marketing.yaml``."""

    pattern = _SLUG


class _Partials(Kind):
    """Texts by language and form: ``button.html``, ``button.txt``, and ``button.pt.html``."""

    suffixes: ClassVar[Mapping[str, str]] = {_HTML: ".html", "text": ".txt"}

    def names(self, folder: Path) -> Iterator[str]:
        for path in self._all_paths(folder):
            yield path.name.partition(".")[0]

    def read(self, folder: Path, name: str) -> Content:
        parts: files.Parts = {}
        for path in self.paths(folder, name):
            _, *languages = path.stem.split(".")
            if not self._is_language(languages):
                raise FileError(path, f"Expected {self._examples(name)}.")
            language = languages[0] if languages else OWN_LANGUAGE
            form = next(form for form, suffix in self.suffixes.items() if suffix == path.suffix)
            parts.setdefault(language, {})[form] = files.read_text(path)
        return Content({}, parts)

    def texts_of(self, name: str, content: Content, folder: Path | None = None) -> dict[str, str]:
        texts: dict[str, str] = {}
        for language, forms in content.parts.items():
            if not self._is_language([] if language == OWN_LANGUAGE else [language]):
                raise FileError(folder or Path(), f"{language!r} is no language.")
            for form, text in forms.items():
                if form not in self.suffixes:
                    raise FileError(folder or Path(), f"{form!r} is no form of a {self.name}.")
                texts[self._path(name, language, form)] = f"{text}\n"
        return texts

    def paths(self, folder: Path, name: str) -> Iterator[Path]:
        for path in self._all_paths(folder):
            if path.name.partition(".")[0] == name:
                yield path

    def place(self, name: str, content: Content, tokens: Sequence[str]) -> tuple[str, str]:
        match tokens:
            case ["texts", language, form, *_] if form in self.suffixes:
                return self._path(name, language, form), ""
            case _:
                return next(iter(self.texts_of(name, content))), ""

    def to_request(self, name: str, content: Content) -> dict[str, Any]:
        return {"name": name, "texts": content.parts}

    def of_response(self, found: Mapping[str, Any]) -> Content:
        return Content({}, found["texts"])

    def _all_paths(self, folder: Path) -> Iterator[Path]:
        for path in sorted(folder.glob("*")):
            if path.suffix in self.suffixes.values() and path.is_file():
                yield path

    def _path(self, name: str, language: str, form: str) -> str:
        own = "" if language == OWN_LANGUAGE else f".{language}"
        return f"{name}{own}{self.suffixes[form]}"

    def _is_language(self, given: Sequence[str]) -> bool:
        return not given or (len(given) == 1 and LANGUAGE.fullmatch(given[0]) is not None)

    def _examples(self, name: str) -> str:
        return f"a name such as {name}.html, {name}.txt, or {name}.pt.html"


class _Layouts(_Partials):
    """One text of HTML: ``main.html``."""

    suffixes: ClassVar[Mapping[str, str]] = {_HTML: ".html"}

    def to_request(self, name: str, content: Content) -> dict[str, Any]:
        return {"name": name, "html": content.parts[OWN_LANGUAGE][_HTML]}

    def of_response(self, found: Mapping[str, Any]) -> Content:
        return Content({}, {OWN_LANGUAGE: {_HTML: found["html"]}})

    def _is_language(self, given: Sequence[str]) -> bool:
        return not given

    def _examples(self, name: str) -> str:
        return f"the name {name}.html"


TYPE: Kind = _Types("type", "types")
PARTIAL: Kind = _Partials("partial", "partials")
LAYOUT: Kind = _Layouts("layout", "layouts")
BRAND: Kind = _Fields("brand", "brands", field="brand")
TRANSLATION: Kind = _Translations("translation", "translations", field="texts")
LIMIT: Kind = _Limits("limit", "limits", field="limit")
BESIDE: Sequence[Kind] = (PARTIAL, LAYOUT, BRAND, TRANSLATION, LIMIT)
"""The kinds whose folders are beside that of types."""
KINDS: Sequence[Kind] = (TYPE, *BESIDE)


@dataclass(frozen=True, slots=True)
class Item:
    """A type or another item, as the files or a server have it."""

    kind: Kind
    name: str
    content: Content

    @property
    def key(self) -> str:
        """Its name among the items of all kinds."""
        return self.kind.key(self.name)

    @property
    def texts(self) -> dict[str, str]:
        """The text of each of its files, by the name that is shown. Raises FileError."""
        texts = self.kind.texts_of(self.name, self.content)
        return {
            path if self.kind is TYPE else f"{self.kind.folder}/{path}": text
            for path, text in texts.items()
        }


def kind_and_name(key: str) -> tuple[Kind, str]:
    """Return what a key means, a type unless it has the folder of another kind."""
    folder, _, name = key.partition("/")
    return next(((kind, name) for kind in BESIDE if kind.folder == folder and name), (TYPE, key))


def folder_of(kind: Kind, types: Path) -> Path:
    """Return the folder of a kind, given that of types."""
    return types if kind is TYPE else types.with_name(kind.folder)


def read_items(types: Path, keys: Sequence[str] = ()) -> dict[str, Item]:
    """Return the items in the folder of types, and in those beside it: these, or all.

    Raises FileError.
    """
    found: dict[str, Item] = {}
    for kind in KINDS:
        folder = folder_of(kind, types)
        for name in dict.fromkeys(kind.names(folder)):
            key = kind.key(name)
            if keys and key not in keys:
                continue
            if kind is not TYPE and not kind.pattern.fullmatch(name):
                raise FileError(folder, f"{name!r} is no name of a {kind.name}.")
            found[key] = Item(kind, name, kind.read(folder, name))
    return found


def locate(items: Sequence[Item], pointer: str) -> tuple[Item | None, str, str]:
    """Return the item, its file in the folder of its kind, and the path in it.

    A pointer into a request with these items means them; None: it is about none of them.
    """
    _, *tokens = pointer.split("/")
    folder, index, *within = [*tokens, "", ""][: max(2, len(tokens))]
    listed = [item for item in items if item.kind.folder == folder]
    if not index.isdecimal() or int(index) >= len(listed):
        return None, "", pointer.removeprefix("/")
    item = listed[int(index)]
    return item, *item.kind.place(item.name, item.content, within)
