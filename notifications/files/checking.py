"""Checks the rows of a part by what a broadcast would do with them. Nothing is sent."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from bson import ObjectId

from domain.channels import Channel
from domain.states import Duplicates
from domain.tables.table import Row, RowFault
from notifications.documents.files import AudienceFileDocument, MessagesTotal, RowProblem

from ..catalog import types
from ..content import rendering
from ..content.reminders import format_timestamp
from ..intake import pages
from ..intake.addressees import Addressee
from ..intake.effects import ChannelTotal, find_effects
from ..intake.page_result import NO_ADDRESS, PageResult
from ..intake.requests import Caller, ContentRequest, NotificationRequest
from ..validation import FieldProblem, InvalidRequestError, pointer_name
from .columns import DATA, FIELDS, IGNORED, PHONE, USER_ID
from .parts import Finding
from .rows import RowMapping, addressee_of, names_of, person_digests

MAX_EXAMPLES = 50  # Numbers of rows stored for each sentence
MAX_SENTENCES = 100
"""Sentences that are told apart. Rows with another one are counted together."""
MAX_FINDINGS = 10  # Of one row
DUPLICATE = "duplicate"
OTHER = "other"
PLACEHOLDER = ContentRequest(subject="-", body="-")
"""Stands for the text of a type without a template, which the broadcast has."""
EVENT_AHEAD = timedelta(days=1)
"""Stands for the event of a reminder, which the broadcast has."""
EVENT_MISSING = Finding(
    "event_required", IGNORED, "The type is a reminder. Its broadcast needs `event_at`."
)
FAULTS = {
    RowFault.TOO_MANY_CELLS: "The row has more cells than the header.",
    RowFault.ROUNDED_NUMBER: "A number has over 15 digits, which the spreadsheet has rounded. "
    "Format the column as text, and enter it again.",
    RowFault.CELL_ERROR: "A cell has an error of the spreadsheet, such as #N/A.",
}
SKIPPED = {
    NO_ADDRESS: "No channel of the type reaches this recipient.",
    "opted_out": "The recipient has opted out.",
    "suppressed": "The address is suppressed.",
}
LOST_SIGN = (
    " Spreadsheets remove the + of phone numbers, and zeros before them: name the `country`."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedPart:
    """What a check found of a part's rows."""

    findings: Mapping[str, Sequence[Finding]]
    """By the numbers of rows that wouldn't be sent as they are."""
    people: Sequence[str]
    good: int
    doubts: Mapping[str, Sequence[Finding]]
    """What a good row may not send after all, by the row's number."""
    totals: Mapping[Channel, ChannelTotal]
    """The messages of the good rows."""

    @property
    def skipped(self) -> int:
        """Rows whose recipients wouldn't get a message, although nothing is wrong with them."""
        return sum(all(each.is_skipped for each in found) for found in self.findings.values())

    @property
    def wrong(self) -> int:
        """Rows that are wrong."""
        return len(self.findings) - self.skipped


class _Refusals(PageResult):
    """The result of a page that keeps each refusal's problems."""

    def __init__(self) -> None:
        super().__init__()
        self.problems: dict[str, Sequence[FieldProblem]] = {}

    def reject(self, key: str, refusal: InvalidRequestError) -> None:
        """Record a recipient as :class:`PageResult` does, with what is wrong."""
        super().reject(key, refusal)
        self.problems[key] = refusal.problems


def check_part(
    rows: Sequence[Row],
    *,
    document: AudienceFileDocument,
    mapping: RowMapping,
    duplicates: Mapping[int, str],
    now: datetime,
) -> CheckedPart:
    """Return what is wrong with rows. Raises PyMongoError."""
    findings: dict[str, Sequence[Finding]] = {}
    addressees: list[Addressee] = []
    is_skipped = document["duplicates"] != Duplicates.REFUSE
    for row in rows:
        key = str(row.number)
        if row.fault is not None:
            findings[key] = [Finding(row.fault.value, IGNORED, FAULTS[row.fault])]
        elif row.number in duplicates:
            detail = "Another row of the file has the same recipient."
            findings[key] = [Finding(DUPLICATE, duplicates[row.number], detail, is_skipped)]
        else:
            try:
                addressees.append(addressee_of(row, mapping))
            except InvalidRequestError as refusal:
                findings[key] = _findings(refusal.problems, mapping.fields_of(row.cells))
    page = _Refusals()
    ids = {each.key: ObjectId() for each in addressees}
    accepted = pages.prepare_page(
        addressees,
        _request(document["type"], now=now),
        ids=ids,
        caller=Caller(client_id=document["client_id"], is_test=document.get("is_test", False)),
        page=page,
        now=now,
    )
    cells = {str(row.number): row.cells for row in rows}
    for code, keys in page.skipped.items():
        detail = SKIPPED.get(code, f"The recipient would get no message: {code}.")
        findings |= {key: [Finding(code, IGNORED, detail, True)] for key in keys}
    for key, problems in page.problems.items():
        if key not in findings:
            findings[key] = _findings(problems, mapping.fields_of(cells[key]))
    people = [digest for row in rows for digest in person_digests(mapping.fields_of(row.cells))]
    effects = find_effects(accepted, now=now)
    needs_event = _needs_event(document["type"])
    return CheckedPart(
        findings=findings,
        people=people,
        good=len(accepted),
        doubts={
            key: [
                *([EVENT_MISSING] if needs_event else ()),
                *(
                    Finding(doubt.code, IGNORED, doubt.detail)
                    for doubt in effects.doubts.get(own_id, ())
                ),
            ]
            for key, own_id in ids.items()
            if key not in findings
        },
        totals=effects.totals,
    )


