# SPDX-License-Identifier: Apache-2.0
"""Cards whose DMA comes from another PCIe root than the function's own, and whose two PFs belong together."""
import facts
import k8s

MACHINE = "gb300"


def setup(c, **values):
    machine = facts.Machine(c, MACHINE)
    c.install(**values)
    c.template("pair", *facts.PAIR)
    c.template("chain", facts.CHAIN)
    c.template("pfs", *facts.CARD_PFS)
    c.template("one-pf", facts.ONE_PF)
    return machine


def whole_cards(m, devices):
    """The cards that these NIC devices are; each device set must be exactly one card's."""
    functions = [f for d in devices for f in m.functions(d)]
    names = [f["name"] for f in functions]
    assert len(names) == len(set(names)), f"a function twice: {names}"
    cards = {f["cardId"] for f in functions}
    wanted = {name for card in cards for name in m.cards[card]["members"]}
    assert set(names) == wanted, f"half a card: {sorted(names)}, wanted all of {sorted(wanted)}"
    return cards


def test_four_pairs_of_gpu_and_card(c):
    m = setup(c)
    c.pod("four", ["pair"] * 4, MACHINE)
    c.wait_running("four")
    claims = c.claims("four")
    facts.check_disjoint([c.results(claim) for claim in claims])
    facts.check_pcie_roots(c, MACHINE, claims)
    published = c.slices(MACHINE)
    for claim in claims:
        (card,) = [d for request, d in c.results(claim) if request == "nic"]
        assert k8s.attributes(published[card])["twinrail.dev/type"] == "card", f"{card} is not a whole card"
    pairs = m.pairs_of(claims)
    for gpu, nics in pairs:
        assert len(nics) == 2, f"{gpu['name']}: {[n['name'] for n in nics]}"
        assert all(m.paths[gpu["name"], n["name"]]["best"] for n in nics), f"{gpu['name']}: {[n['name'] for n in nics]}"
    # the order of GPUs and cards is crossed on this machine
    crossed = {g["busID"]: nics[0]["busID"] for g, nics in pairs}
    assert crossed["0009:06:00.0"] == "0000:03:00.0" and crossed["0008:06:00.0"] == "0002:03:00.0", crossed
    facts.check_pod(m, "four", pairs)


def test_one_pair_per_pod(c):
    m = setup(c)
    names = [f"p{i}" for i in range(4)]
    for name in names:
        c.pod(name, ["pair"], MACHINE)
    c.wait_running(*names)
    results = [c.results(c.claims(name)[0]) for name in names]
    facts.check_disjoint(results)
    for name in names:
        facts.check_pod(m, name, m.pairs_of(c.claims(name)))
    c.pod("fifth", ["pair"], MACHINE)
    c.wait_unschedulable("fifth")


def test_no_pair_with_the_functions_own_root(c):
    """With pcieRoot=function GPU and NIC never share a root: the template cannot be satisfied; then back."""
    try:
        setup(c, pcieRoot="function")
        k8s.wait("slices with the functions' own roots", lambda: "pci0000:00" in {
            k8s.attributes(d).get("resource.kubernetes.io/pcieRoot") for d in c.slices(MACHINE).values()}, 20)
        c.pod("never", ["pair"], MACHINE)
        c.wait_unschedulable("never")
    finally:
        c.install()
    k8s.wait("slices with the effective roots", lambda: "pci0000:00" not in {
        k8s.attributes(d).get("resource.kubernetes.io/pcieRoot") for d in c.slices(MACHINE).values()}, 20)
    c.wait_running("never")


def test_pf_pairs_by_the_published_chain(c):
    """firstAvailable over interface names: four pods get the four cards, both functions each; a fifth waits."""
    m = setup(c)
    names = [f"p{i}" for i in range(4)]
    for name in names:
        c.pod(name, ["chain"], MACHINE)
    c.wait_running(*names)
    cards = []
    for name in names:
        devices = [d for _, d in c.results(c.claims(name)[0])]
        assert len(devices) == 2, devices
        cards += whole_cards(m, devices)
        facts.check_pod(m, name, [], [f for d in devices for f in m.functions(d)])
    assert len(cards) == 4 and len(set(cards)) == 4, cards
    c.pod("fifth", ["chain"], MACHINE)
    c.wait_unschedulable("fifth")


