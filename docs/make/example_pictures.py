"""Draw docs/pictures/examples: run the blocks of docs/examples and save the pictures they write.

`python docs/make/example_pictures.py [page ...]`
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

DOCS = Path(__file__).parents[1]
PICTURES = DOCS / "pictures" / "examples"
STYLE = 'import matplotlib.pyplot\nmatplotlib.pyplot.style.use("jaxgpu.paper")\n'


def pictures(page: Path) -> None:
    """Run a page and save its pictures under the page's name."""
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "page.py").write_text(STYLE + "\n".join(blocks))
        environment = os.environ | {"PYTHONPATH": str(DOCS.parent), "MPLBACKEND": "Agg"}
        subprocess.run([sys.executable, "page.py"], cwd=folder, env=environment, check=True)
        for file in sorted(folder.glob("*.png")) + sorted(folder.glob("*.gif")):
            (PICTURES / f"{page.stem}{file.suffix}").write_bytes(file.read_bytes())


if __name__ == "__main__":
    PICTURES.mkdir(parents=True, exist_ok=True)
    pages = sorted((DOCS / "examples").glob("*.md"))
    for page in [page for page in pages if page.stem in (sys.argv[1:] or [page.stem])]:
        pictures(page)
