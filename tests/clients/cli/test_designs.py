"""The items of the design as files beside types."""

import json
import shutil
from pathlib import Path

import pytest
from notifyproject_client.cli import kinds
from notifyproject_client.cli.files import Content, FileError
from notifyproject_client.cli.kinds import KINDS, TRANSLATION, TYPE

from domain.time import utc_now
from notifications.catalog import designs
from notifications.catalog.designs import Kind
from notifications.content import design_changes
from notifications.content.design_changes import Change
from tests.clients.cli.test_command import Notify
from tests.support.clients.api import App
from tests.support.tables import each_case

BRAND = """\
# Owned by design.
name: Acme   # As customers know us
layout: main

colours:
  light: {accent: "#b91c1c"}
"""
LAYOUT = (
    "<html><body>{{ content }}{% if unsubscribe_url %}"
    '<a href="{{ unsubscribe_url }}">Stop</a>{% endif %}</body></html>\n'
)
BUTTON = "{{ label }}: {{ url }}\n"


def write(notify: Notify, name: str, text: str) -> None:
    path = notify.types.parent / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture
def notify(tmp_path: Path, app: App) -> Notify:
    """Push a type with its design. There is nothing else in the files."""
    notify = Notify(tmp_path, app)
    notify.write("parcel_lost", "type.yaml", "name: Parcel lost\ncategory: transactional\n"
                 "channels: [email]\nbrand: acme\n")  # fmt: skip
    notify.write("parcel_lost", "subject.txt", "Lost\n")
    notify.write("parcel_lost", "body.txt", "{% render 'button', label: 'Ask', url: '/' %}\n")
    write(notify, "brands/acme.yaml", BRAND)
    write(notify, "layouts/main.html", LAYOUT)
    write(notify, "partials/button.txt", BUTTON)
    write(notify, "partials/button.pt.txt", "{{ label }} {{ url }}\n")
    assert notify("push", "--publish") == 0, notify.out + notify.err
    assert notify.out == (
        "parcel_lost: created and published\n"
        "partials/button: created and published\n"
        "layouts/main: created and published\n"
        "brands/acme: created and published\n"
    )
    return notify


def store(kind: Kind, name: str, content: object) -> None:
    """Change an item on the server."""
    present = designs.read_newest().items(kind).get(name)
    replaces = None if present is None else designs.revision_of(present)
    change = Change(kind=kind, name=name, content=content, replaces=replaces, pointer="")
    design_changes.store([change], created_by="staff", now=utc_now())


def test_pull_writes_each_item_as_files(notify: Notify, tmp_path: Path, app: App) -> None:
    other = Notify(tmp_path / "other", app)
    assert other("pull", "parcel_lost", "brands/acme", "layouts/main", "partials/button") == 0
    ours, theirs = notify.files(), other.files()
    for name in ("layouts/main.html", "partials/button.txt", "partials/button.pt.txt"):
        assert theirs[name] == ours[name]
    assert theirs["brands/acme.yaml"].decode() == (
        "name: Acme\ncolours:\n  light:\n    accent: '#b91c1c'\nlayout: main\n"
    )
    assert (other("push", "--publish"), other.out) == (0, "")
    assert (other("pull"), other("diff", "--exit-code"), other.out) == (0, 0, "")


def test_pull_push_and_diff_after_a_push_change_nothing(notify: Notify) -> None:
    before = notify.files()
    keys = ["parcel_lost", "brands/acme", "layouts/main", "partials/button"]
    for words in ("pull", "push --publish", "diff --exit-code", "push"):
        assert (notify(*words.split(), *keys), notify.out) == (0, "")
    assert notify.files() == before


def test_pull_keeps_comments_and_deletes_the_text_that_is_gone(notify: Notify) -> None:
    store(Kind.PARTIAL, "button", {"default": {"text": BUTTON.strip(), "html": "<b>x</b>"}})
    brand = {"name": "Acme", "layout": "main", "footer": "Lisbon",
             "colours": {"light": {"accent": "#b91c1c"}}}  # fmt: skip
    store(Kind.BRAND, "acme", brand)
    assert notify("pull") == 0
    files = notify.files()
    assert files["brands/acme.yaml"].decode() == BRAND + "footer: Lisbon\n"
    assert files["partials/button.html"] == b"<b>x</b>\n"
    assert "partials/button.pt.txt" not in files


