"""``notify``: the commands, their options, and their exit codes.

Exit codes: 0; 1 for differences, findings, or refused types; 2 for invalid use and an unreachable
server; 3 for a conflict.
"""

import argparse
import difflib
import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TextIO

import httpx

from . import files, generate, lint, messages, validate
from .files import FileError, TypeFiles
from .init import FIRST_SLUG, write_first_type
from .lock import NAME as LOCK
from .lock import Lock, Synced, digest
from .profiles import FILE as PROFILES
from .profiles import Profile, ProfileError, find_profile
from .pulled import Pulled
from .rules.type_rules import Finding
from .server import ConflictError, LocalType, RefusedError, Server, ServerError, ServerType

OK, DIFFERENT, INVALID_USE, CONFLICT = range(4)
URL, KEY, PROFILE = "NOTIFY_URL", "NOTIFY_API_KEY", "NOTIFY_PROFILE"
DEFAULT_TYPES = Path("notify/types")
INIT, LINT, PROMOTE, TYPES, VALIDATE = "init", "lint", "promote", "types", "validate"


def main() -> None:
    """Run the command."""
    sys.exit(run(sys.argv[1:]))


def run(
    words: Sequence[str],
    *,
    environment: Mapping[str, str] = os.environ,
    out: TextIO | None = None,
    err: TextIO | None = None,
    transport: httpx.BaseTransport | None = None,
) -> int:
    """Run the command with these words. Return its exit code."""
    options = _parser().parse_args(words)
    out, err = out or sys.stdout, err or sys.stderr
    try:
        if options.command in _WITHOUT_SERVER:
            return _WITHOUT_SERVER[options.command](options, out)
        if options.command == LINT and not options.server:
            return _lint_without_server(options, out=out, err=err)
        return _call(options, environment, out=out, err=err, transport=transport)
    except (FileError, ProfileError, ServerError, _InvalidUseError) as error:
        print(error, file=err)
        return INVALID_USE


def _call(
    options: argparse.Namespace,
    environment: Mapping[str, str],
    *,
    out: TextIO,
    err: TextIO,
    transport: httpx.BaseTransport | None,
) -> int:
    profile = _profile(options, environment)
    if not (profile.url and profile.key):
        raise _InvalidUseError(
            f"Set {URL} and {KEY}, or name a profile. The key needs the scope templates:write."
        )
    if options.command in messages.COMMANDS:
        is_test_key = profile.key.startswith(messages.TEST_KEY)
        with Server(profile.url, key=profile.key, transport=transport) as server:
            return messages.run(options, server, is_test_key=is_test_key, out=out, err=err)
    chosen = _Chosen(options.slugs)
    with Server(profile.url, key=profile.key, transport=transport) as server:
        return _COMMANDS[options.command](
            _Run(
                options=options,
                server=server,
                local=_local(options, chosen, environment, transport),
                chosen=chosen,
                out=out,
                err=err,
            )
        )


def _profile(options: argparse.Namespace, environment: Mapping[str, str]) -> Profile:
    """Return the server of a command: of its options, else of the environment."""
    if name := options.profile or environment.get(PROFILE):
        found = find_profile(name, environment=environment)
    else:
        found = Profile(environment.get(URL, ""), environment.get(KEY, ""))
    return replace(found, url=options.url or found.url)


def _local(
    options: argparse.Namespace,
    chosen: "_Chosen",
    environment: Mapping[str, str],
    transport: httpx.BaseTransport | None,
) -> dict[str, TypeFiles]:
    """Return the chosen types to compare with the server's: of the files, or of another server."""
    if options.command == PROMOTE:
        source = find_profile(options.source, environment=environment)
        with Server(source.url, key=source.key, transport=transport) as server:
            return {slug: each.files for slug, each in chosen.of(server.types()).items()}
    return files.read_types(options.types, chosen.slugs)


