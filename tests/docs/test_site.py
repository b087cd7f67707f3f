"""The documentation site: it builds without a warning, its links lead somewhere, and every public name is in it."""

import importlib
import inspect
import os
import posixpath
import subprocess
import sys
import zlib
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import cdqn

ROOT = Path(__file__).parent.parent.parent


def test_site_builds_and_every_link_and_public_name_is_there(tmp_path):
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    quiet = os.environ | {"NO_MKDOCS_2_WARNING": "1"}  # an advertisement of the theme's
    done = subprocess.run(build, cwd=ROOT, env=quiet, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr, done.stderr

    pages = {path.relative_to(tmp_path).as_posix(): Page(path) for path in tmp_path.rglob("*.html")}
    del pages["404.html"]  # its links are made for a server
    assert len(pages) > 40
    assert broken_links(pages, tmp_path) == []
    assert fetched_from_elsewhere(pages) == []
    assert public_names() - documented(tmp_path / "objects.inv") == set()


class Page(HTMLParser):
    """Its links, what it loads, and what one can link to."""

    def __init__(self, path):
        super().__init__()
        self.links, self.loaded, self.ids = [], [], set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.ids |= {values.get("id"), values.get("name")} - {None}
        if tag == "a" and values.get("href"):
            self.links.append(values["href"])
        for name in ("src", "href"):
            if tag in ("script", "link", "img") and values.get(name):
                self.loaded.append(values[name])


def broken_links(pages, site):
    found = []
    for name, page in pages.items():
        for link in [*page.links, *page.loaded]:
            parts = urlsplit(link)
            if parts.scheme or link.startswith("//"):
                continue
            path = posixpath.join(posixpath.dirname(name), unquote(parts.path))
            target = posixpath.normpath(path) if parts.path else name
            known = (site / target).is_file()
            if not known or (parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].ids):
                found.append((name, link))
    return found


def fetched_from_elsewhere(pages):
    """The site is read without a network."""
    return [(name, link) for name, page in pages.items() for link in page.loaded if urlsplit(link).netloc]


def documented(inventory):
    """The names that the reference has an entry for, as other projects look them up."""
    entries = zlib.decompress(inventory.read_bytes().split(b"\n", 4)[4]).decode().splitlines()
    return {entry.split(" ", 1)[0] for entry in entries}


def public_names():
    """What a user may rely on: `cdqn` itself, the modules at the root of the package, and three packages."""
    root = Path(cdqn.__file__).parent
    modules = [f"cdqn.{path.stem}" for path in root.glob("[!_]*.py")]
    found = {f"cdqn.{name}" for name in cdqn.__all__}
    for name in [*modules, "cdqn.replay", "cdqn.algorithms", "cdqn.training.events"]:
        module = importlib.import_module(name)
        found |= {f"{name}.{public}" for public in getattr(module, "__all__", None) or defined_in(module)}
    return found


def defined_in(module):
    """Classes and functions that are the module's own."""
    things = {name: thing for name, thing in vars(module).items() if not name.startswith("_")}
    code = {name for name, thing in things.items() if inspect.isclass(thing) or callable(thing)}
    return {name for name in code if getattr(things[name], "__module__", None) == module.__name__}
