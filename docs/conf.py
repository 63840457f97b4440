"""Sphinx: `make docs`."""

import dataclasses
import re
import sys
from pathlib import Path

import jaxgpu
from jaxgpu import ranges

project = "jaxgpu"
author = "The jaxgpu authors"
release = version = jaxgpu.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
myst_enable_extensions = ["dollarmath", "amsmath", "deflist", "colon_fence"]
myst_heading_anchors = 3
html_theme = "furo"
html_title = f"jaxgpu {release}"
html_static_path = ["_static"]
html_css_files = ["cards.css"]
exclude_patterns = ["_build", "make"]
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_preserve_defaults = True
# what is imported for types alone, and is the name of a scene of a picture as well
autodoc_type_aliases = {"Scene": "jaxgpu.physics.continuum.scene.Scene"}


def _literal_bars(app, what, name, obj, options, lines):
    """Docstrings are plain text: |x| in them is a modulus, not a substitution of docutils."""
    plain = lambda text: re.sub(r"(?<=\w)_(?=\W|$)", r"\\_", text.replace("|", "\\|"))
    parts = lambda line: re.split(r"(`[^`]*`)", line)  # those in backquotes are left as they are
    escaped = lambda line: "".join(p if p.startswith("`") else plain(p) for p in parts(line))
    lines[:] = [line if ">>>" in line else escaped(line) for line in lines]


def _foreign(app, what, name, obj, skip, options):
    """What another library defines is not documented here: a default like `jnp.tanh`."""
    home = getattr(obj, "__module__", None) or "jaxgpu"
    return True if callable(obj) and not home.startswith(("jaxgpu", "builtins")) else None


def _ranges(app, what, name, obj, options, lines):
    """Numbers that users set are listed with the range that their field declares."""
    if what == "class" and dataclasses.is_dataclass(obj) and (rows := ranges.table(obj)):
        lines += ["", "Ranges, held where the spec is first used:", ""]
        lines += [f"* ``{field}``: {among}" for field, among in rows] + [""]


def setup(app):
    """Called by Sphinx."""
    sys.path.insert(0, str(Path(__file__).with_name("make")))
    import gallery
    import reference

    gallery.pages()
    reference.write()
    app.connect("autodoc-process-docstring", _literal_bars)
    app.connect("autodoc-process-docstring", _ranges)
    app.connect("autodoc-skip-member", _foreign)
