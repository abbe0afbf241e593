""".env.example names every variable that is read, and no other, with the value it has anyway."""

import re

import msgspec

from notifyproject.settings.environment import BASE_DIR, Environment, read

TEXT = (BASE_DIR / ".env.example").read_text(encoding="utf-8")
LINES = re.findall(r"^(#?)([A-Z][A-Z0-9_]*)=(.*)$", TEXT, re.MULTILINE)
FIELDS = {field.name: field.default for field in msgspec.structs.fields(Environment)}


def test_every_variable_is_there_once_and_no_other() -> None:
    assert sorted(name for _, name, _ in LINES) == sorted(FIELDS)


def test_what_is_commented_out_is_the_default() -> None:
    for is_comment, name, value in LINES:
        if is_comment:
            assert value == str(FIELDS[name]), name


def test_what_it_says_can_be_read() -> None:
    """With the two keys that everybody makes for themselves."""
    given = {name: value for _, name, value in LINES}
    found = read(given | {"SECRET_KEY": "x" * 64, "INBOX_SIGNING_KEY": "y" * 64})
    assert found.PUBLIC_URL == "https://notify.example.com"


def test_every_other_line_is_a_remark() -> None:
    for line in TEXT.splitlines():
        assert not line or line.startswith("# ") or re.match(r"#?[A-Z][A-Z0-9_]*=", line), line
