#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every CEL selector that is shipped, on every device of every recorded machine.

Evaluated by cel/ (Go) with the scheduler's own compiler. Then the same for selectors that are
wrong on purpose (cel/bad/): each of them has to be refused.
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parent.parent
SKIP = 77


def build(folder):
    program = pathlib.Path(folder) / "cel"
    command = ["go", "build", "-o", str(program), "."]
    done = subprocess.run(command, cwd=HERE / "cel", stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        print(done.stdout)
        if re.search(r"dial tcp|no such host|TLS handshake|i/o timeout", done.stdout):
            print("skipped: the Go modules of tests/integration/cel cannot be downloaded")
            sys.exit(SKIP)
        sys.exit("cannot build tests/integration/cel")
    return str(program)


def evaluate(program, slices, manifests):
    """(exit status, output)"""
    options = [word for s in slices for word in ("-slices", str(s))]
    done = subprocess.run([program, *options, *map(str, manifests)], cwd=TOP, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return done.returncode, done.stdout


def main():
    if not shutil.which("go"):
        print("skipped: no go compiler")
        return SKIP
    slices = sorted((TOP / "tests/fixtures/expected").glob("*.slices.json"))
    shipped = sorted((TOP / "deploy").rglob("*.yaml"))
    passed = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        program = build(folder)
        status, out = evaluate(program, slices, [p.relative_to(TOP) for p in shipped])
        print(out, end="")
        counts = re.search(r"^(\d+) passed, (\d+) failed$", out, re.M)
        if counts:
            passed, failed = int(counts[1]), int(counts[2])
        if status != 0 and not failed:
            failed += 1
        for bad in sorted((HERE / "cel/bad").glob("*.yaml")):
            status, out = evaluate(program, slices, [bad.relative_to(TOP)])
            if status == 1 and "FAILED" in out:
                passed += 1
                print(f"refused, as it has to be: {out.splitlines()[0]}")
            else:
                failed += 1
                print(f"FAILED {bad.name} is not refused: {out}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
