"""Charts for a browser, by Plotly: pieces of a page that can be zoomed, and whose series can be hidden."""

import math
from typing import Any

from cdqn.errors import MissingPackageError

HEIGHT_PIXELS = 380
MOST_LABELS = 4
"""Names below the bars: more than these would run into each other, and the legend has them too."""
MOST_DECADES = 8.0
# Four buttons that nobody needs here would cover the title on a phone.
_CONFIG = {"responsive": True, "displaylogo": False, "modeBarButtonsToRemove": ["select2d", "lasso2d", "autoScale2d"]}


def script() -> str:
    """Plotly's own program, to be put into the page once."""
    text: str = _plotly("offline").get_plotlyjs()
    return text


def chart(name: str, chart: Any) -> str:
    """A `cdqn.report.page.content.Chart` as HTML; `name` is the id of its element."""
    objects, io = _plotly("graph_objects"), _plotly("io")
    figure = objects.Figure()
    for series in chart.series:
        if chart.bars:
            _add_bar(objects, figure, series)
        else:
            _add_line(objects, figure, series)
    figure.update_layout(
        template="plotly_white",
        title={"text": chart.title, "font": {"size": 15}, "x": 0.02},
        height=HEIGHT_PIXELS,
        margin={"l": 60, "r": 12, "t": 40 if chart.title else 16, "b": 45},
        legend={"orientation": "h", "yanchor": "top", "y": -0.18, "font": {"size": 11}},
        xaxis={"title": chart.x_label, "type": "log" if chart.log_x else None}
        | {"showticklabels": not chart.bars or len(chart.series) <= MOST_LABELS},
        yaxis={"title": chart.y_label, "exponentformat": "power"} | _y_axis(chart),
        font={"family": "system-ui, sans-serif"},
        hovermode="closest",
    )
    text: str = io.to_html(figure, config=_CONFIG, include_plotlyjs=False, full_html=False, div_id=name)
    return text


def _y_axis(chart: Any) -> dict[str, Any]:
    """Logarithmic where it should be, and then over the upper decades: an error that vanishes has no lower end."""
    if not chart.log_y:
        return {}
    values = [value for series in chart.series for value in series.y]
    high = math.log10(max(values))
    low = max(math.log10(min(values)), high - MOST_DECADES)
    return {"type": "log", "range": [low - 0.1, high + 0.1 * (high - low) + 0.1]}


def _add_line(objects: Any, figure: Any, series: Any) -> None:
    """The line, and its standard errors as a band that goes with it when it is hidden."""
    if series.error is not None:
        low = [y - e for y, e in zip(series.y, series.error, strict=True)]
        high = [y + e for y, e in zip(series.y, series.error, strict=True)]
        band = objects.Scatter(
            x=[*series.x, *reversed(series.x)],
            y=[*high, *reversed(low)],
            fill="toself",
            fillcolor=_faint(series.colour),
            line={"width": 0},
            hoverinfo="skip",
            legendgroup=series.label,
            showlegend=False,
        )
        figure.add_trace(band)
    line = {"color": series.colour, "dash": series.dash, "width": 2}
    figure.add_trace(
        objects.Scatter(x=series.x, y=series.y, mode="lines", name=series.label, legendgroup=series.label, line=line)
    )


def _add_bar(objects: Any, figure: Any, series: Any) -> None:
    error = None if series.error is None else {"type": "data", "array": series.error}
    bar = objects.Bar(x=[series.label], y=series.y[:1], name=series.label, marker_color=series.colour, error_y=error)
    figure.add_trace(bar)


def _faint(colour: str) -> str:
    red, green, blue = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.18)"


def _plotly(part: str) -> Any:
    try:
        import plotly.graph_objects
        import plotly.io
        import plotly.offline
    except ImportError as error:
        raise MissingPackageError("a report needs plotly: pip install 'cdqn[report]'") from error
    return getattr(plotly, part)
