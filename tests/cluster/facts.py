# SPDX-License-Identifier: Apache-2.0
"""What a fake machine is known to have, to hold against what pods get. From `twinrail topo` and the unpacked files."""
import re

import k8s


def bus_key(bus_id):
    return tuple(int(part, 16) for part in re.split("[:.]", bus_id))


class Machine:
    def __init__(self, cluster, name):
        cluster.need_machine(name)
        self.cluster = cluster
        self.root, self.topo = cluster.machine_root(name), cluster.topo(name)
        self.gpus = {g["name"]: g for g in self.topo["gpus"]}
        self.nics = {n["name"]: n for n in self.topo["nics"]}
        self.cards = {c["id"]: c for c in self.topo["cards"]}
        self.paths = {(p["gpu"], p["nic"]): p for p in self.topo["pairs"]}

    def functions(self, device):
        """The NIC functions of a published device, ascending by PCI address."""
        names = [device] if device in self.nics else self.cards[device]["members"]
        return sorted((self.nics[n] for n in names), key=lambda n: bus_key(n["busID"]))

    def file(self, path):
        return (self.root / path).read_text().strip()

    def verbs_node(self, nic):
        """(/dev/infiniband/uverbsN, (major, minor)) of a function."""
        found = [p for p in (self.root / "sys/devices").rglob("infiniband_verbs/uverbs*/dev") if p.parent.parent.parent.name == nic["busID"]]
        assert len(found) == 1, f"{nic['busID']} has {len(found)} verbs devices in the machine's files"
        major, minor = found[0].read_text().strip().split(":")
        return f"/dev/infiniband/{found[0].parent.name}", (int(major), int(minor))

    def rdma_cm_node(self):
        major, minor = self.file("sys/class/misc/rdma_cm/dev").split(":")
        return "/dev/infiniband/rdma_cm", (int(major), int(minor))

    def device_nodes(self, gpus, nics):
        """All RDMA and GPU device nodes that a pod with these devices has."""
        nodes = dict(self.verbs_node(nic) for nic in nics)
        if nics:
            nodes.update([self.rdma_cm_node()])
        for gpu in gpus:
            nodes[f"/dev/nvidia{gpu['minor']}"] = (195, gpu["minor"])
        if gpus:
            nodes.update({"/dev/nvidiactl": (195, 255), "/dev/nvidia-uvm": (510, 0), "/dev/nvidia-uvm-tools": (510, 1)})
        return nodes

    def environment(self, pairs, alone=()):
        """The list variables of a pod with pairs [(gpu, [nic, …])] and NICs without a GPU."""
        pairs = sorted(pairs, key=lambda p: bus_key(p[0]["busID"]))
        nics = [n for _, members in pairs for n in members] + sorted(alone, key=lambda n: bus_key(n["busID"]))
        hcas = [n["rdmaDevice"] + ":1" for n in nics]
        env = {"UCX_NET_DEVICES": ",".join(hcas), "NCCL_IB_HCA": "=" + ",".join(hcas)}
        if pairs:
            env["TWINRAIL_PAIRS"] = ",".join(f"{g['name']}={'+'.join(n['name'] for n in members)}" for g, members in pairs)
        return env

    def pairs_of(self, claims):
        """[(gpu, [nic, …])] of claims with one GPU and one NIC or card each."""
        pairs = []
        for claim in claims:
            results = self.cluster.results(claim)
            gpus = [self.gpus[d] for _, d in results if d in self.gpus]
            others = [d for _, d in results if d not in self.gpus]
            assert len(gpus) == 1 and len(others) == 1, f"claim {claim['metadata']['name']} got {results}"
            pairs.append((gpus[0], self.functions(others[0])))
        return pairs


def check_pod(machine, pod, pairs, alone=()):
    """Device nodes and environment in a running pod are exactly those of its devices."""
    cluster = machine.cluster
    gpus = [g for g, _ in pairs]
    nics = [n for _, members in pairs for n in members] + list(alone)
    want, got = machine.device_nodes(gpus, nics), cluster.device_nodes(pod)
    assert got == want, f"device nodes in pod {pod}: {got}\nwanted: {want}"
    want, env = machine.environment(pairs, alone), cluster.env(pod)
    got = {name: env.get(name) for name in want}
    assert got == want, f"environment of pod {pod}: {got}\nwanted: {want}"
    if not pairs:
        assert "TWINRAIL_PAIRS" not in env, f"TWINRAIL_PAIRS={env['TWINRAIL_PAIRS']} in a pod without our GPUs"


def check_disjoint(claims_results):
    """No device is handed out twice."""
    devices = [d for results in claims_results for _, d in results]
    assert len(devices) == len(set(devices)), f"a device was handed out twice: {sorted(devices)}"


def check_pcie_roots(cluster, machine, claims):
    """GPU and NIC of each claim have the same pcieRoot in the slices."""
    published = cluster.slices(machine)
    for claim in claims:
        roots = {d: k8s.attributes(published[d]).get("resource.kubernetes.io/pcieRoot") for _, d in cluster.results(claim)}
        assert len(roots) == 2 and len(set(roots.values())) == 1 and None not in roots.values(), \
            f"claim {claim['metadata']['name']}: {roots}"


PAIR = ([k8s.request("gpu", "gpu.twinrail.dev"), k8s.request("nic", "mrdma.google.com")],
        [{"matchAttribute": "resource.kubernetes.io/pcieRoot"}])
CARD_PFS = ([k8s.request("pf", "pf.twinrail.dev", 2)], [{"requests": ["pf"], "matchAttribute": "twinrail.dev/cardId"}])
ONE_PF = [k8s.request("pf", "pf.twinrail.dev")]
CHAIN = [{"name": "nic", "firstAvailable": [
    {"name": f"nic-group-{i}", "deviceClassName": "mrdma.google.com", "allocationMode": "ExactCount", "count": 2,
     "selectors": [{"cel": {"expression": f'device.attributes["dra.net"].?ifName.orValue("").startsWith("gpu{i}")'}}]}
    for i in range(4)]}]
