"""The templates that come with the service: version 0 of each.

``templates/notifications/<name>/`` holds a file for each part, and a folder for each language that
has its own. They are read once: another release brings other files.
"""

import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from django.conf import settings

from .parts import DEFAULT_LANGUAGE, FILES, STORED_LANGUAGE, TEMPLATE_NAME, Part, languages

LAYOUT = "_layout"
"""The folder of what goes around every mail."""
WORDS = "words.json"


@lru_cache(maxsize=4096)
def read(name: str, part: Part, language: str) -> str | None:
    """Return the text of a part in exactly this language; None if there is none."""
    path = _folder(name, language) / FILES[part]
    return path.read_text(encoding="utf-8").strip() if path.is_file() else None


def words(locale: str | None) -> Mapping[str, str]:
    """Return the layout's own words in the nearest language."""
    found = (_words_in(language) for language in languages(locale))
    return next(words for words in found if words is not None)


def everything(name: str) -> dict[str, dict[str, str]]:
    """Return every part of a template by its language; nothing if there is no such template."""
    folder = _folder(name, DEFAULT_LANGUAGE)
    if not TEMPLATE_NAME.fullmatch(name) or not folder.is_dir():
        return {}
    own = sorted(f.name for f in folder.iterdir() if STORED_LANGUAGE.fullmatch(f.name))
    found = {
        language: {part.value: text for part in Part if (text := read(name, part, language))}
        for language in (DEFAULT_LANGUAGE, *own)
    }
    return {language: parts for language, parts in found.items() if parts}


def forget() -> None:
    """Read the files anew at the next use."""
    read.cache_clear()
    _words_in.cache_clear()


@lru_cache(maxsize=256)
def _words_in(language: str) -> Mapping[str, str] | None:
    path = _folder(LAYOUT, language) / WORDS
    if not path.is_file():
        return None
    found: dict[str, str] = json.loads(path.read_text(encoding="utf-8"))
    return found


def _folder(name: str, language: str) -> Path:
    folder = Path(settings.BASE_DIR) / "templates" / "notifications" / name
    return folder if language == DEFAULT_LANGUAGE else folder / language
