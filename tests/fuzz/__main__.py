"""The random search: python tests/fuzz FAMILY --seconds N --seed S [--count N] [--jobs N]; see docs/CONTRIBUTING.md."""

from __future__ import annotations

import argparse
import math
import os
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
if sys.path and Path(sys.path[0]).resolve() == TESTS / "fuzz":
    del sys.path[0]  # modules are found as fuzz.…, once
sys.path[:0] = [str(TESTS), str(TESTS.parent)]
os.environ.setdefault("RELAYLAB_CACHE_DIR", "")  # nothing is kept of random programs

from fuzz.search import Report, load, names, as_test, write  # noqa: E402
from fuzz.worker import Worker, search_in_processes, serve  # noqa: E402


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python tests/fuzz", description="Search for what is wrong, at random.")
    parser.add_argument("family", nargs="?", choices=names(), help="what to try")
    parser.add_argument("--list", action="store_true", help="the families")
    parser.add_argument("--seconds", type=float, help="how long (10, or without end if --count is given)")
    parser.add_argument("--count", type=int, help="how many cases at most")
    parser.add_argument("--seed", type=int, default=0, help="other cases for each seed")
    parser.add_argument("--jobs", type=int, default=1, help="processes at once")
    parser.add_argument("--only", type=int, metavar="K", help="one case of the seed, once more")
    parser.add_argument("--choices", metavar="N,N…", help="the case of these choices")
    parser.add_argument("--small", type=float, default=20, metavar="SECONDS", help="to make one finding small (20)")
    parser.add_argument("--write", type=Path, metavar="DIR", help="a folder for a test of each finding")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> int:
    asked = arguments()
    if asked.worker:
        serve(asked.worker)
        return 0
    if asked.list or not asked.family:
        for name in names():
            print(f"{name:12} {load(name).says}")
        return 0
    of = load(asked.family)
    if asked.only is not None or asked.choices is not None:
        worker, report = Worker(of), Report(of, asked.seed)
        given = [int(part) for part in (asked.choices or "").split(",") if part]
        k = asked.only or 0
        report.add(k, worker.case(asked.seed, k) if asked.choices is None else worker.again(given))
        worker.close()
    else:
        seconds = asked.seconds or (10 if asked.count is None else math.inf)
        report = search_in_processes(of, asked.seed, seconds, asked.count, asked.jobs, asked.small)
    print(report.text())
    spent = os.times()
    print(f"{spent.user + spent.system + spent.children_user + spent.children_system:.1f} s of processor time")
    for path in write(report, asked.write) if asked.write else ():
        print("wrote", path)
    for _, outcome in report.found.values() if not asked.write else ():
        print("\n" + as_test(of, outcome))
    return 1 if report.found else 0


if __name__ == "__main__":
    sys.exit(main())
