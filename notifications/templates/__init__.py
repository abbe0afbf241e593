"""What types say: files that come with the service, and versions that were stored since.

A template has up to six parts (:class:`Part`) in any number of languages. To add one:
docs/adding_a_type.md.
"""

from .checking import Fault, check
from .engine import TemplateProblem
from .files import words
from .finding import find, forget, in_effect, language_of, layout, opening_tag
from .memory import Memory
from .parts import DEFAULT_LANGUAGE, FILES, MADE_OF, Part, languages
from .texts import clean_line, closed_up, paragraphs, shortened, without_invisible
from .versions import (
    SHIPPED,
    NumbersTaken,
    Parts,
    UnknownVersion,
    Version,
    create,
    get,
    listing,
    publish,
)

__all__ = [
    "DEFAULT_LANGUAGE",
    "FILES",
    "MADE_OF",
    "SHIPPED",
    "Fault",
    "Memory",
    "NumbersTaken",
    "Part",
    "Parts",
    "TemplateProblem",
    "UnknownVersion",
    "Version",
    "check",
    "clean_line",
    "closed_up",
    "create",
    "find",
    "forget",
    "get",
    "in_effect",
    "language_of",
    "languages",
    "layout",
    "listing",
    "opening_tag",
    "paragraphs",
    "publish",
    "shortened",
    "without_invisible",
    "words",
]
