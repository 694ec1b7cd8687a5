#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Recorded machines: a recording is the machine, and an anonymised one is too, without what identifies it."""

import collections
import contextlib
import functools
import ipaddress
import itertools
import json
import os
import pathlib
import re
import signal
import stat
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
# pylint: disable=wrong-import-position
from kubelet import TOP, TWINRAIL, run_tests

MACHINES = sorted((TOP / "tests/fixtures").glob("*.machine"))
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # thousands of small files
KEPT = tempfile.TemporaryDirectory(prefix="twr-", dir=MEMORY)  # pylint: disable=consider-using-with
KEYS = {"uuid", "gid", "nvlinkDomain"}  # of "topo -o json": what anonymising may change
LINE = re.compile(r"(?P<path>\S+?)(?P<slash>/?)(?: (?P<op>=|->|:|!)(?: (?P<value>.*))?)?")
UUID = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", re.I)
SCOPES = list(map(ipaddress.ip_network, [
    "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16", "224.0.0.0/4",
    "2000::/3", "fc00::/8", "fd00::/8", "fe80::/10", "ff00::/8",
]))  # fmt: skip
IP = re.compile(r"(?<![\w.:])(?:\d+(?:\.\d+){3}|[0-9a-f]*:[0-9a-f:.]*:[0-9a-f.]*)(?![\w.:])")
MAC = re.compile(r"(?<![0-9a-f:])(?:[0-9a-f]{2}:){5}[0-9a-f]{2}(?![0-9a-f:])", re.I)


def twinrail(*args, code=0, **more):
    env = {k: v for k, v in os.environ.items() if not k.startswith("TWINRAIL_")} | more
    done = subprocess.run(
        [TWINRAIL, *map(str, args)], capture_output=True, text=True, timeout=120, env=env, check=False
    )
    assert done.returncode == code, done
    return done.stderr if code else done.stdout


@contextlib.contextmanager
def folder():
    with tempfile.TemporaryDirectory(prefix="twr-", dir=MEMORY) as d:
        yield pathlib.Path(d)


def unpack(recording, d, name):
    """The text of a recording as a new directory."""
    (d / f"{name}.machine").write_text(recording, encoding="utf-8")
    twinrail("snapshot", "--unpack", d / f"{name}.machine", d / name)
    return d / name


def topo(root):
    return json.loads(twinrail("topo", "--root", root, "--node-name", "n", "-o", "json"))


def slices(root):
    return twinrail("slices", "--root", root, "--node-name", "n", "--publish", "card,nic,pf,gpu", "--gpu", "own")


def parse(recording):
    """(path, operator, value) of each line."""
    lines = [line for line in recording.splitlines() if line and not line.startswith("#")]
    return [(m["path"], m["op"], m["value"] or "") for m in map(LINE.fullmatch, lines)]


@functools.cache
def fixtures():
    """A folder; (name, text of the fixture, root, raw recording, anonymised recording) of each."""
    d = pathlib.Path(KEPT.name)
    found = []
    for file in MACHINES:
        text = file.read_text(encoding="utf-8")
        root = unpack(text, d, file.stem)
        raw = twinrail("snapshot", "--raw", "--root", root, "-")
        found.append((file.stem, text, root, raw, twinrail("snapshot", "--root", root, "-")))
    return d, found


def same_but_for_values(name, path, a, b, forth, back):
    """Equal, but for values of KEYS, which are replaced one by one."""
    assert type(a) is type(b), (name, path)
    if isinstance(a, dict):
        assert list(a) == list(b), (name, path)
        for key in a:
            same_but_for_values(name, f"{path}.{key}", a[key], b[key], forth, back)
    elif isinstance(a, list):
        assert len(a) == len(b), (name, path)
        for i, (x, y) in enumerate(zip(a, b)):
            same_but_for_values(name, f"{path}[{i}]", x, y, forth, back)
    elif path.endswith(".message"):
        x, y = IP.findall(a), IP.findall(b)
        assert IP.sub("*", a) == IP.sub("*", b) and len(x) == len(y), (name, path, a, b)
        assert all(forth.setdefault(i, k) == k for i, k in zip(x, y)), (name, path, a, b)
    elif path.rsplit(".", 1)[-1] in KEYS:
        assert forth.setdefault(a, b) == b and back.setdefault(b, a) == a, (name, path, a, b)
    else:
        assert a == b, (name, path, a, b)


