#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The real agent follows events of the real kernel.

    test_watch.py [NAME...]       TWINRAIL names another binary than build/twinrail

Runs the tests whose names contain one of the NAMEs (default: all); the last line counts them.

The script goes into network and mount namespaces of its own: the links there are veths with the
names of the NICs of a machine whose sys/ is mounted on /sys, so that events, addresses and routes
are the kernel's and the hardware is not.
"""

import contextlib
import ctypes
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
# pylint: disable=wrong-import-position
import test_publish  # noqa: E402
from fakeapi import FakeAPI  # noqa: E402
from test_publish import NODE, SLICES, TWINRAIL, mtu_of, wait_for  # noqa: E402

NICS = 4
LINKS = [f"{name}{i}" for i in range(NICS) for name in ("eth", "peer")] + ["uplink", "far"]
CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWNET = 0x20000, 0x10000000, 0x40000000
MS_BIND, MS_REC, MS_PRIVATE, MNT_DETACH = 0x1000, 0x4000, 1 << 18, 2
libc = ctypes.CDLL(None, use_errno=True)


class Skip(Exception):
    pass


def check(result):
    if result != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def enter():
    """Namespaces of our own; without root's rights in a user namespace. False: not allowed."""
    uid, gid = os.geteuid(), os.getegid()
    if libc.unshare(CLONE_NEWNS | CLONE_NEWNET) != 0:
        if libc.unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET) != 0:
            return False
        pathlib.Path("/proc/self/setgroups").write_text("deny")
        pathlib.Path("/proc/self/uid_map").write_text(f"0 {uid} 1")
        pathlib.Path("/proc/self/gid_map").write_text(f"0 {gid} 1")
    check(libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None))
    return True


def ip(*lines):
    """Commands of "ip", all in one process."""
    subprocess.run(["ip", "-batch", "-"], input="\n".join(lines) + "\n", text=True, check=True)


class Agent(test_publish.Agent):
    """Its root is "/"; sys/ of the machine is mounted there."""

    def __init__(self, api, args=()):
        super().__init__(api, NICS, args, start=False)
        check(libc.mount(bytes(self.root / "sys"), b"/sys", None, MS_BIND, None))
        self.start()

    def start(self):
        self.root = pathlib.Path("/")
        super().start()
        wait_for("a first inventory", lambda: "hardware read" in self.text())

    def __exit__(self, *exc):
        try:
            super().__exit__(*exc)
        finally:
            libc.umount2(b"/sys", MNT_DETACH)

    def changes(self):
        """Log lines of inventories that an event made: as dictionaries."""
        lines = [line for line in self.text().splitlines()
                 if "hardware read" in line and "ms_after_event" in line]
        return [dict(re.findall(r'(\w+)=("[^"]*"|\S+)', line)) for line in lines]

    def looks(self):
        return [line for line in self.text().splitlines() if "looked at the hardware" in line]


@contextlib.contextmanager
def running(*args):
    ip(*[f"link add name eth{i} index {i + 2} address 02:00:00:00:00:{i:02x} "
         f"type veth peer name peer{i} index {i + 102}" for i in range(NICS)],
       "link add name uplink index 90 type veth peer name far",
       # no addresses that come and go by themselves
       *[f"link set {name} addrgenmode none" for name in LINKS],
       *[f"link set {name} up" for name in LINKS],
       "addr add 192.0.2.2/24 dev uplink", "route add default via 192.0.2.1 dev uplink")
    try:
        with FakeAPI() as api:
            api.create("/api/v1/nodes", {"metadata": {"name": NODE}})
            with Agent(api, ["-v", *args]) as agent:
                wait_for("slices", lambda: devices(api))
                time.sleep(0.5)
                yield api, agent
    finally:
        ip(*[f"link del eth{i}" for i in range(NICS)], "link del uplink")


def devices(api):
    return {d["name"]: d for s in api.list(SLICES) for d in s["spec"].get("devices", [])}


def nic(i):
    return f"nic-0000-{i:02x}-02-0"


def mtu(api, i):
    return devices(api)[nic(i)]["attributes"]["dra.net/mtu"]["int"]


def set_mtu(i, value):
    """First what the next reader of sysfs finds, then the kernel's event."""
    mtu_of(pathlib.Path("/"), i).write_text(f"{value}\n")
    ip(f"link set eth{i} mtu {value}")


