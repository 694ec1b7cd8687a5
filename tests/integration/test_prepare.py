#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Prepare and Unprepare of the real agent against a fake API server."""

import concurrent.futures
import contextlib
import fcntl
import json
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
# pylint: disable=wrong-import-position
from fakeapi import FakeAPI
from kubelet import CLAIMS, DRIVER, PODS, TOP, TWINRAIL, Node, make_claim, nic_config, require, run_tests

CARD0, CARD2 = "card-0000-03-00", "card-0002-03-00"
PF0, PF1 = "nic-0000-03-00-0", "nic-0000-03-00-1"


@contextlib.contextmanager
def node(**kw):
    with FakeAPI() as api, Node(api, **kw) as n:
        yield api, n


def spec_of(n, claim):
    path = n.cdi / f"{DRIVER}-{claim.uid}.json"
    return json.loads(path.read_text()) if path.exists() else None


def edits_of(n, claim, request):
    name = f"{claim.uid}-{request}"
    return next(d["containerEdits"] for d in spec_of(n, claim)["devices"] if d["name"] == name)


def env_of(n, claim, request):
    return dict(e.split("=", 1) for e in edits_of(n, claim, request).get("env", []))


def test_idempotent():
    with node() as (api, n):
        c = make_claim(api, "c", [("nic", CARD0)])
        first = n.prepare(c)
        assert first.devices == (
            (("nic",), "node1", CARD0, (f"{DRIVER}/claim={c.uid}-nic",)),
        ), first
        state = n.state()
        assert n.prepare(c) == first
        assert n.prepare(c, version="v1beta1").devices[0][:3] == first.devices[0][:3]
        assert n.state() == state
        # after a restart, and with the CDI folder emptied by a reboot
        n.kill()
        for f in n.cdi.iterdir():
            f.unlink()
        n.start()
        assert n.state() == state, "not made again at the start"
        assert n.prepare(c) == first
        n.unprepare(c)
        assert n.state() == {}
        n.unprepare(c)


def test_cdi_of_a_card():
    with node() as (api, n):
        c = make_claim(api, "c", [("nic", CARD0)])
        n.prepare(c)
        spec = spec_of(n, c)
        assert spec["kind"] == f"{DRIVER}/claim" and spec["cdiVersion"] == "0.5.0"
        edits = edits_of(n, c, "nic")
        paths = [d["path"] for d in edits["deviceNodes"]]
        topo = topology(n)
        devices = [x["rdmaDevice"] for x in topo["nics"] if x["name"] in (PF0, PF1)]
        assert len(paths) == 3 and paths[2] == "/dev/infiniband/rdma_cm", paths
        assert all(d["type"] == "c" and d["major"] > 0 for d in edits["deviceNodes"])
        env = env_of(n, c, "nic")
        wanted = ",".join(f"{d}:1" for d in devices)
        assert env["UCX_NET_DEVICES"] == wanted and env["NCCL_IB_HCA"] == "=" + wanted, env
        assert (n.cdi / f"{DRIVER}-{c.uid}.json").stat().st_mode & 0o777 == 0o644


def topology(n):
    command = [TWINRAIL, "topo", "--root", str(n.root), "-o", "json"]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


def test_gpus_by_vendor_cdi():
    with node(machine="hgx-h100", args=["--gpu", "own", "--publish", "nic"]) as (api, n):
        topo = topology(n)
        gpu, nic = next(
            (p["gpu"], p["nic"]) for p in topo["pairs"] if p["best"] and p["path"] == "PIX"
        )
        uuid = next(g["uuid"] for g in topo["gpus"] if g["name"] == gpu)
        c = make_claim(api, "c", [("gpu", gpu), ("nic", nic)])
        error = n.refuse(c)
        assert f"nvidia.com/gpu={uuid}" in error and "nvidia-ctk cdi generate" in error, error
        assert n.state() == {}
        n.cdi.mkdir(exist_ok=True)
        yaml = subprocess.run(
            [str(TOP / "tests" / "cluster" / "lib" / "nvidia-cdi"), str(n.root)],
            check=True, capture_output=True, text=True,
        ).stdout
        (n.cdi / "nvidia.yaml").write_text(yaml)
        answer = n.prepare(c)
        assert answer.devices[0][3] == (f"nvidia.com/gpu={uuid}",), answer
        assert answer.devices[1][3] == (f"{DRIVER}/claim={c.uid}-nic",), answer
        assert env_of(n, c, "nic")["TWINRAIL_PAIRS"] == f"{gpu}={nic}"
        n.unprepare(c)


