import Expectations
import Testing

import Pacing
@testable import Reachability

@Suite struct InterfaceCatalogTests {
    /// Interfaces stacked at random, changed at random. The catalog that is updated step by step must equal a new one.
    @Test(.skippedByThreadSanitizer, arguments: 1...40 as ClosedRange<UInt64>)
    func `an updated interface catalog equals a new one`(seed: UInt64) {
        var draws = SplitMix64(seed: seed)
        func draw(_ count: UInt64) -> UInt32 { UInt32(draws.next() % count) }
        var snapshot = KernelSnapshot()
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
            let fresh = InterfaceCatalog(snapshot, evidence: evidence)
            expectEqual(catalog.interfaces, fresh.interfaces, "seed \(seed), step \(step)")
            expectEqual(catalog.addresses, fresh.addresses, "seed \(seed), step \(step)")
            guard catalog.interfaces == fresh.interfaces else { return }
        }
    }
}
