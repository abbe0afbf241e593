"""The contracts in .importlinter are kept."""

import configparser

import pytest
from importlinter.cli import EXIT_STATUS_SUCCESS, lint_imports

from tests.support.source import ROOT

CONFIG = ROOT / ".importlinter"


def contracts() -> list[str]:
    parser = configparser.ConfigParser()
    parser.read(CONFIG)
    prefix = "importlinter:contract:"
    return [name.removeprefix(prefix) for name in parser.sections() if name.startswith(prefix)]


def test_every_top_level_package_has_a_layer() -> None:
    parser = configparser.ConfigParser()
    parser.read(CONFIG)
    packages = {p.parent.name for p in ROOT.glob("*/__init__.py")} - {"bench", "tests"}
    layers = parser["importlinter:contract:layers"]["layers"].replace("|", " ").split()
    assert set(layers) == packages == set(parser["importlinter"]["root_packages"].split())


@pytest.mark.parametrize("contract", contracts())
def test_import_contract_is_kept(contract: str, capsys: pytest.CaptureFixture[str]) -> None:
    status = lint_imports(
        config_filename=str(CONFIG), limit_to_contracts=(contract,), no_cache=True
    )
    assert status == EXIT_STATUS_SUCCESS, capsys.readouterr().out
