#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The real agent keeps its ResourceSlices as wanted on a fault-injecting API server.

    test_publish.py [NAME...]       TWINRAIL names another binary than build/twinrail

Runs the tests whose names contain one of the NAMEs (default: all); the last line counts them.
"""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from fakeapi import FakeAPI  # noqa: E402

TOP = HERE.parent.parent
TWINRAIL = os.environ.get("TWINRAIL", str(TOP / "build" / "twinrail"))
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
WRITES = r"^(POST|PUT|PATCH|DELETE) .*/resourceslices"
NODE = "node1"


def many_nics(root, n):
    """A machine of n NICs, each below a root port of its own."""
    for i in range(n):
        domain, bus = i // 200, i % 200
        bdf = f"{domain:04x}:{bus:02x}:02.0"
        path = root / f"sys/devices/pci{domain:04x}:{bus:02x}/{bdf}"
        net = path / f"net/eth{i}"
        rdma = path / f"infiniband/mlx5_{i}"
        verbs = path / f"infiniband_verbs/uverbs{i}"
        net.mkdir(parents=True)
        verbs.mkdir(parents=True)
        (rdma / "ports/1").mkdir(parents=True)
        files = {
            path / "class": "0x020000", path / "vendor": "0x15b3", path / "device": "0x1021",
            path / "numa_node": "0", net / "mtu": "9000", net / "operstate": "up",
            net / "address": f"02:00:00:00:{i // 256:02x}:{i % 256:02x}", net / "type": "1",
            net / "ifindex": str(i + 2), net / "iflink": str(i + 2),
            rdma / "node_guid": f"0200:0000:0000:{i:04x}",
            rdma / "sys_image_guid": f"0200:0000:0000:{i:04x}", rdma / "node_type": "1: CA",
            rdma / "ports/1/state": "4: ACTIVE", rdma / "ports/1/phys_state": "5: LinkUp",
            rdma / "ports/1/rate": "400 Gb/sec (4X NDR)",
            rdma / "ports/1/link_layer": "Ethernet",
            verbs / "ibdev": f"mlx5_{i}", verbs / "dev": f"231:{192 + i}",
        }
        for name, text in files.items():
            name.write_text(text + "\n")
        for link in (f"sys/bus/pci/devices/{bdf}", f"sys/class/net/eth{i}",
                     f"sys/class/infiniband/mlx5_{i}", f"sys/class/infiniband_verbs/uverbs{i}"):
            (root / link).parent.mkdir(parents=True, exist_ok=True)
        (root / f"sys/bus/pci/devices/{bdf}").symlink_to(
            f"../../../devices/pci{domain:04x}:{bus:02x}/{bdf}")
        for kind, name in (("net", f"eth{i}"), ("infiniband", f"mlx5_{i}"),
                           ("infiniband_verbs", f"uverbs{i}")):
            (root / f"sys/class/{kind}/{name}").symlink_to(
                f"../../devices/pci{domain:04x}:{bus:02x}/{bdf}/{kind}/{name}")
            (path / kind / name / "device").symlink_to(f"../../../{bdf}")
    (root / "twinrail").mkdir()  # the node's own link is none of them
    (root / "twinrail/routes").write_text("default dev uplink\n")


def mtu_of(root, i):
    return next(root.glob(f"sys/devices/pci*/*/net/eth{i}/mtu"))


class Agent:
    """The agent on a machine of its own; kubelet is not there."""

    def __init__(self, api, machine="hgx-h100", args=(), start=True):
        self._tmp = tempfile.TemporaryDirectory(prefix="twr-")
        self.dir = pathlib.Path(self._tmp.name)
        self.root = self.dir / "root"
        self.log = self.dir / "log"
        self.args = list(args)
        self.process = None
        for name in ("plugins", "registry", "cdi"):
            (self.dir / name).mkdir()
        api.kubeconfig(str(self.dir / "kubeconfig"))
        if isinstance(machine, int):
            many_nics(self.root, machine)
        else:
            source = TOP / "tests" / "fixtures" / f"{machine}.machine"
            subprocess.run([TWINRAIL, "snapshot", "--unpack", source, self.root], check=True)
        if start:
            self.start()

    def start(self):
        command = [TWINRAIL, "agent", "--node-name", NODE, "--root", self.root]
        command += ["--plugins-dir", self.dir / "plugins", "--registry-dir", self.dir / "registry"]
        command += ["--cdi-dir", self.dir / "cdi", "--kubeconfig", self.dir / "kubeconfig"]
        with open(self.log, "ab") as log:
            # pylint: disable-next=consider-using-with
            self.process = subprocess.Popen(command + self.args, stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=log)

    def reload(self):
        self.process.send_signal(signal.SIGHUP)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(30) == 0

    def offline(self):
        """What "twinrail slices" says about the same machine."""
        command = [TWINRAIL, "slices", "--node-name", NODE, "--root", self.root, "-o", "json"]
        done = subprocess.run(command + self.args, check=True, stdout=subprocess.PIPE)
        return [s["spec"] for s in json.loads(done.stdout)["items"]]

    def text(self):
        return self.log.read_text(errors="replace")

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        alive = self.process and self.process.poll() is None
        if alive:
            self.process.kill()
            self.process.wait()
        if exc[0] is not None:
            sys.stderr.write(self.text()[-6000:])
        self._tmp.cleanup()
        if self.process and not alive and self.process.returncode != 0 and exc[0] is None:
            raise AssertionError(f"the agent ended: {self.process.returncode}")


def wait_for(what, condition, seconds=10.0):
    end = time.monotonic() + seconds
    while True:
        result = condition()
        if result:
            return result
        if time.monotonic() > end:
            raise AssertionError(f"{what}: not within {seconds} s")
        time.sleep(0.01)


def pool_of(api):
    """(generation, specs without generation) of a complete pool, else None."""
    specs = [s["spec"] for s in api.list(SLICES, {"fieldSelector": f"spec.nodeName={NODE}"})]
    if not specs:
        return None
    generation = max(s["pool"]["generation"] for s in specs)
    if any(s["pool"]["generation"] != generation for s in specs):
        return None
    if any(s["pool"]["resourceSliceCount"] != len(specs) for s in specs):
        return None
    for s in specs:
        del s["pool"]["generation"]
    return generation, specs


def published(api, agent, seconds=30):
    """Wait until the pool is what the machine says; its generation."""
    wanted = agent.offline()
    for s in wanted:
        del s["pool"]["generation"]

    def ok():
        pool = pool_of(api)
        return pool and pool[1] == wanted and pool

    return wait_for("the slices are as wanted", ok, seconds)[0]


def writes(api):
    return [e for e in api.requests(WRITES)]


def methods(api):
    return [e["method"] for e in writes(api)]


def forget(api):
    with api.cond:
        api.log.clear()


@contextlib.contextmanager
def running(machine="hgx-h100", args=(), start=True):
    with FakeAPI() as api:
        api.create("/api/v1/nodes", {"metadata": {"name": NODE}})
        with Agent(api, machine, args, start) as agent:
            yield api, agent


@contextlib.contextmanager
def at_rest(machine="hgx-h100", args=()):
    """A published pool and an empty log."""
    with running(machine, args) as (api, agent):
        published(api, agent)
        time.sleep(0.2)
        forget(api)
        yield api, agent


def test_first_publish_then_silence():
    with running() as (api, agent):
        assert published(api, agent) == 1
        node = api.get(f"/api/v1/nodes/{NODE}")
        (obj,) = api.list(SLICES)
        assert obj["metadata"]["name"].startswith(f"00000-twinrail.dev-{NODE}-"), obj["metadata"]
        assert obj["metadata"]["ownerReferences"] == [
            {"apiVersion": "v1", "kind": "Node", "name": NODE, "controller": True,
             "uid": node["metadata"]["uid"]}
        ]
        wait_for("the log line", lambda: "slices published" in agent.text())
        agent.reload()
        time.sleep(1.5)
        assert methods(api) == ["POST"]
        assert len(api.requests("GET /api/v1/nodes/")) == 1
        for e in api.requests("GET .*/resourceslices"):
            assert f"fieldSelector=spec.driver%3Dtwinrail.dev%2Cspec.nodeName%3D{NODE}" in e["path"]


def test_restart_writes_nothing():
    with at_rest("gb300", ["--publish", "card,nic,pf"]) as (api, agent):
        agent.stop()
        assert len(api.list(SLICES)) == 2  # nothing is deleted on stop
        agent.start()
        wait_for("the second start", lambda: agent.text().count("slices published") == 2)
        time.sleep(0.5)
        assert methods(api) == []
        assert published(api, agent) == 1


def test_two_slices_one_changes():
    with at_rest(140) as (api, agent):
        assert len(api.list(SLICES)) == 2
        mtu_of(agent.root, 135).write_text("1500\n")
        agent.reload()
        assert published(api, agent) == 1
        time.sleep(0.3)
        (put,) = writes(api)
        assert put["method"] == "PUT" and "/00001-" in put["path"], put["path"]


def test_both_slices_change():
    with at_rest(140) as (api, agent):
        mtu_of(agent.root, 0).write_text("1500\n")
        mtu_of(agent.root, 135).write_text("1500\n")
        agent.reload()
        assert published(api, agent) == 2
        time.sleep(0.3)
        assert methods(api) == ["PUT", "PUT"]


def test_grow_and_shrink():
    with at_rest(128) as (api, agent):
        many = agent.dir / "more"
        many_nics(many, 129)
        agent.root.rename(agent.dir / "few")
        many.rename(agent.root)
        agent.reload()
        assert published(api, agent) == 2
        assert methods(api) == ["PUT", "POST"]
        forget(api)
        shutil.rmtree(agent.root)
        (agent.dir / "few").rename(agent.root)
        agent.reload()
        assert published(api, agent) == 3
        assert methods(api) == ["DELETE", "PUT"]
        options = writes(api)[0]["body"]["preconditions"]
        assert options["uid"] and options["resourceVersion"]


def test_back_after_a_wipe():
    """What kubelet does when it starts, and 30 s after the plugin has gone."""
    with at_rest(140) as (api, agent):
        for _ in range(3):
            start = time.monotonic()
            api.delete_collection(SLICES, {"fieldSelector": f"spec.nodeName={NODE}"})
            assert published(api, agent) == 1
            assert time.monotonic() - start < 2
            time.sleep(0.5)
        assert methods(api) == ["POST"] * 6


def test_back_after_deletion_and_edit_by_hand():
    with at_rest() as (api, agent):
        (obj,) = api.list(SLICES)
        api.delete(f"{SLICES}/{obj['metadata']['name']}")
        published(api, agent, 2)
        (obj,) = api.list(SLICES)
        obj["spec"]["devices"] = obj["spec"]["devices"][1:]
        api.replace(f"{SLICES}/{obj['metadata']['name']}", obj)
        published(api, agent, 2)
        assert methods(api) == ["POST", "PUT"]


def test_obsolete_slices_go_first():
    def foreign(name, pool=NODE, node=NODE, driver="twinrail.dev"):
        return {"metadata": {"name": name}, "spec": {
            "driver": driver, "nodeName": node,
            "pool": {"name": pool, "generation": 5, "resourceSliceCount": 1}}}

    with running(start=False) as (api, agent):
        api.create(SLICES, foreign("00007-twinrail.dev-node1-abcde"))
        api.create(SLICES, foreign("node1-twinrail.dev-abcde"))
        api.create(SLICES, foreign("00000-twinrail.dev-x", pool="node1/old"))
        api.create(SLICES, foreign("00000-twinrail.dev-y", node="node2"))
        api.create(SLICES, foreign("00000-dra.net-node1-abcde", driver="dra.net"))
        agent.start()
        wait_for("publishing", lambda: "slices published" in agent.text())
        assert methods(api) == ["DELETE"] * 3 + ["POST"]
        names = {s["metadata"]["name"] for s in api.list(SLICES)}
        assert {"00000-twinrail.dev-y", "00000-dra.net-node1-abcde"} < names and len(names) == 3


def test_conflict():
    with at_rest() as (api, agent):
        api.fault("PUT .*resourceslices", status=409, times=2)
        mtu = next(agent.root.glob("sys/devices/pci*/*/*/*/*/net/*/mtu"))
        mtu.write_text("1234\n")
        agent.reload()
        published(api, agent)
        assert methods(api) == ["PUT"] * 3


def test_invalid_is_said_once():
    with running(start=False) as (api, agent):
        api.fault("POST .*resourceslices", status=422, times=0, message="devices[0] is bad")
        agent.start()
        wait_for("the error", lambda: "invalid" in agent.text())
        agent.reload()
        time.sleep(2)
        assert methods(api) == ["POST"]
        assert agent.text().count("devices[0] is bad") == 1
        api.clear_faults()
        next(agent.root.glob("sys/devices/pci*/*/*/*/*/net/*/mtu")).write_text("1234\n")
        agent.reload()
        published(api, agent)


def test_forbidden_names_the_cure():
    with running(start=False) as (api, agent):
        message = "User system:serviceaccount:twinrail:twinrail cannot create resourceslices"
        api.fault("POST .*resourceslices", status=403, times=0, message=message)
        agent.start()
        wait_for("the error", lambda: message in agent.text())
        time.sleep(2)
        (line,) = [x for x in agent.text().splitlines() if message in x]
        assert "RBAC" in line and "ServiceAccount" in line and " error " in line, line
        assert methods(api) == ["POST"]  # the next one comes after 30 s


def test_passing_faults():
    with running(140, start=False) as (api, agent):
        for fault in (
            {"status": 429, "times": 2}, {"status": 500, "times": 2}, {"status": 503, "times": 1},
            {"close": True, "times": 2}, {"truncate": True, "times": 1},
            {"close": True, "after": True, "times": 2}, {"status": 504, "after": True, "times": 1},
        ):
            forget(api)
            api.fault("POST .*resourceslices", **fault)
            agent.start()
            published(api, agent)
            time.sleep(0.5)
            assert len(api.list(SLICES)) == 2, fault
            # A POST that curl repeats on a new connection may have been done twice.
            assert "DELETE" not in methods(api) or "after" in fault, fault
            agent.stop()
            api.clear_faults()
            api.delete_collection(SLICES)


def test_list_and_node_faults():
    with running(start=False) as (api, agent):
        api.fault("GET .*resourceslices", status=500, times=2)
        api.fault("GET /api/v1/nodes", status=403, times=0, message="nodes is forbidden")
        agent.start()
        wait_for("the error", lambda: "nodes is forbidden" in agent.text())
        (line,) = [x for x in agent.text().splitlines() if "nodes is forbidden" in x]
        assert "RBAC" in line and "--node-name" in line, line
        assert methods(api) == []


def test_forbidden_list():
    with running(start=False) as (api, agent):
        api.fault("GET .*resourceslices", status=403, times=0, message="list is forbidden")
        agent.start()
        wait_for("the error", lambda: "list is forbidden" in agent.text())
        time.sleep(1)
        (line,) = [x for x in agent.text().splitlines() if "list is forbidden" in x]
        assert "RBAC" in line and "ServiceAccount" in line, line
        api.clear_faults()
        published(api, agent, 20)


def test_api_server_is_late_and_goes_away():
    with FakeAPI() as api:
        api.create("/api/v1/nodes", {"metadata": {"name": NODE}})
        port = api.port
        api.stop()
        with Agent(api) as agent:
            time.sleep(0.7)
            api.port = port
            api.start()
            published(api, agent, 15)
            api.stop()
            for obj in api.list(SLICES):
                api.delete(f"{SLICES}/{obj['metadata']['name']}")
            time.sleep(0.3)
            api.start()
            published(api, agent, 20)
            api.control("expire_watches")
            time.sleep(0.2)
            api.delete_collection(SLICES)
            published(api, agent, 5)
            assert len(api.list(SLICES)) == 1


def test_shared_counters():
    with running("gb300", ["--publish", "card,nic,pf"]) as (api, agent):
        published(api, agent)
        devices, counters = (s["spec"] for s in api.list(SLICES))
        assert "sharedCounters" not in devices and "devices" not in counters
        assert len(counters["sharedCounters"]) == 4
        kinds = [d["attributes"]["type"]["string"] for d in devices["devices"]]
        assert kinds == ["card"] * 4 + ["pf"] * 8, kinds  # not the node's own NIC


def test_dropped_counters_fall_back():
    with running("gb300", ["--publish", "card,nic,pf"], start=False) as (api, agent):
        api.fault("(POST|PUT) .*resourceslices", times=0,
                  drop_fields=["sharedCounters", "consumesCounters"])
        agent.start()
        wait_for("the warning", lambda: "DRAPartitionableDevices" in agent.text())
        agent.args = ["--publish", "card,nic"]  # what is expected now
        published(api, agent)
        time.sleep(0.5)
        n = len(writes(api))
        agent.reload()
        api.delete_collection(SLICES)
        published(api, agent, 2)
        time.sleep(0.5)
        assert len(writes(api)) == n + 1
        assert agent.text().count("DRAPartitionableDevices") == 1


def test_a_pool_is_never_half_new():
    """A reader that looks all the time sees complete pools of the old or the new content only."""
    with at_rest(140) as (api, agent):
        seen, stop = set(), threading.Event()

        def watch():
            while not stop.is_set():
                pool = pool_of(api)
                if pool:
                    seen.add(tuple(d["attributes"]["dra.net/mtu"]["int"]
                                   for s in pool[1] for d in s["devices"]))
                time.sleep(0.02)

        def wait_seen(value):
            wait_for(f"the reader sees {value}",
                     lambda: any(value in content for content in seen.copy()), 30)

        thread = threading.Thread(target=watch, daemon=True)
        thread.start()
        wait_seen(9000)
        values = [1400 + i for i in range(2)]
        for value in values:
            for i in range(140):
                mtu_of(agent.root, i).write_text(f"{value}\n")
            agent.reload()
            published(api, agent)
            wait_seen(value)
        stop.set()
        thread.join()
        found = {frozenset(s) for s in seen}
        assert found == {frozenset([v]) for v in [9000, *values]}, found


def main():
    if not os.access(TWINRAIL, os.X_OK):
        sys.exit(f"{TWINRAIL} is not there: make")
    tests = [(n, f) for n, f in globals().items() if n.startswith("test_")]
    if sys.argv[1:]:
        tests = [(n, f) for n, f in tests if any(a in n for a in sys.argv[1:])]
    passed = failed = 0
    for name, function in tests:
        start = time.monotonic()
        try:
            function()
            passed += 1
            print(f"ok {name} ({time.monotonic() - start:.1f} s)", flush=True)
        except Exception:  # pylint: disable=broad-except
            failed += 1
            traceback.print_exc()
            print(f"FAILED {name}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
