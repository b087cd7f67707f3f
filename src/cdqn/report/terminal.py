"""What is not ours on a terminal: paths, names of environments, errors of others. Nothing of it is a command."""

from rich.console import Console
from rich.text import Text


def harmless(text: object) -> str:
    """On one line, with whatever would move the cursor, change colours or cannot be shown written out: \\x1b, \\n."""
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in str(text))


def cell(text: object, style: str = "") -> Text:
    """For a table or a bar: the text as it is, with no brackets taken for markup."""
    return Text(harmless(text), style)


def say(console: Console, text: object, style: str = "") -> None:
    """One line, however long, with no brackets taken for markup."""
    console.print(cell(text, style), soft_wrap=True)