def test_overlap_waits_for_release():
    with node() as (api, n), concurrent.futures.ThreadPoolExecutor() as pool:
        a = make_claim(api, "a", [("nic", CARD0)])
        b = make_claim(api, "b", [("nic", PF0), ("nic", PF1)])
        c = make_claim(api, "c", [("nic", CARD2)])
        n.prepare(a)
        began = time.monotonic()
        waiting = pool.submit(n.prepare, b)
        time.sleep(0.5)
        n.prepare(c)  # nobody is blocked
        n.unprepare(c)
        assert not waiting.done()
        n.unprepare(a)
        assert len(waiting.result(5).devices) == 2
        assert time.monotonic() - began < 5


def test_overlap_names_the_holder():
    with node() as (api, n):
        a = make_claim(api, "a", [("nic", CARD0)])
        b = make_claim(api, "b", [("nic", CARD0)])
        n.prepare(a)
        began = time.monotonic()
        error = n.refuse(b)
        took = time.monotonic() - began
        assert "ns/a" in error and a.uid in error and "0000:03:00.0" in error, error
        assert 29 < took < 40, took
        assert len(n.state()) == 2


def test_half_pair():
    with node() as (api, n):
        a = make_claim(api, "a", [("nic", PF0)])
        error = n.refuse(a)
        for word in (PF1, CARD0, "nic.twinrail.dev", "twinrail.dev/cardId", "halfPairPolicy"):
            assert word in error, (word, error)
        assert n.state() == {}
        b = make_claim(api, "b", [("nic", PF0)], config=[nic_config(halfPairPolicy="Allow")])
        n.prepare(b)
        n.unprepare(b)
        bad = make_claim(api, "bad", [("nic", CARD0)], config=[nic_config(halfPair="Allow")])
        assert 'unknown field "halfPair"' in n.refuse(bad)


def test_refusals():
    with node() as (api, n):
        c = make_claim(api, "c", [("nic", CARD0)])
        assert "not found" in n.refuse(c._replace(name="other"))
        error = n.refuse(c._replace(uid="00000000-0000-4000-8000-000000000000"))
        assert "was replaced" in error and c.uid in error, error
        api.create(CLAIMS, {"metadata": {"name": "free"}})
        free = c._replace(name="free", uid=api.get(f"{CLAIMS}/free")["metadata"]["uid"])
        assert "not allocated" in n.refuse(free)
        gone = make_claim(api, "gone", [("nic", "nic-00ff-03-00-0")])
        assert "is not on this node" in n.refuse(gone)
        # one of two is bad: neither is prepared, both say why
        answers = n.prepare_all(c, gone)
        assert all("is not on this node" in a.error for a in answers.values()), answers
        assert n.state() == {}


def test_api_server_away():
    """20 s without an API server are survived inside one call."""
    with node() as (api, n):
        c = make_claim(api, "c", [("nic", CARD0)])
        n.prepare(c)
        d = make_claim(api, "d", [("nic", CARD2)])
        api.control("down", seconds=20)
        time.sleep(0.3)
        n.unprepare(c, timeout=5)  # needs no API server
        began = time.monotonic()
        n.prepare(d)
        assert 10 < time.monotonic() - began < 40


def test_unwritable_cdi():
    """As root a mode does not stop anybody; a file in the folder's place does."""
    with node(start=False) as (api, n):
        n.cdi.write_text("")
        n.start()
        c = make_claim(api, "c", [("nic", CARD0)])
        error = n.refuse(c)
        assert f"CDI folder {n.cdi} must be writable" in error, error
        assert n.state() == {}
        n.unprepare(c)
        n.cdi.unlink()
        n.prepare(c)


def test_corrupt_record():
    with node() as (api, n):
        a = make_claim(api, "a", [("nic", CARD0)])
        b = make_claim(api, "b", [("nic", CARD2)])
        first = n.prepare_all(a, b)
        n.kill()
        (n.data / "claims" / f"{a.uid}.json").write_text("{")
        n.start()
        assert (n.data / "claims" / f"{a.uid}.json.corrupt").read_text() == "{"
        assert a.uid in n.log_text() and "set aside" in n.log_text()
        assert n.prepare(b) == first[b.uid]
        assert n.prepare(a).devices == first[a.uid].devices
        n.unprepare(a, b)
        assert list(n.state()) == [f"claims/{a.uid}.json.corrupt"]