def _generate(options: argparse.Namespace, out: TextIO) -> int:
    if not any(getattr(options, language) for language in generate.LANGUAGES):
        named = " or ".join(f"--{language}" for language in generate.LANGUAGES)
        raise _InvalidUseError(f"Name the file to write: {named}.")
    is_changed = generate.generate(options, out=out)
    return DIFFERENT if is_changed and options.check else OK


def _validate(options: argparse.Namespace, out: TextIO) -> int:
    folder = options.types / options.slug
    if not files.NAME.fullmatch(options.slug) or not (folder / files.DEFINITION).is_file():
        raise _InvalidUseError(f"There is no type {options.slug}.")
    found = [*validate.find_problems(files.read_type(folder), options.data)]
    for at, reason in found:
        print(f"{at}: {reason}", file=out)
    return DIFFERENT if found else OK


def _init(options: argparse.Namespace, out: TextIO) -> int:
    for path in write_first_type(options.types, options.slug):
        print(f"{path}: written", file=out)
    print(f"To store it on a server: notify push {options.slug}", file=out)
    return OK


class _InvalidUseError(Exception):
    """What the command line or the environment lacks, or names and isn't there."""


class _Chosen:
    """The types that the command line names; all, if it names none."""

    def __init__(self, slugs: Sequence[str]) -> None:
        self.slugs = slugs

    def of(self, types: Mapping[str, Any]) -> dict[str, Any]:
        """Return the chosen ones of these types."""
        return {s: each for s, each in types.items() if not self.slugs or s in self.slugs}

    def check(self, *known: Mapping[str, Any]) -> None:
        """Raise _InvalidUseError for a name that none of these has."""
        for slug in self.slugs:
            if not any(slug in types for types in known):
                raise _InvalidUseError(f"There is no type {slug}.")


@dataclass(slots=True, kw_only=True)
class _Files:
    """One call of the command that needs no server."""

    options: argparse.Namespace
    local: dict[str, TypeFiles]
    chosen: _Chosen
    out: TextIO
    err: TextIO
    events: list[dict[str, Any]] = field(default_factory=list)

    @property
    def folder(self) -> Path:
        """The folder of types."""
        folder: Path = self.options.types
        return folder

    def say(self, slug: str, what: str, text: str = "") -> None:
        """Report what happened to a type, as a line or for ``--json``."""
        self.events.append({"type": slug, "what": what, **({"text": text} if text else {})})
        if not self.options.json:
            print(f"{slug}: {what}", file=self.out)
            if text:
                print(text, end="", file=self.out)

    def report(self, place: str, event: Mapping[str, str]) -> None:
        """Report what is at a place in a file."""
        self.events.append({**event, "place": place})
        if not self.options.json:
            print(f"{place}: {event['what']}: {event['text']}", file=self.out)

    def warn(self, text: str) -> None:
        """Report what isn't about one type."""
        print(text, file=self.err)

    def end(self, code: int) -> int:
        """Write what ``--json`` asks for. Return the exit code."""
        if self.options.json:
            print(json.dumps(self.events, ensure_ascii=False), file=self.out)
        return code


@dataclass(slots=True, kw_only=True)
class _Run(_Files):
    """One call of the command with a server, which is to have the local types."""

    server: Server

    @property
    def source(self) -> str | None:
        """The profile of the server that has the local types, None if they are the files."""
        return self.options.source if self.options.command == PROMOTE else None

    @property
    def place(self) -> str:
        """Where the local types are."""
        return f"on {self.source}" if self.source else f"in {self.folder}"

    def difference(self, slug: str, before: TypeFiles, after: TypeFiles) -> str:
        """Return how a local type differs from the server's, both as files."""
        return _difference(slug, before, after, names=("server", self.source or "files"))

    def three_way_difference(self, slug: str, there: TypeFiles, here: TypeFiles) -> str:
        """Return how the server's type and the local one differ from what was last the same.

        Without that, return how they differ from each other.
        """
        known = self.lock().get(slug)
        base = self.pulled().get(slug, known.revision) if known and not self.source else None
        if base is None:
            return self.difference(slug, there, here)
        return "".join(
            _difference(slug, base, side, names=("pulled", name))
            for name, side in (("server", there), ("files", here))
        )

    def pulled(self) -> Pulled:
        """Return what the server had, beside the folder of types."""
        return Pulled(self.folder.parent, self.server.url)

    def set_synced(self, types: Sequence[ServerType]) -> None:
        """Store that the files of types are those of the server. Raises FileError."""
        pulled = self.pulled()
        for each in types:
            pulled.keep(each.slug, each.revision, each.files)
        self.lock().set(
            {each.slug: Synced(each.revision, digest(self.local[each.slug])) for each in types}
        )

    def lock(self) -> Lock:
        """Return the lock beside the folder of types."""
        return Lock(self.folder.parent / LOCK, self.server.url)


