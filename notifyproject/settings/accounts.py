"""Accounts of providers: several of one kind, each with variables of its own.

``PROVIDER_EU_KIND=sendgrid`` declares the account ``eu``. Its variables are those of its kind, with
``PROVIDER_EU_`` in place of the kind's name: ``PROVIDER_EU_API_KEY`` for ``SENDGRID_API_KEY``.
"""

import re
from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

from . import kinds
from .declarations import ProviderGroup, Variable
from .provider_groups import find_kinds, order_variable
from .variables import PROVIDER_GROUPS, PROVIDER_RATES, VARIABLES, order_kind, rates_kind

KINDS: Mapping[str, type[ProviderGroup]] = {
    group.provider: group for group in PROVIDER_GROUPS if order_variable(group.channel) in VARIABLES
}
"""The kinds that may have several accounts: those of channels whose providers have an order.

On other channels, a target belongs to one account, as the token of a device does.
"""
_NAME = re.compile(r"[A-Z][A-Z0-9_]{0,39}", re.ASCII)
_EXPECTED_NAME = "a letter, then letters, digits, and _, all in capitals and 40 at most"
_KIND = re.compile(r"PROVIDER_(.+)_KIND", re.DOTALL)
_KIND_NAME = kinds.choice(*KINDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountVariables:
    """The variables of one account."""

    name: str
    kind: str
    values: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """By the names that its kind has for them."""

    @property
    def group(self) -> type[ProviderGroup]:
        """The variables of its kind."""
        return KINDS[self.kind]

    def own_name(self, name: str) -> str:
        """Return the account's name of a variable of its kind."""
        return f"{_prefix(self.name)}{name.removeprefix(self.group.prefix())}"

    def own_names(self, text: str) -> str:
        """Return a text about variables of its kind, with the account's names of them."""
        names = "|".join(variable.name for variable in self.group.of_an_account())
        return re.sub(rf"\b({names})\b", lambda found: self.own_name(found[0]), text)

    def declarations(self) -> dict[str, Variable]:
        """Return the declarations of its variables, by the account's names."""
        kind = Variable(kind=_KIND_NAME, default="", meaning="kind of the account")
        kind.name = kind_variable(self.name)
        found = {kind.name: kind}
        for variable in self.group.of_an_account():
            own = copy(variable)
            own.name = self.own_name(variable.name)
            found[own.name] = own
        return found

    def with_values(self, values: Mapping[str, Any]) -> "AccountVariables":
        """Return the account with the values of its variables, among others."""
        read = {v.name: values[self.own_name(v.name)] for v in self.group.of_an_account()}
        return replace(self, values=read)


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountSettings:
    """The settings of one account, as the setting ``PROVIDER_ACCOUNTS`` has them."""

    variables: AccountVariables
    values: Any = field(repr=False)
    """An object whose attributes have the names of its kind's settings."""


def find_accounts(environ: Mapping[str, str]) -> tuple[dict[str, AccountVariables], list[str]]:
    """Return the declared accounts by name, and what is wrong with their declarations."""
    found: dict[str, AccountVariables] = {}
    problems = []
    for variable, text in sorted(environ.items()):
        declared = _KIND.fullmatch(variable)
        if not text or declared is None:
            continue
        try:
            account = _read_account(declared[1], text)
        except kinds.RefusedError as refused:
            problems.append(f"environment variable {variable}: {refused}.")
        else:
            found[account.name] = account
    return found, [*problems, *_collisions(found)]


def _read_account(name: str, kind: str) -> AccountVariables:
    if not _NAME.fullmatch(name):
        raise kinds.RefusedError(f"expected in place of {name!r} {_EXPECTED_NAME}")
    if name.lower() in find_kinds():
        raise kinds.RefusedError("a kind of provider has this name, so no account may have it")
    return AccountVariables(name=name.lower(), kind=_KIND_NAME.read(kind))


def _collisions(accounts: Mapping[str, AccountVariables]) -> Iterator[str]:
    """Yield which variables would be those of two accounts, or of the service too."""
    owners = dict.fromkeys(VARIABLES, "the service")
    for name, account in accounts.items():
        for variable in account.declarations():
            owner = owners.setdefault(variable, f"the account {name}")
            if owner != f"the account {name}":
                yield (
                    f"environment variable {variable}: a variable of {owner} and of the account "
                    f"{name}. Rename an account."
                )


def declarations(accounts: Mapping[str, AccountVariables]) -> Mapping[str, Variable]:
    """Return the declarations of all variables by name, those of accounts included."""
    if not accounts:
        return VARIABLES
    found = dict(VARIABLES)
    for account in accounts.values():
        found |= account.declarations()
    for channel in {group.channel for group in KINDS.values()}:
        listed = {n for n, account in accounts.items() if account.group.channel == channel}
        refused = {
            name: f"the account {name} is of {account.kind}, which is for {account.group.channel}"
            for name, account in accounts.items()
            if name not in listed
        }
        order = found[order_variable(channel)] = copy(VARIABLES[order_variable(channel)])
        order.kind = order_kind(channel, *sorted(listed), refused=refused)
    rates = found[PROVIDER_RATES] = copy(VARIABLES[PROVIDER_RATES])
    rates.kind, rates.default = rates_kind(
        {name: account.group.rate for name, account in accounts.items()}
    )
    return found


def missing(accounts: Mapping[str, AccountVariables], given: Mapping[str, str]) -> Iterator[str]:
    """Yield which variables are missing without which an account can't send."""
    for account in accounts.values():
        for name, variable in account.declarations().items():
            if variable.is_needed and not given.get(name):
                yield f"environment variable {name}: an account of {account.kind} needs it."


def unused(environ: Mapping[str, str]) -> list[str]:
    """Return the names of variables that look like an account's, and are none's."""
    accounts, _ = find_accounts(environ)
    known = declarations(accounts)
    return sorted(
        name
        for name, text in environ.items()
        if text and name.startswith("PROVIDER_") and name not in known
    )


def kind_variable(name: str) -> str:
    """Return the variable that declares an account."""
    return f"{_prefix(name)}KIND"


def _prefix(name: str) -> str:
    return f"PROVIDER_{name.upper()}_"
