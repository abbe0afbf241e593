"""A backup is restored two days later."""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from ...processes import wait_until
from .. import backups
from ..change_stream import WATCHED, StepRecorder
from ..findings import Bound, Findings, at_least, at_most, make_findings, scenario
from ..installation import DATABASE, PYTHON, Installation, provider_requests, run_installation
from ..load import Body, uniform_mail_body

FINAL_SECONDS = 3_600.0
TTL = 3_600
AGE = timedelta(days=2)
STOPPED_AFTER = timedelta(hours=1)
"""How long the installation runs on after the backup, in the restored times."""
TIMES = ("created_at", "updated_at", "scheduled_at", "expires_at", "due_at")
TIMES_OF_DELIVERY = ("next_attempt_at", "first_due_at", "last_attempt_at")


@scenario(
    20,
    injects="a backup restored into an empty database, its schedules two days old",
    shows="nothing sent that may have been sent; nothing lost",
    full={"count": 100_000},
    short={"count": 500},
)
def restored_backup(*, count: int) -> Findings:
    """Back up, send on, lose the database, and restore it as if two days had passed.

    Of five notifications each, one was sent after the backup, and two were due until the loss. Two
    were due after it, so that nobody has sent them, and one of these has expired since.
    """
    share = count // 5
    with run_installation(webhooks=False) as installation:
        web = installation.web()
        installation.start(web)
        _accept(installation, share)
        folder, database = installation.folder / "backup", installation.database
        dumped, dump_seconds = _timed(partial(backups.dump, database, folder))
        backup_at = datetime.now(UTC)
        _send_due(installation, share)
        web.kill()
        installation.broker.empty()
        _lose_database(installation)
        restored, restore_seconds = _timed(partial(backups.restore, database, folder))
        _make_older(installation)
        _, command_seconds = _timed(partial(_run_after_restore, installation, backup_at))
        began = datetime.now(UTC)
        installation.start(*installation.workers(2), installation.beat())
        what = "not all are final"
        wait_until(lambda: not installation.open_count(), timeout=FINAL_SECONDS, what=what)
        return _findings(
            installation,
            share,
            began,
            at_most("documents of the backup that weren't restored", dumped - restored, 0),
            Bound("seconds of the backup", dump_seconds),
            Bound("seconds of the restore", restore_seconds),
            Bound("seconds of manage.py after_restore", command_seconds),
        )


def _accept(installation: Installation, share: int) -> None:
    """Accept the five kinds of notifications, ``share`` of each."""
    now = datetime.now(UTC)
    soon, later = now + STOPPED_AFTER / 2, now + STOPPED_AFTER * 2
    kinds: dict[str, Callable[[int], Body]] = {
        "due": uniform_mail_body,
        "soon": partial(uniform_mail_body, scheduled_at=soon.isoformat()),
        "soon-too": partial(uniform_mail_body, scheduled_at=soon.isoformat()),
        "expiring": partial(uniform_mail_body, scheduled_at=later.isoformat(), ttl=TTL),
        "later": partial(uniform_mail_body, scheduled_at=later.isoformat()),
    }
    for name, body in kinds.items():
        accepted = installation.client.send_in_bulk(share, body=body, name=name)
        if accepted != share:
            raise RuntimeError(f"{accepted} of {share} were accepted")


def _send_due(installation: Installation, share: int) -> None:
    """Send what is due now, after the backup was made, and stop."""
    workers = [*installation.workers(2), installation.beat()]
    installation.start(*workers)
    sent = {"status": "sent"}
    wait_until(
        lambda: installation.database[WATCHED].count_documents(sent) >= share,
        timeout=FINAL_SECONDS,
        what="what is due wasn't sent",
    )
    for worker in workers:
        worker.kill()


def _lose_database(installation: Installation) -> None:
    """Drop the database, and record the restored one's steps from its first document."""
    installation.recorder.finish()
    installation.database.client.drop_database(DATABASE)
    installation.database.create_collection(WATCHED)
    installation.recorder = StepRecorder(installation.mongo.uri(DATABASE))
    installation.recorder.start()


def _make_older(installation: Installation) -> None:
    age_ms = AGE // timedelta(milliseconds=1)

    def shifted(path: str) -> dict[str, Any]:
        earlier = {"$subtract": [f"${path}", age_ms]}
        return {"$cond": [{"$eq": [{"$type": f"${path}"}, "date"]}, earlier, f"${path}"]}

    inside = {name: shifted(f"$this.{name}") for name in TIMES_OF_DELIVERY}
    changes: dict[str, Any] = {name: shifted(name) for name in TIMES}
    older = {"$mergeObjects": ["$$this", inside]}
    changes["delivery"] = {"$map": {"input": "$delivery", "in": older}}
    installation.database[WATCHED].update_many({}, [{"$set": changes}])


def _run_after_restore(installation: Installation, backup_at: datetime) -> None:
    stopped_at = (backup_at - AGE + STOPPED_AFTER).isoformat()
    command = [PYTHON, "manage.py", "after_restore", "--stopped-at", stopped_at]
    program = installation.program("after_restore", command)
    program.start()
    program.wait_ended(timeout=FINAL_SECONDS)
    if program.process is None or program.process.returncode:
        raise RuntimeError(f"after_restore failed:\n{program.log.read_text()[-2_000:]}")


def _findings(installation: Installation, share: int, began: datetime, *bounds: Bound) -> Findings:
    """Return the findings, with what was requested before and after the restore."""
    evidence = installation.collect_evidence()
    late = {
        answer.notification_id
        for answer in installation.client.answers
        if answer.key.startswith("later-") and answer.notification_id is not None
    }
    requests = provider_requests(installation.folder / "sandbox")
    after = [request.notification_id for request in requests if request.at >= began]
    ends = [status for document in evidence.stored for status in document.deliveries.values()]
    return make_findings(
        evidence,
        at_least("sent between the backup and the loss", len(requests) - len(after), share),
        at_most("sent after the restore though old", len(set(after) - late), 0),
        at_least("sent after the restore and due after the loss", len(set(after) & late), share),
        at_least("ended as expired", ends.count("expired"), share),
        at_least("failed as unknown", ends.count("failed"), share * 3),
        *bounds,
        copies="none",
    )


def _timed(action: Callable[[], Any]) -> tuple[Any, float]:
    """Run an action; return its result, and the seconds it took."""
    began = time.monotonic()
    result = action()
    return result, time.monotonic() - began
