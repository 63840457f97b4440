"""Sphinx: `make docs`."""

import gc
import re
import sys
from pathlib import Path

from docutils import nodes
from sphinx.errors import ExtensionError

import jaxgpu

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).with_name("make")))
import coverage
import fields
import gallery
import reference

from benchmarks import charts, pages

# nearly all objects of a build live to its end, and the collector would search them every time
gc.set_threshold(1_000_000)

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
exclude_patterns = ["_build", "make", "charts"]
autodoc_member_order = "bysource"
autodoc_typehints = "description"
toc_object_entries = False
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


def _fields(app, what, name, obj, options, lines):
    """A class shows its fields, and every entry where its example is."""
    if what not in ("class", "function"):
        return
    if what == "class" and (rows := fields.fields(obj)):
        lines += ["", ".. list-table::", "   :header-rows: 1", "   :class: fields", ""]
        lines += ["   * - field", "     - what it is", "     - default", "     - range"]
        for row in rows:
            lines += [f"   * - | ``{row.name}``", f"       | {reference.escape_rst(row.kind)}"]
            lines += [f"     - {reference.escape_rst(row.text)}"]
            lines += [f"     - ``{row.default}``" if row.default else "     -"]
            lines += [f"     - {row.among}" if row.among else "     -"]
        lines += [""]
    if link := coverage.link(name):
        lines += ["", link, ""]


def _types_of_fields_once(app, domain, kind, content):
    """Of a class, types stand in the table of its fields; those that say no more are left out."""
    found = list(content.findall(nodes.field)) if kind == "class" else []
    names = {field[0].astext() for field in found}
    for field in found:
        word, _, name = field[0].astext().partition(" ")
        if word == "type" and f"param {name}" not in names:
            field.parent.remove(field)


def _one_document(app, doctree):
    """Keep Sphinx's environment, 4 MB, out of the file of a page with reStructuredText in it."""
    for node in doctree.findall():
        node.document = doctree  # that of a directive has the environment in its settings


def _navigation_near_the_page(app, pagename, templatename, context, doctree):
    """Unfold the sidebar around the page only: the tree of all pages takes most of the build."""
    if tree := context.get("toctree"):
        context["toctree"] = lambda **options: tree(**options | {"collapse": True})


def _whole(app, env):
    """The reference is whole, or the build fails."""
    made = set(env.get_domain("py").objects)
    if gaps := coverage.gaps(made):
        raise ExtensionError("the reference has gaps:\n" + "\n".join(gaps))


def setup(app):
    """Called by Sphinx."""
    if wrong := pages.page_errors():
        raise ExtensionError("\n".join(wrong))
    gallery.pages()
    reference.write()
    charts.write()
    app.connect("autodoc-process-docstring", _literal_bars)
    app.connect("autodoc-process-docstring", _fields)
    app.connect("autodoc-skip-member", _foreign)
    app.connect("object-description-transform", _types_of_fields_once, priority=900)
    app.connect("doctree-read", _one_document)
    app.connect("html-page-context", _navigation_near_the_page, priority=400)  # before furo
    app.connect("env-check-consistency", _whole)
