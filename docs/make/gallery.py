"""Run the notebooks, store their outputs, and write the gallery from them.

`python docs/make/gallery.py [name ...]` runs notebooks (by default all of them) and writes into
each its outputs and its CPU seconds. It then writes docs/gallery.md and the thumbnails.
docs/conf.py calls `pages`, which writes a page per notebook from its stored outputs.
"""

import base64
import io
import re
import resource
import sys
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from PIL import Image

ROOT = Path(__file__).parents[2]
NOTEBOOKS = ROOT / "notebooks"
PAGES = ROOT / "docs" / "shown"
THUMBNAILS = ROOT / "docs" / "pictures" / "gallery"
LARGEST, WIDTH = 60_000, 320  # maximum bytes of a picture, pixels of a thumbnail
PILLARS = {
    "Two domains at once": "beam continuum crawler escapers shapes splash rl",
    "N-body": "solar_system kozai three_bodies galaxy_orbits clusters stream",
    "Matter": "dam_front sand_heap four_materials throw",
    "Rigid bodies": "pendulums gains",
    "Touch and houses": "touch houses",
    "Evolution": "evolution cma_valley seeds climb",
    "Numerics": "bessel log_bessel directions fisher matern",
    "Learning": "cartpole_seeds lander",
}


def compress(png: bytes) -> bytes:
    """Compress a picture to at most `LARGEST` bytes: with fewer colors, then fewer pixels."""
    image, colours = Image.open(io.BytesIO(png)).convert("RGB"), 256
    while len(png) > LARGEST:
        file = io.BytesIO()
        image.quantize(colours, dither=Image.Dither.NONE).save(file, format="PNG", optimize=True)
        png, colours = file.getvalue(), max(colours // 2, 32)
        if colours == 32:
            image = image.resize((image.width * 9 // 10, image.height * 9 // 10))
    return png


def run(file: Path) -> None:
    """Run a notebook and store its outputs, compressed, and its CPU seconds."""
    book = nbformat.read(file, as_version=4)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    NotebookClient(book, timeout=600, resources={"metadata": {"path": str(ROOT)}}).execute()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    for cell in book.cells:
        cell.metadata.pop("execution", None)
        for out in cell.get("outputs", []):
            if "image/png" in out.get("data", {}):
                png = compress(base64.b64decode(out.data["image/png"]))
                out.data["image/png"] = base64.b64encode(png).decode()
    book.metadata["cpu_seconds"] = round(seconds)
    nbformat.write(book, file)


def outputs(book: Any) -> list[Any]:
    """Return all outputs of a notebook, in order."""
    return [out for cell in book.cells for out in cell.get("outputs", [])]


def pictures(book: Any) -> list[bytes]:
    """Return the pictures of a notebook, as PNG."""
    data = [out.get("data", {}).get("image/png") for out in outputs(book)]
    return [base64.b64decode(png) for png in data if png]


def title(book: Any) -> str:
    """Return the question that a notebook asks, from its title."""
    return book.cells[0].source.partition("\n")[0].removeprefix("# ")


def gallery() -> str:
    """Return the page of all notebooks: a picture, the question and the seconds of each."""
    lines = ["# Gallery", ""]
    lines += [
        "Each notebook asks one question and answers it by a picture. The seconds are CPU time,"
    ]
    lines += ["with the start of Python and all compilation, on a shared core.", ""]
    for pillar, names in PILLARS.items():
        lines += [f"## {pillar}", "", "| | |", "|---|---|"]
        for name in names.split():
            book = nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)
            seconds = book.metadata.get("cpu_seconds", "?")
            link = f"[**{title(book)}**](../notebooks/{name}.ipynb)"
            lines.append(f"| ![](pictures/gallery/{name}.png) | {link}<br>{seconds} s |")
        lines.append("")
    return "\n".join(lines) + "```{toctree}\n:hidden:\n:glob:\n\nshown/*\n```\n"


def thumbnail(png: bytes) -> bytes:
    """Scale a picture down to `WIDTH` pixels."""
    image = Image.open(io.BytesIO(png)).convert("RGB")
    image.thumbnail((WIDTH, WIDTH))
    file = io.BytesIO()
    image.quantize(64).save(file, format="PNG", optimize=True)
    return file.getvalue()


def page(name: str, book: Any) -> str:
    """Return a notebook as a page: text, code and outputs."""
    lines, count = [], 0
    for cell in book.cells:
        if cell.cell_type == "markdown":
            lines += [cell.source.replace("](../docs/", "](../"), ""]
            continue
        lines += ["```py", cell.source, "```", ""]
        for out in cell.outputs:
            if "image/png" in out.get("data", {}):
                (PAGES / f"{name}-{count}.png").write_bytes(base64.b64decode(out.data["image/png"]))
                lines += [f"![]({name}-{count}.png)", ""]
                count += 1
            elif text := out.get("text") or out.get("data", {}).get("text/plain"):
                lines += ["```text", re.sub(r"\x1b\[[0-9;]*m", "", text).rstrip(), "```", ""]
    seconds = book.metadata.get("cpu_seconds", "?")
    return "\n".join([*lines, f"*{seconds} CPU seconds; `notebooks/{name}.ipynb`*", ""])


def pages() -> None:
    """Write the pages of all notebooks; they are not committed."""
    PAGES.mkdir(exist_ok=True)
    for file in NOTEBOOKS.glob("*.ipynb"):
        book = nbformat.read(file, as_version=4)
        (PAGES / f"{file.stem}.md").write_text(page(file.stem, book))


def main() -> None:
    """Run the requested notebooks, and write the gallery."""
    names = sys.argv[1:] or sorted(file.stem for file in NOTEBOOKS.glob("*.ipynb"))
    THUMBNAILS.mkdir(exist_ok=True)
    for name in names:
        file = NOTEBOOKS / f"{name}.ipynb"
        try:
            run(file)
        except Exception as error:  # the other notebooks still run
            print(f"{name}: {error}", file=sys.stderr)
            continue
        book = nbformat.read(file, as_version=4)
        print(name, book.metadata["cpu_seconds"], "s", flush=True)
        (THUMBNAILS / f"{name}.png").write_bytes(thumbnail(pictures(book)[-1]))
    (ROOT / "docs" / "gallery.md").write_text(gallery())


if __name__ == "__main__":
    main()
