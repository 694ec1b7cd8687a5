#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Bad input and failures at the start: one clear line that names object, cause and cure; what can be served is."""

import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
# pylint: disable=wrong-import-position
from fakeapi import FakeAPI
from kubelet import NODE, TWINRAIL, Node, make_claim, nic_config, require, run_tests


OWN = "nic-0016-01-00-0"  # of the node itself: it has the default route


def run(*args, env=None):
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("TWINRAIL_", "KUBERNETES_"))}
    return subprocess.run(
        [TWINRAIL, *args], capture_output=True, text=True, timeout=30, env={**clean, **(env or {})}
    )


def refused(words, *args, env=None):
    """Ends with 2, nothing on stdout, and one line on stderr (before it: at most "starting") with all words."""
    done = run(*args, env=env)
    assert done.returncode == 2 and not done.stdout, done
    lines = [line for line in done.stderr.splitlines() if " info " not in line]
    assert len(lines) == 1, done.stderr
    for word in words:
        assert word in lines[0], f"{word!r} is not in {lines[0]!r}"


@contextlib.contextmanager
def folders():
    with tempfile.TemporaryDirectory(prefix="twr-") as d:
        d = pathlib.Path(d)
        (d / "plugins").mkdir()
        (d / "registry").mkdir()
        yield d, [
            "agent", "--node-name", NODE, "--plugins-dir", str(d / "plugins"),
            "--registry-dir", str(d / "registry"), "--cdi-dir", str(d / "cdi"),
        ]  # fmt: skip


def wait_log(n, pattern, seconds=15):
    end = time.monotonic() + seconds
    while not re.search(pattern, n.log_text()):
        assert time.monotonic() < end, f"{pattern!r} is not in:\n{n.log_text()}"
        time.sleep(0.05)


def rescan(n):
    before = n.log_text().count("reading the hardware again")
    n.process.send_signal(signal.SIGHUP)
    wait_log(n, rf"(?s)(reading the hardware again.*){{{before + 1}}}")
    time.sleep(0.7)


def devices(api):
    slices = api.list("/apis/resource.k8s.io/v1/resourceslices")
    return {d["name"]: d for s in slices for d in s["spec"].get("devices", [])}


def device_names(api):
    return sorted(devices(api))


def empty(root):
    shutil.rmtree(root)
    (root / "sys" / "bus").mkdir(parents=True)
    (root / "proc").mkdir()


def test_usage():
    refused(["--bogus", "--help"], "agent", "--bogus")
    refused(["nonsense", "--help"], "nonsense")
    refused(["--gpu", "maybe", "own"], "agent", "--gpu", "maybe")
    refused(["TWINRAIL_PCIE_ROOT", "nowhere", "function"], "topo", env={"TWINRAIL_PCIE_ROOT": "nowhere"})
    refused(["--publish", "cards", "card"], "agent", "--node-name", NODE, "--publish", "cards")
    for command in ("agent", "topo", "slices", "snapshot"):
        assert "Usage" in run(command, "--help").stdout
    assert re.fullmatch(r"twinrail \d+\.\d+\.\d+\n", run("--version").stdout)


def test_full_output():
    """What could not be written is not success."""
    for command in ("topo", "slices"):
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run(
                [TWINRAIL, command], stdout=full, stderr=subprocess.PIPE, text=True, timeout=30, check=False
            )
        assert done.returncode == 2 and f"twinrail {command}: cannot write" in done.stderr, done


def test_contradictions():
    refused(["--publish", "--gpu", "own"], "agent", "--node-name", NODE, "--publish", "card,gpu")
    refused(["--rescan", "1s"], "agent", "--node-name", NODE, "--rescan", "0s")


def test_names():
    refused(["--node-name", "spec.nodeName"], "agent")
    refused(["--node-name", "Not_A_Node"], "agent", "--node-name", "Not_A_Node")
    refused(["--driver-name", "36"], "agent", "--node-name", NODE, "--driver-name", "a" * 37)
    refused(["--driver-name", "Twin_Rail"], "agent", "--node-name", NODE, "--driver-name", "Twin_Rail")


def test_no_cluster():
    with folders() as (d, agent):
        refused(["KUBERNETES_SERVICE_HOST", "--kubeconfig"], *agent)
        refused([str(d / "none"), "No such file"], *agent, "--kubeconfig", str(d / "none"))
        (d / "bad").write_text("clusters: [\n")
        refused([str(d / "bad"), "line"], *agent, "--kubeconfig", str(d / "bad"))


def test_no_registry():
    with folders() as (d, agent):
        (d / "registry").rmdir()
        refused([str(d / "registry"), "kubelet", "--registry-dir"], *agent)


def test_unreadable_roots():
    for command in ("topo", "slices"):
        refused(["/does/not/exist", "--root"], command, "--root", "/does/not/exist")
    with FakeAPI() as api, Node(api, start=False) as n:
        n.root.rename(n.dir / "elsewhere")
        n.start()
        wait_log(n, r"cannot read the hardware.*root")
        (n.dir / "elsewhere").rename(n.root)
        n.process.send_signal(1)  # SIGHUP
        wait_log(n, r"hardware read gpus=4")
        n.prepare(make_claim(api, "c", [("nic", "card-0000-03-00")]))


