"""Providers are known to their own packages. Other code knows their specs."""

import ast
import re
from pathlib import Path

from notifyproject.settings.declarations import variables
from notifyproject.settings.variables import PROVIDER_GROUPS
from providers.discovery import SPECS
from tests.support.source import ROOT, SERVICE, files, nodes

USERS = {
    "notifications/catalog/whatsapp_templates.py": "submits templates to Meta's review",
    "notifications/intake/content.py": "refuses a push that FCM's limit doesn't allow",
}
"""Modules that use one provider, with the reason."""


def uses_a_provider(node: ast.AST) -> bool:
    match node:
        case ast.ImportFrom(module="providers", names=names):
            return any(name.name in SPECS for name in names)
        case ast.ImportFrom(module=str(module)):
            package, _, rest = module.partition(".")
            return package == "providers" and rest.partition(".")[0] in SPECS
    return False


def test_no_other_module_uses_one_provider() -> None:
    others = [path for path in files(*SERVICE) if not path.is_relative_to(Path("providers"))]
    found = {str(path) for path in others if any(map(uses_a_provider, nodes(path)))}
    assert found == USERS.keys()


def test_each_package_has_the_name_of_its_provider() -> None:
    packages = {path.parent.name for path in files("providers") if path.name == "__init__.py"}
    assert packages - {"providers"} == SPECS.keys()


GENERAL = (
    ROOT / "notifyproject" / "settings" / "declarations.py",
    ROOT / "notifyproject" / "settings" / "environment.py",
    ROOT / "notifyproject" / "settings" / "kinds.py",
    ROOT / "notifyproject" / "settings" / "variables.py",
    ROOT / "notifyproject" / "checks.py",
    ROOT / "notifications" / "checks.py",
    ROOT / "wizard" / "wizard.py",
)
"""Modules that handle the variables and checks of all providers."""


def test_variables_and_checks_name_no_provider() -> None:
    names = [spec.name for spec in SPECS.values() if spec.settings]
    # Three letters also stand within words.
    patterns = (name if len(name) > 3 else rf"(?<![a-z]){name}(?![a-z])" for name in names)
    words = re.compile("|".join(patterns), re.IGNORECASE)
    found = {path.name: words.findall(path.read_text(encoding="utf-8")) for path in GENERAL}
    assert {name: some for name, some in found.items() if some} == {}


def test_variables_of_a_provider_begin_with_its_name() -> None:
    for spec in SPECS.values():
        for variable in variables(spec.settings) if spec.settings else ():
            own = variable.name.removeprefix("SANDBOX_")
            assert own.startswith(f"{spec.name.upper()}_"), variable.name


def test_each_provider_with_variables_has_them_in_its_spec() -> None:
    found = {group.provider: group for group in PROVIDER_GROUPS}
    assert found == {spec.name: spec.settings for spec in SPECS.values() if spec.settings}
    assert all(spec.channel == found[name].channel for name, spec in SPECS.items() if name in found)