def _difference(slug: str, before: TypeFiles, after: TypeFiles, *, names: tuple[str, str]) -> str:
    one = files.texts_of(before) if before.definition else {}
    other = files.texts_of(after)
    lines: list[str] = []
    for name in sorted(one.keys() | other.keys()):
        lines += difflib.unified_diff(
            one.get(name, "").splitlines(keepends=True),
            other.get(name, "").splitlines(keepends=True),
            fromfile=f"{names[0]}/{slug}/{name}",
            tofile=f"{names[1]}/{slug}/{name}",
        )
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


def _pull(run: _Run) -> int:
    there = run.server.types()
    run.chosen.check(run.local, there)
    lock = run.lock()
    same: list[ServerType] = []
    code = OK
    for slug, of_server in run.chosen.of(there).items():
        if not files.NAME.fullmatch(slug):
            raise ServerError(f"{slug!r} is no type.")
        here = run.local.get(slug)
        if here != of_server.files and here is not None and not run.options.force:
            known = lock.get(slug)
            is_changed_here = known is None or digest(here) != known.files
            is_changed_there = known is None or of_server.revision != known.revision
            if is_changed_here and is_changed_there:
                run.say(slug, "conflict: changed in the files and on the server",
                        run.three_way_difference(slug, of_server.files, here))  # fmt: skip
                code = CONFLICT
                continue
            if is_changed_here:
                run.say(slug, "kept, since only the files have changed")
                continue
            if not is_changed_there:
                same.append(of_server)
                continue
        changed = files.write_type(run.folder / slug, of_server.files)
        run.local[slug] = files.read_type(run.folder / slug)
        same.append(of_server)
        if changed:
            run.say(slug, "pulled")
    if same:
        run.set_synced(same)
    if code == CONFLICT:
        run.warn("To take the server's, use --force. To send yours, merge them, then push --force.")
    return run.end(code)


def _diff(run: _Run) -> int:
    there = run.server.types()
    run.chosen.check(run.local, there)
    try:
        wanted = _sent(run, _revisions(run, there), dry_run=True, publish=False)
    except ConflictError:
        run.warn("Types have changed on the server meanwhile. Run the command again.")
        return run.end(CONFLICT)
    if wanted is None:
        return run.end(DIFFERENT)
    is_different = False
    for each in wanted:
        present = there.get(each.slug)
        before = present.files if present else TypeFiles({})
        if each.outcome != "unchanged":
            is_different = True
            run.say(each.slug, each.outcome, run.difference(each.slug, before, each.files))
    if only_there := sorted(run.chosen.of(there).keys() - run.local.keys()):
        run.warn(f"Only on the server, and left as they are: {', '.join(only_there)}.")
    return run.end(DIFFERENT if is_different and run.options.exit_code else OK)


def _lint_without_server(options: argparse.Namespace, *, out: TextIO, err: TextIO) -> int:
    chosen = _Chosen(options.slugs)
    local = files.read_types(options.types, chosen.slugs)
    run = _Files(options=options, local=local, chosen=chosen, out=out, err=err)
    return _lint(run, lint.find_without_server)


