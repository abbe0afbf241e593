"""What the declaration of an environment variable has: ``variables.py`` has the declarations."""

from dataclasses import dataclass, field
from typing import Any, ClassVar, Self, TypeVar, cast, dataclass_transform

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
    is_needed: bool = False
    """Whether an account of a provider can't send without it; see :mod:`.accounts`."""
    example: str | None = None
    """Value in ``.env.example`` and on Kubernetes, empty for one to fill in. None: not shown there,
    because the default serves."""
    local: str = ""
    """Default of the local stack, if it is another one."""
    test: str = ""
    """Default of the tests, if it is another one."""
    question: str = ""
    """How the set-up wizard asks for it at the beginning."""
    is_asked: bool = False
    """Whether the set-up wizard asks for it, if its provider is set up."""

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


class ProviderGroup(Group):
    """The variables of one provider, whose names begin with the provider's."""

    provider: ClassVar[str]
    channel: ClassVar[str]
    is_default: ClassVar[bool] = False
    """Whether the channel uses it unless told otherwise."""
    rate: ClassVar[int] = 0
    """Default of its messages per second; 0: no limit."""
    needs_threads: ClassVar[bool] = False
    """Whether each of its requests takes a thread."""

    @classmethod
    def prefix(cls) -> str:
        """Return what the names of its variables begin with."""
        return f"{cls.provider.upper()}_"

    @classmethod
    def of_an_account(cls) -> "list[Variable]":
        """Return the variables of which each account has its own: not those of its sandbox."""
        return [found for found in variables(cls) if found.name.startswith(cls.prefix())]

    @classmethod
    def of(cls, values: Any) -> Self:
        """Return the variables among the attributes of ``values``, such as the environment."""
        return cls(**{name: getattr(values, name) for name in map(_name, variables(cls))})

    def configure(self, environment: Any) -> dict[str, Any]:
        """Return the settings that follow: each variable, without the slash that ends a URL.

        ``environment`` has the variables of the service.
        """
        urls = {v.name: vars(self)[v.name].rstrip("/") for v in variables(type(self)) if v.kind.url}
        return vars(self) | urls

    def problem(self) -> str | None:
        """Return why a value would be sent unsafely, or None."""
        return None


def _name(variable: Variable) -> str:
    return variable.name


def variables(group: type) -> list[Variable]:
    """Return the variables of a group, in the order of their declarations."""
    return [value for value in vars(group).values() if isinstance(value, Variable)]
