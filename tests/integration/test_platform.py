#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What the administrator says of a machine: a platform file that changes while the agent runs, NICs that are excluded."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
# pylint: disable=wrong-import-position
from fakeapi import FakeAPI
from kubelet import NODE, TOP, TWINRAIL, Node, make_claim, run_tests

GOOD = """
platforms:
  - name: gb300
    match:
      gpus: {ids: ["10de:31c2", "10de:31c3"], count: 4}
    hairpin: unsupported
"""
BAD = GOOD + "    colour: red\n"


def wait(what, seconds=15):
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end
        time.sleep(0.05)


def attribute(api, device, name):
    for s in api.list("/apis/resource.k8s.io/v1/resourceslices"):
        for d in s["spec"].get("devices", []):
            if d["name"] == device:
                return d["attributes"].get(name, {}).get("string")
    return None


def test_platform_file():
    """A bad file changes nothing and is told once; a good one is in the slices at SIGHUP, and stays when it goes bad."""
    with FakeAPI() as api, Node(api, start=False) as n:
        api.create("/api/v1/nodes", {"metadata": {"name": NODE}})
        file = n.dir / "platforms.yaml"
        file.write_text(BAD)
        n.args += ["--platform-file", str(file)]
        n.start()
        wait(lambda: attribute(api, "card-0000-03-00", "type") == "card")
        before = attribute(api, "card-0000-03-00", "hairpin")
        assert before != "unsupported"
        error = r"error the platform file is not used .*platforms\.yaml line 7: colour: unknown key"
        assert len(re.findall(error, n.log_text())) == 1, n.log_text()
        assert "code=platform-file" in n.log_text()
        n.process.send_signal(signal.SIGHUP)
        time.sleep(1)
        assert len(re.findall(error, n.log_text())) == 1, n.log_text()
        file.write_text(GOOD)
        n.process.send_signal(signal.SIGHUP)
        wait(lambda: attribute(api, "card-0000-03-00", "hairpin") == "unsupported", 2)
        file.write_text(BAD)
        n.process.send_signal(signal.SIGHUP)
        wait(lambda: len(re.findall(error, n.log_text())) == 2)
        time.sleep(1)
        assert attribute(api, "card-0000-03-00", "hairpin") == "unsupported"


OWN = """
platforms:
  - name: acme
    match:
      dmiVendor: [ACME*, Foo]
      dmiProduct: X9
      gpus: {ids: ["10de:2330", "10de:2331"], count: "5-7"}
      nics: {ids: ["15b3:1021"], count: "12-"}
      functions: ["0001:02:03.0", "0001:02:04.0", "0000:*:00.0"]
      dataDirect: true
      virtual: true
  - name: vendor
    match: {dmiVendor: ["ACME", "Foo"], gpus: {ids: ["10de:2330"]}}
  - name: mine
    match: {gpus: {ids: ["10de:2330"]}}
  - name: later
    match: {gpus: {ids: ["10de:2330"]}}
"""
WHY = {
    "acme": "gpus: the machine has 8 of 10de:2330, the entry wants 5 to 7 of 10de:2330 or 10de:2331 and no others; "
    "virtual is false, the entry wants true; dmiVendor is NVIDIA, the entry wants ACME* or Foo; "
    "dmiProduct is DGXH100, the entry wants X9; "
    "nics: the machine has 10 of 15b3:1021, the entry wants 12 or more of 15b3:1021; "
    "functions: there is no NIC at 0001:02:03.0 nor at 0001:02:04.0; dataDirect is false, the entry wants true",
    "vendor": "dmiVendor is NVIDIA, the entry wants ACME or Foo",
}


