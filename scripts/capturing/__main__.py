"""Captures of our own programs: profile, export, cut, and put beside each what its program logged."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from nsys import Nsys, NsysError
from programs import PROGRAMS, Program

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "tests" / "fixtures"


def main() -> int:
    """Run the command; 1 where of a program no capture came."""
    options = parsed()
    named = options.names or [name for name, program in PROGRAMS.items() if program.injects]
    chosen = [PROGRAMS[name] for name in named]
    nsys = Nsys(os.environ.get("NSYS", "nsys"), os.environ.get("PYTHON", sys.executable))
    if options.gpu and not options.start:
        try:
            nsys.require_gpu()
        except NsysError as error:
            print(f"  {error}", file=sys.stderr)
            return 1
    if options.only_profile:
        options.only_profile.mkdir(parents=True, exist_ok=True)
        return 1 if profiled(nsys, chosen, options.only_profile, gpu=options.gpu) else 0
    with tempfile.TemporaryDirectory() as made:
        folder = options.start or Path(made)
        failed = [] if options.start else profiled(nsys, chosen, folder, gpu=options.gpu)
        for program in chosen:
            if program in failed:
                continue
            try:
                finish(nsys, program, folder, options.into / f"{prefix(program, gpu=options.gpu)}{options.suffix}")
            except Exception as error:  # whatever it is, the others are made
                failed.append(told(program, error))
    rewrite_readme(options.into)
    return 1 if failed else 0


def prefix(program: Program, *, gpu: bool) -> str:
    """What a fixture of a program is called."""
    kind = "gpu" if gpu else "host" if program.injects else "wait"
    return f"real_{kind}_{program.name}"


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/capture", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="of scripts/workloads; all that inject a cause")
    parser.add_argument("--gpu", action="store_true", help="trace CUDA too")
    parser.add_argument("--only-profile", type=Path, metavar="FOLDER", help="stop when the programs have run")
    parser.add_argument("--from", type=Path, dest="start", metavar="FOLDER", help="finish what --only-profile left")
    parser.add_argument(
        "--into", type=Path, default=FIXTURES, metavar="FOLDER", help="of the fixtures and their README"
    )
    parser.add_argument("--suffix", default="", metavar="TEXT", help="what the names of the fixtures end with")
    options = parser.parse_args()
    if unknown := [name for name in options.names if name not in PROGRAMS]:
        parser.error(f"there is no program '{unknown[0]}'; there are: {', '.join(PROGRAMS)}")
    return options


def profiled(nsys: Nsys, programs: list[Program], folder: Path, *, gpu: bool) -> list[Program]:
    """Run the programs under nsys; those that failed."""
    failed = []
    for program in programs:
        print(program.name, flush=True)
        try:
            nsys.profile(program, folder, gpu=gpu)
        except NsysError as error:
            failed.append(told(program, error))
    return failed


def told(program: Program, error: Exception) -> Program:
    """The program, after saying why there is no capture of it."""
    print(f"  {program.name}: {error}", file=sys.stderr)
    return program


def finish(nsys: Nsys, program: Program, folder: Path, target: Path) -> None:
    """Export a capture, cut it, and put its log on its clock: TARGET.sqlite.gz and TARGET.json."""
    # Only here: where programs are merely run, nothing of nsysdiag is installed.
    from mapping import mapped
    from stats import figures
    from trimming import trimmed

    export, facts = nsys.export(folder, program.name), nsys.facts(folder, program.name)
    packed, log = target.with_name(f"{target.name}.sqlite.gz"), target.with_name(f"{target.name}.json")
    if target.name.startswith("real_gpu_"):
        facts["nsys_stats"] = figures(nsys.program, export)
    text, small = mapped(export, nsys.log(folder, program.name), facts), trimmed(export)
    packed.write_bytes(small)
    log.write_text(text)
    print(f"{packed.name}: {packed.stat().st_size:,} bytes")


def rewrite_readme(folder: Path) -> None:
    """Write the part of the fixtures' README that tells of these captures."""
    from readme import rewritten

    readme = folder / "README.md"
    if readme.exists():
        readme.write_text(rewritten(readme.read_text(), folder))


if __name__ == "__main__":
    sys.exit(main())
