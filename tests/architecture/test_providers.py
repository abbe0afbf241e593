"""Providers are known to their own packages. Other code knows their specs."""

import ast
from pathlib import Path

from providers.discovery import SPECS
from tests.support.source import SERVICE, files, nodes

USERS = {
    "notifications/catalog/whatsapp_templates.py": "submits templates to Meta's review",
    "notifications/checks.py": "checks the service account of FCM",
    "notifications/intake/content.py": "refuses a push that FCM's limit doesn't allow",
    "wizard/wizard.py": "writes the service account of FCM in one line",
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
