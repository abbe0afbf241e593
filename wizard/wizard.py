"""The set-up wizard: asks for values, tries providers, and writes ``.env``."""

import argparse
import base64
import getpass
import os
import secrets
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from django.core.exceptions import ImproperlyConfigured

from domain.mailboxes import parse_mailbox, parse_sender
from notifyproject.settings import accounts, environment, safety
from notifyproject.settings.declarations import Variable, variables
from notifyproject.settings.kinds import split_list
from notifyproject.settings.provider_groups import find_kinds, order_variable
from notifyproject.settings.variables import PROVIDER_ORDERS, VARIABLES, Compose, Environment
from providers.discovery import SPECS
from providers.setup_check import CheckError
from providers.spec import ProviderSpec

Ask = Callable[[str], str]
ALL = VARIABLES | {variable.name: variable for variable in variables(Compose)}
"""The variables that the file may have, besides those of accounts that it declares."""
ASKED = {
    variable.name: spec
    for spec in SPECS.values()
    if spec.settings
    for variable in variables(spec.settings)
    if variable.is_asked
}
"""The provider of each variable that the wizard asks for if the provider is set up."""
OTHERS = 0o077
"""Permissions of a file for its group and others."""


class SetupError(Exception):
    """The set-up can't continue. The message has the reason and no secret."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terminal:
    """How the wizard asks."""

    ask: Ask = input
    ask_secret: Ask = getpass.getpass
    out: TextIO = sys.stdout


def main(
    arguments: Sequence[str], *, environ: Mapping[str, str], terminal: Terminal | None = None
) -> str | None:
    """Write ``.env``. Return why it isn't written, or None."""
    parser = argparse.ArgumentParser(
        prog="manage.py setup", description="Write .env for docker-compose.yml."
    )
    parser.add_argument("--file", type=Path, default=Path(".env"))
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="a value, but no secret"
    )
    parser.add_argument(
        "--secrets-file", type=Path, help="lines NAME=VALUE; or set environment variables"
    )
    parser.add_argument("--non-interactive", action="store_true", help="ask nothing")
    parser.add_argument(
        "--offline",
        action="store_true",
        help="don't try the providers, such as where they can't be reached from",
    )
    parser.add_argument(
        "--replace", action="store_true", help="replace the file, and keep its keys"
    )
    options = parser.parse_args(arguments)
    terminal = terminal or Terminal()
    is_asking = not options.non_interactive
    try:
        if options.file.exists() and not options.replace:
            _confirm_replacing(options.file, terminal, is_asking=is_asking)
        values = _given(options, environ, terminal)
        if is_asking:
            for variable in ALL.values():
                if variable.question:
                    _ask(values, terminal, variable, variable.question)
            _ask_about_accounts(values, terminal)
        _require(values)
        _try_providers(values, terminal, is_asking=is_asking, is_offline=options.offline)
        _add_keys(values)
        _validate(values)
        _write(options.file, values)
    except (SetupError, OSError) as error:
        return str(error)
    except (EOFError, KeyboardInterrupt):
        return "Cancelled: nothing is written."
    missing = [
        f"  {variable.name}: {variable.empty}"
        for variable in _known(values).values()
        if _is_missing(values, variable)
    ]
    lines = [f"{options.file} is written.", *(["Still missing:", *missing] if missing else [])]
    terminal.out.write("\n".join(lines) + "\n")
    return None


def read_file(path: Path) -> dict[str, str]:
    """Read the variables of an ``.env`` file. Raises OSError."""
    values = {}
    for line in path.read_text().splitlines():
        name, separator, value = line.strip().partition("=")
        if separator and not name.startswith("#"):
            is_quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "'\""
            values[name.strip()] = value[1:-1] if is_quoted else value
    return values


def _confirm_replacing(path: Path, terminal: Terminal, *, is_asking: bool) -> None:
    question = f"{path} exists. Replace it, and keep its keys? [y/N] "
    if not is_asking or terminal.ask(question).strip().lower() != "y":
        raise SetupError(f"{path} exists: give --replace.")


