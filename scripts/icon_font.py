"""Makes the console's icon font: the theme's, reduced to ``static/console/icons.txt``.

Needs fonttools and brotli, which the project doesn't: ``pip install fonttools brotli``, and then
``python scripts/icon_font.py``. The theme's font has 3,882 glyphs in 292 KB, of which the console
shows fewer than 200. Both have the Apache license, version 2.0.
"""

from pathlib import Path

import unfold
from fontTools.subset import Options, Subsetter
from fontTools.ttLib import TTFont

ROOT = Path(__file__).resolve().parents[1]
NAMES = ROOT / "static" / "console" / "icons.txt"
TARGET = ROOT / "static" / "console" / "icons.woff2"
FONT = "static/unfold/fonts/material-symbols/Material-Symbols-Outlined.woff2"
LIGATURE = 4


def main() -> None:
    """Write the font. Raises SystemExit for an icon that the theme's font lacks."""
    font = TTFont(Path(unfold.__file__).parent / FONT)
    ascii_codes = range(128)
    letters = {
        glyph: chr(code) for code, glyph in font.getBestCmap().items() if code in ascii_codes
    }
    icons = _ligatures(font, letters)
    names = NAMES.read_text().split()
    if unknown := set(names) - icons.keys():
        raise SystemExit(f"No such icons: {', '.join(sorted(unknown))}")
    options = Options()
    options.flavor = "woff2"
    options.layout_closure = False  # Otherwise the letters bring all icons along
    options.drop_tables += ["FFTM"]
    subsetter = Subsetter(options)
    subsetter.populate(glyphs=[*letters, *(icons[name] for name in names)])
    subsetter.subset(font)
    font.flavor = "woff2"
    font.save(TARGET)


def _ligatures(font: TTFont, letters: dict[str, str]) -> dict[str, str]:
    """Return the glyph of each icon by its name, whose letters it replaces."""
    found = {}
    for lookup in font["GSUB"].table.LookupList.Lookup:
        for subtable in lookup.SubTable:
            table = getattr(subtable, "ExtSubTable", subtable)
            if table.LookupType != LIGATURE:
                continue
            for first, ligatures in table.ligatures.items():
                for ligature in ligatures:
                    parts = [first, *ligature.Component]
                    if all(part in letters for part in parts):
                        found["".join(letters[part] for part in parts)] = ligature.LigGlyph
    return found


if __name__ == "__main__":
    main()
