"""The kernels of a program under the roofline of this machine, as a picture and a table."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from relaylab.ir import IRModule
from relaylab.runtime.peaks import MachinePeaks, machine_peaks
from relaylab.runtime.profiling import Duration
from relaylab.runtime.roofline import threads_of
from relaylab.runtime.threads import num_threads
from relaylab.study.program import Program, load
from relaylab.study.running import built, seeded
from relaylab.viz.figures.roofline import Dot
from relaylab.viz.figures.roofline import roofline as draw
from relaylab.viz.scene.scene import Scene
from relaylab.viz.write.formats import save_scene
from relaylab.viz.write.html import bundle


@dataclass(frozen=True)
class Roofline:
    """The kernels of a program, each with what it reached, and what the machine could."""

    title: str
    dots: list[Dot]
    peaks: MachinePeaks

    @cached_property
    def scene(self) -> Scene:
        """The picture; the elements of kernels have the ids `rank:name`."""
        return draw(self.dots, self.peaks.flops, self.peaks.memory, self.title)

    def save(self, path: str | Path) -> Path:
        """Write the picture in the format of the suffix, or the table as .txt."""
        return save_scene(self.scene, path, self.title, str(self))

    def __str__(self) -> str:
        rows = sorted(self.dots, key=lambda d: -d.seconds)
        total = self.seconds
        of = lambda part, whole, scale: f"{scale * part / whole:.1f}" if whole else ""
        lines = [
            f"{of(d.seconds, bool(d.seconds), 1e6):>10}  {d.intensity:>10.3g}  {d.speed / 1e9:>9.3g}  "
            f"{of(d.least, d.seconds, 100):>6}  {of(d.seconds - d.least, total, 100):>6}  {d.name}"
            for d in rows
        ]
        head = f"{'us':>10}  {'FLOP/byte':>10}  {'GFLOP/s':>9}  {'roof %':>6}  {'lost %':>6}  kernel"
        return "\n".join([str(self.peaks), *([self.lost] if total else []), head, *lines])

    @property
    def seconds(self) -> float:
        """The time of all kernels; 0 where they are of no program."""
        return sum(d.seconds for d in self.dots)

    @property
    def lost(self) -> str:
        """The share of the time that would go if every kernel took the least that the machine allows, in words."""
        share = 100 * sum(d.seconds - d.least for d in self.dots) / max(self.seconds, 1e-12)
        return f"{self.seconds * 1e6:.1f} us, of which {share:.0f} % would go if every kernel reached its roof"

    __repr__ = __str__

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return bundle(self.scene, str(self))


def roofline(what: Program | IRModule | str, opt_level: int = 3, repeat: int = 20) -> Roofline:
    """Build a program, time every kernel on seeded inputs (the fastest of `repeat` runs), and hold it against the roof.

    `what` is a program, a module, or what `load` takes: a network's name or a file. The peaks are those of the
    threads that a network gets by default, measured at first use. A kernel that is called several times is one dot.
    As text, `roof %` is how much of its roof a kernel reaches, and `lost %` the share of the whole time that would go
    if it took the least that the machine allows: where there is something to gain.
    """
    program = load(what)
    lib = built(program, opt_level)
    calls = seeded(lib).profile(repeat=repeat, roofline=False).calls
    threads = num_threads()
    spent: dict[str, tuple[str, float, float, float, float]] = {}
    for step, call in zip(lib.executable.plan.steps, calls):
        label, flops, nbytes, seconds, least = spent.get(step.kernel, (step.label, 0.0, 0.0, 0.0, 0.0))
        took = call["Duration (us)"]
        assert isinstance(took, Duration)
        now = took.microseconds / 1e6
        least += min(now, machine_peaks(threads_of(step, threads)).roof(step.flops, step.bytes, now)[1])
        spent[step.kernel] = label, flops + step.flops, nbytes + step.bytes, seconds + now, least
    dots = [Dot(name, f / max(b, 1.0), f / max(s, 1e-12), s, least) for name, f, b, s, least in spent.values()]
    return Roofline(f"{program.name}: kernels under the roof", dots, machine_peaks(threads))
