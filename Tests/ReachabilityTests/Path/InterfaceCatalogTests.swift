import Testing

import Pacing
@testable import Reachability

@Suite struct InterfaceCatalogTests {
    /// Devices that rest on each other in all ways, changed at random: what is brought up to date step by step is what is made anew.
    @Test(arguments: 1...40 as ClosedRange<UInt64>) func `a catalogue brought up to date equals a new one`(seed: UInt64) {
        var draws = SplitMix64(seed: seed)
        func draw(_ count: UInt64) -> UInt32 { UInt32(draws.next() % count) }
        var snapshot = Kernel.Snapshot()
        var evidence: [UInt32: InterfaceEvidence] = [:]
        var catalog = InterfaceCatalog()
        for step in 0..<200 {
            var changed: Set<UInt32> = []
            for _ in 0...draw(3) {
                let index = 1 + draw(12)
                changed.insert(index)
                switch draw(8) {
                case 0: snapshot.apply(.linkRemoved(index))
                case 1:
                    evidence[index] = InterfaceEvidence(deviceType: ["wlan", "wwan", nil][Int(draw(3))], sources: ["sysfs"])
                case 2, 3:
                    let key = Address.Key(interface: index, prefix: IPPrefix(IPAddress(v4: 0xc612_0000 + draw(4)), length: 24))
                    snapshot.apply(draw(2) == 0 ? .addressRemoved(key) : .address(Address(interface: index, prefix: key.prefix)))
                default:
                    let kind = [nil, "bridge", "bond", "vlan", "veth", "wireguard", "macvlan"][Int(draw(7))]
                    let link = Link(
                        index: index, name: "if\(index)", flags: draw(3) == 0 ? [] : [.up, .running, .lowerUp],
                        operationalState: draw(2) == 0 ? .up : .unknown, kind: kind, master: draw(3) == 0 ? 1 + draw(12) : 0,
                        lower: draw(3) == 0 ? 1 + draw(12) : 0)
                    snapshot.apply(.link(link))
                }
            }
            catalog.update(snapshot, evidence: evidence, changed: changed)
            let anew = InterfaceCatalog(snapshot, evidence: evidence)
            #expect(catalog.interfaces == anew.interfaces, "seed \(seed), step \(step)")
            #expect(catalog.addresses == anew.addresses, "seed \(seed), step \(step)")
            guard catalog.interfaces == anew.interfaces else { return }
        }
    }
}
