# SPDX-License-Identifier: Apache-2.0
"""The chart installs, the agents register and publish what the machines have."""
import json

import facts
import k8s


def test_agents_get_ready(c):
    c.install(restart=True)
    pods = c.driver_pods()
    if c.nodes:
        assert {p["spec"]["nodeName"] for p in pods} == set(c.nodes.values()), [p["spec"].get("nodeName") for p in pods]
    assert pods, "no driver pod"
    for pod in pods:
        status = pod["status"]["containerStatuses"][0]
        assert status["ready"] and status["restartCount"] == 0, f"{pod['metadata']['name']}: {status}"


def test_device_classes(c):
    c.install()
    names = {d["metadata"]["name"] for d in c.list("DeviceClass")}
    missing = {"gpu.twinrail.dev", "nic.twinrail.dev", "pf.twinrail.dev", "mrdma.google.com"} - names
    assert not missing, f"missing DeviceClasses: {missing}"


def kinds(c, machine):
    count = {}
    for device in c.slices(machine).values():
        kind = k8s.attributes(device)["twinrail.dev/type"]
        count[kind] = count.get(kind, 0) + 1
    return count


def test_gb300_slices(c):
    m = facts.Machine(c, "gb300")
    c.install()
    count = kinds(c, "gb300")
    assert {k: count.get(k) for k in ("gpu", "card", "pf")} == {"gpu": 4, "card": 4, "pf": 8}, count
    for name, device in c.slices("gb300").items():
        a = k8s.attributes(device)
        assert len(a) + len(device.get("capacity", {})) <= 32, f"{name}: {len(a)} attributes"
        assert a.get("resource.kubernetes.io/pcieRoot", "?") != "", f"{name}: empty pcieRoot"
        if a["twinrail.dev/type"] in ("card", "pf"):
            # the root of the Data Direct function, where the GPU is, not the function's own one
            root = m.functions(name)[0]["pcieRoot"]
            assert a["resource.kubernetes.io/pcieRoot"] == root, f"{name}: {a['resource.kubernetes.io/pcieRoot']}, topo: {root}"
            assert root in {g["pcieRoot"] for g in m.gpus.values()}, f"{name}: no GPU has root {root}"
    roots = sorted(k8s.attributes(d)["resource.kubernetes.io/pcieRoot"] for d in c.slices("gb300").values()
                   if k8s.attributes(d)["twinrail.dev/type"] == "card")
    assert roots == ["pci0008:00", "pci0009:00", "pci0018:00", "pci0019:00"], roots


def test_hgx_h100_slices(c):
    m = facts.Machine(c, "hgx-h100")
    c.install()
    count = kinds(c, "hgx-h100")
    assert count.get("gpu") == 8 and "card" not in count and "pf" not in count, count
    published = c.slices("hgx-h100")
    rails = [n for n in m.nics.values() if n["role"] == "rail"]
    assert len(rails) == 8 and all(n["name"] in published for n in rails), sorted(published)
    for nic in m.nics.values():
        if nic["name"] in published:
            a = k8s.attributes(published[nic["name"]])
            assert a["dra.net/rdma"] == (nic["role"] in ("rail", "unknown")), f"{nic['name']}: role {nic['role']}, rdma {a['dra.net/rdma']}"


def test_slices_are_one_complete_pool(c):
    c.install()
    if not c.nodes:
        raise k8s.Skip("no node with a fake machine")
    for machine, node in c.nodes.items():
        slices = c.raw_slices(machine)
        assert {s["spec"]["pool"]["name"] for s in slices} == {node}
        assert {s["spec"]["pool"]["generation"] for s in slices} == {slices[0]["spec"]["pool"]["generation"]}
        assert all(s["spec"]["pool"]["resourceSliceCount"] == len(slices) for s in slices), len(slices)


def test_slices_command_in_the_pod(c):
    """Without options it shows what the agent beside it has published: it has the agent's settings."""
    c.install()
    if not c.nodes:
        raise k8s.Skip("no node with a fake machine")
    for machine in c.nodes:
        pod = c.driver_pod(machine)["metadata"]["name"]
        shown = json.loads(c.exec(pod, "twinrail", "slices", ns=k8s.NAMESPACE))["items"]
        names = {device["name"] for one in shown for device in one["spec"].get("devices", [])}
        assert names == set(c.slices(machine)), f"{machine}: {sorted(names ^ set(c.slices(machine)))}"


def test_slices_stay_as_they_are(c):
    """Nothing changes on the machine: no write in 10 s."""
    import time
    c.install()
    if not c.nodes:
        raise k8s.Skip("no node with a fake machine")
    before = {s["metadata"]["name"]: s["metadata"]["resourceVersion"] for m in c.nodes for s in c.raw_slices(m)}
    time.sleep(10)
    after = {s["metadata"]["name"]: s["metadata"]["resourceVersion"] for m in c.nodes for s in c.raw_slices(m)}
    assert before == after