def test_raw_recording_is_the_machine():
    d, found = fixtures()
    for name, _, root, raw, _ in found:
        copy = unpack(raw, d, f"{name}.raw")
        assert topo(copy) == topo(root), name
        assert slices(copy) == slices(root), name
        assert twinrail("snapshot", "--raw", "--root", copy, "-") == raw, name


def test_anonymised_recording_has_the_topology():
    d, found = fixtures()
    for name, _, root, _, anonymous in found:
        copy = unpack(anonymous, d, f"{name}.anonymous")
        same_but_for_values(name, "", topo(root), topo(copy), {}, {})
        again = twinrail("snapshot", "--raw", "--root", copy, "-")
        assert parse(again) == parse(anonymous), name


def eui64(mac):
    b = bytes.fromhex(mac.replace(":", ""))
    return bytes([b[0] ^ 2]) + b[1:3] + b"\xff\xfe" + b[3:]


def spellings(data):
    """Bytes as people and kernels write them."""
    groups = [data[i : i + 2].hex() for i in range(0, len(data), 2)]
    yield from (data.hex(), data[::-1].hex(), data.hex(":"), data.hex("-"), ":".join(groups))
    yield ":".join(f"{int(g, 16):x}" for g in groups)


def vpd_values(hexed):
    """Serial number and V3 of vital product data."""
    data, at = bytes.fromhex(hexed), 0
    while at + 3 <= len(data) and data[at] & 0x80:
        n = int.from_bytes(data[at + 1 : at + 3], "little")
        area, at = data[at + 3 : at + 3 + n], at + 3 + n
        while data[at - n - 3] == 0x90 and len(area) >= 3:
            if area[:2] in (b"SN", b"V3"):
                yield area[3 : 3 + area[2]].decode("latin-1").rstrip()
            area = area[3 + area[2] :]


def addresses(text):
    for word in re.split(r"[\s/]|\\n|\\t", text):
        with contextlib.suppress(ValueError):
            yield ipaddress.ip_address(word)


def secret_addresses(text):
    """Not a network like 10.128.0.0/9: of two there may be, each would be seen often."""
    for word in re.split(r"\s|\\n|\\t", text):
        with contextlib.suppress(ValueError):
            address, network = ipaddress.ip_interface(word).ip, ipaddress.ip_network(word, strict=False)
            if address.is_loopback or address.is_unspecified or address.is_multicast:
                continue
            bits = network.prefixlen if address == network.network_address else address.max_prefixlen
            if bits - max((n.prefixlen for n in SCOPES if address in n), default=0) >= 12:
                yield address


def secret_bytes(text):
    """MAC addresses, GUIDs and the interface parts of GIDs in a recording."""
    for path, op, value in parse(text):
        last = path.rsplit("/", 1)[-1]
        if op != "=":
            continue
        for mac in MAC.findall(value):
            data = bytes.fromhex(mac.replace(":", ""))
            yield from (data, eui64(mac), data[:3] + b"\x03\x00" + data[3:])
        if last in ("node_guid", "sys_image_guid"):
            yield bytes.fromhex(value.replace(":", ""))
        if "/gids/" in path:
            gid = ipaddress.ip_address(value)
            if not gid.ipv4_mapped:
                yield gid.packed[8:]


def secrets(text):
    """Texts that an anonymised recording of this machine must not have anywhere."""
    for data in secret_bytes(text):
        # Small numbers are everywhere.
        if len(set(data)) > 2:
            yield from spellings(data)
    for path, op, value in parse(text):
        last = path.rsplit("/", 1)[-1]
        for uuid in UUID.findall(f"{path} {value}"):
            yield from (uuid, uuid.replace("-", ""))
        if last == "vpd" and op == ":":
            for serial in vpd_values(value):
                yield from (serial, serial.encode().hex())
        if last in ("serial_number", "unique_id", "phys_switch_id", "hostname", "product_serial") and op == "=":
            yield value
        if path.startswith("twinrail/"):
            for address in secret_addresses(value):
                yield str(address)
                yield address.exploded


