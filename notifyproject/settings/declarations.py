"""What the declaration of an environment variable has: ``variables.py`` has the declarations."""

from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar, cast, dataclass_transform

from .kinds import Kind
from .safety import Plain

T = TypeVar("T")


@dataclass(slots=True, kw_only=True, eq=False)
class Variable:
    """The declaration of a variable."""

    name: str = field(init=False)
    kind: Kind[Any]
    default: str
    """Text of the default; empty: none."""
    meaning: str
    """Half a sentence. Code is in backticks."""
    empty: str = ""
    """What happens without a value."""
    see: str = ""
    """Page with more, as a path below docs, with or without an anchor."""
    is_required: bool = False
    """Whether a server doesn't start without it."""
    example: str | None = None
    """Value in ``.env.example`` and on Kubernetes, empty for one to fill in. None: not shown there,
    because the default serves."""
    local: str = ""
    """Default of the local stack, if it is another one."""
    test: str = ""
    """Default of the tests, if it is another one."""
    question: str = ""
    """How the set-up wizard asks for it at the beginning."""
    provider: str = ""
    """The provider for which the set-up wizard asks for it."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @property
    def value(self) -> Any:
        """The value of the default."""
        return self.kind.read(self.default) if self.default else self.kind.empty

    @property
    def hint(self) -> str:
        """The meaning in plain text, with the words to choose from."""
        words = f" ({', '.join(self.kind.words)})" if self.kind.words else ""
        return f"{self.meaning.replace('`', '')}{words}"

    @property
    def is_secret(self) -> bool:
        """Whether the value is, or has, a secret. The URL of a store has its password."""
        url = self.kind.url
        return self.kind.secret is not None or (url is not None and url.plain is Plain.ANY)


def declare(kind: Kind[T], default: str, meaning: str, **more: Any) -> T:
    """Return a :class:`Variable`, typed as the values that instances of the group have."""
    return cast("T", Variable(kind=kind, default=default, meaning=meaning, **more))


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Group:
    """Variables with a heading. The docstring introduces them, in the documents too."""

    heading: ClassVar[str]
    see: ClassVar[str] = ""
    """Page with more, as of a variable."""

    def __init__(self, **values: Any) -> None:
        """Take values by name. The other variables have their defaults."""
        declared = (variable for base in type(self).__mro__ for variable in variables(base))
        vars(self).update({variable.name: variable.value for variable in declared} | values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Group) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(frozenset(vars(self)))


def variables(group: type) -> list[Variable]:
    """Return the variables of a group, in the order of their declarations."""
    return [value for value in vars(group).values() if isinstance(value, Variable)]
