"""The TypeScript declarations of the data of notification types."""

import json
import re
from collections.abc import Iterator

from .declarations import Declaration, Module, Notation, comment

HEAD = """\
// Notification types and their data. `notify types generate` writes this file.
"""
TAIL = """\
export type NotificationType = keyof NotificationTypes;

/** The body of a request to send a notification of one of these types. */
export type TypedNotification<Type extends NotificationType = NotificationType> = {
  [Each in Type]: { readonly type: Each; readonly [field: string]: unknown } & (
    {} extends NotificationTypes[Each]
      ? { readonly data?: NotificationTypes[Each] }
      : { readonly data: NotificationTypes[Each] }
  );
}[Type];
"""
TYPESCRIPT = Notation(
    names={
        "string": "string",
        "integer": "number",
        "number": "number",
        "boolean": "boolean",
        "null": "null",
        "any": "unknown",
    },
    value=json.dumps,
    one_of="{}",
    between_values=" | ",
    list_of="ReadonlyArray<{}>",
    map_of="Readonly<Record<string, {}>>",
)
_PROPERTY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def typescript_code(module: Module) -> str:
    """Return the declarations: an interface of each type's data, and one of all types."""
    types = [f"  {each.slug}: {TYPESCRIPT.write(each.shape)};" for each in module.types]
    index = "\n".join(
        ["/** The data of each type. */", "export interface NotificationTypes {", *types, "}\n"]
    )
    return "\n".join([HEAD, *map(_declaration, module.declarations), index, TAIL])


def _declaration(declaration: Declaration) -> str:
    lines = [*_comment(declaration.note), f"export interface {declaration.name} {{"]
    for each in declaration.fields:
        name = each.name if _PROPERTY.fullmatch(each.name) else json.dumps(each.name)
        lines += [f"  {line}" for line in _comment(each.note)]
        lines.append(
            f"  readonly {name}{'' if each.is_required else '?'}: {TYPESCRIPT.write(each.shape)};"
        )
    return "\n".join([*lines, "}\n"])


def _comment(note: str) -> Iterator[str]:
    if text := comment(note).replace("*/", "* /"):
        yield f"/** {text} */"
