#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What the administrator says of a machine: a platform file that changes while the agent runs, NICs that are excluded."""

import os
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
# pylint: disable=wrong-import-position
from fakeapi import FakeAPI
from kubelet import NODE, TWINRAIL, Node, make_claim, run_tests

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


def test_excluded():
    """One PF of a card is excluded: the card is not published, and a claim that has it is refused."""
    with FakeAPI() as api, Node(api, start=False) as n:
        api.create("/api/v1/nodes", {"metadata": {"name": NODE}})
        n.args += ["--nic-exclude", "0002:03:00.1"]
        n.start()
        wait(lambda: attribute(api, "card-0000-03-00", "type") == "card")
        assert attribute(api, "card-0002-03-00", "type") is None
        text = n.refuse(make_claim(api, "c", [("nic", "card-0002-03-00")]))
        assert "nic-0002-03-00-1" in text and "--nic-exclude" in text, text


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
