"""The site is made from the same pages that a Git forge shows; this is what differs.

Files outside of docs/ that a page links to come along: programs and notebooks as pages of their own, Markdown as it is,
data as files. Links to them are turned round here, so that in the pages they are plain relative links.
"""

import json
import posixpath
import re
from pathlib import Path

from mkdocs.structure.files import File

ROOT = Path(__file__).parent.parent
LINK = re.compile(r"(\]\()([^)#\s]+)")
OUTSIDE = ("CHANGELOG.md", "CONTRIBUTING.md", "examples/*.py", "benchmarks/results/*.csv", "docs/notebooks/*.ipynb")

WIDE = {"index.md": ["navigation", "toc"], "coming_from_sb3.md": ["toc"], "notebooks/watch_dqn_diverge.md": ["toc"]}
"""Pages that need the width of the columns beside them."""


def on_files(files, config):
    """Add what lies elsewhere."""
    for path in sorted(path for pattern in OUTSIDE for path in ROOT.glob(pattern)):
        if path.suffix == ".csv":
            files.append(File.generated(config, place_of(path), abs_src_path=str(path)))
        else:
            files.append(File.generated(config, place_of(path), content=as_page(path)))
    return files


def place_of(path):
    """Where a file of the project stands in the site's sources."""
    name = path.relative_to(ROOT).as_posix().removeprefix("docs/")
    if path.suffix in (".py", ".ipynb"):
        return str(Path(name).with_suffix(".md"))
    return name.lower() if path.parent == ROOT else name


def as_page(path):
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        title = path.stem.replace("_", " ").capitalize()
        return f"# {title}\n\n`{path.relative_to(ROOT).as_posix()}`\n\n```python\n{text}```\n"
    if path.suffix == ".ipynb":
        cells = [as_markdown(cell) for cell in json.loads(text)["cells"]]
        return "\n\n".join([*cells, f"[The notebook itself]({path.name})"]) + "\n"
    return text.replace("](docs/", "](")


def as_markdown(cell):
    """A cell of a notebook; its outputs are made by whoever runs it."""
    source = "".join(cell["source"])
    return f"```python\n{source}\n```" if cell["cell_type"] == "code" else source


def on_page_markdown(markdown, page, **_):
    page.meta["hide"] = WIDE.get(page.file.src_uri, [])
    if page.file.generated_by:
        return apart(markdown)
    here = ROOT / "docs" / posixpath.dirname(page.file.src_uri)

    def turned(match):
        target = (here / match[2]).resolve()
        elsewhere = not target.is_relative_to(ROOT / "docs") or target.suffix == ".ipynb"
        if "://" in match[2] or not elsewhere or not target.is_relative_to(ROOT):
            return match[0]
        return match[1] + posixpath.relpath(place_of(target), posixpath.dirname(page.file.src_uri) or ".")

    return apart(LINK.sub(turned, markdown))


def apart(markdown):
    """A blank line between a paragraph and the list after it, which forges do not need and this renderer does."""
    lines, fenced, before = [], False, ""
    for line in markdown.split("\n"):
        fenced ^= line.lstrip().startswith("```")
        begins = re.match(r"[-*] |\d+\. ", line)
        if begins and not fenced and before.strip() and not re.match(r"\s|[-*] |\d+\. |#", before):
            lines.append("")
        lines.append(line)
        before = line
    return "\n".join(lines)
