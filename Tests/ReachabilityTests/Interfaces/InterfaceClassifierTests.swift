import Expectations
import Testing

@testable import Reachability

@Suite struct InterfaceClassifierTests {
    /// Classifies `link` among `others`. `facts` holds the evidence of each, by interface index.
    private func classify(
        _ link: Link, among others: [Link] = [], facts: [UInt32: InterfaceEvidence] = [:]
    ) -> Classification {
        let links = Dictionary(uniqueKeysWithValues: ([link] + others).map { ($0.index, $0) })
        return InterfaceClassifier.classify(link, evidence: facts[link.index], among: links) { facts[$0] }
    }

    private func link(
        _ index: UInt32, _ kind: String? = nil, master: UInt32 = 0, lower: UInt32 = 0, carrier: Bool = true, tap: Bool = false
    ) -> Link {
        Link(
            index: index, name: "if\(index)", flags: carrier ? [.up, .running, .lowerUp] : .up,
            operationalState: carrier ? .up : .down, kind: kind, master: master, lower: lower, isTap: tap)
    }

    private let wired = InterfaceEvidence(driver: "e1000", bus: "pci", sources: ["sysfs", "ethtool"])
    private let wifi = InterfaceEvidence(deviceType: "wlan", isWireless: true, driver: "iwlwifi", bus: "pci", sources: ["sysfs"])
    private let modem = InterfaceEvidence(deviceType: "wwan", driver: "qmi_wwan", bus: "usb", sources: ["sysfs"])

    // MARK: The laboratory

    @Test(arguments: LaboratoryInterface.all)
    func `each interface of the laboratory gets its type, its cost and whether it is virtual`(interface: LaboratoryInterface) {
        let result = InterfaceClassifier.classify(interface.link, evidence: interface.evidence, among: LaboratoryInterface.links)
        {
            LaboratoryInterface.named($0).evidence
        }
        expectEqual(result.type, interface.type, "\(result.evidence)")
        expectEqual(result.isVirtual, interface.isVirtual, "\(result.evidence)")
        expectEqual(result.isExpensive, interface.isExpensive, "\(result.evidence)")
        #expect(!result.evidence.isEmpty)
    }

    @Test(arguments: LaboratoryInterface.all)
    func `each interface of the laboratory is classified in a namespace without sysfs`(interface: LaboratoryInterface) {
        let result = InterfaceClassifier.classify(
            interface.link, evidence: interface.evidenceWithoutSysfs, among: LaboratoryInterface.links
        ) { LaboratoryInterface.named($0).evidenceWithoutSysfs }
        expectEqual(result.type, interface.typeWithoutSysfs, "\(result.evidence)")
        expectEqual(result.isVirtual, interface.isVirtual, "\(result.evidence)")
        expectEqual(result.isExpensive, interface.isExpensive, "\(result.evidence)")
    }

    @Test(arguments: LaboratoryInterface.all)
    func `an interface's name does not change its type`(interface: LaboratoryInterface) {
        var link = interface.link
        link.name = interface.type == .wifi ? "eth9" : "wlan9"
        let result = InterfaceClassifier.classify(link, evidence: interface.evidence, among: LaboratoryInterface.links) {
            LaboratoryInterface.named($0).evidence
        }
        expectEqual(result.type, interface.type)
    }

    @Test(arguments: LaboratoryInterface.all.filter { !InterfaceClassifier.needsEvidence($0.link) })
    func `an interface that needs no evidence is classified the same with misleading evidence`(interface: LaboratoryInterface) {
        let misleading = InterfaceEvidence(
            deviceType: "wlan", isWireless: true, driver: "qmi_wwan", bus: "usb", sources: ["sysfs", "ethtool", "nl80211"])
        let with = InterfaceClassifier.classify(interface.link, evidence: misleading, among: LaboratoryInterface.links) { _ in nil
        }
        let without = InterfaceClassifier.classify(interface.link, evidence: nil, among: LaboratoryInterface.links) { _ in nil }
        expectEqual(with, without)
    }

