#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""SIGKILL at every change that Prepare, Unprepare and the recovery make on the disk.

After a restart and a repeated call, records, CDI files and answers are byte for byte those of a run
without a crash.  CRASH_POINTS=N tries only about N points of each.
"""

import contextlib
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
# pylint: disable=wrong-import-position
import grpc
from fakeapi import FakeAPI
from kubelet import TWINRAIL, Node, make_claim, require, run_tests

HERE = pathlib.Path(__file__).resolve().parent
POINTS = int(os.environ.get("CRASH_POINTS", "0"))


class Crash:
    """A node with two claims of one pod, and what becomes of them without a crash."""

    def __init__(self, api, node, shim):
        self.node = node
        self.shim = shim
        self.arm = node.dir / "armed"
        self.log = node.dir / "changes"
        self.claims = [
            make_claim(api, name, [("nic", card)], uid=f"{name * 8}-0000-4000-8000-000000000000")
            for name, card in (("a", "card-0000-03-00"), ("b", "card-0002-03-00"))
        ]
        self.node.start()
        self.answers = self.node.prepare_all(*self.claims)
        assert not any(a.error for a in self.answers.values()), self.answers
        self.state = self.node.state()
        assert len(self.state) == 4, list(self.state)
        self.node.unprepare(*self.claims)
        assert self.node.state() == {}
        self.node.stop()

    def env(self, at, armed=False):
        self.arm.unlink(missing_ok=True)
        self.log.unlink(missing_ok=True)
        if armed:
            self.arm.touch()
        return {
            "LD_PRELOAD": str(self.shim),
            "CRASH_AT": str(at),
            "CRASH_DIRS": f"{self.node.data / 'claims'}:{self.node.cdi}",
            "CRASH_ARM": str(self.arm),
            "CRASH_LOG": str(self.log),
        }

    def changes(self):
        return self.log.read_text().splitlines() if self.log.exists() else []

    def crash_in(self, verb, at):
        """The call's changes; the process is dead afterwards when it got to change "at"."""
        self.node.start(env=self.env(at))
        if verb == "unprepare":
            assert self.node.prepare_all(*self.claims) == self.answers
        self.arm.touch()
        call = self.node.prepare_all if verb == "prepare" else self.node.unprepare_all
        if at == 0:
            call(*self.claims)
            self.node.stop()
        else:
            with contextlib.suppress(grpc.RpcError):
                call(*self.claims, timeout=30)
                raise AssertionError(f"{verb} survived change {at}: {self.changes()}")
            assert self.node.process.wait(10) == -9
        return self.changes()

    def check_prepare(self, what):
        answers = self.node.prepare_all(*self.claims)
        assert answers == self.answers, (what, answers)
        state = self.node.state()
        assert state == self.state, (what, differences(state, self.state))

    def clean(self):
        self.node.unprepare(*self.claims)
        left = self.node.state()
        assert left == {}, list(left)


def differences(a, b):
    return {k: (a.get(k), b.get(k)) for k in sorted(set(a) | set(b)) if a.get(k) != b.get(k)}


