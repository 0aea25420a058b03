"""Measures `haft run` against CPython and against its own targets; called by scripts/concerto-speed."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
CORPUS = HERE / "../../crates/haft-concerto/tests/corpus"
ROUNDS = 5
missed = []


def once(command):
    """User and whole CPU seconds and resident megabytes of one run, and what it printed."""
    with tempfile.TemporaryFile() as output:
        child = subprocess.Popen(command, stdout=output, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        printed = output.read()
    if child.returncode != 0:
        sys.exit(f"`{' '.join(map(str, command))}` ended with {child.returncode}")
    return usage.ru_utime, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, printed


def best(command, which=0):
    return min(once(command)[which] for _ in range(ROUNDS))


def mean(command, rounds=40):
    """Whole CPU seconds: of small differences the best of few runs says nothing."""
    return sum(once(command)[1] for _ in range(rounds)) / rounds


def target(name, shown, met):
    print(f"{name:<44} {shown:<34} {'ok' if met else 'MISSED'}")
    if not met:
        missed.append(name)


def against_python(haft, name, what):
    ours = [haft, "run", HERE / f"{name}.conc"]
    theirs = [python, HERE / f"{name}.py"]
    if once(ours)[3] != once(theirs)[3]:
        sys.exit(f"`{name}` prints something else in the other language")
    # Turn by turn, so that a busy moment meets both.
    rounds = [(once(ours)[0], once(theirs)[0]) for _ in range(ROUNDS)]
    mine, other = (min(times) for times in zip(*rounds))
    ratio = other / max(mine, 1e-6)
    shown = f"{mine * 1000:.0f} ms, CPython {other * 1000:.0f} ms, {ratio:.1f}x"
    target(what, shown, ratio >= 1.0)


def long_program(lines):
    part = [
        "fn part_N(items: Array<Int>, scale: Int = 2) -> Result<Int, String> {",
        "    let mut sum = 0;",
        "    for item in items { if item < 0 { throw \"part N: ${item}\"; } sum += item * scale; }",
        "    match sum { 0 => Err(\"nothing\"), n if n > 100 => Ok(100), n => Ok(n) }",
        "}",
    ]
    text = []
    for number in range((lines - 1) // len(part)):
        text += [line.replace("N", str(number)) for line in part]
    return "\n".join(text + ["fn main() { println(part_0([1, 2])); }"]) + "\n"


haft = pathlib.Path(sys.argv[1]).resolve()
python = shutil.which("python3.11") or shutil.which("python3")
print(subprocess.run([python, "--version"], capture_output=True, text=True).stdout.strip())

against_python(haft, "fib", "fib(27)")
against_python(haft, "loop", "a loop of 1,000,000 rounds")
against_python(haft, "array", "arrays of 200,000 elements")
against_python(haft, "map", "a map of 200,000 entries")
against_python(haft, "text", "texts of 200,000 pieces")

short = best([haft, "run", HERE / "for_short.conc"])
long = best([haft, "run", HERE / "for_long.conc"])
per_round = short * 1000 / 100
target("`for` over 20,000 elements < 20 ms", f"{per_round:.2f} ms", per_round < 20)
shown = f"{short * 1000:.0f} ms and {long * 1000:.0f} ms for as many steps"
target("`for` over 200,000 costs as much per step", shown, long < 2 * short + 0.02)

empty = best([haft, "run", HERE / "empty.conc"], 1)
target("an empty program < 10 ms CPU", f"{empty * 1000:.1f} ms", empty < 0.010)
memory = best([haft, "run", HERE / "empty.conc"], 2)
target("an empty program < 20 MB resident", f"{memory:.1f} MB", memory < 20)

with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder) / "long.conc"
    path.write_text(long_program(350))
    taken = best([haft, "run", path], 1)
    target("start and compile of 350 lines < 10 ms CPU", f"{taken * 1000:.1f} ms", taken < 0.010)

# Those that need no connection: there is no manifest here.
programs = [path for path in CORPUS.rglob("*.conc") if not path.with_suffix(".diag").exists()]
programs = [path for path in programs if "provider:" not in path.read_text()]
largest = max(programs, key=lambda path: path.stat().st_size)
taken = mean([haft, "check", largest]) - mean([haft, "check", HERE / "empty.conc"])
target(f"compile of `{largest.name}` < 5 ms", f"{taken * 1000:.2f} ms", taken < 0.005)

if missed:
    sys.exit("missed: " + ", ".join(missed))
