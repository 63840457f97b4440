"""Sphinx: `make docs`."""

import jaxgpu

project = "jaxgpu"
author = "The jaxgpu authors"
release = version = jaxgpu.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
myst_enable_extensions = ["dollarmath", "amsmath", "deflist"]
myst_heading_anchors = 3
html_theme = "furo"
html_title = f"jaxgpu {release}"
exclude_patterns = ["_build"]
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_preserve_defaults = True


def _literal_bars(app, what, name, obj, options, lines):
    """Docstrings are plain text: |x| in them is a modulus, not a substitution of docutils."""
    lines[:] = [line if ">>>" in line else line.replace("|", "\\|") for line in lines]


def setup(app):
    """Called by Sphinx."""
    app.connect("autodoc-process-docstring", _literal_bars)
