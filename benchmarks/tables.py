"""The tables of a run: in colour on a terminal, and as Markdown where the output goes to a file."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks.measure import Result, Results
from benchmarks.methods import FIRST_CALLS, METHODS
from benchmarks.stores import Store

TIE = 0.15  # two runs of the same differ by as much


def print_tables(console: Console, size: int, stores: Sequence[Store], results: Results) -> None:
    """Print what was measured with one number of records."""
    _print(console, f"{size:,} records: milliseconds", stores, _seconds_rows(console, stores, results))
    served = [store for store in stores if store.served]
    rows = [
        [method.title, *(_passed(results[method.title][store.key]) for store in served)]
        for method in (*FIRST_CALLS, *METHODS)
    ]
    _print(console, f"{size:,} records: round trips / bytes received / bytes sent", served, rows)


def _print(console: Console, title: str, stores: Sequence[Store], rows: Sequence[Sequence[str]]) -> None:
    table = Table(box=box.SIMPLE_HEAD if console.is_terminal else box.MARKDOWN)
    table.add_column("")
    for store in stores:
        table.add_column(store.title, justify="right")
    for row in rows:
        table.add_row(*row)
    console.print(f"\n### {title}\n", table, sep="\n", highlight=False)


def _seconds_rows(console: Console, stores: Sequence[Store], results: Results) -> list[list[str]]:
    rows = []
    for method in METHODS:
        row = [results[method.title][store.key] for store in stores]
        most = max(result.get("found") or 0 for result in row)
        quickest = min(result["seconds"] for result in row if "seconds" in result and _is_complete(result, most))
        rows.append([method.title, *(_milliseconds(console, result, most, quickest) for result in row)])
    return rows


def _milliseconds(console: Console, result: Result, most: int, quickest: float) -> str:
    if "seconds" not in result:
        return str(result["missing"])
    number = f"{result['seconds'] * 1000:,.1f}"
    if not _is_complete(result, most):
        return f"{number} (finds {result['found']} of {most})"
    if result["seconds"] > quickest * (1 + TIE):
        return number
    return f"[bold green]{number}[/]" if console.is_terminal else f"**{number}**"


def _is_complete(result: Result, most: int) -> bool:
    return (result["found"] or 0) == most


def _passed(result: Result) -> str:
    if "commands" not in result:
        return str(result["missing"])
    return f"{len(result['commands']):,} / {result['received']:,} / {result['sent']:,}"
