# SPDX-License-Identifier: Apache-2.0
"""A virtual machine with real PCIe switches, and the agent in it.

    with Guest(folder) as guest:
        guest.run("ip link")                        # output; AssertionError when it fails
        guest.qmp("device_del", id="a5")            # what QMP answers
        guest.wait_for("no link", lambda: "nica5" not in guest.run("ls /sys/class/net"))

The machine, with the PCI addresses that its kernel gives:

    pci0000:00            uplink (virtio, the node's own link), the ports to this program
    pci0000:20  NUMA 0    root port - switch: gpu 23:00.0, nica0 (igb), nica1, slot "da5" (empty),
                                              switch: nica2
                          root port: nica3
    pci0000:60  NUMA 0    root port: nicd0
    pci0000:80  NUMA 1    root port - switch: gpu, nicb0
    pci0000:c0  unknown   root port: nicc0

GPUs are bochs-display functions in disguise (functions: disguise), NICs e1000e with soft-RoCE.
"""

import base64
import contextlib
import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parent.parent
TWINRAIL = os.environ.get("TWINRAIL", str(TOP / "build" / "twinrail"))
BOOT_SECONDS = 90
SKIP = 77


class Skip(Exception):
    """Cannot run on this machine."""


def _nic(name, bus, driver="e1000e", **more):
    """A NIC of its own network: no frame of it goes anywhere, and its carrier can be taken."""
    where, number = name
    mac = f"52:54:00:00:0{where}:0{number}"
    options = "".join(f",{k.replace('_', '-')}={v}" for k, v in more.items())
    hub = 16 * (ord(where) - ord("a")) + int(number) + 1
    return ["-netdev", f"hubport,hubid={hub},id=h{name}",
            "-device", f"{driver},id={name},bus={bus},mac={mac},netdev=h{name},romfile={options}"]


def _root_port(name, bus, slot, addr):
    return ["-device", f"pcie-root-port,id={name},bus={bus},chassis={slot},slot=0,addr={addr}"]


def _switch(name, bus, chassis, ports):
    """An upstream port "uNAME" and downstream ports "dNAME0"..."""
    args = ["-device", f"x3130-upstream,id=u{name},bus={bus}"]
    for i in range(ports):
        args += ["-device", f"xio3130-downstream,id=d{name}{i},bus=u{name},"
                            f"chassis={chassis},slot={i}"]
    return args


def topology(sriov):
    args = []
    for node, cpus in ((0, "0-1"), (1, "2-3")):
        args += ["-object", f"memory-backend-ram,id=m{node},size=512M",
                 "-numa", f"node,nodeid={node},cpus={cpus},memdev=m{node}"]
    args += ["-numa", "dist,src=0,dst=1,val=21"]
    for name, bus, slot, numa in (("A", 0x20, 4, 0), ("D", 0x60, 5, 0), ("B", 0x80, 6, 1),
                                  ("C", 0xC0, 7, None)):
        where = "" if numa is None else f",numa_node={numa}"
        args += ["-device", f"pxb-pcie,id={name},bus_nr={bus},bus=pcie.0,addr={slot:#x}{where}"]
    args += _root_port("rA0", "A", 1, 0) + _switch("a", "rA0", 2, 5)
    args += ["-device", "bochs-display,id=gpu0,bus=da0"]
    args += _nic("a0", "da1", "igb" if sriov else "e1000e") + _nic("a1", "da2")
    args += _switch("n", "da3", 3, 1) + _nic("a2", "dn0")
    args += _root_port("rA1", "A", 4, 1) + _nic("a3", "rA1")
    args += _root_port("rD0", "D", 5, 0) + _nic("d0", "rD0")
    args += _root_port("rB0", "B", 6, 0) + _switch("b", "rB0", 7, 2)
    args += ["-device", "bochs-display,id=gpu1,bus=db0"] + _nic("b0", "db1")
    args += _root_port("rC0", "C", 8, 0) + _nic("c0", "rC0")
    args += ["-netdev", "hubport,hubid=200,id=ha5"]
    return args