def test_change_is_shown_by_line_and_sent(notify: Notify, app: App) -> None:
    write(notify, "partials/button.txt", "{{ label }} at {{ url }}\n")
    assert notify("diff", "--exit-code") == 1
    assert notify.out.splitlines()[:3] == [
        "partials/button: changed",
        "--- server/partials/button.txt",
        "+++ files/partials/button.txt",
    ]
    assert notify("diff", "--json") == 0
    (event,) = json.loads(notify.out)
    assert (event["partial"], event["what"]) == ("button", "changed")
    assert (notify("push"), notify.out) == (
        0,
        "partials/button: not published: without --publish, only texts of types are stored\n",
    )
    assert app.get("/design").json()["number"] == 1
    assert notify("push", "--publish", "partials/button") == 0
    answer = app.notify(type="parcel_lost", content=..., data={})
    assert answer.json()["content"]["body"] == "Ask at /"


def test_change_on_the_server_is_a_conflict_with_three_sides(notify: Notify, app: App) -> None:
    store(Kind.BRAND, "acme", {"name": "Acme Ltd", "layout": "main", "colours": {}})
    write(notify, "brands/acme.yaml", BRAND.replace("#b91c1c", "#1d4ed8"))
    notify.write("parcel_lost", "subject.txt", "New\n")
    assert notify("push", "--publish") == 3
    assert notify.out.splitlines()[:4] == [
        "brands/acme: conflict: changed on the server since the last pull",
        "--- pulled/brands/acme.yaml",
        "+++ server/brands/acme.yaml",
        "@@ -1,5 +1,2 @@",
    ]
    assert "+++ files/brands/acme.yaml" in notify.out
    assert app.get("/types/parcel_lost").json()["template_version"] == 1
    assert notify("pull", "brands/acme") == 3
    assert notify("push", "--publish", "--force") == 0
    assert app.get("/design").json()["brands"][0]["brand"]["name"] == "Acme"
    assert app.get("/types/parcel_lost").json()["template_version"] == 2


def test_pull_takes_what_only_the_server_has_changed(notify: Notify) -> None:
    store(Kind.LAYOUT, "main", LAYOUT.strip().replace("Stop", "Leave"))
    write(notify, "partials/button.txt", "Mine\n")
    assert notify("pull", "layouts/main", "partials/button") == 0
    assert notify.out == (
        "partials/button: kept, since only the files have changed\nlayouts/main: pulled\n"
    )
    assert b"Leave" in notify.files()["layouts/main.html"]


@each_case(
    "name, text, expected",
    [
        (
            "brands/acme.yaml",
            f"{BRAND}logo: {{url: 'http://a.example/a.png'}}\n",
            "brands/acme: acme.yaml: logo/url: ",
        ),
        ("brands/acme.yaml", f"{BRAND}font: serif\n", "brands/acme: acme.yaml: font: "),
        ("layouts/main.html", "<p>{{ content }}</p>\n", "layouts/main: main.html: A layout has "),
        ("partials/button.pt.txt", "{{ x | nope }}\n", "partials/button: button.pt.txt: Line 1: "),
        ("partials/Button.txt", "x\n", "'Button' is no name"),
    ],
)
def test_refused_file_is_named(notify: Notify, name: str, text: str, expected: str) -> None:
    path = notify.types.parent / name
    before = path.read_text() if path.exists() else None
    write(notify, name, text)
    code = notify("push", "--publish")
    assert (code, expected in notify.out + notify.err) == (
        2 if before is None else 1,
        True,
    ), (notify.out, notify.err)
    if before is None:
        path.unlink()
    else:
        path.write_text(before)


def test_item_that_only_the_server_has_is_named_and_left(notify: Notify, app: App) -> None:
    (notify.types.parent / "brands" / "acme.yaml").unlink()
    assert notify("diff", "parcel_lost", "brands/acme") == 0
    assert "brands/acme" in notify.err
    assert notify("push", "--publish") == 0
    assert [each["name"] for each in app.get("/design").json()["brands"]] == ["acme"]
    assert (notify("pull", "brands/nope"), notify.err) == (2, "There is no brand nope.\n")
    assert notify("pull", "brands/acme") == 0
    assert "brands/acme.yaml" in notify.files()