def has(text, secret):
    """A number may go on: 10.0.0.1 is not in 10.0.0.12, nor fe80::1 in fe80::1a2b."""
    if secret not in text:
        return False
    edge = r"(?!)"
    if re.fullmatch(r"[0-9.]+", secret):
        edge = r"[0-9a-f.]"
    elif "::" in secret:
        edge = r"[0-9a-f:]"
    return re.search(f"(?<!{edge}){re.escape(secret)}(?!{edge})", text) is not None


def test_no_secret_is_left():
    """By chance a private address may become another one that was there: not in each of four recordings."""
    _, found = fixtures()
    for name, text, root, raw, anonymous in found:
        wanted = {s.lower() for s in secrets(text + raw) if len(s) > 3 and s.strip("0:-")}
        assert wanted, name
        left = {s for s in wanted if has(anonymous.lower(), s)}
        for _ in range(3):
            if left:
                other = twinrail("snapshot", "--root", root, "-").lower()
                left = {s for s in left if has(other, s)}
        assert not left, (name, sorted(left))
        # The search finds what is there.
        assert any(has(raw.lower(), s) for s in wanted), name


def by_value(lines):
    """Where equal values are: [[line, …], …]"""
    places = collections.defaultdict(list)
    for i, value in lines:
        places[value].append(i)
    return sorted(places.values())


def relations(recording):
    """What must be true of a machine before and after: equal things, and what was made from what."""
    # The order of VMBus devices depends on their UUIDs, which are replaced.
    lines = list(enumerate(sorted(parse(recording), key=lambda line: UUID.sub("*", line[0]))))
    found = {}
    for last in ("address", "node_guid", "sys_image_guid", "phys_switch_id", "unique_id"):
        found[last] = by_value((i, v) for i, (p, op, v) in lines if op == "=" and p.endswith(f"/{last}"))
    found["vpd"] = by_value(
        (f"{i} {k}", s) for i, (p, op, v) in lines if p.endswith("/vpd") and op == ":"
        for k, s in enumerate(vpd_values(v))
    )  # fmt: skip
    macs = [(i, v) for i, (p, op, v) in lines if op == "=" and MAC.fullmatch(v)]
    gids = [(i, ipaddress.ip_address(v)) for i, (p, op, v) in lines if "/gids/" in p and op == "="]
    guids = [(i, bytes.fromhex(v.replace(":", ""))) for i, (p, op, v) in lines if op == "=" and p.endswith("_guid")]
    ids = [(i, v) for i, (p, op, v) in lines if op == "=" and p.endswith("/phys_switch_id")]
    found["gid of mac"] = [(i, k) for i, m in macs for k, g in gids if g.packed[8:] == eui64(m)]
    found["gid of guid"] = [(i, k) for i, guid in guids for k, g in gids if g.packed[8:] == guid]
    found["guid of mac"] = [
        (i, k) for i, m in macs for k, guid in guids
        if bytes.fromhex(m.replace(":", "")) == guid[:3] + guid[5:] or eui64(m) == guid
    ]  # fmt: skip
    found["switch of guid"] = [(i, k) for i, g in guids for k, s in ids if s in (g.hex(), g[::-1].hex())]
    # Each with where it stands among its like, so that equal addresses are compared too.
    texts = {p: v for _, (p, op, v) in lines if p.startswith("twinrail/") and op == "="}
    hosts = [a for p, v in texts.items() for a in addresses(re.sub(r"[0-9a-f.:]+/\d+", "", v) if "routes" in p else v)]
    hosts += [g.ipv4_mapped or g for _, g in gids]
    nets = [
        ipaddress.ip_network(word, strict=False)
        for word in re.split(r"\s|\\n", texts.get("twinrail/routes", "")) if "/" in word
    ]  # fmt: skip
    found["in network"] = [(i, k) for i, n in enumerate(nets) for k, a in enumerate(hosts) if a in n]
    found["networks"] = [(n.version, n.prefixlen) for n in nets]
    found["equal hosts"] = [(i, k) for (i, a), (k, b) in itertools.combinations(enumerate(hosts), 2) if a == b]
    found["scope"] = [[n for n in SCOPES if a in n] for a in hosts]
    return found


