"""Benchmarks: what each method of a storage costs, beside the earlier package and CrewAI's LanceDB storage."""

from __future__ import annotations

import os
import sys
from pathlib import Path

os.environ["CREWAI_TRACING_ENABLED"] = "false"
os.environ["CREWAI_DISABLE_TELEMETRY"] = "true"
os.environ["OTEL_SDK_DISABLED"] = "true"
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # started as a file, it would not find its package

import argparse
import json
import platform
import subprocess
from collections.abc import Callable
from datetime import date

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from benchmarks.measure import Results, measure
from benchmarks.stores import EARLIER, EARLIER_PACKAGE, STORES, Store, install_earlier, versions
from benchmarks.tables import print_tables


def measure_all(sizes: list[int], stores: list[Store], console: Console) -> dict[int, Results]:
    """Measure every store with every number of records, and show how far that is."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        bar = progress.add_task("", total=len(sizes))

        def show(number: int, size: int) -> Callable[[str, float], None]:
            return lambda what, part: progress.update(bar, completed=number + part, description=f"{size:,}: {what}")

        return {size: measure(stores, size, show(number, size)) for number, size in enumerate(sizes)}


def stores_to_measure(console: Console) -> list[Store]:
    """All stores that can be had here."""
    try:
        install_earlier()
    except subprocess.CalledProcessError:
        console.print(f"{EARLIER} could not be installed, so it is left out.")
        return [store for store in STORES if store is not EARLIER_PACKAGE]
    return list(STORES)


def main() -> None:
    """Print the tables."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--records", type=int, nargs="+", default=[1_000, 10_000], metavar="N", help="in the store")
    options.add_argument("--json", type=Path, metavar="FILE", help="write all that was measured here, too")
    chosen = options.parse_args()
    if min(chosen.records) < 100:
        options.error("with fewer than 100 records some searches would find nothing")
    console = Console() if sys.stdout.isatty() else Console(width=200)
    load = f"load {os.getloadavg()[0]:.1f} before the run"
    about = {
        "date": str(date.today()),
        "machine": f"{os.cpu_count()} cores, {load}, {platform.system()} {platform.machine()}",
        "versions": ", ".join(f"{name} {version}" for name, version in versions().items()),
    }
    stores = stores_to_measure(console)
    results = measure_all(chosen.records, stores, console)
    console.print("; ".join(about.values()), highlight=False)
    for size in chosen.records:
        print_tables(console, size, stores, results[size])
    if chosen.json:
        chosen.json.write_text(json.dumps({**about, "results": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
