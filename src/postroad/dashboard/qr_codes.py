"""QR codes as SVG, for a page: dark on light whatever its theme, because some cameras read nothing else."""

from typing import Final

import markupsafe
import segno

# Pixels of one module: a phone reads it from the other side of a desk.
SCALE: Final = 4


def svg(text: str) -> markupsafe.Markup:
    """A text as a picture."""
    code = segno.make(text, error="m", micro=False)
    # Only shapes: the text itself is not in it.
    return markupsafe.Markup(code.svg_inline(scale=SCALE, light="#fff"))  # noqa: S704