def test_relations_survive():
    seen = collections.Counter()
    _, found = fixtures()
    for name, _, _, raw, anonymous in found:
        before, after = relations(raw), relations(anonymous)
        for what, value in before.items():
            assert after[what] == value, (name, what)
            seen[what] += len(value)
    for what, n in seen.items():
        assert n or what in ("unique_id", "gid of guid", "switch of guid"), f"no fixture has {what}"


def test_default_routes_stay():
    _, found = fixtures()
    for name, _, _, raw, anonymous in found:
        words = [
            re.findall(r"(?:^|\\n)(?:-6 )?default.*?(?:\\n|$)", v)
            for text in (raw, anonymous) for p, _, v in parse(text) if p == "twinrail/routes"
        ]  # fmt: skip
        assert len(words) in (0, 2), name
        if words:
            plain = [[re.sub(r"via \S+", "via", w) for w in x] for x in words]
            assert plain[0] == plain[1], name


def test_without_rights():
    """What another user than root gets says that it is not all."""
    if os.geteuid() != 0:
        return  # the other tests have shown it
    fd = os.open(TWINRAIL, os.O_RDONLY)
    try:
        done = subprocess.run(
            [f"/proc/self/fd/{fd}", "snapshot", "-"], pass_fds=[fd], user=65534, group=65534,
            extra_groups=[], capture_output=True, text=True, check=False, cwd="/", env={},
        )  # fmt: skip
    finally:
        os.close(fd)
    assert done.returncode == 0 and done.stdout.startswith("# Machine recorded"), done
    assert "run as root" in done.stderr, done.stderr


def test_file():
    with folder() as d:
        root = unpack("sys/a = 1\nproc/sys/kernel/osrelease = 6.1.0-test\n", d, "root")
        assert twinrail("snapshot", "--root", root, d / "m") == ""
        text = (d / "m").read_text(encoding="utf-8")
        assert stat.S_IMODE((d / "m").stat().st_mode) == 0o600
        assert text.startswith("# Machine recorded by twinrail ") and "\n# Anonymised: " in text
        assert "\n# Kernel: 6.1.0-test\n" in text
        assert os.uname().nodename not in text
        raw = twinrail("snapshot", "--raw", "--root", root, "-")
        assert "\n# Raw: " in raw and "# Host" not in raw and "# Date" not in raw
        assert sorted(p.name for p in d.iterdir()) == ["m", "root", "root.machine"]


def test_no_plain_file():
    """What is no plain file is written to and stays: root's recording must replace no device."""
    with folder() as d:
        (d / "sys").mkdir()
        os.mkfifo(d / "fifo")
        (d / "link").symlink_to("fifo")
        (d / "full").symlink_to("/dev/full")
        pipe = os.open(d / "fifo", os.O_RDWR | os.O_NONBLOCK)
        for name in ("fifo", "link"):
            assert twinrail("snapshot", "--root", d, d / name) == ""
            assert stat.S_ISFIFO((d / name).stat().st_mode)
            assert os.read(pipe, 1 << 16).startswith(b"# Machine recorded by twinrail ")
        os.close(pipe)
        error = twinrail("snapshot", "--root", d, d / "full", code=2)
        assert "No space left on device" in error and (d / "full").is_symlink(), error
        assert "Is a directory" in twinrail("snapshot", "--root", d, d, code=2)


def test_file_as_root():
    """The commands that show or record a machine take its recording, too; nothing of it stays behind."""
    gb300, tmp = TOP / "tests/fixtures/gb300.machine", {}
    with folder() as d:
        root = unpack(gb300.read_text(encoding="utf-8"), d, "root")
        (d / "tmp").mkdir()
        tmp["TMPDIR"] = str(d / "tmp")
        for command in (
            ["topo", "-o", "json"],
            ["slices", "--node-name", "n"],
            ["explain", "GPU1", "gpu0rdma0"],
            ["snapshot", "--raw", "-"],
        ):
            assert twinrail(*command, "--root", gb300, **tmp) == twinrail(*command, "--root", root)
        (d / "bad").write_text("sys/a = 1\nsys/b ? 2\n")
        for command in (["topo"], ["snapshot", "-"]):
            error = twinrail(*command, "--root", d / "bad", code=2, **tmp)
            assert f"{d / 'bad'} line 2: " in error, error
        anonymous = twinrail("snapshot", "--root", gb300, "-", **tmp)
        assert "\n# Anonymised: " in anonymous and "# Host" not in anonymous
        assert not list((d / "tmp").iterdir())
        error = twinrail("topo", "--root", gb300, code=2, TMPDIR=str(d / "none"))
        assert str(d / "none") in error and "TMPDIR" in error, error