def test_no_pci_and_no_nics():
    with FakeAPI() as api, Node(api, start=False) as n:
        api.create("/api/v1/nodes", {"metadata": {"name": NODE}})
        empty(n.root)
        n.start()
        wait_log(n, r"warn .*sys/bus/pci")
        wait_log(n, r"slices published .*devices=0")
        (pool,) = api.list("/apis/resource.k8s.io/v1/resourceslices")
        assert not pool["spec"].get("devices"), pool  # an empty pool shows that the driver lives
    with tempfile.TemporaryDirectory() as d:
        os.mkdir(f"{d}/sys")
        done = run("topo", "--root", d)
    assert done.returncode == 0 and "0 GPUs, 0 NICs" in done.stdout, done


def test_driver_loaded_later():
    """What appears after the start is published without a restart; what did not change is not written again."""
    with FakeAPI() as api, Node(api, args=["--rescan", "1s"], start=False) as n:
        api.create("/api/v1/nodes", {"metadata": {"name": NODE}})
        rdma = n.root / "sys" / "class" / "infiniband"
        rdma.rename(n.dir / "later")
        n.start()
        wait_log(n, r"slices published .*devices=0")
        time.sleep(2.5)
        assert len(api.requests("PUT")) == 0 and n.log_text().count("hardware read") == 1
        (n.dir / "later").rename(rdma)
        wait_log(n, r"hardware read .*cards=5")
        wait_log(n, r"slices published .*devices=[1-9]")


def test_unreadable_for_a_moment():
    """What a failed read does not show stays published, and nothing of the node's own is handed out."""
    with FakeAPI() as api, Node(api, start=False) as n:
        api.create("/api/v1/nodes", {"metadata": {"name": NODE}})
        n.start()
        wait_log(n, r"slices published")
        published = device_names(api)
        for name in ("sys/class/net", "sys/class/infiniband", "sys/bus/pci/devices", "twinrail/routes"):
            path = n.root / name
            hidden = path.rename(path.with_name(path.name + ".hidden"))
            path.symlink_to(path.name)  # ELOOP
            rescan(n)
            assert device_names(api) == published, name
            path.unlink()
            hidden.rename(path)
            rescan(n)
        assert n.log_text().count("cannot be read in full") == 4, n.log_text()
        assert device_names(api) == published


def test_default_route_lost():
    """The node's own NIC stays its own while there is no default route."""
    with FakeAPI() as api, Node(api, start=False) as n:
        api.create("/api/v1/nodes", {"metadata": {"name": NODE}})
        n.start()
        wait_log(n, r"slices published")
        published = device_names(api)
        (n.root / "twinrail" / "routes").write_text("")
        rescan(n)
        assert device_names(api) == published
        assert "used by the node itself" in n.refuse(make_claim(api, "c", [("nic", OWN)]))


def test_default_route_comes_later():
    """Until one is there, only what is there for rails is handed out."""
    with FakeAPI() as api, Node(api, start=False) as n:
        api.create("/api/v1/nodes", {"metadata": {"name": NODE}})
        routes = n.root / "twinrail" / "routes"
        text = routes.read_text()
        routes.write_text("")
        n.start()
        wait_log(n, r"warn .*own-nic-unknown.*no default route")
        wait_log(n, r"slices published")
        before = device_names(api)
        assert "card-0000-03-00" in before and not any("0016-01-00" in d for d in before), before
        claim = make_claim(api, "c", [("nic", OWN)])
        assert "no default route" in n.refuse(claim)
        routes.write_text(text)
        rescan(n)
        assert set(device_names(api)) >= set(before) and OWN not in device_names(api)
        assert "used by the node itself" in n.refuse(claim)


def test_half_a_card():
    """A PF drops off the bus: the other one is not handed out; other cards keep their rails."""
    with FakeAPI() as api, Node(api, start=False) as n:
        api.create("/api/v1/nodes", {"metadata": {"name": NODE}})
        n.start()
        wait_log(n, r"slices published")
        before = devices(api)
        (n.root / "sys/bus/pci/devices/0000:03:00.1").unlink()
        rescan(n)
        after = devices(api)
        assert before.pop("card-0000-03-00") and after == before, after
        assert after["card-0002-03-00"]["attributes"]["railGroup"], after
        wait_log(n, r"warn .*card-incomplete")
        assert "half pair" in n.refuse(make_claim(api, "c", [("nic", "nic-0000-03-00-0")]))
        allow = [nic_config(halfPairPolicy="Allow")]
        n.prepare(make_claim(api, "d", [("nic", "nic-0000-03-00-0")], config=allow))


def test_socket_lost_for_good():
    """Ends in order, for the DaemonSet to start it again."""
    with FakeAPI() as api, Node(api) as n:
        shutil.rmtree(n.registry)
        assert n.process.wait(40) == 1, n.log_text()
        assert "exiting so that the pod is started again" in n.log_text()
        assert not n.socket.exists()


def test_wrong_token():
    with FakeAPI(token="right") as api, Node(api, start=False) as n:
        api.kubeconfig(str(n.dir / "kubeconfig"), token="wrong")
        n.start()
        wait_log(n, r"error .*resourceslices.*(401|Unauthorized)")
        # kubelet is served all the same
        assert "Unauthorized" in n.refuse(make_claim(api, "c", [("nic", "card-0000-03-00")]))
        api.kubeconfig(str(n.dir / "kubeconfig"))


def test_api_server_away_at_start():
    with FakeAPI() as api, Node(api, start=False) as n:
        (n.dir / "kubeconfig").write_text(
            (n.dir / "kubeconfig").read_text().replace(str(api.port), "1")
        )
        n.start()
        wait_log(n, r"warn .*slices cannot be watched")
        assert n.process.poll() is None


if __name__ == "__main__":
    require("protoc")
    run_tests(globals())
