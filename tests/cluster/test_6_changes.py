# SPDX-License-Identifier: Apache-2.0
"""The machine changes and the agent is told to read it again: the slices follow, each written once."""
import time

import facts
import k8s

MACHINE = "hgx-h100"


def hang_up(c):
    c.node_exec(MACHINE, "pkill", "-HUP", "-f", "twinrail agent")


def slice_watch(c):
    """A watch whose first events, one for each slice that is there, have come."""
    watch = c.watch("ResourceSlice", fieldSelector=f"spec.driver={k8s.DRIVER},spec.nodeName={c.nodes[MACHINE]}")
    there = len(c.raw_slices(MACHINE))
    k8s.wait("the watch has begun", lambda: len(watch.events) == there, 10)
    watch.events.clear()
    return watch


def written(watch):
    return sorted(one["metadata"]["name"] for _, _, one in watch.events)


def rate_of(c, nic):
    device = c.slices(MACHINE).get(nic)
    return device and k8s.attributes(device)[f"{k8s.DRIVER}/linkGbps"]


def test_changed_link_rate_is_published_once(c):
    m = facts.Machine(c, MACHINE)
    c.need_node_access()
    c.install()
    nic = next(n for n in m.topo["nics"] if n.get("rail") == 3)
    (rate,) = (m.root / "sys/devices").glob(f"**/{nic['busID']}/infiniband/*/ports/1/rate")
    before, old = c.slices(MACHINE), rate.read_text()
    names = sorted(s["metadata"]["name"] for s in c.raw_slices(MACHINE))
    generation = max(s["spec"]["pool"]["generation"] for s in c.raw_slices(MACHINE))
    assert rate_of(c, nic["name"]) == 400
    try:
        with slice_watch(c) as watch:
            rate.write_text("200 Gb/sec (4X HDR)\n")
            start = time.monotonic()
            hang_up(c)
            k8s.wait("the new rate is published", lambda: rate_of(c, nic["name"]) == 200, 10, every=0.02)
            took = time.monotonic() - start
            assert took <= 2, f"the new rate was there after {took:.2f} s"
            time.sleep(3)
            writes = written(watch)
        # one changed slice is written in place; when several change, all of them begin the next generation
        now = {s["spec"]["pool"]["generation"] for s in c.raw_slices(MACHINE)}
        assert (len(writes), now) == (1, {generation}) or (writes, now) == (names, {generation + 1}), (writes, names, now)
        after = c.slices(MACHINE)
        assert {n for n in before if before[n] != after.get(n)} == {nic["name"]}, "other devices changed, too"
        # told again without a change: nothing is written
        with slice_watch(c) as watch:
            hang_up(c)
            time.sleep(3)
            assert written(watch) == [], f"written without a change: {written(watch)}"
    finally:
        rate.write_text(old)
        hang_up(c)
        k8s.wait("the devices are as before", lambda: c.slices(MACHINE) == before, 10, every=0.05)
