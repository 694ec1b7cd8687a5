#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""NICs whose links are in pods stay in the slices, also over a restart of the agent."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
# pylint: disable=wrong-import-position
from fakeapi import FakeAPI
from kubelet import NODE, TWINRAIL, Node, make_claim, run_tests

SLICES = "/apis/resource.k8s.io/v1/resourceslices"
WRITES = r"^(POST|PUT|PATCH|DELETE) .*/resourceslices"
CARDS = [f"card-{domain}-03-00" for domain in ("0000", "0002", "0010", "0012")]


@contextlib.contextmanager
def node(start=True, args=()):
    with FakeAPI() as api:
        api.create("/api/v1/nodes", {"metadata": {"name": NODE}})
        with Node(api, start=start, args=args) as n:
            yield api, n


def wait_for(what, condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"{what}: not within {seconds} s"
        time.sleep(0.02)


def specs(api):
    return [s["spec"] for s in api.list(SLICES)]


def names(api):
    return {d["name"] for s in specs(api) for d in s.get("devices", [])}


def topology(n):
    command = [TWINRAIL, "topo", "--root", str(n.root), "-o", "json"]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


def hide(n, rdma=False):
    """What the host sees while the links of all cards are in pods; the names that were hidden."""
    hidden = []
    for nic in topology(n)["nics"]:
        if nic.get("cardId") not in CARDS:
            continue
        links = [f"net/{nic['netdev']}"] + [f"net/{c['netdev']}" for c in nic["children"]]
        links += [f"infiniband/{nic['rdmaDevice']}"] if rdma else []
        for link in links:
            path = n.root / "sys/class" / link
            hidden.append((path, os.readlink(path)))
            path.unlink()
        if not rdma:
            for ndev in n.root.glob(f"sys/class/infiniband/{nic['rdmaDevice']}/ports/1/"
                                    "gid_attrs/ndevs/*"):
                ndev.unlink()
    assert len(hidden) >= 8, hidden
    return hidden


def published(n, times=1):
    wait_for("the slices are as wanted", lambda: n.log_text().count("slices published") >= times)


def look_again(n):
    before = n.log_text().count("SIGHUP")
    n.process.send_signal(signal.SIGHUP)
    wait_for("the agent looks", lambda: n.log_text().count("SIGHUP") > before)
    time.sleep(0.5)


def check_restart(rdma):
    with node() as (api, n):
        published(n)
        before = specs(api)
        claims = [make_claim(api, f"c{i}", [("nic", card)]) for i, card in enumerate(CARDS)]
        answers = n.prepare_all(*claims)
        assert not any(a.error for a in answers.values()), answers
        hide(n, rdma)
        look_again(n)  # and while it runs
        facts = (n.data / "facts.json").read_text()
        assert n.stop() == 0
        n.start()
        published(n, 2)
        look_again(n)
        assert len(api.requests(WRITES)) == 1, api.requests(WRITES)
        assert specs(api) == before
        assert (n.data / "facts.json").read_text() == facts
        assert "nics=8" in n.log_text(), "it says that facts come from before"
        # The same claims again, as after a restart of kubelet: nothing has to be written.
        assert n.prepare_all(*claims) == answers
        # A claim that is over: what is there counts.
        n.unprepare(claims[1])
        look_again(n)
        if rdma:
            wait_for("a card is gone", lambda: CARDS[1] not in names(api))
            assert {CARDS[0], CARDS[2], CARDS[3]} <= names(api)
        else:
            wait_for("its rails are gone", lambda: specs(api) != before)
            devices = {d["name"]: d["attributes"] for s in specs(api) for d in s["devices"]}
            assert "railGroup" in devices[CARDS[0]]
            assert "railGroup" not in devices[CARDS[1]], devices[CARDS[1]]


def test_links_in_pods():
    check_restart(rdma=False)


def test_links_and_rdma_devices_in_pods():
    check_restart(rdma=True)


def test_not_held():
    """Nobody holds them: they are gone."""
    with node() as (api, n):
        published(n)
        assert set(CARDS) <= names(api)
        assert n.stop() == 0
        hide(n, rdma=True)
        n.start()
        wait_for("the cards are gone", lambda: not set(CARDS) & names(api))


def test_back_from_the_pod():
    with node() as (api, n):
        published(n)
        before = specs(api)
        claims = [make_claim(api, f"c{i}", [("nic", card)]) for i, card in enumerate(CARDS)]
        n.prepare_all(*claims)
        hidden = hide(n, rdma=True)
        look_again(n)
        for path, target in hidden:
            path.symlink_to(target)
        n.unprepare_all(*claims)
        look_again(n)
        assert specs(api) == before
        assert len(api.requests(WRITES)) == 1


def test_unusable_file():
    """A file of another version, or no JSON: said once, then written anew."""
    with node(start=False) as (api, n):
        n.data.mkdir()
        for i, text in enumerate(('{"version":99}', "{", "[]")):
            (n.data / "facts.json").write_text(text)
            n.start()
            published(n, i + 1)
            assert n.log_text().count("what was remembered of NICs cannot be used") == i + 1
            assert json.loads((n.data / "facts.json").read_text())["version"] == 1
            assert n.stop() == 0
        assert set(CARDS) <= names(api)


def test_file_cannot_be_written():
    with node(start=False) as (api, n):
        (n.data / "facts.json").mkdir(parents=True)
        n.start()
        published(n)
        look_again(n)
        look_again(n)
        assert n.log_text().count("facts of NICs cannot be written") == 1
        (n.data / "facts.json").rmdir()
        look_again(n)
        assert (n.data / "facts.json").is_file()
        assert set(CARDS) <= names(api)


if __name__ == "__main__":
    run_tests(globals())