def test_pf_pairs_by_card(c):
    m = setup(c)
    c.pod("two", ["pfs", "pfs"], MACHINE)
    c.wait_running("two")
    cards = [whole_cards(m, [d for _, d in c.results(claim)]) for claim in c.claims("two")]
    assert all(len(card) == 1 for card in cards) and cards[0] != cards[1], cards


def test_any_mix_gives_whole_cards(c):
    """Whole cards, chains and counts side by side: both functions always of one card, none handed out twice."""
    m = setup(c)
    mix = {"a": "pair", "b": "chain", "c": "pfs", "d": "pair"}
    for name, template in mix.items():
        c.pod(name, [template], MACHINE)
    c.wait_running(*mix)
    cards = []
    for name in mix:
        devices = [d for _, d in c.results(c.claims(name)[0]) if d not in m.gpus]
        found = whole_cards(m, devices)
        assert len(found) == 1, f"{name}: {devices}"
        cards += found
    assert len(set(cards)) == 4, cards
    for template in ("pair", "chain", "pfs"):
        c.pod(f"late-{template}", [template], MACHINE)
    for template in ("pair", "chain", "pfs"):
        c.wait_unschedulable(f"late-{template}")
    # a freed card serves any of them
    c.delete("Pod", "b")
    k8s.wait("one of the waiting pods runs", lambda: any(
        (c.get("Pod", f"late-{t}") or {"status": {}})["status"].get("phase") == "Running" for t in ("pair", "chain", "pfs")), 60)


def test_half_a_card_is_refused(c):
    m = setup(c)
    c.pod("half", ["one-pf"], MACHINE)
    event = c.wait_event("half", "FailedPrepareDynamicResources", 60)
    ((_, given),) = c.results(c.claims("half")[0])
    (missing,) = [n for n in m.cards[m.nics[given]["cardId"]]["members"] if n != given]
    text = event["message"]
    assert missing in text or m.nics[missing]["busID"] in text, f"the event does not name {missing}: {text}"
    assert "nic.twinrail.dev" in text, f"the event does not say which class gives whole cards: {text}"
    assert "halfPairPolicy" in text, f"the event does not name the opt-out: {text}"
    assert c.get("Pod", "half")["status"]["phase"] == "Pending"


def test_half_a_card_with_the_opt_out(c):
    m = setup(c)
    parameters = {"apiVersion": "twinrail.dev/v1", "kind": "NicConfig", "halfPairPolicy": "Allow"}
    c.template("half-allowed", facts.ONE_PF, config=[{"requests": ["pf"], "opaque": {"driver": k8s.DRIVER, "parameters": parameters}}])
    c.pod("half", ["half-allowed"], MACHINE)
    c.wait_running("half")
    ((_, given),) = c.results(c.claims("half")[0])
    facts.check_pod(m, "half", [], m.functions(given))


def test_both_halves_in_two_claims_of_one_pod(c):
    """The card is complete over all claims of the pod."""
    m = setup(c)
    selector = 'device.attributes["dra.net"].?ifName.orValue("") == "gpu1rdma%d"'
    for i in (0, 1):
        c.template(f"pf{i}", [k8s.request("pf", "pf.twinrail.dev", selector=selector % i)])
    c.pod("halves", ["pf0", "pf1"], MACHINE)
    c.wait_running("halves")
    devices = [d for claim in c.claims("halves") for _, d in c.results(claim)]
    assert len(whole_cards(m, devices)) == 1, devices
    facts.check_pod(m, "halves", [], [f for d in devices for f in m.functions(d)])


def test_unknown_config_is_refused(c):
    """A misspelt field is an error that the pod's events show, never silently ignored."""
    setup(c)
    parameters = {"apiVersion": "twinrail.dev/v1", "kind": "NicConfig", "halfPairPolice": "Allow"}
    c.template("typo", [k8s.request("nic", "nic.twinrail.dev")],
               config=[{"opaque": {"driver": k8s.DRIVER, "parameters": parameters}}])
    c.pod("typo", ["typo"], MACHINE)
    event = c.wait_event("typo", "FailedPrepareDynamicResources", 60)
    assert "halfPairPolice" in event["message"], event["message"]