class Guest:
    def __init__(self, folder):
        self.dir = pathlib.Path(folder)
        self.process = None
        self.boot_seconds = 0.0
        self._next_id = 0
        self._buffer = b""
        self._ctl = self._qmp = None
        self._qmp_buffer = b""
        self.qmp_events = []
        self._prepare()

    def _prepare(self):
        done = subprocess.run([HERE / "prepare", self.dir, TWINRAIL], stdout=subprocess.PIPE,
                              text=True, check=False)
        last = (done.stdout.strip().splitlines() or [""])[-1]
        if done.returncode == SKIP:
            raise Skip(last.removeprefix("skipped: "))
        assert done.returncode == 0, f"tests/qemu/prepare: exit status {done.returncode}"
        made = dict(line.split(" ", 1) for line in done.stdout.splitlines())
        self.qemu, self.kernel, self.initrd = made["QEMU"], made["KERNEL"], made["INITRD"]
        version = subprocess.run([self.qemu, "--version"], stdout=subprocess.PIPE, text=True,
                                 check=True).stdout
        self.version = re.search(r"version (\S+)", version)[1]
        self.modern = int(self.version.split(".")[0]) >= 10  # has igb

    def _command(self):
        # QEMU 10 with several threads ends in an assertion now and then; 7.2 is fine.
        accel = os.environ.get("TWINRAIL_QEMU_ACCEL") or (
            "tcg,thread=single" if self.modern else "tcg,thread=multi")
        root = pathlib.Path(self.qemu).parent.parent
        command = [self.qemu]
        for place in ("share/qemu", "share/seabios"):
            command += ["-L", str(root / place)]
        command += ["-M", "q35", "-accel", accel, "-cpu", "max", "-smp", "4,sockets=2", "-m", "1G"]
        command += ["-nodefaults", "-no-user-config", "-nographic", "-no-reboot"]
        command += ["-kernel", self.kernel, "-initrd", self.initrd, "-append",
                    "console=ttyS0 quiet loglevel=4 panic=-1 random.trust_cpu=on"]
        command += ["-serial", f"file:{self.dir / 'console.log'}"]
        for name in ("ctl", "qmp"):
            path = self.dir / f"{name}.sock"
            path.unlink(missing_ok=True)
            command += ["-chardev", f"socket,id={name},path={path},server=on,wait=off"]
        command += ["-mon", "chardev=qmp,mode=control"]
        command += ["-device", "virtio-serial-pci,bus=pcie.0,addr=0x1c",
                    "-device", "virtserialport,chardev=ctl,name=ctl"]
        command += ["-netdev", "user,id=uplink,ipv6=off", "-device",
                    "virtio-net-pci,netdev=uplink,bus=pcie.0,addr=0x1d,mac=52:54:00:00:00:01,"
                    "romfile="]
        return command + topology(self.modern)

    # -- life ---------------------------------------------------------------------------------

    def start(self):
        """Boot, with one more try: emulation of a whole machine fails now and then."""
        try:
            return self._boot()
        except (AssertionError, OSError) as error:
            print(f"the guest did not boot ({error}), once more", flush=True)
            self.stop()
            return self._boot()

    def _boot(self):
        start = time.monotonic()
        modules = pathlib.Path(self.qemu).parent.parent / "lib/x86_64-linux-gnu/qemu"
        with open(self.dir / "qemu.log", "ab") as log:
            # pylint: disable-next=consider-using-with
            self.process = subprocess.Popen(
                self._command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env={**os.environ, "QEMU_MODULE_DIR": str(modules)})
        self._ctl = self._connect("ctl")
        self._qmp = self._connect("qmp")
        self._qmp_buffer = self._buffer = b""
        self._qmp_line(10)  # the greeting
        self.qmp("qmp_capabilities")
        line = self._line(start + BOOT_SECONDS)
        assert line == b"ready", line
        self.boot_seconds = time.monotonic() - start
        return self

    def _connect(self, name):
        end = time.monotonic() + 10
        while True:
            with contextlib.suppress(FileNotFoundError, ConnectionRefusedError):
                s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                s.connect(str(self.dir / f"{name}.sock"))
                return s
            assert self.process.poll() is None, "QEMU ended: " + self.log_tail("qemu.log")
            assert time.monotonic() < end, f"QEMU does not open {name}.sock"
            time.sleep(0.05)

    def stop(self):
        for s in (self._ctl, self._qmp):
            if s:
                s.close()
        self._ctl = self._qmp = None
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process = None

    def __enter__(self):
        try:
            return self.start()
        except BaseException:
            self.stop()
            raise

    def __exit__(self, *exc):
        self.stop()

    def log_tail(self, name):
        path = self.dir / name
        return path.read_text(errors="replace")[-3000:] if path.exists() else ""

    # -- the two channels ---------------------------------------------------------------------

    def _receive(self, sock, end):
        left = end - time.monotonic()
        assert left > 0, "no answer from the guest in time"
        sock.settimeout(left)
        try:
            data = sock.recv(1 << 16)
        except TimeoutError:
            raise AssertionError("no answer from the guest in time") from None
        assert data, "QEMU ended: " + self.log_tail("qemu.log") + self.log_tail("console.log")
        return data

    def _line(self, end):
        while b"\n" not in self._buffer:
            self._buffer += self._receive(self._ctl, end)
        line, self._buffer = self._buffer.split(b"\n", 1)
        return line

    def call(self, script, seconds=30):
        """Run a bash script in the guest: (exit status, its output)."""
        self._next_id += 1
        request = base64.b64encode(script.encode()).decode()
        end = time.monotonic() + seconds + 10
        self._ctl.sendall(f"{self._next_id} {seconds} {request}\n".encode())
        number, status, size = (int(word) for word in self._line(end).split())
        assert number == self._next_id, "an answer to another request"
        while len(self._buffer) < size:
            self._buffer += self._receive(self._ctl, end)
        output, self._buffer = self._buffer[:size], self._buffer[size:]
        return status, output.decode(errors="replace")

    def run(self, script, seconds=30):
        """The output of a script; every command in it must succeed."""
        status, output = self.call("set -eo pipefail\n" + script, seconds)
        assert status == 0, f"in the guest: exit status {status}: {script}\n{output}"
        return output

    def _qmp_line(self, seconds):
        end = time.monotonic() + seconds
        while b"\n" not in self._qmp_buffer:
            self._qmp_buffer += self._receive(self._qmp, end)
        line, self._qmp_buffer = self._qmp_buffer.split(b"\n", 1)
        return json.loads(line)

    def qmp(self, command, **arguments):
        request = {"execute": command, "arguments": arguments}
        self._qmp.sendall(json.dumps(request).encode() + b"\n")
        while True:
            answer = self._qmp_line(10)
            if "event" in answer:
                self.qmp_events.append(answer)
                continue
            assert "return" in answer, f"{command}: {answer.get('error')}"
            return answer["return"]

    def wait_for(self, what, condition, seconds=30.0):
        """What the condition gives once that is true."""
        end = time.monotonic() + seconds
        while True:
            result = condition()
            if result:
                return result
            if time.monotonic() > end:
                raise AssertionError(f"{what}: not within {seconds} s")
            time.sleep(0.1)


if __name__ == "__main__":  # boot, run the script of the standard input, show its output
    with Guest(sys.argv[1]) as machine:
        print(f"QEMU {machine.version}, booted in {machine.boot_seconds:.1f} s", file=sys.stderr)
        begin = time.monotonic()
        print(machine.call(sys.stdin.read(), 120)[1])
        print(f"{time.monotonic() - begin:.1f} s", file=sys.stderr)
