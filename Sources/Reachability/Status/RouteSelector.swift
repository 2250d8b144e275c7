/// What a packet has beside its destination by which policy rules choose a routing table (ip-rule(8), "selector"): its source address and its mark.
///
/// Copies share one box, and the queries and attempts of most targets have none: they take one word for it.
package struct RouteSelector: Hashable, Sendable, Codable {
    private struct Values: Hashable, Sendable, Codable {
        var source: IPAddress?
        var mark: UInt32
    }

    private let values: Boxed<Values>

    /// Creates a selector; `nil` without a source address and a mark, for which the kernel needs none.
    package init?(source: IPAddress? = nil, mark: UInt32 = 0) {
        guard source != nil || mark != 0 else { return nil }
        values = Boxed(Values(source: source, mark: mark))
    }

    /// The source address; `nil` for the kernel's choice.
    package var source: IPAddress? { values.value.source }
    /// The mark (`SO_MARK`, socket(7)); 0 for none.
    package var mark: UInt32 { values.value.mark }

    /// Parses the source address of packets: that of one host, without a zone. IPv4-mapped addresses are those of IPv4.
    package static func source(parsing text: String) -> IPAddress? {
        guard let address = IPAddress(text)?.unmapped, !address.isUnspecified, !address.isMulticast,
            address != IPAddress(v4: .max)
        else { return nil }
        return address
    }

    /// Parses a mark: a decimal number of 32 bits, or a hexadecimal one behind `0x`.
    package static func mark(parsing text: String) -> UInt32? {
        let isHexadecimal = text.hasPrefix("0x")
        let digits = isHexadecimal ? text.dropFirst(2) : text[...]
        guard digits.utf8.first.map({ $0 != UInt8(ascii: "+") }) ?? false else { return nil }
        return UInt32(digits, radix: isHexadecimal ? 16 : 10)
    }

    /// The mark as ip-rule(8) writes it.
    package static func text(ofMark mark: UInt32) -> String { "0x" + String(mark, radix: 16) }

    /// The end of a sentence about a route: ` from 192.0.2.2 with the mark 0x1`.
    var phrase: String {
        (source.map { " from \($0)" } ?? "") + (mark == 0 ? "" : " with the mark \(Self.text(ofMark: mark))")
    }

    var evidence: [String: Cause.Evidence] {
        var evidence: [String: Cause.Evidence] = [:]
        if let source { evidence["source_address"] = .text("\(source)") }
        if mark != 0 { evidence["mark"] = .text(Self.text(ofMark: mark)) }
        return evidence
    }

    /// Whether one comes before the other in a fixed order, in which `nil` is first.
    static func areInOrder(_ left: RouteSelector?, _ right: RouteSelector?) -> Bool {
        guard let left, let right else { return left == nil && right != nil }
        if left.mark != right.mark { return left.mark < right.mark }
        switch (left.source, right.source) {
        case (nil, .some): return true
        case (let one?, let other?): return one < other
        case (_, nil): return false
        }
    }
}