def test_environment_of_a_pod():
    """Two claims of one pod carry the same lists, unless its containers differ."""
    with node() as (api, n):
        def pod(name, *containers):
            api.create(
                PODS,
                {
                    "metadata": {"name": name, "uid": f"uid-of-{name}"},
                    "spec": {
                        "resourceClaims": [
                            {"name": x, "resourceClaimName": f"{name}-{x}"} for x in "ab"
                        ],
                        "containers": [
                            {"resources": {"claims": [{"name": x} for x in c]}}
                            for c in containers
                        ],
                    },
                },
            )

        for name, containers, lists in (
            ("same", ("ab", "ba", ""), True), ("differ", ("a", "b"), False), ("unread", None, True),
        ):
            if containers:
                pod(name, *containers)
            else:
                api.fault("GET .*/pods/unread", status=403, times=0)
            a = make_claim(api, f"{name}-a", [("nic", CARD2)], pods=[name])
            b = make_claim(api, f"{name}-b", [("nic", CARD0)], pods=[name])
            n.prepare_all(a, b)
            envs = [env_of(n, c, "nic") for c in (a, b)]
            assert envs[0] == envs[1], name
            assert ("UCX_NET_DEVICES" in envs[0]) == lists, (name, envs)
            if lists:
                assert envs[0]["UCX_NET_DEVICES"].count(":1") == 4
            n.unprepare(a, b)


def test_hook():
    """The hook starts no container of a claim that is not prepared."""
    hook = os.path.join(os.path.dirname(TWINRAIL), "twinrail-hook")

    def run(record, state='{"ociVersion":"1.0.2","id":"x","pid":1}'):
        command = [hook, "--record", str(record)]
        return subprocess.run(command, input=state, capture_output=True, text=True)

    with node() as (api, n):
        c = make_claim(api, "c", [("nic", CARD0)])
        record = n.data / "claims" / f"{c.uid}.json"
        assert run(record).returncode == 1
        n.prepare(c)
        r = run(record)
        assert (r.returncode, r.stderr) == (0, ""), r
        for state in ("", "[]", "{}", "x" * (2 << 20)):
            r = run(record, state)
            assert r.returncode == 1 and r.stderr.count("\n") == 1, r.stderr
        good = record.read_text()
        for old, new, word in (
            ("Completed", "Undoing", "Undoing"), ("{", "", "JSON"), ("none", "move", "move"),
            ('"links": []', '"links": [1]', "1 links"),
        ):
            record.write_text(good.replace(old, new, 1))
            r = run(record)
            assert r.returncode == 1 and word in r.stderr and r.stderr.count("\n") == 1, r.stderr
        assert subprocess.run([hook], capture_output=True).returncode == 2
        assert subprocess.run([hook, "--version"], capture_output=True).returncode == 0


def test_held_lock():
    """Another process hangs with the lock: the agent says so and can still be stopped."""
    with node() as (api, n):
        c = make_claim(api, "c", [("nic", CARD0)])
        n.prepare(c)
        with open(n.data / "serialize.lock", "r+", encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            error = n.unprepare_all(c)[c.uid].error
            assert lock.name in error and "another process" in error, error
            with concurrent.futures.ThreadPoolExecutor() as pool:
                busy = pool.submit(n.unprepare_all, c)
                time.sleep(0.5)
                began = time.monotonic()
                assert n.stop() == 0
                assert time.monotonic() - began < 28  # kubelet kills after 30
                assert busy.exception() or busy.result()[c.uid].error
        n.start()
        n.unprepare(c)


def test_old_and_new_agent():
    """A rolling update: what one process prepared, the other knows; and it may unprepare it."""
    with node() as (api, old), Node(api, start=False) as new:
        a = make_claim(api, "a", [("nic", CARD0)])
        b = make_claim(api, "b", [("nic", CARD0)])
        first = old.prepare(a)
        for name in ("plugins", "registry", "cdi", "data"):
            setattr(new, name, getattr(old, name))
        uid = "11111111-2222-4333-8444-555555555555"
        new.args = ["--pod-uid", uid]
        new.socket = old.data / f"dra-{uid}.sock"
        new.start()
        assert new.prepare(a) == first
        with concurrent.futures.ThreadPoolExecutor() as pool:
            waiting = pool.submit(new.prepare, b)
            time.sleep(1)
            assert not waiting.done()
            old.unprepare(a)
            assert waiting.result(10).devices
        old.unprepare(b)
        assert old.state() == {}


if __name__ == "__main__":
    require("protoc", TWINRAIL)
    run_tests(globals())