def _given(
    options: argparse.Namespace, environ: Mapping[str, str], terminal: Terminal
) -> dict[str, str]:
    values = read_file(options.file) if options.file.exists() else {}
    if options.secrets_file:
        values |= read_file(options.secrets_file)
        if options.secrets_file.stat().st_mode & OTHERS:
            warning = f"Other users of this machine may read {options.secrets_file}: chmod 600.\n"
            terminal.out.write(warning)
    values |= {name: environ[name] for name in _known(values | dict(environ)) if environ.get(name)}
    set_values = [item.partition("=") for item in options.set]
    known = _known(values | {name: value for name, _, value in set_values})
    for name, separator, value in set_values:
        if not separator or name not in known:
            raise SetupError(f"--set {name}: there is no such variable.")
        if known[name].is_secret:
            raise SetupError(f"--set {name}: use the environment or --secrets-file for a secret.")
        values[name] = value
    return values


def _known(values: Mapping[str, str]) -> Mapping[str, Variable]:
    """Return the variables that the file may have, with those of the accounts that it declares."""
    return {**ALL, **accounts.declarations(accounts.find_accounts(values)[0])}


def _ask_about_accounts(values: dict[str, str], terminal: Terminal) -> None:
    """Ask for the kind of each account in a list, and for the values of all accounts."""
    for name in (name for order in PROVIDER_ORDERS for name in split_list(values.get(order, ""))):
        variable = accounts.kind_variable(name)
        if name not in find_kinds() and not values.get(variable):
            kinds = " or ".join(accounts.KINDS)
            values[variable] = terminal.ask(f"Kind of the account {name}, {kinds}: ").strip()
    for account in accounts.find_accounts(values)[0].values():
        _ask_for(account.declarations(), values, terminal)


def _ask_for(declared: Mapping[str, Variable], values: dict[str, str], terminal: Terminal) -> None:
    for variable in declared.values():
        if variable.is_asked:
            _ask(values, terminal, variable, f"{variable.name}, {variable.hint}")


def _ask(values: dict[str, str], terminal: Terminal, variable: Variable, text: str) -> None:
    known = values.get(variable.name, "")
    default = variable.default if variable.is_asked else ""
    shown = "unchanged" if known and variable.is_secret else known or default
    ask = terminal.ask_secret if variable.is_secret else terminal.ask
    answer = ask(f"{text}{f' [{shown}]' if shown else ''}: ").strip()
    values[variable.name] = answer or known


def _require(values: dict[str, str]) -> None:
    url = values.get("PUBLIC_URL", "")
    if not url.startswith("https://"):
        raise SetupError("PUBLIC_URL: give the web's address, beginning with https://.")
    values["ALLOWED_HOSTS"] = values.get("ALLOWED_HOSTS") or url.split("/")[2].partition(":")[0]
    if not values.get("EMAIL_FROM"):
        raise SetupError("EMAIL_FROM: give the sender of mail.")
    _validate(values)


def _try_providers(
    values: dict[str, str], terminal: Terminal, *, is_asking: bool, is_offline: bool
) -> None:
    for spec in SPECS.values():
        if not spec.settings:
            continue
        wanted = _is_wanted(values, spec)
        if is_asking and not wanted and spec.enabled_by:
            wanted = terminal.ask(f"Set up {spec.name}? [y/N] ").strip().lower() == "y"
        if wanted:
            declared = {variable.name: variable for variable in variables(spec.settings)}
            if is_asking:
                _ask_for(declared, values, terminal)
            _try(
                spec.name,
                spec,
                declared,
                values,
                terminal,
                is_asking=is_asking,
                is_offline=is_offline,
            )
    for name, account in accounts.find_accounts(values)[0].items():
        _try(
            name,
            SPECS[account.kind],
            account.declarations(),
            values,
            terminal,
            is_asking=is_asking,
            is_offline=is_offline,
        )


def _is_wanted(values: Mapping[str, str], spec: ProviderSpec) -> bool:
    """Return whether the values turn a provider on: a variable of it, or its channel's order."""
    if spec.enabled_by:
        return bool(values.get(spec.enabled_by))
    order = VARIABLES[order_variable(spec.channel.value)]
    return spec.name in split_list(values.get(order.name) or order.default)


