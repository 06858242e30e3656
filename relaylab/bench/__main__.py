"""`python -m relaylab.bench`: measure, print the table, write the picture and JSON."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from relaylab.bench.history import BenchHistory
from relaylab.bench.measure import Result, measure_apart
from relaylab.bench.peers import installed
from relaylab.bench.picture import picture
from relaylab.bench.report import table, to_json
from relaylab.bench.rows import ROWS, chosen
from relaylab.codegen.build import parse_target
from relaylab.support.errors import RelayError
from relaylab.support.options import positive

ROUNDS, QUICK = 30, 7


def parser() -> argparse.ArgumentParser:
    """The command line."""
    p = argparse.ArgumentParser(prog="python -m relaylab.bench", description=__doc__)
    p.add_argument("--rows", help=f"rows with commas between, of {', '.join(ROWS)}")
    p.add_argument("--threads", type=counts, default=[1, 2], help="numbers of threads, commas between (default 1,2)")
    turns = p.add_mutually_exclusive_group()
    turns.add_argument("--rounds", type=positive, default=ROUNDS, help=f"turns of every engine (default {ROUNDS})")
    turns.add_argument("--quick", action="store_const", dest="rounds", const=QUICK, help="few rounds")
    p.add_argument("--json", metavar="FILE", type=file_in_folder, help="write everything that was measured")
    p.add_argument("--mcpu", metavar="CPU", help="build for another CPU, such as x86-64-v3 (AVX2)")
    p.add_argument(
        "--history",
        metavar="FILE",
        type=file_in_folder,
        help="keep what was measured, and say what changed since the last time",
    )
    p.add_argument("--svg", metavar="FILE", type=file_in_folder, help="write a picture")
    return p


def counts(text: str) -> list[int]:
    """Whole numbers above zero, commas between."""
    return [positive(part.strip()) for part in text.split(",")]


def file_in_folder(text: str) -> str:
    """A file whose folder is there: said before anything is measured."""
    if Path(text).is_dir():
        raise argparse.ArgumentTypeError(f"{text} is a folder")
    if not Path(text).absolute().parent.is_dir():
        raise argparse.ArgumentTypeError(f"there is no folder for {text}")
    return text


def results_of(args: argparse.Namespace) -> tuple[list[Result], int]:
    """Measure the rows that were asked for, one process each, and say how far it has come; 1 if one failed, 130 if
    that was interrupted."""
    target = f"llvm -mcpu={args.mcpu}" if args.mcpu else "llvm"
    parse_target(target)  # said before anything runs
    found, failed = [], 0
    for row in chosen(args.rows):
        for count in args.threads:
            print(f"{row.name}, {count} thread(s)", file=sys.stderr, flush=True)
            try:
                found.append(measure_apart(row, count, args.rounds, target))
            except subprocess.CalledProcessError as error:  # what took long to measure is not lost
                print(f"{row.name} failed: {error}", file=sys.stderr)
                failed = 1
            except KeyboardInterrupt:
                return found, 130
    return found, failed


def main() -> int:
    """Run the command; 0 if all went well, 1 for a wrong argument or a row that failed."""
    args = parser().parse_args()
    if "onnxruntime" not in installed():
        print("onnxruntime is not installed: nothing to compare with (pip install onnxruntime onnx)", file=sys.stderr)
    try:
        history = BenchHistory(args.history) if args.history else None
        results, failed = results_of(args)
    except RelayError as error:
        print(error, file=sys.stderr)
        return 1
    print("\n".join([table(results), *(history.add(results) if history else [])]))
    for path, text in ((args.json, to_json), (args.svg, picture)):
        if path:
            Path(path).write_text(text(results), encoding="utf-8")
    return failed


if __name__ == "__main__":
    sys.exit(main())