    @Test(arguments: ["veth", "bridge", "wireguard", "dummy", "tun"])
    func `a container's interface needs no evidence`(kind: String) {
        #expect(!InterfaceClassifier.needsEvidence(link(1, kind)))
    }

    // MARK: Hardware

    @Test(arguments: ["r8152", "ax88179_178a", "asix", "smsc95xx", "lan78xx", "aqc111", "dm9601"])
    func `a USB adapter with a vendor's driver is wired`(driver: String) {
        let result = classify(link(1), facts: [1: InterfaceEvidence(driver: driver, bus: "usb", sources: ["sysfs"])])
        expectEqual(result.type, .wired)
        expectEqual(result.isVirtual, false)
        expectEqual(result.isExpensive, false)
    }

    @Test(arguments: ["rndis_host", "ipheth", "cdc_ether", "cdc_ncm", "cdc_eem", "cdc_subset"])
    func `a tether's driver on USB makes the interface usb and expensive`(driver: String) {
        let result = classify(link(1), facts: [1: InterfaceEvidence(driver: driver, bus: "usb", sources: ["sysfs"])])
        expectEqual(result.type, .usb)
        expectEqual(result.isVirtual, false)
        expectEqual(result.isExpensive, true)
    }

    @Test(arguments: ["huawei_cdc_ncm", "qmi_wwan", "cdc_mbim", "sierra_net", "hso"])
    func `a modem's driver makes the interface cellular without DEVTYPE`(driver: String) {
        let result = classify(link(1), facts: [1: InterfaceEvidence(driver: driver, sources: ["ethtool"])])
        expectEqual(result.type, .cellular)
        expectEqual(result.isVirtual, false)
        expectEqual(result.isExpensive, true)
    }

    @Test(arguments: [519, 530] as [UInt16])
    func `a raw IP interface without a kind is cellular`(hardwareType: UInt16) {
        var modem = link(1)
        modem.hardwareType = hardwareType
        expectEqual(classify(modem).type, .cellular)
    }

    @Test func `a Bluetooth interface is recognized by DEVTYPE, or by its bus if sysfs shows another namespace`() {
        let byType = classify(
            link(1), facts: [1: InterfaceEvidence(deviceType: "bluetooth", bus: "bluetooth", sources: ["sysfs"])])
        expectEqual(byType.type, .bluetooth)
        expectEqual(byType.isVirtual, false)
        expectEqual(byType.isExpensive, true)
        var elsewhere = link(1)
        elsewhere.parentBus = "bluetooth"
        expectEqual(classify(elsewhere, facts: [1: InterfaceEvidence(sources: ["ethtool", "nl80211"])]).type, .bluetooth)
    }

    @Test func `a port of a switch chip (DSA) is wired`() {
        expectEqual(classify(link(1, "dsa", lower: 2), among: [link(2)]).type, .wired)
        expectEqual(classify(link(1), facts: [1: InterfaceEvidence(deviceType: "dsa", sources: ["sysfs"])]).type, .wired)
    }

    @Test func `InfiniBand and IPoIB interfaces are other`() {
        var infiniband = link(2)
        infiniband.hardwareType = 32
        infiniband.parentBus = "pci"
        let result = classify(infiniband, facts: [2: InterfaceEvidence(driver: "mlx5_core", sources: ["ethtool"])])
        expectEqual(result.type, .other)
        expectEqual(result.isVirtual, false)
        expectEqual(classify(link(1, "ipoib", lower: 2), among: [infiniband]).type, .other)
    }

    @Test func `Ethernet of which only the ARPHRD type is known is wired, and its evidence says that Wi-Fi is not ruled out`() {
        let result = classify(link(1))
        expectEqual(result.type, .wired)
        expectEqual(result.isVirtual, false)
        expectEqual(result.evidence, ["ARPHRD 1 (Ethernet)", "Wi-Fi not ruled out: neither sysfs nor nl80211 answered"])
    }