def test_default_route():
    """A NIC that begins to carry the node's traffic is the node's own at once, and stays so."""
    with running() as (api, agent):
        assert sorted(devices(api)) == [nic(i) for i in range(NICS)]
        ip("addr add 192.0.3.2/24 dev eth1", "addr add fd00::2/64 dev eth2 nodad")
        time.sleep(0.7)
        ip("route add default via 192.0.3.1 dev eth1 metric 50")
        wait_for("eth1 is withdrawn", lambda: nic(1) not in devices(api), 2)
        ip("route add default via fd00::1 dev eth2")
        wait_for("eth2 is withdrawn", lambda: nic(2) not in devices(api), 2)
        ip("route del default via 192.0.3.1 dev eth1")
        time.sleep(0.7)
        assert sorted(devices(api)) == [nic(0), nic(3)]
        changes = agent.changes()
        assert len(changes) >= 2, changes
        assert all(float(c["ms_after_event"]) < 250 for c in changes), changes
        assert [c["cause"] for c in changes[:2]] == ['"default route"'] * 2, changes
        assert changes[0]["parts"] == "ip", changes


def test_node_address():
    """A NIC that gets an address of the node is the node's own, without any route."""
    with running("--node-ip", "192.0.9.9,fd00:9::9") as (api, agent):
        ip("addr add 192.0.9.9/32 dev eth3")
        wait_for("eth3 is withdrawn", lambda: nic(3) not in devices(api), 2)
        ip("addr add fd00:9::9/128 dev eth0 nodad")
        wait_for("eth0 is withdrawn", lambda: nic(0) not in devices(api), 2)
        assert all(float(c["ms_after_event"]) < 250 for c in agent.changes()), agent.changes()


def test_link_facts():
    """What changes on a link is published; the time from the event on is kept."""
    with running() as (api, agent):
        times = []
        for n in range(10):
            start = time.monotonic()
            set_mtu(n % NICS, 2000 + n)
            wait_for("the new MTU", lambda n=n: mtu(api, n % NICS) == 2000 + n, 2)
            times.append(time.monotonic() - start)
            time.sleep(0.6)
        changes = agent.changes()
        assert len(changes) == 10, changes
        after = sorted(float(c["ms_after_event"]) for c in changes)
        assert after[-1] < 250, after
        assert all(c["cause"] == f'"link eth{n % NICS}"' for n, c in enumerate(changes)), changes
        print(f"# from the first event to the new inventory: median {after[5]:.0f} ms, at most "
              f"{after[-1]:.0f} ms; from the command to the slice: at most {max(times) * 1000:.0f} ms")


def test_storm():
    """Events without end neither keep the agent busy nor keep a change from being seen."""
    with running() as (api, agent):
        before, start = len(agent.looks()), time.monotonic()
        while time.monotonic() - start < 5:
            ip(*["link add name pod0 type veth peer name pod1", "link del pod0"] * 5)
        seconds = time.monotonic() - start
        looks = len(agent.looks()) - before
        assert 4 <= looks <= 4 + 2 * seconds + 1, (looks, seconds)
        assert all("parts=net,ip " in line for line in agent.looks()[before:]), agent.text()
        print(f"# {looks} readings in {seconds:.1f} s of a storm")
        stop = time.monotonic() + 4
        set_mtu(3, 4321)
        while mtu(api, 3) != 4321:
            ip(*["link add name pod0 type veth peer name pod1", "link del pod0"] * 5)
            assert time.monotonic() < stop, agent.text()[-3000:]


def test_lost_events():
    """The socket overflows while the agent cannot read: everything is read again."""
    with running() as (api, agent):
        agent.process.send_signal(signal.SIGSTOP)
        try:
            ip(*[f"link set eth3 mtu {1500 + n % 2}" for n in range(12000)])
            mtu_of(pathlib.Path("/"), 0).write_text("3333\n")
        finally:
            agent.process.send_signal(signal.SIGCONT)
        wait_for("the log says it", lambda: "events came faster" in agent.text(), 5)
        wait_for("the new MTU", lambda: mtu(api, 0) == 3333, 3)
        assert any("parts=all " in line for line in agent.looks()[1:]), agent.text()


class Slow:
    """Makes the agent halt in the middle of each reading of the links, at eth0."""

    def __init__(self, folder):
        self.fifo = pathlib.Path(folder) / "fifo"
        shim = pathlib.Path(folder) / "slow_shim.so"
        subprocess.run(["cc", "-O1", "-D_GNU_SOURCE", "-shared", "-fPIC", "-o", str(shim),
                        str(HERE / "slow_shim.c")], check=True)
        self.env = {"LD_PRELOAD": str(shim), "SLOW_PATH": "/net/eth0", "SLOW_FIFO": str(self.fifo)}

    def halted(self, seconds=5):
        """Wait until the agent is there; closing the file lets it go on."""
        end = time.monotonic() + seconds
        while True:
            try:
                return os.fdopen(os.open(self.fifo, os.O_WRONLY | os.O_NONBLOCK), "w")
            except OSError:
                assert time.monotonic() < end, "nobody reads"
                time.sleep(0.005)