def _needs_event(slug: str) -> bool:
    """Return whether a type reminds of an event, which a broadcast of it names."""
    config = types.find_type(slug)
    return config is not None and config.notify_before is not None


def has_template(slug: str) -> bool:
    """Return whether a type's texts are known at the check, and not only at the broadcast."""
    config = types.find_type(slug)
    return config is None or rendering.exists(slug, version=config.template_version)


def _request(slug: str, *, now: datetime) -> NotificationRequest:
    return NotificationRequest(
        type=slug,
        content=ContentRequest() if has_template(slug) else PLACEHOLDER,
        event_at=format_timestamp(now + EVENT_AHEAD) if _needs_event(slug) else None,
    )


def _findings(problems: Sequence[FieldProblem], given: Mapping[str, str]) -> list[Finding]:
    found = []
    for problem in problems[:MAX_FINDINGS]:
        target, detail = _target_of(problem.pointer), problem.detail
        if target == PHONE and not given.get(PHONE, "+").startswith("+"):
            detail += LOST_SIGN
        found.append(Finding(problem.code, target, detail))
    return found


def _target_of(pointer: str) -> str:
    """Return what a column is that a problem's pointer names, or nothing."""
    first, _, rest = pointer.removeprefix("/").partition("/")
    name = pointer_name(rest.partition("/")[0])
    if first == "data" and name:
        return f"{DATA}{name}"
    if first == USER_ID:
        return USER_ID
    return name if first == "recipient" and name in FIELDS else IGNORED


def find_duplicates(
    people: Sequence[tuple[int, Sequence[tuple[str, str]]]], *, keeps_last: bool
) -> dict[int, str]:
    """Return the rows that aren't kept, since they name the person of one that is.

    ``people`` has the number of each row, and all ways in which it names its person. The result has
    the field that is the same, by the row's number.
    """
    kept: set[tuple[str, str]] = set()
    found: dict[int, str] = {}
    for number, names in reversed(people) if keeps_last else people:
        same = next((field for field, name in names if (field, name) in kept), None)
        if same is None:
            kept.update(names)
        else:
            found[number] = same
    return found


def people_of(
    rows: Sequence[Row], mapping: RowMapping
) -> list[tuple[int, Sequence[tuple[str, str]]]]:
    """Return all ways in which each row names its person, without rows that have a fault."""
    return [
        (row.number, names_of(mapping.fields_of(row.cells))) for row in rows if row.fault is None
    ]


def add_totals(
    known: Mapping[str, MessagesTotal], found: Mapping[Channel, ChannelTotal]
) -> dict[str, MessagesTotal]:
    """Return the messages of a file by channel, with those of another part."""
    totals = dict(known)
    for channel, own in found.items():
        earlier = totals.get(channel.value)
        units = own.units + Counter(earlier["units"] if earlier is not None else {})
        totals[channel.value] = {
            "messages": own.messages + (earlier["messages"] if earlier is not None else 0),
            "units": dict(units),
        }
    return totals


def add_problems(
    known: Sequence[RowProblem], findings: Mapping[str, Sequence[Finding]]
) -> list[RowProblem]:
    """Return the sentences about rows with those of another part."""
    found = {
        Finding(each["code"], each["target"], each["detail"], each["is_skipped"]): each
        for each in known
    }
    for number, own in findings.items():
        for finding in dict.fromkeys(own):
            named = finding
            if finding not in found and len(found) >= MAX_SENTENCES:
                named = Finding(OTHER, IGNORED, "Other problems.", finding.is_skipped)
            earlier = found.get(named)
            rows = earlier["rows"] if earlier is not None else []
            found[named] = {
                "code": named.code,
                "target": named.target,
                "detail": named.detail,
                "is_skipped": named.is_skipped,
                "count": (earlier["count"] if earlier is not None else 0) + 1,
                "rows": [*rows, int(number)][:MAX_EXAMPLES],
            }
    return list(found.values())
