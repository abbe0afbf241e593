"""``notify types generate``: type checkers accept and refuse what the service does."""

import importlib.util
import io
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from notifyproject_client.cli import command
from notifyproject_client.cli.files import Content
from notifyproject_client.cli.generate.declarations import Module
from notifyproject_client.cli.generate.python import python_code
from notifyproject_client.cli.generate.typescript import typescript_code

from notifications.catalog.schemas import check_schema
from notifications.catalog.shipped_types import FOLDER
from notifications.validation import ProblemCollector

WEB = Path(settings.BASE_DIR, "clients", "web")
PARCEL: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "parcel": {
            "type": ["string", "integer"],
            "description": 'Its "number" \\ */ \n # in full.',
        },
        "state": {"enum": ["lost", "found", 1, True, None]},
        "lines": {"type": "array", "items": {"$ref": "#/$defs/line"}},
        "from": {"$ref": "#/$defs/place"},
        "to": {"$ref": "#/$defs/place"},
        "weights": {"type": "object", "additionalProperties": {"type": "number"}},
        "tags": {"type": "array", "items": {"enum": ["fragile", "heavy"]}},
        "any": {},
        "__low": {"type": "null"},
        "no-name \u2028": {"type": "boolean"},
    },
    "required": ["parcel", "state", "unnamed"],
    "$defs": {
        "line": {
            "type": "object",
            "properties": {"text": {"type": "string"}, "count": {"type": "integer"}},
            "required": ["text"],
        },
        "place": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}
GOOD = """\
{"parcel": 77, "state": "lost", "unnamed": object()},
{"parcel": "77", "state": None, "unnamed": 1, "lines": [{"text": "a"}, {"text": "", "count": 2}]},
{"parcel": "77", "state": True, "unnamed": 1, "from": {"city": "Porto"}, "to": {}},
{"parcel": "77", "state": 1, "unnamed": 1, "weights": {"a": 1.5, "b": 2}, "tags": ["heavy"]},
{"parcel": "77", "state": "lost", "unnamed": 1, "any": [], "__low": None, "no-name \\u2028": True},
""".splitlines()
BAD = """\
{"parcel": 77, "state": "lost"},
{"parcel": 7.7, "state": "lost", "unnamed": 1},
{"parcel": 77, "state": "gone", "unnamed": 1},
{"parcel": 77, "state": "lost", "unnamed": 1, "lines": [{"count": 2}]},
{"parcel": 77, "state": "lost", "unnamed": 1, "from": {"town": "Porto"}},
{"parcel": 77, "state": "lost", "unnamed": 1, "weights": {"a": "1.5"}},
{"parcel": 77, "state": "lost", "unnamed": 1, "tags": ["light"]},
{"parcel": 77, "state": "lost", "unnamed": 1, "parcels": 1},
{"parcel": 77, "state": "lost", "unnamed": 1, "__low": 1},
""".splitlines()


def module(types: Mapping[str, Mapping[str, Any] | None]) -> Module:
    made = Module()
    for slug, schema in types.items():
        definition: dict[str, Any] = {"name": f'Of "{slug}"'}
        made.add(slug, Content(definition if schema is None else definition | {"schema": schema}))
    return made


def test_mypy_accepts_what_the_schema_does_and_names_the_rest(tmp_path: Path) -> None:
    several = module({"parcel_lost": PARCEL, "plain": None, "tip": {"type": "object"}})
    (tmp_path / "several.py").write_text(python_code(several))
    (tmp_path / "one.py").write_text(python_code(module({"parcel_lost": PARCEL})))
    (tmp_path / "none.py").write_text(python_code(Module()))
    good = [f'"parcel_lost", user_id="ada", data={line[:-1]}' for line in GOOD]
    good += ['"plain", email="a@a.example"', '"tip", data={"any": 1}, idempotency_key="k"']
    bad = [f'"parcel_lost", user_id="ada", data={line[:-1]}' for line in BAD]
    bad += ['"parcel_lost", user_id="ada"', '"parcel_last"', '"plain", user="ada"']
    heads = [
        "import none, one, several",
        "several_, async_ = several.Notifier('u', key='k'), several.AsyncNotifier('u', key='k')",
        "one.Notifier('u', key='k').notify('parcel_lost', data={'parcel': 1})",
        "none.Notifier('u', key='k').notify('any', data={'parcel': 1})",
    ]
    calls = [f"several_.notify({words})" for words in (*good, *bad)]
    waits = [f"    await async_.notify({words})" for words in (*good, *bad)]
    program = [*heads, *calls, "async def wait() -> None:", *waits]
    (tmp_path / "program.py").write_text("\n".join(program))
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "program.py"],
        check=False, cwd=tmp_path, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    errors = re.findall(r"^(\S+):(\d+): error: .*$", done.stdout, re.MULTILINE)
    assert {name for name, _ in errors} == {"program.py"}, done.stdout
    wrong = {program[int(line) - 1] for _, line in errors}
    assert wrong == {heads[2], *calls[len(good) :], *waits[len(good) :]}


