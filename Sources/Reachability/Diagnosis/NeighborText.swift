/// Neighbors in explanations.
extension NeighborAnswer {
    private var bits: UInt16? {
        if case .state(let state, _) = self { state.rawValue } else { nil }
    }

    /// The state as ip-neighbor(8) writes it; `nil` if the kernel did not answer.
    var stateName: String? {
        if self == .absent { return "NONE" }
        guard let bits else { return nil }
        let names: [(UInt16, String)] = [
            (0x20, "FAILED"), (0x01, "INCOMPLETE"), (0x10, "PROBE"), (0x08, "DELAY"), (0x04, "STALE"), (0x02, "REACHABLE"),
            (0x80, "PERMANENT"), (0x40, "NOARP"),
        ]
        return names.first { bits & $0.0 != 0 }?.1 ?? "0x" + String(bits, radix: 16)
    }

    /// Whether the interface needs no address resolution (`NUD_NOARP`).
    var needsNoResolution: Bool { bits.map { $0 & 0x40 != 0 } ?? false }
}
