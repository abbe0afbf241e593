"""Texts of waits and holds."""

from domain.wait_reasons import as_clause
from tests.support.tables import each_case


@each_case(
    "detail, clause",
    [
        ("Provider error. (500)", "Provider error, 500"),
        ("Too many requests. (429).", "Too many requests, 429"),
        (
            "The SMTP server sent an invalid reply. (4xx)",
            "The SMTP server sent an invalid reply, 4xx",
        ),
        ("Token expired.", "Token expired"),
        ("Maintenance (until 02:00)", "Maintenance (until 02:00)"),
        ("See the note. (a (b))", "See the note. (a (b))"),
        (" ", ""),
    ],
)
def test_failure_within_a_sentence_ends_no_sentence(detail: str, clause: str) -> None:
    assert as_clause(detail) == clause