def test_overtaken():
    """What events overtake while it is read is not used, unless that does not end."""
    with tempfile.TemporaryDirectory(prefix="twr-") as folder, contextlib.ExitStack() as stack:
        slow = Slow(folder)
        os.environ.update(slow.env)
        for key in slow.env:
            stack.callback(os.environ.pop, key)
        api, agent = stack.enter_context(running())
        os.mkfifo(slow.fifo)
        set_mtu(1, 1111)
        with slow.halted():
            slow.fifo.unlink()  # only once
            set_mtu(2, 2222)
        wait_for("both changes", lambda: (mtu(api, 1), mtu(api, 2)) == (1111, 2222), 2)
        (change,) = agent.changes()
        assert change["cause"] == '"link eth1"' and len(agent.looks()) == 3, agent.text()

        os.mkfifo(slow.fifo)
        stack.callback(slow.fifo.unlink)
        set_mtu(3, 3333)
        end = time.monotonic() + 6
        while mtu(api, 3) != 3333:  # each reading is overtaken
            assert time.monotonic() < end, agent.text()
            with slow.halted():
                ip("link set eth0 mtu 1234", "link set eth0 mtu 1235")
            time.sleep(0.05)


def test_incomplete():
    """What an event finds unreadable is tried again soon; until then what was known stays."""
    with running() as (api, agent):
        before = devices(api)
        net = pathlib.Path("/sys/class/net")
        hidden = net.rename("/sys/class/hidden")
        net.symlink_to("net")  # ELOOP
        set_mtu_path = next(pathlib.Path("/").glob("sys/devices/pci*/*/net/eth0/mtu"))
        set_mtu_path.write_text("5555\n")
        ip("link set eth0 mtu 5555")
        wait_for("the log says it", lambda: "cannot be read in full" in agent.text(), 3)
        time.sleep(0.3)
        assert devices(api) == before
        net.unlink()
        hidden.rename(net)
        wait_for("the new MTU", lambda: mtu(api, 0) == 5555, 10)


def test_uevent():
    """A uevent of a device that matters is followed, one of another is not."""
    real = os.open("/sys", os.O_PATH | os.O_DIRECTORY)
    try:
        def fire(path):
            fd = os.open(path, os.O_WRONLY, dir_fd=real)
            try:
                os.write(fd, b"change")
            finally:
                os.close(fd)

        with running() as (_, agent):
            before = len(agent.looks())
            try:
                fire("devices/virtual/mem/null/uevent")
            except OSError as error:
                raise Skip(f"uevents cannot be made here: {error}") from error
            time.sleep(0.5)
            assert len(agent.looks()) == before, agent.text()
            fire("devices/system/cpu/cpu0/uevent")
            if not pathlib.Path("/proc/self/uid_map").read_text().split()[2] == "4294967295":
                raise Skip("uevents of devices do not come to this user namespace")
            wait_for("a reading", lambda: len(agent.looks()) == before + 1, 2)
            assert "cause=\"uevent change cpu cpu0\" parts=node " in agent.looks()[-1], agent.looks()
    finally:
        os.close(real)


def test_idle():
    """Without events nothing wakes the main thread."""
    with running() as (_, agent):
        def switches():
            status = pathlib.Path(f"/proc/{agent.process.pid}/status").read_text()
            return int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", status, re.M).group(1))

        for _ in range(10):  # what the start has left to do
            before = switches()
            time.sleep(2)
            if switches() == before:
                break
        time.sleep(15)
        assert switches() - before <= 1, f"{switches() - before}: {agent.text()}"


def main():
    if not os.access(TWINRAIL, os.X_OK):
        sys.exit(f"{TWINRAIL} is not there: make")
    if not shutil.which("ip"):
        print("skipped: the program ip (iproute2) is missing: apt-get install iproute2")
        return 77
    if not enter():
        print("skipped: this user may not make network namespaces; run as root")
        return 77
    ip("link set lo up")
    try:
        ip("link add name probe type veth peer name probe1", "link del probe")
    except subprocess.CalledProcessError:
        print("skipped: this kernel has no veth")
        return 77
    tests = [(n, f) for n, f in globals().items() if n.startswith("test_") and callable(f)]
    if sys.argv[1:]:
        tests = [(n, f) for n, f in tests if any(a in n for a in sys.argv[1:])]
    passed = failed = skipped = 0
    for name, function in tests:
        start = time.monotonic()
        try:
            function()
            passed += 1
            print(f"ok {name} ({time.monotonic() - start:.1f} s)", flush=True)
        except Skip as reason:
            skipped += 1
            print(f"skipped {name}: {reason}", flush=True)
        except Exception:  # pylint: disable=broad-except
            failed += 1
            traceback.print_exc()
            print(f"FAILED {name}", flush=True)
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
