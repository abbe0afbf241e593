"""Channels are named in their own modules. Other code asks for a trait."""

import ast
from pathlib import Path

from domain.channels import Channel
from tests.support.source import ROOT, SERVICE, files, nodes

OWN = (Path("domain/channels"), Path("providers"))
"""The modules of the channels, and the providers, each of one channel."""


def names_a_channel(node: ast.AST) -> bool:
    match node:
        case ast.Attribute(value=ast.Name(id="Channel"), attr=name):
            return name.isupper()
        case ast.Call(func=ast.Name(id="Channel"), args=[ast.Constant()]):
            return True
        case ast.Call(func=ast.Name(id="map"), args=[ast.Name(id="Channel"), ast.Tuple()]):
            return True
    return False


def test_no_other_code_names_a_channel() -> None:
    naming = {
        path
        for path in files(*SERVICE)
        if not any(path.is_relative_to(folder) for folder in OWN)
        if any(names_a_channel(node) for node in nodes(path))
    }
    assert naming == set()


def test_each_module_of_a_channel_has_its_name() -> None:
    modules = {path.stem for path in (ROOT / "domain" / "channels").glob("*.py")}
    assert modules - {"__init__", "spec"} == {channel.value for channel in Channel}


def test_each_preview_has_its_template() -> None:
    folder = ROOT / "templates" / "console" / "types" / "previews"
    assert {channel.spec.preview for channel in Channel} == {path.stem for path in folder.iterdir()}
