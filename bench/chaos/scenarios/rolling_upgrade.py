"""The service is replaced process by process by its next version, and put back, under load.

The next version has another field, and another channel with a provider: what it stores of them,
this version has to leave alone.
"""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from notifyproject.settings.environment import BASE_DIR

from ...cluster import Cluster
from ...cluster.plan import APPS
from ...processes import ScenarioError
from ..findings import Bound, Findings, at_least, scenario
from ..installation import set_up_commands
from .hosts import ALL, FINAL_SECONDS, Fault, cluster, finish, mail

FIELD = "accepted_by_version"
"""The field of a notification that only the next version knows and writes."""
ADDITIONS = {
    "notifications/models/notification.py": (
        "    content = EmbeddedModelField(Content)\n",
        f"    {FIELD} = optional_text(16)\n",
    ),
    "notifications/store/acceptance.py": (
        '        "type": new.type,\n',
        f'        "{FIELD}": "next",\n',
    ),
}
"""A line of each file, and the line that the next version adds below it."""
CHANNEL = "pigeon"
MODULES = {
    f"domain/channels/{CHANNEL}.py": f"""\
from ..addresses import EMAIL_ADDRESS
from .spec import ChannelSpec, Reach, Shape, Targets

SPEC = ChannelSpec(
    name="{CHANNEL}",
    order=50,
    label="Pigeon",
    icon="raven",
    targets=Targets.ADDRESS,
    address=EMAIL_ADDRESS,
    reach=Reach.by_address(EMAIL_ADDRESS),
    shape=Shape.TEXT,
    preview="bubble",
)
""",
    "providers/loft/__init__.py": f"""\
from dataclasses import replace

from domain.channels import Channel

from ..sendgrid import PROVIDER as SENDGRID

PROVIDER = replace(
    SENDGRID,
    name="loft",
    label="Loft",
    channel=Channel("{CHANNEL}"),
    sandbox=None,
    webhook=None,
    check=None,
)
""",
}
"""The channel and the provider that only the next version has. The provider sends by email."""
MIGRATION = f"""\
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("notifications", "{{latest}}")]
    operations = [
        migrations.AddField(
            model_name="notification",
            name="{FIELD}",
            field=models.CharField(max_length=16, null=True, blank=True),
        )
    ]
"""
PIGEONS = 2
"""Messages on the channel: before the first host is replaced, and when one is put back."""
ORDER = ("worker", "beat", "web", "stream")
"""The order of an upgrade, as docs/guides/upgrade.md says."""


@contextmanager
def next_version() -> Iterator[Path]:
    """Copy this version with a field and a channel more. Raises ScenarioError."""
    command = ("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    listed = subprocess.run(command, cwd=BASE_DIR, capture_output=True, timeout=60, check=False)
    if listed.returncode:
        raise ScenarioError(f"{' '.join(command)}: {listed.stderr.decode().strip()}")
    with tempfile.TemporaryDirectory(prefix="notifyproject-next-") as folder:
        for name in filter(None, listed.stdout.decode().split("\0")):
            source, target = BASE_DIR / name, Path(folder, name)
            if source.is_file():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, target)
        _add_field(Path(folder))
        for name, text in MODULES.items():
            path = Path(folder, name)
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        yield Path(folder)


def _add_field(code: Path) -> None:
    for name, (line, added) in ADDITIONS.items():
        path = code / name
        before, found, after = path.read_text().partition(line)
        if not found:
            raise ScenarioError(f"{name} has no line {line.strip()!r}, below which to add a field.")
        path.write_text(before + line + added + after)
    migrations = code / "notifications" / "migrations"
    latest = max(migrations.glob("0*.py")).stem
    number = int(latest.partition("_")[0]) + 1
    (migrations / f"{number:04}_{FIELD}.py").write_text(MIGRATION.format(latest=latest))


def replace(running: Cluster, *, app: int, code: Path) -> None:
    """Replace each program of an application host by one of another version."""
    names = sorted(APPS[app].runs, key=lambda name: ORDER.index(name.partition("-")[0]))
    for name in names:
        program = running.all_programs[name]
        if program.terminate() is None:
            running.record_end(program)
        program.folder = code
        running.start(program)


def send_by_pigeon(running: Cluster, code: Path) -> None:
    """Accept a message on the channel of the next version, by a command of it."""
    words = ("--type", "payment_confirmed", "--email", "ada@example.com", "--channels", CHANNEL)
    command = [sys.executable, "manage.py", "notify", *words, "--subject", "Coo", "--body", "Coo."]
    running.run_command("notify", APPS[0], command, code=code)


def by_pigeon(running: Cluster, *statuses: str) -> int:
    """Count the deliveries on the channel of the next version that have one of these statuses."""
    wanted = {"channel": CHANNEL, "status": {"$in": statuses}}
    return running.database["notifications"].count_documents({"delivery": {"$elemMatch": wanted}})


@scenario(
    25,
    injects="the next version, with a field and a channel more, replaces this one host by host "
    "under load, and one host is put back",
    shows="P1, P2: both versions work on the same documents, and one on a channel that it doesn't "
    "have waits for the other; 202s resume within 15 s",
    full={"rate": 25.0, "between": 30},
    short={"rate": 10.0, "between": 5},
)
def rolling_upgrade(*, rate: float, between: float) -> Findings:
    """Migrate, replace one host after the other, and put the first one back."""
    with next_version() as new, cluster() as running:
        load = running.start_load(count=ALL, rate=rate, body=mail)
        running.supervise(between)
        faults = []
        running.run_command("upgrade", APPS[0], set_up_commands(())["migrate"], code=new)
        send_by_pigeon(running, new)
        running.supervise(between)
        held = by_pigeon(running, "pending")
        steps = (
            ("first host upgraded", 0, new),
            ("second host upgraded", 1, new),
            ("first host put back", 0, BASE_DIR),
        )
        for name, app, code in steps:
            since = datetime.now(UTC)
            replace(running, app=app, code=code)
            running.supervise(between)
            faults.append(Fault(name=name, since=since, until=datetime.now(UTC)))
        send_by_pigeon(running, new)
        running.supervise_until(
            lambda: by_pigeon(running, "sent", "delivered") == PIGEONS,
            timeout=FINAL_SECONDS,
            what="the channel of the next version is not sent",
        )
        load.stop()
        stored = running.database["notifications"]
        counts = [stored.count_documents({FIELD: {"$exists": known}}) for known in (True, False)]
        return finish(
            running,
            faults,
            Bound("programs replaced", len(steps) * len(APPS[0].runs)),
            at_least("notifications that the next version stored", counts[0], 1),
            at_least("notifications that this version stored", counts[1], 1),
            at_least("deliveries on the next version's channel that this version held", held, 1),
        )
