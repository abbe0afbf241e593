"""The subset of Markdown for messages to rooms."""

import time

from hypothesis import example, given
from hypothesis import strategies as st

from domain.markdown import Line, LineKind, Run, escape, in_pieces, parse, plain
from tests.support.tables import each_case

MARKUP = st.text(alphabet=st.sampled_from("ab *_`[]()<>!#-+1.\\\n~|/:https") | st.characters())


def runs(text: str) -> tuple[Run, ...]:
    (line,) = parse(text)
    return line.runs


@each_case(
    "text, expected",
    [
        ("a **b** c", (Run(text="a "), Run(text="b", is_bold=True), Run(text=" c"))),
        ("*a* _b_", (Run(text="a", is_italic=True), Run(text=" "), Run(text="b", is_italic=True))),
        ("**a _b_**", (Run(text="a ", is_bold=True), Run(text="b", is_bold=True, is_italic=True))),
        ("`a*b*`", (Run(text="a*b*", is_code=True),)),
        ("``a`b``", (Run(text="a`b", is_code=True),)),
        (r"\``a`", (Run(text="`"), Run(text="a", is_code=True))),
        ("``a` ````", (Run(text="``a` ````"),)),
        (
            "[a *b*](https://x.example)",
            (
                Run(text="a ", link="https://x.example"),
                Run(text="b", is_italic=True, link="https://x.example"),
            ),
        ),
        (r"[a \] b](https://x.example/\(1\))", (Run(text="a ] b", link="https://x.example/(1)"),)),
        (
            "see https://x.example/a_b_c.",
            (
                Run(text="see "),
                Run(text="https://x.example/a_b_c", link="https://x.example/a_b_c"),
                Run(text="."),
            ),
        ),
        ("<https://x.example>", (Run(text="https://x.example", link="https://x.example"),)),
        ("<!here> now", (Run(text="@here", mention="here"), Run(text=" now"))),
        (r"\<!here> now", (Run(text="<!here> now"),)),
        (r"\*a\* \_b\_", (Run(text="*a* _b_"),)),
        ("2*3*4 snake_case_name a * b *", (Run(text="2*3*4 snake_case_name a * b *"),)),
        ("[a](javascript:0) [b](ftp://x)", (Run(text="[a](javascript:0) [b](ftp://x)"),)),
        ("**open _also", (Run(text="**open _also"),)),
    ],
)
def test_text_of_a_line_is_read_in_runs(text: str, expected: tuple[Run, ...]) -> None:
    assert runs(text) == expected


def test_lines_are_paragraphs_items_and_code() -> None:
    text = "One\nTwo\n\n- a\n  - b\n1. c\n* d\n```sh\n- *x*\n```\nEnd"
    kinds = [(line.kind.value, line.number, line.level) for line in parse(text)]
    assert kinds == [
        ("text", None, 0),
        ("text", None, 0),
        ("blank", None, 0),
        ("item", None, 0),
        ("item", None, 1),
        ("item", 1, 0),
        ("item", None, 0),
        ("code", None, 0),
        ("text", None, 0),
    ]
    assert parse(text)[7].runs == (Run(text="- *x*", is_code=True),)


def test_plain_text_keeps_the_address_of_a_link() -> None:
    text = "**Down**\n1. see [the page](https://x.example) or https://y.example"
    assert plain(text) == "Down\n1. see the page (https://x.example) or https://y.example"


@given(MARKUP)
@example("- a")
@example("1. a")
@example("a\n```\nb")
@example("<!here>")
@example("  +  x")
def test_escaped_text_is_read_as_it_is(text: str) -> None:
    lines = parse(escape(text))
    assert {line.kind for line in lines} <= {LineKind.TEXT, LineKind.BLANK}
    shown = ["".join(run.text for run in line.runs) for line in lines]
    assert shown == [line.rstrip() for line in text.strip("\n").split("\n")]
    for run in (run for line in lines for run in line.runs):
        assert (run.is_bold, run.is_italic, run.is_code, run.mention) == (False,) * 3 + (None,)
        assert run.link in (None, run.text)


@given(MARKUP, MARKUP, MARKUP)
def test_escaped_text_within_another_adds_no_markup(before: str, text: str, after: str) -> None:
    """Of a value that a template inserts, nobody is mentioned, and nothing is a link's label."""
    inserted = parse(f"{before} {escape(text)} {after}")
    alone = parse(f"{before} x {after}")
    count = sum(run.mention is not None for line in inserted for run in line.runs)
    assert count <= sum(run.mention is not None for line in alone for run in line.runs)


@given(MARKUP)
def test_no_text_is_invalid_and_no_letter_is_lost(text: str) -> None:
    letters = [c for c in text if c.isalnum() and c not in "https"]
    shown = [c for c in plain(text) if c.isalnum() and c not in "https"]
    if "```" not in text and "](" not in text:
        assert shown == letters


def test_many_markers_take_linear_time() -> None:
    for marker in ("*a", "**a ", "`a", "[a", "_a ", "<https://a", "[a](https://a"):
        began = time.process_time()
        parse(marker * 4_000)
        assert time.process_time() - began < 5


@each_case(
    "text, expected",
    [
        ("`" * 200_000, (Run(text="`" * 200_000),)),
        (
            f"http://a{'.' * 200_000}x",
            (Run(text=f"http://a{'.' * 200_000}x", link=f"http://a{'.' * 200_000}x"),),
        ),
        (
            f"http://a{'.' * 200_000}",
            (
                Run(text=f"http://a{'.' * 199_960}", link=f"http://a{'.' * 199_960}"),
                Run(text="." * 40),
            ),
        ),
    ],
)
def test_long_runs_of_one_character_take_linear_time(text: str, expected: tuple[Run, ...]) -> None:
    # In quadratic time, each of them takes minutes.
    assert runs(text) == expected


@given(st.lists(st.builds(Run, text=st.text(), is_bold=st.booleans())), st.integers(1, 9))
def test_pieces_are_the_same_text(given_runs: list[Run], size: int) -> None:
    pieces = list(in_pieces(given_runs, size=size))
    assert "".join(run.text for run in pieces) == "".join(run.text for run in given_runs)
    assert all(len(run.text) <= size for run in pieces)


def test_line_is_a_value() -> None:
    assert parse("a") == (Line(kind=LineKind.TEXT, runs=(Run(text="a"),)),)