@pytest.mark.slow
def test_tsc_accepts_what_the_schema_does_and_names_the_rest(tmp_path: Path) -> None:
    if shutil.which("npm") is None:
        return
    if not (WEB / "node_modules" / ".bin" / "tsc").exists():
        install = ["npm", "ci", "--no-audit", "--no-fund"]
        subprocess.run(install, check=True, cwd=WEB, timeout=300)
    text = typescript_code(module({"parcel_lost": PARCEL, "plain": None}))
    (tmp_path / "generated.ts").write_text(text)
    script = ['import type { TypedNotification } from "./generated";']
    form = (
        'export const n{n}: TypedNotification<"parcel_lost"> = '
        '{{ type: "parcel_lost", user_id: "ada", data: {data} }};'
    )
    words = {"True": "true", "False": "false", "None": "null", "object()": "{}"}
    # TypeScript has one type of numbers.
    bad = [line for line in BAD if "7.7" not in line]
    for n, line in enumerate([*GOOD, *bad]):
        data = re.sub(r"True|False|None|object\(\)", lambda found: words[found[0]], line[:-1])
        script += ["// @ts-expect-error"] if line in bad else []
        script.append(form.format(n=n, data=data))
    script += [
        'export const plain: TypedNotification<"plain"> = { type: "plain", user_id: "ada" };',
        "// @ts-expect-error",
        'export const none: TypedNotification = { type: "parcel_lost", user_id: "a" };',
    ]
    (tmp_path / "program.ts").write_text("\n".join(script))
    options = ["--strict", "--exactOptionalPropertyTypes", "--target", "ES2022"]
    options += ["--module", "ESNext", "--moduleResolution", "bundler"]
    done = subprocess.run(
        ["npx", "tsc", "--noEmit", *options, str(tmp_path / "program.ts")],
        check=False, cwd=WEB, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout


names = st.text(max_size=12) | st.sampled_from(["class", "a_b", "aB", "__x", "a-b", "\u00aa"])
texts = st.text(max_size=12)


def schemas() -> st.SearchStrategy[dict[str, Any]]:
    values = st.text(max_size=6) | st.integers() | st.booleans() | st.none() | st.floats()
    leaves: st.SearchStrategy[Any] = st.one_of(
        st.fixed_dictionaries({"type": st.sampled_from(["string", "integer", "number", "null"])}),
        st.fixed_dictionaries({"enum": st.lists(values, min_size=1, max_size=4)}),
        st.fixed_dictionaries({"const": values}, optional={"description": texts}),
        st.just({"$ref": "#/$defs/a"}),
        st.just({}),
    )
    nested = st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.fixed_dictionaries({"type": st.just(["array", "null"]), "items": inner}),
            objects(inner),
        ),
        max_leaves=8,
    )
    return st.fixed_dictionaries(
        {"properties": st.dictionaries(names, nested, max_size=4), "type": st.just("object")},
        optional={
            "$defs": st.fixed_dictionaries({"a": objects(leaves)}),
            "required": st.lists(names, max_size=3),
        },
    )


def objects(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {"type": st.just("object")},
        optional={
            "properties": st.dictionaries(names, inner, max_size=3),
            "additionalProperties": st.booleans() | inner,
            "description": texts,
        },
    )


@given(st.lists(schemas(), min_size=1, max_size=3))
@hypothesis_settings(max_examples=60, suppress_health_check=list(HealthCheck), deadline=None)
def test_code_of_any_schema_is_python(
    tmp_path_factory: pytest.TempPathFactory, found: list[dict[str, Any]]
) -> None:
    # Type names that make the same class names as well.
    slugs = ["a", "a_data", "a__data"]
    code = python_code(module(dict(zip(slugs, found, strict=False))))
    path = tmp_path_factory.mktemp("generated") / "generated.py"
    path.write_bytes(code.encode())
    spec = importlib.util.spec_from_file_location("generated", path)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    assert {"Notifier", "AsyncNotifier"} <= vars(loaded).keys()


def run(*words: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    code = command.run(["types", "generate", *words], environment={}, out=out, err=err)
    return code, out.getvalue(), err.getvalue()


def test_command_writes_the_shipped_types_without_a_server(tmp_path: Path) -> None:
    python, typescript = tmp_path / "types_.py", tmp_path / "types.ts"
    words = ("--types", str(FOLDER), "--python", str(python), "--typescript", str(typescript))
    assert run(*words, "--check") == (
        1,
        f"{python}: would change\n{typescript}: would change\n",
        "",
    )
    assert not python.exists()
    assert run(*words) == (0, f"{python}: written\n{typescript}: written\n", "")
    assert "class OrderShippedData(TypedDict):" in python.read_text()
    assert "  order_shipped: OrderShippedData;" in typescript.read_text()
    assert run(*words) == (0, "", "")
    assert run(*words, "--check") == (0, "", "")


def test_command_says_what_it_cannot_read(tmp_path: Path) -> None:
    types = tmp_path / "types"
    words = ("--types", str(types), "--python", str(tmp_path / "a.py"))
    (types / "parcel lost").mkdir(parents=True)
    (types / "parcel lost" / "type.yaml").write_text("name: Parcel lost\n")
    assert run(*words)[0] == command.INVALID_USE
    assert "'parcel lost' can't be the name of a type." in run(*words)[2]
    assert "--python or --typescript" in run("--types", str(types))[2]
    (types / "parcel lost").rename(types / "parcel_lost")
    deep: dict[str, Any] = {}
    for _ in range(150):
        deep = {"type": "array", "items": deep}
    odd = {"a": 1, "b": {"type": [["x"]]}, "c": {"enum": [[1]]}, "d": {"$ref": 1}}
    schema = {"type": "object", "properties": {"deep": deep, **odd}, "required": "odd"}
    (types / "parcel_lost" / "schema.json").write_text(json.dumps(schema))
    assert run(*words)[0] == 0
    (tmp_path / "a.py").unlink()
    (tmp_path / "a.py").mkdir()
    assert run(*words)[0] == command.INVALID_USE


def test_schema_of_these_tests_is_one_of_a_type() -> None:
    problems = ProblemCollector()
    check_schema(PARCEL, problems, pointer="/schema")
    assert problems.problems == []
