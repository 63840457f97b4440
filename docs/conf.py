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
