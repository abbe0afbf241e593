"""Files of recipients are uploaded, read, checked, and sent, while processes are killed."""

import csv
import io
import random
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from threading import Event

from bson import ObjectId

from ...processes import wait_until
from ..evidence import Evidence
from ..findings import Bound, Findings, at_least, at_most, make_findings, scenario
from ..installation import Installation, run_installation
from ..load import change_until_done, send_file, upload_file

TYPE = "payment_confirmed"
HEADER = ("email", "order_id", "video_title", "amount", "note")
NOTE = "n" * 5_000
"""A text that is ignored, with which a file of few rows has several chunks and parts."""
MAX_CONTENT = 18_000_000
FIRST_ROW = 2
PHASES = ("upload", "check", "send", "pause", "cancel")
STEP_SECONDS = 3_600.0
FINAL_SECONDS = 3_600.0
QUIET_SECONDS = 5.0
SOON_SECONDS = 0.5
PARSER = b"notifications.files.workbook_parser"


@dataclass(kw_only=True)
class FilesRun:
    """The files of a run, and the kills in each of its phases."""

    installation: Installation
    phase: str = ""
    is_up: Event = field(default_factory=Event)
    """Set while all processes run. Each phase begins then, so that one is killed in it."""
    kills: Counter[str] = field(default_factory=Counter)
    good: dict[str, set[str]] = field(default_factory=dict)
    """The IDs of the notifications of each file's good rows, by the file."""
    wrong: set[str] = field(default_factory=set)
    sent_while_paused: int = 0

    def begin(self, phase: str) -> None:
        """Begin a phase."""
        self.is_up.wait()
        self.phase = phase

    def upload(self, rows: int, *, is_workbook: bool = False) -> str:
        """Upload a file, wait until it is checked, and return its ID."""
        from notifications.intake import addressees

        self.begin("upload")
        written = [_row(number, rows) for number in range(rows)]
        content = (_workbook if is_workbook else _csv)([cells for cells, _ in written])
        file_id = upload_file(self.installation.client, content, type_slug=TYPE)
        self.begin("check")
        self._wait("audience_files", file_id, "checked")
        self.good[file_id] = set()
        for number, (_, is_good) in enumerate(written, FIRST_ROW):
            own_id = str(addressees.notification_id(ObjectId(file_id), str(number)))
            (self.good[file_id] if is_good else self.wrong).add(own_id)
        return file_id

    def send(self, file_id: str) -> None:
        """Send a file to its good rows, pause it on the way, and wait until all are accepted."""
        client = self.installation.client
        self._start(file_id)
        self.begin("pause")
        change_until_done(client, f"/broadcasts/{file_id}/pause")
        self._wait_unleased(file_id)
        before = self._count(file_id)
        time.sleep(QUIET_SECONDS)
        self.sent_while_paused += self._count(file_id) - before
        change_until_done(client, f"/broadcasts/{file_id}/resume")
        self.begin("send")
        self._wait("broadcasts", file_id, "completed")

    def cancel(self, file_id: str) -> None:
        """Send a file, and cancel it on the way."""
        self._start(file_id)
        self.begin("cancel")
        change_until_done(self.installation.client, f"/broadcasts/{file_id}/cancel")
        self._wait("broadcasts", file_id, "cancelled", "completed")

    def _start(self, file_id: str) -> None:
        self.begin("send")
        # What was in a killed worker's hands waits for a receipt, of low priority for long.
        send_file(self.installation.client, file_id, type_slug=TYPE, priority="high")
        wait_until(
            lambda: self._count(file_id) > 0,
            timeout=STEP_SECONDS,
            what="no row was sent",
        )

    def _count(self, file_id: str) -> int:
        # By the IDs: a scan of an index whose other fields change meanwhile may miss a document.
        ids = [ObjectId(own_id) for own_id in self.good[file_id]]
        found = self.installation.database["notifications"]
        return found.count_documents({"_id": {"$in": ids}}, hint="_id_")

    def _wait(self, collection: str, file_id: str, *statuses: str) -> None:
        documents = self.installation.database[collection]
        query = {"_id": ObjectId(file_id), "status": {"$in": statuses}}
        wait_until(
            lambda: documents.count_documents(query) > 0,
            timeout=STEP_SECONDS,
            what=f"a file is not {' or '.join(statuses)}",
        )

    def _wait_unleased(self, file_id: str) -> None:
        """Wait for the page that was read before the pause, or its lease."""
        broadcasts = self.installation.database["broadcasts"]
        wait_until(
            lambda: (
                not broadcasts.count_documents(
                    {"_id": ObjectId(file_id), "claim.lease_until": {"$gt": datetime.now(UTC)}}
                )
            ),
            timeout=STEP_SECONDS,
            what="a paused broadcast is leased",
        )

    def work(self, count: int) -> None:
        """Upload and send a text and a workbook, and send a file that is cancelled."""
        self.send(self.upload(count))
        self.send(self.upload(count // 5, is_workbook=True))
        self.cancel(self.upload(count // 2))


@scenario(
    40,
    injects="kill -9 of the web and of workers at random, while files are uploaded, read, checked, "
    "sent, paused, and cancelled",
    shows="P1, P2: each good row is sent once, and no wrong row",
    full={"count": 50_000, "every": 20},
    short={"count": 1_000, "every": 8},
)
def killed_with_files(*, count: int, every: float) -> Findings:
    """Kill a process in each phase of a file, and again while it takes long."""
    with run_installation() as installation:
        run = FilesRun(installation=installation)
        web, workers = installation.web(), installation.workers(2)
        installation.start(web, installation.beat(), *workers)
        with ThreadPoolExecutor(1, thread_name_prefix="files") as thread:
            working = thread.submit(run.work, count)
            killed_in = ""
            while not working.done():
                run.is_up.set()
                until = time.monotonic() + random.Random().uniform(0, 2 * every)
                # In each new phase soon: it may be a short one.
                while run.phase == killed_in and time.monotonic() < until and not working.done():
                    time.sleep(0.05)
                time.sleep(random.Random().uniform(0, SOON_SECONDS))
                run.is_up.clear()
                killed_in = run.phase
                victim = random.Random().choice([web, *workers])
                installation.kill(victim)
                run.kills[killed_in] += 1
                installation.start(victim)
            run.is_up.set()
            working.result()
        evidence = installation.finish(timeout=FINAL_SECONDS)
        return make_findings(
            evidence,
            *_bounds(run, evidence),
            at_most("parsers that outlived their worker", _parsers(installation), 0),
            copies="in flight",
        )


def _bounds(run: FilesRun, evidence: Evidence) -> Sequence[Bound]:
    stored = {document.notification_id for document in evidence.stored}
    accepted = {request.notification_id for request in evidence.requests if request.accepted}
    *sent, _ = run.good.values()
    expected = set().union(*sent)
    known = expected.union(*run.good.values())
    return (
        *(at_least(f"kills during {phase}", run.kills[phase], 1) for phase in PHASES),
        at_most("good rows that weren't stored", len(expected - stored), 0),
        at_most("good rows that the provider didn't get", len(expected - accepted), 0),
        at_most("wrong rows that were stored or sent", len(run.wrong & (stored | accepted)), 0),
        at_most("messages of no row", len((stored | accepted) - known), 0),
        at_most("rows that were sent while paused", run.sent_while_paused, 0),
    )


def _row(number: int, count: int) -> tuple[tuple[str, ...], bool]:
    """Return the cells of a row, and whether they are right."""
    cells = (f"user+{number}@example.com", str(number), "Sunrise", f"{number}.50")
    note = NOTE[: MAX_CONTENT // count]
    if number % 10 == 7:
        return ("nobody", *cells[1:], note), False
    if number % 25 == 3:
        return (*cells, note, "one too many"), False
    if number % 40 == 9:
        return ("user+0@example.com", *cells[1:], note), False
    return (*cells, note), True


def _csv(rows: Sequence[Sequence[str]]) -> bytes:
    written = io.StringIO()
    csv.writer(written).writerows([HEADER, *rows])
    return written.getvalue().encode()


def _workbook(rows: Sequence[Sequence[str]]) -> bytes:
    from openpyxl import Workbook

    book = Workbook(write_only=True)
    sheet = book.create_sheet("People")
    for row in (HEADER, *rows):
        sheet.append(row)
    written = io.BytesIO()
    book.save(written)
    return written.getvalue()


def _parsers(installation: Installation) -> int:
    """Count the processes that still parse a workbook of the installation."""
    url = installation.environment["MONGODB_URI"].encode()
    count = 0
    for process in Path("/proc").glob("[0-9]*"):
        # Another process may end meanwhile, or be another user's.
        with suppress(OSError):
            is_parser = PARSER in (process / "cmdline").read_bytes()
            count += is_parser and url in (process / "environ").read_bytes()
    return count