def _lint_by_server(run: _Run) -> int:
    def find(local: Mapping[str, TypeFiles]) -> Sequence[Finding]:
        try:
            return run.server.lint([LocalType(*each, None) for each in local.items()])
        except RefusedError as invalid:
            return invalid.problems

    return _lint(run, find)


def _lint(run: _Files, find: Callable[[Mapping[str, TypeFiles]], Iterable[Finding]]) -> int:
    run.chosen.check(run.local)
    if not run.local:
        run.warn(f"There are no types in {run.folder}.")
        return run.end(INVALID_USE)
    slugs = [*run.local]
    found = [*find(run.local)]
    for each in found:
        slug, name, path = lint.place(slugs, each.pointer)
        at = run.folder / slug / name
        run.report(
            f"{at}:{each.line or lint.line_of(at, path)}",
            {"type": slug, "what": each.code, "text": each.detail},
        )
    if found:
        run.warn(f"Each rule is explained in {lint.PAGE}.")
    return run.end(DIFFERENT if found else OK)


def _push(run: _Run) -> int:
    if run.options.force:
        return _store(run, _revisions(run, run.server.types()))
    return _store(run, _known_revisions(run))


def _promote(run: _Run) -> int:
    there, lock = run.server.types(), run.lock()
    if run.options.force:
        return _store(run, _revisions(run, there))
    unmoved = {s: each for s, each in there.items() if each.revision in lock.revisions(s)}
    return _store(
        run,
        {
            slug: unmoved[slug].revision if slug in unmoved else revision
            for slug, revision in _known_revisions(run).items()
        },
    )


def _revisions(run: _Run, there: Mapping[str, ServerType]) -> dict[str, str | None]:
    """Return the present revision of each type; None: the server doesn't have it."""
    return {slug: there[slug].revision if slug in there else None for slug in run.local}


def _known_revisions(run: _Run) -> dict[str, str | None]:
    """Return the revision of each type when it was last that of the files; None: never."""
    lock = run.lock()
    return {slug: known.revision if (known := lock.get(slug)) else None for slug in run.local}


def _store(run: _Run, replaced: Mapping[str, str | None]) -> int:
    """Store types on the server in place of these revisions."""
    run.chosen.check(run.local)
    if not run.local:
        run.warn(f"There are no types {run.place}.")
        return run.end(INVALID_USE)
    try:
        stored = _sent(run, replaced, dry_run=run.options.dry_run, publish=run.options.publish)
    except ConflictError as conflict:
        return run.end(_report_conflict(run, [[*run.local][index] for index in conflict.indexes]))
    if stored is None:
        return run.end(DIFFERENT)
    publishes = run.options.publish and not run.options.dry_run
    _report_stored(run, stored, publishes=publishes)
    if run.source:
        # The files may have something else.
        if publishes:
            run.lock().set_promoted({each.slug: each.revision for each in stored})
    elif publishes or all(each.outcome == "unchanged" for each in stored):
        run.set_synced(stored)
    return run.end(OK)


def _report_stored(run: _Run, stored: Sequence[ServerType], *, publishes: bool) -> None:
    for each in stored:
        if each.outcome == "unchanged":
            continue
        if run.options.dry_run:
            run.say(each.slug, f"would be {each.outcome}")
        elif publishes:
            run.say(each.slug, f"{each.outcome} and published")
        elif each.version:
            run.say(each.slug, f"draft of version {each.version}, not published")
        else:
            run.say(each.slug, "not published: without --publish, only texts are stored")


def _report_conflict(run: _Run, slugs: Sequence[str]) -> int:
    there = run.server.types()
    for slug in slugs:
        present = there.get(slug)
        text = run.three_way_difference(slug, present.files, run.local[slug]) if present else ""
        last = "pull, push, or promotion" if run.source else "pull"
        run.say(slug, f"conflict: changed on the server since the last {last}", text)
    run.warn(
        f"Nothing was stored. --force publishes what {run.source} has in place of the server's."
        if run.source
        else "Nothing was stored. Pull, merge, and push again; --force overwrites the server's."
    )
    return CONFLICT