    @Test func `Ethernet in another namespace is recognized by netlink's bus and ethtool's driver`() {
        var card = link(1)
        card.parentBus = "pci"
        let result = classify(card, facts: [1: InterfaceEvidence(driver: "e1000", sources: ["ethtool", "nl80211"])])
        expectEqual(result.type, .wired)
        expectEqual(result.evidence, ["ARPHRD 1 (Ethernet)", "driver e1000, bus pci"])
    }

    @Test func `Ethernet without a device in sysfs, as vboxnet0, is virtual`() {
        let result = classify(link(1), facts: [1: InterfaceEvidence(driver: "vboxnet", sources: ["sysfs", "ethtool"])])
        expectEqual(result.type, .virtual)
        expectEqual(result.isVirtual, true)
    }

    // MARK: Kinds

    @Test(arguments: [1, 512, 772, 778, 519, 65534] as [UInt16])
    func `a tun interface is a tunnel with any ARPHRD type, and a tap interface is virtual`(hardwareType: UInt16) {
        var tun = link(1, "tun")
        tun.hardwareType = hardwareType
        expectEqual(classify(tun).type, .tunnel)
        tun.isTap = true
        expectEqual(classify(tun).type, .virtual)
    }

    @Test func `a PPP interface is a tunnel, unless its DEVTYPE is wwan`() {
        expectEqual(classify(link(1, "ppp")).type, .tunnel)
        let modem = classify(link(1, "ppp"), facts: [1: modem])
        expectEqual(modem.type, .cellular)
        expectEqual(modem.isVirtual, false)
        expectEqual(modem.isExpensive, true)
    }

    @Test func `an interface of an unknown kind is virtual, unless DEVTYPE names a medium`() {
        let unknown = classify(link(1, "frobnicate"))
        expectEqual(unknown.type, .virtual)
        expectEqual(unknown.isVirtual, true)
        let radio = classify(link(1, "frobnicate"), facts: [1: wifi])
        expectEqual(radio.type, .wifi)
        expectEqual(radio.isVirtual, true)
    }

    @Test func `a tunnel bound to an expensive device is expensive`() {
        let bound = classify(link(1, "gre", lower: 2), among: [link(2)], facts: [2: modem])
        expectEqual(bound.type, .tunnel)
        expectEqual(bound.isExpensive, true)
        expectEqual(bound.evidence, ["kind gre", "bound to if2, which is expensive"])
        #expect(!classify(link(1, "gre", lower: 2), among: [link(2)], facts: [2: wired]).isExpensive)
    }

    // MARK: Stacked devices

    @Test(arguments: ["vlan", "macvlan", "macvtap", "ipvlan", "ipvtap", "macsec"])
    func `an interface stacked on one device has its type and its cost`(kind: String) {
        let onCable = classify(link(1, kind, lower: 2), among: [link(2)], facts: [2: wired])
        expectEqual(onCable.type, .wired)
        expectEqual(onCable.isVirtual, true)
        expectEqual(onCable.isExpensive, false)
        expectEqual(onCable.evidence, ["kind \(kind)", "over if2, which is wired"])
        let onModem = classify(link(1, kind, lower: 2), among: [link(2)], facts: [2: modem])
        expectEqual(onModem.type, .cellular)
        expectEqual(onModem.isVirtual, true)
        expectEqual(onModem.isExpensive, true)
        expectEqual(classify(link(1, kind, lower: 2), among: [link(2, "veth")]).type, .wired)
    }

    @Test func `an interface stacked on a device of another namespace is virtual`() {
        var macvlan = link(1, "macvlan", lower: 2)
        macvlan.lowerIsElsewhere = true
        let result = classify(macvlan, among: [link(2)], facts: [2: wired])
        expectEqual(result.type, .virtual)
        expectEqual(result.isVirtual, true)
        expectEqual(result.evidence, ["kind macvlan", "the device below is in another namespace"])
        expectEqual(classify(link(1, "vlan", lower: 7)).type, .virtual)
    }

