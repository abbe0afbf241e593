"""``notify``: the commands, their options, and their exit codes.

Exit codes: 0; 1 for differences, findings, or refused types; 2 for invalid use and an unreachable
server; 3 for a conflict.
"""

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TextIO

import httpx

from . import files, generate, kinds, lint, messages, prune, validate
from .files import FileError
from .init import FIRST_SLUG, write_first
from .invocation import PROMOTE, Chosen, Files, InvalidUseError, Report, Run
from .kinds import TYPE, Item
from .lock import digest
from .profiles import FILE as PROFILES
from .profiles import Profile, ProfileError, find_profile
from .prune import Gone
from .rules.type_rules import Finding
from .screen import Screen
from .server import ConflictError, LocalItem, RefusedError, Server, ServerError, ServerItem

OK, DIFFERENT, INVALID_USE, CONFLICT = range(4)
URL, KEY, PROFILE = "NOTIFY_URL", "NOTIFY_API_KEY", "NOTIFY_PROFILE"
DEFAULT_TYPES = Path("notify/types")
_NAME_HELP = "a type, or such as brands/acme"
INIT, LINT, TYPES, VALIDATE = "init", "lint", "types", "validate"


def main() -> None:
    """Run the command."""
    sys.exit(run(sys.argv[1:]))


def run(
    words: Sequence[str],
    *,
    environment: Mapping[str, str] = os.environ,
    answers: TextIO | None = None,
    out: TextIO | None = None,
    err: TextIO | None = None,
    transport: httpx.BaseTransport | None = None,
) -> int:
    """Run the command with these words. Return its exit code."""
    options = _parser().parse_args(words)
    screen = Screen(out or sys.stdout, err or sys.stderr, environment)
    try:
        if options.command in _WITHOUT_SERVER:
            return _WITHOUT_SERVER[options.command](Report(options=options, screen=screen))
        if options.command == LINT and not options.server:
            return _lint_without_server(options, screen)
        return _call(options, environment, screen, answers or sys.stdin, transport)
    except (FileError, ProfileError, ServerError, InvalidUseError) as error:
        screen.warn(str(error))
        return INVALID_USE
    finally:
        screen.close()


