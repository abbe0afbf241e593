"""Applies the migrations to a database of the previous version, and goes back, on a real mongod."""

import tempfile
from collections.abc import Mapping
from pathlib import Path

from notifyproject.stack import servers

from .checks import local_python
from .repository import Repository, run
from .versions import Version

FOLDER = Path(".data") / "release"


def check(repository: Repository, *, previous: Version) -> None:
    """Upgrade a database of the previous version, and put that version back.

    Raises ReleaseError if either version refuses the database. The previous version has its own
    libraries, in a virtual environment that its Makefile makes.
    """
    (repository.root / FOLDER).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=repository.root / FOLDER) as folder:
        old = Path(folder) / "previous"
        repository.check_out(old, commit=previous.tag)
        run("make", ".venv/local", cwd=old)
        mongod = servers.mongod(data_dir=Path(folder) / "mongod", port=servers.free_port())
        mongod.start()
        try:
            servers.make_primary(mongod.port)
            _upgrade_and_return(old, repository.root, port=mongod.port)
        finally:
            mongod.stop()


def _upgrade_and_return(old: Path, new: Path, *, port: int) -> None:
    environment = {
        "DJANGO_SETTINGS_MODULE": "notifyproject.settings.local",
        "MONGODB_URI": servers.mongodb_uri(port, "notifyproject"),
    }
    # The second time, the previous version meets the database of the new one, as in a step back.
    for root in (old, new, old, new):
        _manage(root, environment, "migrate", "--no-input", "--verbosity", "0")
        _manage(root, environment, "migrate", "--check")
    _manage(new, environment, "check_indexes")


def _manage(root: Path, environment: Mapping[str, str], *words: str) -> None:
    run(local_python(root), "manage.py", *words, cwd=root, environment=environment)