def test_items_are_promoted_with_the_types_that_use_them(notify: Notify) -> None:
    profiles = notify.types.parent / "profiles.toml"
    server = f'url = "http://testserver"\nkey = "{notify._key}"\n'
    profiles.write_text(f"[staging]\n{server}[production]\n{server}")
    profiles.chmod(0o600)
    words = ("promote", "--from", "staging", "--to", "production")
    assert notify(*words, NOTIFY_PROFILES=str(profiles)) == 0, notify.err
    assert notify.out == ""
    lock = json.loads((notify.types.parent / "notify.lock").read_text())
    assert {"brands/acme", "parcel_lost"} <= lock["promoted"]["http://testserver"].keys()


def test_translations_are_files_by_language(notify: Notify, app: App) -> None:
    own = "# Read by all\nparcels:\n  lost: '{n, plural, one {# parcel} other {# parcels}} lost'\n"
    write(notify, "translations/default.yaml", own)
    write(notify, "translations/pt-BR.yaml", "parcels: {lost: 'Perdemos {n}'}\n")
    notify.write("parcel_lost", "body.txt", "{{ 'parcels.lost' | t: n: 2 }}\n")
    assert notify("push", "--publish") == 0, notify.out + notify.err
    assert "translations/pt-BR: created and published" in notify.out
    folder = notify.types.parent / "translations"
    before = {path.name: path.read_text() for path in folder.iterdir()}
    assert (notify("pull"), notify("diff", "--exit-code"), notify.out) == (0, 0, "")
    assert {path.name: path.read_text() for path in folder.iterdir()} == before
    recipient = {"email": "ada@example.com", "locale": "pt-BR"}
    answer = app.notify(type="parcel_lost", content=..., data={}, recipient=recipient)
    assert answer.json()["content"]["body"] == "Perdemos 2"
    write(notify, "translations/pt-BR.yaml", "parcels: {lost: 'Perdemos {n}', new: 'a {'}\n")
    assert notify("push", "--publish") != 0
    assert "pt-BR.yaml: parcels/new: After '{', a name is expected" in notify.out
    write(notify, "translations/pt-BR.yaml", "parcels: {lots: 'Perdemos {n}'}\n")
    assert notify("push", "--publish") == 0, "the default language has it"
    write(notify, "translations/default.yaml", "parcels: {lots: 'Lost'}\n")
    assert notify("push", "--publish") != 0
    assert "no translation 'parcels.lost'" in notify.out


def test_first_items_can_be_pushed_as_they_are(notify: Notify, tmp_path: Path, app: App) -> None:
    shutil.rmtree(notify.types.parent)
    for kind in KINDS:
        key = kind.key("default" if kind is TRANSLATION else "first")
        assert notify("init", key) == 0
        assert notify.err == f"To store it on a server: notify push {key}\n"
        assert notify("init", key) == 2
    assert notify("lint") == 1
    assert {line.split(": ")[1] for line in notify.out.splitlines()} == {"unused"}
    assert notify("push", "--publish") == 0, notify.out
    assert len(notify.out.splitlines()) == len(KINDS)
    assert (notify("diff", "--exit-code"), notify.out) == (0, "")
    before = notify.files()
    assert notify("pull") == 0
    assert {name: notify.files()[name] for name in before if "notify.lock" not in name} == {
        name: text for name, text in before.items() if "notify.lock" not in name
    }


@each_case(
    "folder, name",
    [
        ("partials", "button.pt.BR.html"),
        ("partials", "button.portuguese.txt"),
        ("partials", "Button.html"),
        ("layouts", "main.pt.html"),
        ("brands", "A B.yaml"),
        ("translations", "portuguese.yaml"),
    ],
)
def test_file_with_another_name_is_an_error(folder: str, name: str, tmp_path: Path) -> None:
    path = tmp_path / folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("name: x\n")
    with pytest.raises(FileError):
        kinds.read_items(tmp_path / "types")
    path.unlink()


@each_case("kind", [kind for kind in KINDS if kind is not TYPE])
@each_case("name", ["..", "../x", "a/b", "A", ""])
def test_no_name_of_the_server_leaves_the_folder(kind: kinds.Kind, name: str) -> None:
    with pytest.raises(FileError):
        kind.write(Path("nowhere"), name, Content({"name": "x"}))


def test_no_language_of_the_server_leaves_the_folder(tmp_path: Path) -> None:
    partials = KINDS[1]
    for parts in ({"../x": {"html": "x"}}, {"default": {"../x": "x"}}):
        with pytest.raises(FileError):
            partials.write(tmp_path, "button", Content({}, parts))
