"""``make version`` and ``make release``: begin a version, and check and build it."""

import argparse
import shutil
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from . import changelog, checks, migrations, versions
from .build import Build
from .repository import ReleaseError, Repository
from .versions import Version

ROOT = Path(__file__).resolve().parent.parent.parent
TOOLS = ROOT / ".venv"
BUILDS = 2
"""How often everything is built. The builds must be the same."""


def main() -> str | None:
    """Run a command. Return why it failed, or None."""
    parser = argparse.ArgumentParser(prog="python -m scripts.release", description=__doc__)
    parser.add_argument("command", choices=("version", "release"))
    parser.add_argument("version", type=_version, metavar="VERSION")
    parser.add_argument("--image", default="notifyproject", help="where the image is pushed")
    options = parser.parse_args()
    try:
        if options.command == "version":
            begin(options.version)
        else:
            release(options.version, image=options.image)
    except (ReleaseError, ValueError) as error:
        return str(error)
    return None


def begin(version: Version) -> None:
    """Write a version to all files that state it, and give it the unreleased changes."""
    path = ROOT / "CHANGELOG.md"
    day = datetime.now(UTC).date()
    text = changelog.with_release(path.read_text("utf-8"), version=version, day=day)
    path.write_text(text, encoding="utf-8")
    versions.write(ROOT, version)
    if page := checks.upgrading_page(version):
        print(f"Write {page}, and list it in docs/guides/upgrade.md.")
    print(f"Look at `git diff`, commit it, then run `make release VERSION={version}`.")


def release(version: Version, *, image: str) -> None:
    """Check the commit, and build what is published. Nothing is tagged or pushed."""
    repository = Repository(ROOT)
    previous = versions.before(version, repository.tags())
    today = datetime.now(UTC).date()
    found = list(checks.problems(repository, version=version, previous=previous, today=today))
    if previous is None:
        print("No earlier version has a tag: API and migrations are compared with nothing.")
    else:
        found += _breaking_changes(repository, version=version, previous=previous)
    if shutil.which("npm") is None:
        found.append("The npm packages need Node.js 20 or later.")
    if found:
        raise ReleaseError("\n".join(found))
    if previous is not None:
        print(f"Migrations: from {previous}, and back …", flush=True)
        migrations.check(repository, previous=previous)
    output = _build(repository, version=version, image=image)
    print(f"In {output.relative_to(ROOT)}:")
    for path in sorted(output.iterdir()):
        print(f"  {path.stat().st_size:>10,}  {path.name}")
    print(_next_steps(repository, version=version, image=image))


def _breaking_changes(repository: Repository, *, version: Version, previous: Version) -> list[str]:
    changes = checks.changes_of_the_api(repository, previous=previous)
    print(f"Changes of the API since {previous} that concern a program: {len(changes)}")
    for change in changes:
        print(f"  {'BREAKS ' if change.breaks else ''}{change}")
    if version.may_break(previous) or not any(change.breaks for change in changes):
        return []
    return [f"The API breaks programs written for {previous}, so it is a major version."]


def _build(repository: Repository, *, version: Version, image: str) -> Path:
    output = ROOT / migrations.FOLDER / str(version)
    shutil.rmtree(output, ignore_errors=True)
    output.parent.mkdir(parents=True, exist_ok=True)
    commit, seconds = repository.commit(), repository.seconds()
    with tempfile.TemporaryDirectory(dir=output.parent) as folder:
        sums = []
        for number in range(1, BUILDS + 1):
            print(f"Build {number} of {BUILDS} …", flush=True)
            source, built = Path(folder) / f"source-{number}", Path(folder) / f"built-{number}"
            repository.check_out(source, commit=commit)
            build = Build(source, built, version=version, image=image, seconds=seconds)
            sums.append(build.everything(tools=TOOLS))
        first, *others = sums
        if other := {name for each in others for name in first if each.get(name) != first[name]}:
            raise ReleaseError(f"Two builds differ: {', '.join(sorted(other))}")
        built.rename(output)
    return output


def _next_steps(repository: Repository, *, version: Version, image: str) -> str:
    labels = {
        "version": str(version),
        "revision": repository.commit(),
        "created": datetime.fromtimestamp(int(repository.seconds()), UTC).isoformat(),
    }
    options = " ".join(
        f"--label org.opencontainers.image.{name}={value}" for name, value in labels.items()
    )
    return f"""
The image isn't built, because that needs a container engine. Where there is one, from the archive
of the source:

  docker buildx build --build-arg SOURCE_DATE_EPOCH={repository.seconds()} {options} \\
    --output type=image,name={image}:{version},push=true,rewrite-timestamp=true .

Nothing is tagged or pushed. Next: docs/guides/release.md."""


def _version(text: str) -> Version:
    try:
        return Version.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


if __name__ == "__main__":
    sys.exit(main())