def points(changes):
    every = max(1, len(changes) // POINTS) if POINTS else 1
    return list(enumerate(changes, 1))[::every]


@contextlib.contextmanager
def crash():
    with tempfile.TemporaryDirectory() as tmp:
        shim = pathlib.Path(tmp) / "crash_shim.so"
        command = ["cc", "-O1", "-D_GNU_SOURCE", "-shared", "-fPIC", "-o", str(shim)]
        subprocess.run(command + [str(HERE / "crash_shim.c"), "-ldl"], check=True)
        with FakeAPI() as api, Node(api, start=False) as node:
            yield Crash(api, node, shim)


def test_durability():
    """Records reach the disk before their names do; the claims of a call share the folder's fsync."""
    with crash() as c:
        records = str(c.node.data / "claims")
        for verb, syncs in (("prepare", 2), ("unprepare", 2)):
            changes = [line.split(" ", 2)[1:] for line in c.crash_in(verb, 0)]
            folder = [i for i, change in enumerate(changes) if change == ["fsync", records]]
            assert len(folder) == syncs, changes
            assert folder[-1] == len(changes) - 1, changes
            synced = 0
            for i, (what, path) in enumerate(changes):
                if what == "fsync" and path != records:
                    assert path.startswith(records), "only records are worth an fsync"
                    synced += 1
                elif what == "rename" and path.startswith(records):
                    assert changes[i - 1][0] == "fsync", changes
                elif path.startswith(str(c.node.cdi)):
                    # Started, or Undoing, is durable before anything else is touched
                    assert folder[0] < i < folder[1], changes
            assert synced == (4 if verb == "prepare" else 2), changes
            if verb == "prepare":
                c.node.start()
                c.clean()
                c.node.stop()


def test_prepare():
    with crash() as c:
        changes = c.crash_in("prepare", 0)
        assert len(changes) >= 20, changes
        c.node.start()
        c.clean()
        c.node.stop()
        for at, what in points(changes):
            seen = c.crash_in("prepare", at)
            assert len(seen) == at, (what, seen)
            c.node.start()
            state = c.node.state()
            # the recovery undoes what is unfinished; what was Completed stays as it is
            wrong = {k: v for k, v in state.items() if v != c.state[k]}
            assert not wrong, (what, wrong)
            records = {k.removeprefix("claims/") for k in state if k.startswith("claims/")}
            specs = {k.removeprefix("cdi/twinrail.dev-") for k in state if k.startswith("cdi/")}
            assert records == specs, (what, list(state))
            c.check_prepare(what)
            c.clean()
            c.node.stop()


def test_renewal():
    """A second claim changes the environment of a Completed one, whose pod may be running."""
    with crash() as c:
        first = c.claims[0]

        def renew(at):
            c.node.start(env=c.env(at))
            c.node.prepare(first)
            c.arm.touch()
            with contextlib.suppress(grpc.RpcError):
                c.node.prepare_all(*c.claims, timeout=30)
                assert at == 0, f"survived change {at}: {c.changes()}"
            if at == 0:
                c.node.stop()
            assert c.node.process.wait(10) == (-9 if at else 0)
            return c.changes()

        changes = renew(0)
        assert len(changes) >= 15, changes
        c.node.start()
        c.clean()
        c.node.stop()
        for at, what in points(changes):
            renew(at)
            c.node.start()
            left = [k for k in c.node.state() if first.uid in k]
            assert len(left) == 2, (what, "a renewed claim was undone", left, c.node.log_text()[-500:])
            c.check_prepare(what)
            c.clean()
            c.node.stop()


def test_unprepare():
    with crash() as c:
        changes = c.crash_in("unprepare", 0)
        assert len(changes) >= 12, changes
        for at, what in points(changes):
            c.crash_in("unprepare", at)
            c.node.start()
            if at % 2:  # kubelet repeats the call, or the pod's sandbox is made again first
                c.check_prepare(what)
            c.clean()
            c.node.stop()


def test_recovery():
    """A second crash while the first one is being repaired."""
    with crash() as c:
        changes = c.crash_in("prepare", 0)
        c.node.start()
        c.clean()
        c.node.stop()
        # one record Completed and the other Started: both paths of the recovery
        at = max(
            i for i, line in enumerate(changes, 1)
            if " rename " in line and line.endswith(f"{c.claims[0].uid}.json") and "/claims/" in line
        )
        again, survived = 0, False
        while not survived:
            c.crash_in("prepare", at)
            for f in c.node.cdi.iterdir():
                f.unlink()  # the Completed one has to be made again
            again += 1
            c.node.start(env=c.env(again, armed=True), wait=False)
            try:
                c.node.wait_ready()
                survived = True  # the recovery has fewer changes
                c.node.kill()
            except RuntimeError:
                assert c.node.process.returncode == -9
            c.node.start()
            c.check_prepare(again)
            c.clean()
            c.node.stop()
        assert again > 3, again


if __name__ == "__main__":
    require("protoc", "cc", TWINRAIL)
    run_tests(globals())