    @Test(arguments: [("bridge", InterfaceType.bridge), ("bond", .virtual), ("team", .virtual)])
    func `a bridge, bond or team whose ports have one type has that type`(kind: String, otherwise: InterfaceType) {
        let ports = [link(2, master: 1), link(3, master: 1)]
        expectEqual(classify(link(1, kind), among: ports, facts: [2: wired, 3: wired]).type, .wired)
        expectEqual(classify(link(1, kind), among: ports, facts: [2: wifi, 3: wifi]).type, .wifi)
        let mixed = classify(link(1, kind), among: ports, facts: [2: wired, 3: modem])
        expectEqual(mixed.type, otherwise)
        expectEqual(mixed.isVirtual, true)
        expectEqual(mixed.isExpensive, true)
        expectEqual(classify(link(1, kind)).type, otherwise)
    }

    @Test func `the ports with carrier decide a bond's type and cost, and all ports do if none has carrier`() {
        func bond(wiredActive: Bool, modemActive: Bool) -> Classification {
            let ports = [link(2, master: 1, carrier: wiredActive), link(3, master: 1, carrier: modemActive)]
            return classify(link(1, "bond"), among: ports, facts: [2: wired, 3: modem])
        }
        expectEqual(bond(wiredActive: true, modemActive: false).type, .wired)
        #expect(!bond(wiredActive: true, modemActive: false).isExpensive)
        expectEqual(bond(wiredActive: false, modemActive: true).type, .cellular)
        #expect(bond(wiredActive: false, modemActive: true).isExpensive)
        expectEqual(bond(wiredActive: false, modemActive: false).type, .virtual)
        #expect(bond(wiredActive: false, modemActive: false).isExpensive)
    }

    @Test func `veth, tap and netkit ports do not give a bridge its type, even if the card's port has no carrier`() {
        let guests = [link(3, "veth", master: 1), link(4, "tun", master: 1, tap: true), link(5, "netkit", master: 1)]
        let plugged = classify(link(1, "bridge"), among: guests + [link(2, master: 1)], facts: [2: wired])
        expectEqual(plugged.type, .wired)
        expectEqual(plugged.evidence, ["kind bridge", "over if2, which is wired"])
        expectEqual(
            classify(link(1, "bridge"), among: guests + [link(2, master: 1, carrier: false)], facts: [2: wired]).type, .wired)
        let alone = classify(link(1, "bridge"), among: guests)
        expectEqual(alone.type, .bridge)
        expectEqual(alone.isVirtual, true)
        expectEqual(alone.evidence, ["kind bridge", "no port has a medium"])
    }

    @Test func `stacked interfaces are followed down to the physical devices`() {
        // A macvlan over a VLAN over a bridge over a bond of two cards.
        let stack = [
            link(2, "vlan", lower: 3), link(3, "bridge"), link(4, "bond", master: 3), link(5, master: 4), link(6, master: 4),
        ]
        expectEqual(classify(link(1, "macvlan", lower: 2), among: stack, facts: [5: wired, 6: wired]).type, .wired)
        expectEqual(classify(link(1, "macvlan", lower: 2), among: stack, facts: [5: wired, 6: wifi]).type, .virtual)
    }

    @Test func `a bridge over ports of different types stays a bridge and is expensive if one of them is`() {
        // A bridge of a card and of a bond that is made of a card and a modem.
        let ports = [link(2, master: 1), link(3, "bond", master: 1), link(4, master: 3), link(5, master: 3)]
        let result = classify(link(1, "bridge"), among: ports, facts: [2: wired, 4: wired, 5: modem])
        expectEqual(result.type, .bridge)
        expectEqual(result.isExpensive, true)
    }

    @Test func `classification ends for interfaces stacked in a cycle and for 200 layers`() {
        expectEqual(classify(link(1, "vlan", lower: 1)).type, .virtual)
        expectEqual(classify(link(1, "vlan", lower: 2), among: [link(2, "macvlan", lower: 1)]).type, .virtual)
        expectEqual(classify(link(1, "bridge", master: 2), among: [link(2, "bond", master: 1)]).type, .bridge)
        let tower = (2...200).map { link($0, "vlan", lower: $0 + 1) } + [link(201)]
        expectEqual(classify(link(1, "vlan", lower: 2), among: tower, facts: [201: wired]).type, .virtual)
    }
}
