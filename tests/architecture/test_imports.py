"""The contracts in .importlinter, which ``make lint`` checks, cover every package."""

import configparser

from tests.support.source import ROOT

CONFIG = ROOT / ".importlinter"


def test_every_top_level_package_has_a_layer() -> None:
    parser = configparser.ConfigParser()
    parser.read(CONFIG)
    packages = {p.parent.name for p in ROOT.glob("*/__init__.py")} - {"bench", "tests"}
    layers = parser["importlinter:contract:layers"]["layers"].replace("|", " ").split()
    assert set(layers) == packages == set(parser["importlinter"]["root_packages"].split())
