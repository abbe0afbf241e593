"""Writes the documents of the variables from their declarations: ``make settings``.

These are ``.env.example``, the tables of docs/reference/settings.md, and the lists for Kubernetes.
"""

import textwrap
from collections.abc import Iterator
from pathlib import PurePosixPath

from .accounts import KINDS
from .declarations import Group, ProviderGroup, Variable, variables
from .environment import BASE_DIR
from .variables import GROUPS, VARIABLES, Compose

WIDTH = 118
ACCOUNTS_HEADING = "Accounts"
ACCOUNTS = (
    "`PROVIDER_<NAME>_KIND=<kind>` declares an account, and `PROVIDER_<NAME>_<SETTING>` has a "
    "setting of it, which is described above under the kind's name: `PROVIDER_EU_API_KEY` of an "
    "account of `sendgrid` is what `SENDGRID_API_KEY` is. The account of a list such as "
    "`EMAIL_PROVIDER` has its name in small letters, `eu`. See [accounts](../guides/accounts.md)."
)
PAGE = "docs/reference/settings.md"
BEGIN = "<!-- From here on, `make settings` writes this page. -->\n"
KUBERNETES = "deploy/kubernetes"


def documents() -> dict[str, str]:
    """Return the text of each document, by its path in the project."""
    page = (BASE_DIR / PAGE).read_text(encoding="utf-8")
    return {
        ".env.example": _env_example(),
        PAGE: page.partition(BEGIN)[0] + BEGIN + "".join(map(_table, GROUPS)) + _accounts(),
        f"{KUBERNETES}/base/settings.env": _kubernetes_settings(),
        f"{KUBERNETES}/secrets.env.example": _kubernetes_secrets(),
        # The chart refuses these among its settings, which everybody of the namespace reads.
        "deploy/helm/secrets.txt": "".join(f"{name}\n" for name in _secret_names()),
    }


def write() -> None:
    """Write all documents."""
    for path, text in documents().items():
        (BASE_DIR / path).write_text(text, encoding="utf-8")


def _env_example() -> str:
    lines = [
        "# Variables of web, stream, workers, and beat. Commented lines show the default.",
        f"# With the kind of each value: {PAGE}. Set-up: docs/guides/deploy.md.",
    ]
    groups: tuple[type[Group], ...] = (Compose, *GROUPS)
    for group in groups:
        lines += [
            "",
            f"# == {group.heading} ==",
            *_comment(_plain(_introduction(group), group.see)),
        ]
        for variable in variables(group):
            words = " | ".join(variable.kind.words)
            note = "; ".join([*_notes(variable), *([words] if words else [])])
            lines += [*_comment(_plain(note, variable.see)), _assignment(variable)]
    return "\n".join([*lines, ""])


def _assignment(variable: Variable) -> str:
    if variable.example is None:
        return f"#{variable.name}={variable.default}"
    return f"{variable.name}={variable.example}"


def _comment(text: str) -> list[str]:
    capital = text[:1].upper() + text[1:]
    return textwrap.wrap(
        capital,
        WIDTH,
        initial_indent="# ",
        subsequent_indent="# ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _plain(text: str, see: str) -> str:
    return f"{text} (docs/{see})".replace("`", "") if see else text.replace("`", "")


def _notes(variable: Variable) -> Iterator[str]:
    if variable.is_required:
        yield "required on a server"
    yield variable.meaning
    if variable.empty:
        yield f"empty: {variable.empty}"


def _introduction(group: type[Group]) -> str:
    return " ".join((group.__doc__ or "").split())


def _table(group: type[Group]) -> str:
    rows = "\n".join(map(_row, variables(group)))
    more = f" See {_link(group.see)}." if group.see else ""
    return (
        f"\n## {group.heading}\n\n{_introduction(group)}{more}\n\n"
        f"| variable | default | value | meaning |\n|---|---|---|---|\n{rows}\n"
    )


def _accounts() -> str:
    """Return the table of what accounts of each kind have."""
    rows = "\n".join(
        f"| `{kind}` | {_own_names(group, is_needed=True)} | {_own_names(group, is_needed=False)} |"
        for kind, group in KINDS.items()
    )
    return (
        f"\n## {ACCOUNTS_HEADING}\n\n{ACCOUNTS}\n\n"
        f"| kind | needed | others |\n|---|---|---|\n{rows}\n"
    )


def _own_names(group: type[ProviderGroup], *, is_needed: bool) -> str:
    own = [v for v in group.of_an_account() if v.is_needed == is_needed]
    return ", ".join(f"`{variable.name.removeprefix(group.prefix())}`" for variable in own)


def _row(variable: Variable) -> str:
    notes = "; ".join(_notes(variable))
    link = f" ({_link(variable.see)})" if variable.see else ""
    default = f"`{variable.default}`" if variable.default else ""
    cells = (f"`{variable.name}`", default, _value(variable), f"{notes}{link}")
    return f"| {' | '.join(cells)} |".replace("|  |", "| |")


def _value(variable: Variable) -> str:
    kind = variable.kind
    if kind.words:
        return ", ".join(f"`{word}`" for word in kind.words)
    if kind.secret and kind.secret.min_length > 1:
        random = "" if kind.secret.is_issued else "random "
        return f"{random}secret, length {kind.secret.min_length} or more"
    if kind.secret:
        return f"secret: {kind.expected}"
    if kind.url:
        return " or ".join(f"`{scheme}://`" for scheme in kind.url.schemes)
    return kind.expected.removesuffix(", without a unit")


def _link(see: str) -> str:
    path = PurePosixPath(see.partition("#")[0])
    number, _, _ = path.stem.partition("-")
    label = f"decision {int(number)}" if number.isdecimal() else path.stem.replace("_", " ")
    return f"[{label}](../{see})".replace("(../reference/", "(")


def _kubernetes_settings() -> str:
    lines = [
        f"# Settings without secrets: {PAGE}. An overlay replaces the values of a host.",
        *(
            f"{variable.name}={variable.example}"
            for variable in VARIABLES.values()
            if variable.example is not None and not variable.is_secret
        ),
    ]
    return "\n".join([*lines, ""])


def _secret_names() -> list[str]:
    """Return regular expressions of the secrets' names, those of accounts included."""
    of_accounts = {
        f"PROVIDER_.+_{variable.name.removeprefix(group.prefix())}"
        for group in KINDS.values()
        for variable in group.of_an_account()
        if variable.is_secret
    }
    names = [variable.name for variable in VARIABLES.values() if variable.is_secret]
    return [*names, *sorted(of_accounts)]


def _kubernetes_secrets() -> str:
    secrets = [variable for variable in VARIABLES.values() if variable.is_secret]
    needed = [secret for secret in secrets if secret.is_required or secret.example is not None]
    lines = [
        "# The Secret: copy this to secrets.env, fill it in, and run",
        "#   kubectl -n notifyproject create secret generic notifyproject \\",
        "#     --from-env-file=secrets.env",
        f"# Each has a row in {PAGE}.",
        *(f"{secret.name}=" for secret in needed),
        "# For what you use:",
        *(f"#{secret.name}=" for secret in secrets if secret not in needed),
    ]
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    write()