def _try(
    name: str,
    spec: ProviderSpec,
    declared: Mapping[str, Variable],
    values: dict[str, str],
    terminal: Terminal,
    *,
    is_asking: bool,
    is_offline: bool,
) -> None:
    """Ask for an account's values again until its check succeeds or staff leave it out."""
    while True:
        found = _validate(values)
        if is_offline or not spec.check:
            terminal.out.write(f"{name} wasn't tried.\n")
            return
        try:
            spec.check(found.of_account(name) if name in found.PROVIDER_ACCOUNTS else found)
        except CheckError as error:
            if not is_asking:
                raise SetupError(f"{name}: {error}") from error
            terminal.out.write(f"{error}\n")
            if terminal.ask("Try again? [Y/n] ").strip().lower() == "n":
                _leave_out(name, declared, values)
                return
            _ask_for(declared, values, terminal)
        else:
            terminal.out.write(f"{name} accepted the values.\n")
            return


def _leave_out(name: str, declared: Mapping[str, Variable], values: dict[str, str]) -> None:
    """Remove what the wizard asked for, and an account as a whole."""
    is_account = accounts.kind_variable(name) in declared
    for variable in declared.values():
        if is_account or variable.is_asked:
            values.pop(variable.name, None)
    for order in PROVIDER_ORDERS & values.keys() if is_account else ():
        values[order] = ",".join(other for other in split_list(values[order]) if other != name)


def _add_keys(values: dict[str, str]) -> None:
    """Add the missing keys. Existing ones stay, because stored data needs them."""
    for name in ("SECRET_KEY", "INBOX_SIGNING_KEY"):
        values[name] = values.get(name) or secrets.token_urlsafe(48)
    encoded = base64.b64encode(secrets.token_bytes(48)).decode()
    values["FIELD_ENCRYPTION_KEYS"] = values.get("FIELD_ENCRYPTION_KEYS") or f"first:{encoded}"
    for name in ("MONGODB_PASSWORD", "VALKEY_PASSWORD", "METRICS_TOKEN"):
        values[name] = values.get(name) or secrets.token_hex(32)
    for spec in SPECS.values():
        try:
            if spec.complete:
                spec.complete(values)
        except ValueError as error:
            raise SetupError(str(error)) from error


def _validate(values: Mapping[str, str]) -> Environment:
    """Return the environment of these values. Raises SetupError before a key is sent unsafely."""
    try:
        found = environment.read(values)
    except ImproperlyConfigured as error:
        raise SetupError(str(error)) from error
    _check_senders(found)
    for name, variable in _known(values).items():
        rule = variable.kind.url
        for url in split_list(values.get(name, "")) if rule else ():
            if rule and (problem := safety.url_problem(rule, url)):
                raise SetupError(f"{name} {problem}.")
    for spec in SPECS.values():
        if spec.settings and (problem := spec.settings.of(found).problem()):
            raise SetupError(f"{problem}.")
    for name, account in found.PROVIDER_ACCOUNTS.items():
        if problem := account.group.of(found.of_account(name)).problem():
            raise SetupError(f"{account.own_names(problem)}.")
    return found


def _check_senders(found: Environment) -> None:
    for name in ("EMAIL_FROM", "EMAIL_REPLY_TO"):
        try:
            if text := getattr(found, name):
                parse_mailbox(text)
        except ValueError as error:
            example = "Shop <shop@example.com>"
            raise SetupError(f"{name}: give one address, such as {example}.") from error
    for text in found.EMAIL_SENDERS:
        try:
            parse_sender(text)
        except ValueError as error:
            example = "hello@acme.example, or a domain such as @acme.example"
            raise SetupError(f"EMAIL_SENDERS: give addresses such as {example}.") from error


def _write(path: Path, values: Mapping[str, str]) -> None:
    """Write the file as a whole, for its owner only."""
    lines = [f"{name}={_quoted(name, value)}" for name, value in sorted(values.items()) if value]
    new = path.with_name(f"{path.name}.new")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(
            "\n".join(["# Written by manage.py setup: docs/reference/settings.md", *lines, ""])
        )
    new.replace(path)


def _quoted(name: str, value: str) -> str:
    """Quote a value, in which Compose would otherwise expand dollar signs."""
    if "'" in value or "\n" in value:
        raise SetupError(f"{name} contains a quote or a line break, which .env can't hold.")
    return f"'{value}'"


def _is_missing(values: Mapping[str, str], variable: Variable) -> bool:
    """Return whether the wizard asks for a value, which is missing and has no default."""
    spec = ASKED.get(variable.name)
    is_wanted = spec is None or variable.name == spec.enabled_by or _is_wanted(values, spec)
    is_asked = variable.question or (variable.is_asked and is_wanted)
    return bool(is_asked and variable.empty and not values.get(variable.name))
