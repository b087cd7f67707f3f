"""The page as HTML: one file, with its style and its program inside."""

from html import escape
from typing import Any

from cdqn.integrations import plotly
from cdqn.report.page.content import Experiment, Page
from cdqn.report.reproduction import Claim

VERDICTS = {True: ("holds", "holds"), False: ("fails", "does not hold"), None: ("reported", "reported")}
"""Class and words of each."""

STYLE = """
:root { --ink: #222; --grey: #666; --line: #ddd; --good: #0a7a4b; --bad: #b3261e; }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 68rem; padding: 1rem; color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
h1 { font-size: 1.6rem; margin: 0.5rem 0; }
h2 { font-size: 1.25rem; margin: 2.5rem 0 0.25rem; border-top: 1px solid var(--line); padding-top: 1.25rem; }
p, li, td, pre { overflow-wrap: anywhere; }
.about, .small { color: var(--grey); font-size: 0.9rem; }
nav ul { list-style: none; padding: 0; columns: 18rem; }
nav a { color: inherit; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); gap: 0.5rem; }
.chart { min-width: 0; }
table { border-collapse: collapse; width: 100%; font-size: 0.92rem; margin: 0.75rem 0; }
th, td { text-align: left; vertical-align: top; padding: 0.35rem 0.6rem 0.35rem 0;
  border-bottom: 1px solid var(--line); }
.holds { color: var(--good); } .fails { color: var(--bad); } .reported { color: var(--grey); }
.verdict { font-weight: 600; white-space: nowrap; }
pre { white-space: pre-wrap; background: #f6f6f6; padding: 0.6rem 0.8rem; border-radius: 6px; font-size: 0.88rem; }
details { margin: 0.5rem 0; } summary { cursor: pointer; color: var(--grey); }
.problems { border-left: 4px solid var(--bad); padding-left: 0.8rem; }
@media (max-width: 640px) {
  table, tbody, tr, td { display: block; } thead { display: none; }
  tr { border-bottom: 1px solid var(--line); padding: 0.4rem 0; } td { border: 0; padding: 0.1rem 0; }
  td[data-name]::before { content: attr(data-name) ": "; color: var(--grey); }
}
@media print {
  body { max-width: none; font-size: 11pt; } .chart, tr { break-inside: avoid; } nav, .modebar { display: none; }
  details > * { display: block; }
}
"""

# A chart is as wide as its column was when it was drawn, which may be before the page has its final layout.
FIT = """
addEventListener("load", () => {
  document.querySelectorAll(".js-plotly-plot").forEach(chart => Plotly.Plots.resize(chart));
});
"""


def render(page: Page) -> str:
    """The whole page."""
    sections = "\n".join(_section(experiment) for experiment in page.experiments)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>C-DQN: {escape(page.folder)}</title>
<style>{STYLE}</style>
<script>{plotly.script()}</script>
</head>
<body>
<h1>Convergent and Efficient Deep Q Network, done again</h1>
<p class="about">Figures of Wang &amp; Ueda (ICLR 2022). A click on a name in a legend hides that series;
dragging zooms, a double click goes back. Bands are standard errors.</p>
{_contents(page)}
{_problems(page)}
{sections}
<script>{FIT}</script>
</body>
</html>
"""


def _contents(page: Page) -> str:
    items = []
    for experiment in page.experiments:
        link = f'<a href="#{escape(experiment.name)}">{escape(_title(experiment))}</a>'
        items.append(f"<li>{link} <span class=small>{_count(experiment.claims)}</span></li>")
    return f"<nav><ul>{''.join(items)}</ul></nav>"


def _count(claims: list[Claim]) -> str:
    judged = [claim.holds for claim in claims if claim.holds is not None]
    return f"{sum(judged)} of {len(judged)} claims hold" if judged else "numbers reported, nothing judged"


def _problems(page: Page) -> str:
    if not page.problems:
        return ""
    items = "".join(f"<li>{escape(problem)}</li>" for problem in page.problems)
    return f'<div class="problems"><p>Not complete:</p><ul>{items}</ul></div>'


def _title(experiment: Experiment) -> str:
    about = experiment.about
    label = str(about.get("label", experiment.name))
    return f"{label if label[0] != '(' else experiment.name}: {about.get('title', '')}"


def _section(experiment: Experiment) -> str:
    about = experiment.about
    charts = "\n".join(
        f'<div class="chart">{plotly.chart(f"{experiment.name}-{number}", chart)}</div>'
        for number, chart in enumerate(experiment.charts)
    )
    return f"""<section id="{escape(experiment.name)}">
<h2>{escape(_title(experiment))}</h2>
<p class="about">{escape(str(about.get("section", "")))} · {escape(str(about.get("about", "")))}</p>
<div class="charts">{charts}</div>
{_claims(experiment.claims)}
<pre>{escape(str(about.get("command", "")))}</pre>
{_details(about)}
</section>"""


def _claims(claims: list[Claim]) -> str:
    rows = []
    for claim in claims:
        kind, words = VERDICTS[claim.holds]
        rows.append(
            f"<tr><td>{escape(claim.text)}</td><td data-name=paper>{escape(claim.expected)}</td>"
            f'<td data-name=here>{escape(claim.found)}</td><td class="verdict {kind}">{words}</td></tr>'
        )
    head = "<thead><tr><th>claim</th><th>paper</th><th>here</th><th></th></tr></thead>"
    return f"<table>{head}<tbody>{''.join(rows)}</tbody></table>"


def _details(about: dict[str, Any]) -> str:
    """How long it took, with what, and with which settings."""
    facts: dict[str, Any] = {"wall-clock": _duration(about.get("seconds"))}
    facts |= {name: about.get(name) for name in ("seed", "scale")}
    facts |= _mapping(about.get("versions"))
    line = " · ".join(f"{name} {value}" for name, value in facts.items() if value is not None)
    settings = _mapping(about.get("settings"))
    rows = "".join(f"<tr><td>{escape(str(k))}</td><td>{escape(str(v))}</td></tr>" for k, v in settings.items())
    table = f"<table><tbody>{rows}</tbody></table>" if rows else ""
    return f"<details><summary>settings and versions</summary><p class=small>{escape(line)}</p>{table}</details>"


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _duration(seconds: Any) -> str | None:
    if not isinstance(seconds, int | float):
        return None
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