def _sent(
    run: _Run, replaced: Mapping[str, str | None], *, dry_run: bool, publish: bool
) -> list[ServerType] | None:
    """Send the files. Return the server's view of them, or None if it refuses them."""
    types = [LocalType(slug, each, replaced[slug]) for slug, each in run.local.items()]
    if not types:
        return []
    note = getattr(run.options, "note", "")
    breaks = getattr(run.options, "breaking", False)
    try:
        return run.server.push(types, publish=publish, dry_run=dry_run, note=note, breaks=breaks)
    except RefusedError as invalid:
        for each in invalid.problems:
            slug, name, path = lint.place([*run.local], each.pointer)
            run.say(slug, f"{name}: {path}: {each.detail}" if path else f"{name}: {each.detail}")
        return None


_WITHOUT_SERVER = {INIT: _init, TYPES: _generate, VALIDATE: _validate}
_COMMANDS = {
    "pull": _pull,
    "diff": _diff,
    LINT: _lint_by_server,
    "push": _push,
    PROMOTE: _promote,
}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="notify", description="Types and templates as files.")
    commands = parser.add_subparsers(dest="command", required=True)
    pull = commands.add_parser("pull", help="write the server's types into files")
    pull.add_argument("--force", action="store_true", help="overwrite files that have changed")
    diff = commands.add_parser("diff", help="show how the files differ from the server")
    diff.add_argument("--exit-code", action="store_true", help="exit with 1 if they differ")
    lint_ = commands.add_parser(LINT, help="find what is worth a second look in the files")
    lint_.add_argument("--server", action="store_true", help="also what the server would refuse")
    push = commands.add_parser("push", help="store the files' types on the server")
    push.add_argument("--publish", action="store_true", help="use them for new notifications")
    promote = commands.add_parser(PROMOTE, help="publish one server's types on another")
    promote.add_argument("--from", dest="source", required=True, help="the profile to read from")
    promote.add_argument("--to", dest="profile", required=True, help="the profile to publish on")
    promote.set_defaults(publish=True, url=None)
    for command in (push, promote):
        command.add_argument("--dry-run", action="store_true", help="check them and store nothing")
        command.add_argument("--force", action="store_true", help="overwrite what the server has")
        command.add_argument(
            "--breaking", action="store_true", help="publish schemas that refuse more"
        )
        command.add_argument("--note", default="", help="what has changed")
    init = commands.add_parser(INIT, help="write the files of a first type")
    init.add_argument("slug", nargs="?", default=FIRST_SLUG, metavar="TYPE")
    of_types = commands.add_parser(TYPES, help="code for the data of types").add_subparsers(
        dest="subcommand", required=True
    )
    generator = of_types.add_parser("generate", help="write code that a type checker reads")
    generate.add_options(generator)
    validator = commands.add_parser(VALIDATE, help="check the data of a request by a schema")
    validator.add_argument("slug", metavar="TYPE", help="the type of the request")
    validator.add_argument("data", type=Path, metavar="FILE", help="the request's data, as JSON")
    for command in (init, pull, diff, lint_, push, promote, generator, validator):
        command.add_argument("--types", type=Path, default=DEFAULT_TYPES, help="the folder")
    of_messages = messages.add_commands(commands)
    for command in (pull, diff, lint_, push, promote):
        command.add_argument("slugs", nargs="*", metavar="TYPE", help="by default all")
    for command in (pull, diff, lint_, push, promote, *of_messages):
        command.add_argument("--json", action="store_true", help="write JSON")
    for command in (pull, diff, lint_, push, *of_messages):
        command.add_argument("--url", help=f"the server, in place of {URL}")
        command.add_argument("--profile", help=f"the server's name in the file of {PROFILES}")
    return parser