def entries_told(machine, *args):
    """{entry: message, or why} of what "topo -v" logs about platform entries."""
    done = subprocess.run(
        [TWINRAIL, "topo", "--root", TOP / f"tests/fixtures/{machine}.machine", "--log-format", "json", *args],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    lines = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
    return {e.get("entry"): e.get("why", e["msg"]) for e in lines if "platform" in e["msg"]}


def test_why_an_entry_is_not_taken():
    """Of each own entry, and without a taken one of those shipped ones for these GPUs: which conditions do not hold."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(OWN)
        file.flush()
        told = entries_told("hgx-h100", "-v", "--platform-file", file.name)
        assert told == WHY | {
            "mine": "platform entry is taken",
            "later": "platform entry matches, but another one comes before it",
        }, told
        assert entries_told("hgx-h100", "--platform-file", file.name) == {}
    assert entries_told("gb300", "-v") == {"gb300": "platform entry is taken"}
    # No H100 PCIe is shipped; with a shipped entry replaced, the others for these GPUs are left.
    assert entries_told("kvm-flat", "-v") == {None: "no shipped platform entry is for the GPUs of this machine"}
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write("platforms:\n")
        for name in "hgx-h100", "azure-nd-h100-v5", "aws-p5":
            file.write(f"  - name: {name}\n    match: {{dmiVendor: X, gpus: {{ids: '10de:2330'}}}}\n")
        file.flush()
        told = entries_told("hgx-h100", "-v", "--platform-file", file.name)
    assert set(told) == {"hgx-h100", "azure-nd-h100-v5", "aws-p5"}, told
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write("platforms:\n  - name: hgx-h100\n    match: {dmiVendor: X, gpus: {ids: '10de:2330'}}\n")
        file.flush()
        told = entries_told("hgx-h100", "-v", "--platform-file", file.name)
    assert told == {
        "hgx-h100": "dmiVendor is NVIDIA, the entry wants X",
        "azure-nd-h100-v5": "dmiVendor is NVIDIA, the entry wants Microsoft Corporation; "
        "nics: the machine has 10 of 15b3:1021, the entry wants 1 or more of 15b3:101e",
        "aws-p5": "dmiVendor is NVIDIA, the entry wants Amazon EC2; "
        "nics: the machine has 10 of 15b3:1021, the entry wants 1 or more of 1d0f:efa?",
    }, told


def test_excluded():
    """One PF of a card is excluded: the card is not published, and a claim that has it is refused."""
    with FakeAPI() as api, Node(api, start=False) as n:
        api.create("/api/v1/nodes", {"metadata": {"name": NODE}})
        n.args += ["--nic-exclude", "0002:03:00.1,eth-mistyped"]
        n.start()
        wait(lambda: attribute(api, "card-0000-03-00", "type") == "card")
        assert attribute(api, "card-0002-03-00", "type") is None
        text = n.refuse(make_claim(api, "c", [("nic", "card-0002-03-00")]))
        assert "nic-0002-03-00-1" in text and "--nic-exclude" in text, text
        n.process.send_signal(signal.SIGHUP)
        time.sleep(1)
        unused = re.findall(r"(\S+) +no NIC of this node fits a pattern (.*)", n.log_text())
        assert unused == [("info", "option=--nic-exclude pattern=eth-mistyped")], unused


def test_unused_patterns():
    """A pattern that fits no NIC is noted, and changes nothing."""
    gb300 = TOP / "tests/fixtures/gb300.machine"
    for command in (["topo"], ["slices", "--node-name", "n"], ["explain", "GPU1", "gpu0rdma0"]):
        plain, done = (
            subprocess.run(
                [TWINRAIL, *command, "--root", gb300, *args], capture_output=True, text=True, timeout=60, check=True
            )
            for args in ([], ["--nic-include", "gpu*,gqu*", "--nic-exclude", "15b3:1019,role=storage"])
        )
        assert plain.stderr == "" and done.returncode == 0, (plain, done)
        assert done.stderr.splitlines() == [
            f'twinrail {command[0]}: {option}: "{pattern}" fits no RDMA NIC of this machine'
            for option, pattern in (
                ("--nic-include", "gqu*"), ("--nic-exclude", "15b3:1019"), ("--nic-exclude", "role=storage"),
            )
        ], done.stderr  # fmt: skip


def test_usage():
    """A pattern that can match nothing ends the agent, with the option and what is allowed."""
    done = subprocess.run(
        [TWINRAIL, "agent", "--node-name", NODE, "--nic-include", "role=rials"],
        capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip
    assert done.returncode == 2, done
    assert '--nic-include: "role=rials" names no role; give' in done.stderr.replace('\\"', '"'), done


if __name__ == "__main__":
    run_tests(globals())