def _call(
    options: argparse.Namespace,
    environment: Mapping[str, str],
    screen: Screen,
    answers: TextIO,
    transport: httpx.BaseTransport | None,
) -> int:
    profile = _profile(options, environment)
    if not (profile.url and profile.key):
        raise InvalidUseError(
            f"Set {URL} and {KEY}, or name a profile. The key needs the scope templates:write."
        )
    if options.command in messages.COMMANDS:
        is_test_key = profile.key.startswith(messages.TEST_KEY)
        with Server(profile.url, key=profile.key, transport=transport) as server:
            return messages.run(options, server, screen, is_test_key=is_test_key)
    chosen, progress = Chosen(options.names), screen.progress
    with Server(profile.url, key=profile.key, transport=transport, progress=progress) as server:
        return _COMMANDS[options.command](
            Run(
                options=options,
                server=server,
                local=_local(options, chosen, environment, screen, transport),
                chosen=chosen,
                answers=answers,
                screen=screen,
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
    chosen: Chosen,
    environment: Mapping[str, str],
    screen: Screen,
    transport: httpx.BaseTransport | None,
) -> dict[str, Item]:
    """Return the chosen items to compare with the server's: of the files, or of another server."""
    if options.command == PROMOTE:
        source = find_profile(options.source, environment=environment)
        progress = screen.progress
        with Server(source.url, key=source.key, transport=transport, progress=progress) as server:
            return {key: each.item for key, each in chosen.of(server.items()).items()}
    return kinds.read_items(options.types, chosen.keys)


def _generate(report: Report) -> int:
    options = report.options
    if not any(getattr(options, language) for language in generate.LANGUAGES):
        named = " or ".join(f"--{language}" for language in generate.LANGUAGES)
        raise InvalidUseError(f"Name the file to write: {named}.")
    changed = generate.generate(options)
    for path in changed:
        what = "would change" if options.check else "written"
        report.report(str(path), {"what": what}, what)
    return report.end(DIFFERENT if changed and options.check else OK)


def _validate(report: Report) -> int:
    slug, data = report.options.slug, report.options.data
    folder = report.folder / slug
    if not files.NAME.fullmatch(slug) or not (folder / files.DEFINITION).is_file():
        raise InvalidUseError(f"There is no type {slug}.")
    found = [*validate.find_problems(files.read_type(folder), data)]
    for at, reason in found:
        report.report(at, {TYPE.name: slug, "what": "invalid_data", "text": reason}, reason)
    return report.end(DIFFERENT if found else OK)


def _init(report: Report) -> int:
    key, what = report.options.name, "written"
    kind, name = kinds.kind_and_name(key)
    for path in write_first(report.folder, key):
        report.report(str(path), {kind.name: name, "what": what}, what)
    report.warn(f"To store it on a server: notify push {key}")
    return report.end(OK)


def _wanted(run: Run, there: Mapping[str, ServerItem]) -> dict[str, ServerItem]:
    """Return the server's chosen items, but for types that a push has disabled.

    The files don't have those, and get them back if they are named, or change on the server.
    """
    lock = run.lock()
    return {
        key: present
        for key, present in run.chosen.of(there).items()
        if key in run.local or key in run.chosen.keys or lock.pruned(key) != present.revision
    }


def _pull(run: Run) -> int:
    there = run.server.items()
    run.chosen.check(run.local, there)
    lock = run.lock()
    same: list[ServerItem] = []
    code = OK
    for key, of_server in _wanted(run, there).items():
        item = of_server.item
        if not item.kind.pattern.fullmatch(item.name):
            raise ServerError(f"{item.name!r} is no {item.kind.name}.")
        here = run.local.get(key)
        if here is not None and here != item and not run.options.force:
            known = lock.get(key)
            is_changed_here = known is None or digest(here.content) != known.files
            is_changed_there = known is None or of_server.revision != known.revision
            if is_changed_here and is_changed_there:
                run.say(
                    here,
                    "conflict: changed in the files and on the server",
                    of_server.emergencies + run.three_way_difference(item, here),
                )
                code = CONFLICT
                continue
            if is_changed_here:
                run.say(here, "kept, since only the files have changed")
                continue
            if not is_changed_there:
                same.append(of_server)
                continue
        folder = kinds.folder_of(item.kind, run.folder)
        changed = item.kind.write(folder, item.name, item.content)
        run.local[key] = replace(item, content=item.kind.read(folder, item.name))
        same.append(of_server)
        if changed:
            run.say(item, "pulled")
    if same:
        run.set_synced(same)
    if code == CONFLICT:
        run.warn("To take the server's, use --force. To send yours, merge them, then push --force.")
    return run.end(code)


def _diff(run: Run) -> int:
    there = run.server.items()
    run.chosen.check(run.local, there)
    try:
        wanted = _sent(run, _revisions(run, there), dry_run=True, publish=False)
    except ConflictError:
        run.warn("Something has changed on the server meanwhile. Run the command again.")
        return run.end(CONFLICT)
    except RefusedError as refused:
        _report_refused(run, refused)
        return run.end(DIFFERENT)
    is_different = False
    for each in wanted:
        present = there.get(each.item.key)
        if each.outcome != "unchanged":
            is_different = True
            text = run.difference(present.item if present else None, each.item)
            run.say(each.item, each.outcome, (present.emergencies if present else "") + text)
    if only_there := sorted(_wanted(run, there).keys() - run.local.keys()):
        run.warn(f"Only on the server, and left as they are: {', '.join(only_there)}.")
    return run.end(DIFFERENT if is_different and run.options.exit_code else OK)


def _lint_without_server(options: argparse.Namespace, screen: Screen) -> int:
    chosen = Chosen(options.names)
    local = kinds.read_items(options.types, chosen.keys)
    run = Files(options=options, local=local, chosen=chosen, screen=screen)
    is_all = not chosen.keys
    return _lint(run, lambda items: lint.find_without_server(items, is_all=is_all))


def _lint_by_server(run: Run) -> int:
    def find(local: Sequence[Item]) -> Sequence[Finding]:
        try:
            return run.server.lint([LocalItem(item, None) for item in local])
        except RefusedError as invalid:
            return invalid.problems

    return _lint(run, find)


def _lint(run: Files, find: Callable[[Sequence[Item]], Iterable[Finding]]) -> int:
    run.chosen.check(run.local)
    if not run.local:
        run.warn(f"There are no types in {run.folder}.")
        return run.end(INVALID_USE)
    local = [*run.local.values()]
    found = [*find(local)]
    for each in found:
        item, name, path = kinds.locate(local, each.pointer)
        event, shown = {"what": each.code, "text": each.detail}, f"{each.code}: {each.detail}"
        if item is None:
            run.report(path, event, shown)
            continue
        at = kinds.folder_of(item.kind, run.folder) / name
        place = f"{at}:{each.line or lint.line_of(at, path)}"
        run.report(place, {item.kind.name: item.name, **event}, shown)
    if found:
        run.warn(f"Each rule is explained in {lint.PAGE}.")
    return run.end(DIFFERENT if found else OK)


def _push(run: Run) -> int:
    options = run.options
    if options.prune and not (options.publish or options.dry_run):
        raise InvalidUseError(
            "--prune needs --publish, or --dry-run, which shows what it would do."
        )
    there = run.server.items() if options.force or options.prune else {}
    replaced = _revisions(run, there) if options.force else _known_revisions(run)
    if not options.prune:
        return _store(run, replaced)
    found = prune.find_gone(there, run.lock(), local=run.local, force=options.force)
    gone = run.chosen.of({each.item.key: each for each in found})
    code = _store(run, replaced, [*gone.values()])
    if code == OK and not options.dry_run:
        lost, disabled = prune.find_settled(there, run.lock(), local=run.local)
        run.lock().set_pruned(lost, run.chosen.of(disabled))
    return code


def _promote(run: Run) -> int:
    there, lock = run.server.items(), run.lock()
    if run.options.force:
        return _store(run, _revisions(run, there))
    unmoved = {k: each for k, each in there.items() if each.revision in lock.revisions(k)}
    return _store(
        run,
        {
            key: unmoved[key].revision if key in unmoved else revision
            for key, revision in _known_revisions(run).items()
        },
    )


def _revisions(run: Run, there: Mapping[str, ServerItem]) -> dict[str, str | None]:
    """Return the present revision of each item; None: the server doesn't have it."""
    return {key: there[key].revision if key in there else None for key in run.local}


def _known_revisions(run: Run) -> dict[str, str | None]:
    """Return the revision that each item replaces, as far as the files know; None: it is new."""
    lock = run.lock()
    return {key: lock.replaced(key) for key in run.local}


def _store(run: Run, replaced: Mapping[str, str | None], gone: Sequence[Gone] = ()) -> int:
    """Store items on the server in place of these revisions, and take away what is gone."""
    run.chosen.check(run.local, {each.item.key: each for each in gone})
    # A folder without any type is more likely another folder than what is left.
    if not run.local and not (gone and run.chosen.keys):
        run.warn(f"There are no types {run.place}.")
        return run.end(INVALID_USE)
    send = partial(_sent, run, replaced, publish=run.options.publish)
    try:
        free, used = prune.part_used(gone, partial(send, dry_run=True))
        taken = [each.sent for each in free]
        if free and not run.options.dry_run and not run.options.yes:
            send(taken, dry_run=True)
            if not _is_confirmed(run, free):
                run.warn("Nothing was stored.")
                return run.end(DIFFERENT)
        stored = send(taken, dry_run=run.options.dry_run)
    except RefusedError as refused:
        _report_refused(run, refused)
        return run.end(DIFFERENT)
    except ConflictError as conflict:
        located = [kinds.locate(conflict.sent, pointer)[0] for pointer in conflict.pointers]
        return run.end(_report_conflict(run, [item for item in located if item is not None]))
    publishes = run.options.publish and not run.options.dry_run
    of_files = [each for each in stored if each.item.key in run.local]
    _report_stored(run, of_files, publishes=publishes)
    _report_gone(run, free, used)
    if run.source:
        # The files may have something else.
        if publishes:
            run.lock().set_promoted({each.item.key: each.revision for each in stored})
    elif publishes or all(each.outcome == "unchanged" for each in stored):
        run.set_synced(of_files)
    if publishes and free:
        disabled = {e.item.key: e.revision for e in stored if e.item.key not in run.local}
        run.lock().set_pruned([each.item.key for each in free if each.is_removed], disabled)
    return run.end(OK)


def _is_confirmed(run: Run, gone: Sequence[Gone]) -> bool:
    """Return whether the user agrees to take items away. Raises InvalidUseError."""
    for each in gone:
        run.warn(f"{each.item.key}: to be {each.taken_away}")
    if not run.answers.isatty():
        raise InvalidUseError("Without a terminal to ask on, --prune needs --yes, or --dry-run.")
    run.screen.ask(f"Take {len(gone)} away from {run.server.url}? [y/N] ")
    return run.answers.readline().strip().lower() in ("y", "yes")


def _report_stored(run: Run, stored: Sequence[ServerItem], *, publishes: bool) -> None:
    for each in stored:
        if each.outcome == "unchanged":
            continue
        if run.options.dry_run:
            run.say(each.item, f"would be {each.outcome}")
        elif publishes:
            run.say(each.item, f"{each.outcome} and published")
        elif each.version:
            run.say(each.item, f"draft of version {each.version}, not published")
        else:
            run.say(each.item, "not published: without --publish, only texts of types are stored")


def _report_gone(run: Run, free: Sequence[Gone], used: Sequence[tuple[Gone, str]]) -> None:
    for each in free:
        words = f"would be {each.taken_away}" if run.options.dry_run else each.taken_away
        run.say(each.item, words)
    for each, reason in used:
        run.say(each.item, f"kept: {reason}")


def _report_refused(run: Run, refused: RefusedError) -> None:
    for each in refused.problems:
        item, file, path = kinds.locate(refused.sent, each.pointer)
        if item is None:
            run.warn(f"{path}: {each.detail}" if path else each.detail)
            continue
        name = file.removeprefix(f"{item.name}/")
        run.say(item, f"{name}: {path}: {each.detail}" if path else f"{name}: {each.detail}")


def _report_conflict(run: Run, changed: Sequence[Item]) -> int:
    there = run.server.items()
    for each in changed:
        here, present = run.local.get(each.key), there.get(each.key)
        text = ""
        if present:
            text = present.emergencies + run.three_way_difference(present.item, here)
        last = "pull, push, or promotion" if run.source else "pull"
        is_gone = "" if here else ", and gone from the files"
        run.say(each, f"conflict: changed on the server since the last {last}{is_gone}", text)
    run.warn(
        f"Nothing was stored. --force publishes what {run.source} has in place of the server's."
        if run.source
        else "Nothing was stored. Pull, merge, and push again; --force overwrites the server's."
    )
    return CONFLICT


def _sent(
    run: Run,
    replaced: Mapping[str, str | None],
    taken: Sequence[LocalItem] = (),
    *,
    dry_run: bool,
    publish: bool,
) -> list[ServerItem]:
    """Send the local items, after those that are taken away. Return the server's view of them.

    Raises RefusedError and ConflictError.
    """
    sent = [*taken, *(LocalItem(item, replaced[key]) for key, item in run.local.items())]
    if not sent:
        return []
    note = getattr(run.options, "note", "")
    breaks = getattr(run.options, "breaking", False)
    return run.server.push(sent, publish=publish, dry_run=dry_run, note=note, breaks=breaks)


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
    push.add_argument(
        "--prune", action="store_true", help="remove or disable what the files no longer have"
    )
    push.add_argument("--yes", action="store_true", help="prune without asking")
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
    init = commands.add_parser(INIT, help="write the files of a first type, or of a first design")
    init.add_argument("name", nargs="?", default=FIRST_SLUG, metavar="NAME", help=_NAME_HELP)
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
        command.add_argument("names", nargs="*", metavar="NAME", help=f"{_NAME_HELP}; or all")
    for command in (init, pull, diff, lint_, push, promote, generator, validator, *of_messages):
        command.add_argument("--json", action="store_true", help="write JSON")
    for command in (pull, diff, lint_, push, *of_messages):
        command.add_argument("--url", help=f"the server, in place of {URL}")
        command.add_argument("--profile", help=f"the server's name in the file of {PROFILES}")
    return parser