def test_interrupted():
    """A signal while a recording is unpacked ends the command, and nothing stays behind."""
    with folder() as d:
        (d / "tmp").mkdir()
        (d / "m").write_text("".join(f"sys/{i}/a = 1\n" for i in range(5000)), encoding="utf-8")
        for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGPIPE"):
            command = [TWINRAIL, "topo", "--root", d / "m"]
            with subprocess.Popen(
                command, env=os.environ | {"TMPDIR": str(d / "tmp")}, stdout=subprocess.DEVNULL
            ) as process:
                while not list((d / "tmp").iterdir()):
                    assert process.poll() is None, (name, process.returncode)
                process.send_signal(getattr(signal, name))
                assert process.wait(60) == -getattr(signal, name), (name, process.returncode)
            assert not list((d / "tmp").iterdir()), name


def test_live():
    """The machine that runs the test; whatever it has, its recording has the same."""
    with folder() as d:
        raw = twinrail("snapshot", "--raw", "-")
        assert f"\n# Host: {os.uname().nodename}\n" in raw and "\n# Date: 20" in raw
        copy = unpack(raw, d, "copy")
        assert topo(copy) == topo("/")
        anonymous = twinrail("snapshot", "-")
        same_but_for_values("live", "", topo("/"), topo(unpack(anonymous, d, "anonymous")), {}, {})
        for mac in {m for m in MAC.findall(raw) if m.replace(":", "").strip("0")}:
            assert mac not in anonymous and mac.replace(":", "") not in anonymous, mac


def test_no_machine():
    """A mistyped --root is told from a machine that has nothing."""
    with folder() as d:
        commands = (["topo"], ["slices", "--node-name", "n"], ["explain", "GPU0", "NIC0"], ["snapshot", d / "m"])
        for command in commands:
            error = twinrail(*command, "--root", d, code=2)
            assert f"{d} has no sys/" in error and "--root must name a directory with sys/" in error, error
        assert not list(d.iterdir())
        (d / "sys").mkdir()
        assert "0 GPUs, 0 NICs" in twinrail("topo", "--root", d)
        assert json.loads(slices(d))["items"]
        assert "no GPU 'GPU0'" in twinrail("explain", "GPU0", "NIC0", "--root", d, code=2)
        assert twinrail("snapshot", "--root", d, "-").startswith("# Machine recorded by twinrail ")


def test_refused():
    with folder() as d:
        (d / "sys").mkdir()
        assert "--root must name a directory" in twinrail("snapshot", "--root", d / "none", d / "m", code=2)
        error = twinrail("snapshot", "--root", d, d / "none" / "m", code=2)
        assert str(d / "none") in error and "No such file" in error, error
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run(
                [TWINRAIL, "snapshot", "--root", str(d), "-"], stdout=full, stderr=subprocess.PIPE, text=True, check=False
            )
        assert done.returncode == 2 and "cannot write to standard output" in done.stderr, done


def test_limit():
    """Hard links of one file: 1,100 functions with 32 KiB of vital product data each."""
    with folder() as d:
        root, block = d / "root", d / "block"
        block.write_bytes(os.urandom(32 * 1024))
        (root / "sys/bus/pci/devices").mkdir(parents=True)
        for i in range(1100):
            bus_id = f"{i // 256:04x}:{i % 256:02x}:00.0"
            function = root / f"sys/devices/pci{i // 256:04x}:00/{bus_id}"
            function.mkdir(parents=True)
            for name, value in (("class", "0x020000"), ("vendor", "0x15b3"), ("device", "0x1021")):
                (function / name).write_text(value + "\n")
            (function / "vpd").hardlink_to(block)
            (root / f"sys/bus/pci/devices/{bus_id}").symlink_to(f"../../../devices/pci{i // 256:04x}:00/{bus_id}")
        error = twinrail("snapshot", "--root", root, d / "m", code=2)
        assert "longer than 64 MiB" in error, error
        assert not (d / "m").exists()


if __name__ == "__main__":
    run_tests(dict(globals()))
