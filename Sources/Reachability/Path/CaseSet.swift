/// A set of an enumeration's cases, stored as bits. Between a change and the user's callback, about forty operations on such sets
/// take place. With `Set`, each needed an allocation or a hash (300 instructions).
package struct CaseSet<Element: Numbered>: SetAlgebra, Hashable, Sendable, Sequence {
    private var bits: UInt32 = 0

    package init() {}

    private init(bits: UInt32) { self.bits = bits }

    /// The set of all cases.
    package static var all: CaseSet { CaseSet(Element.allCases) }

    package var isEmpty: Bool { bits == 0 }

    /// The number of members, so that an array of them needs one allocation.
    package var underestimatedCount: Int { bits.nonzeroBitCount }

    package func contains(_ member: Element) -> Bool { bits & 1 << member.number != 0 }

    @discardableResult
    package mutating func insert(_ member: Element) -> (inserted: Bool, memberAfterInsert: Element) {
        defer { bits |= 1 << member.number }
        return (!contains(member), member)
    }

    @discardableResult
    package mutating func remove(_ member: Element) -> Element? {
        defer { bits &= ~(1 << member.number) }
        return contains(member) ? member : nil
    }

    @discardableResult
    package mutating func update(with member: Element) -> Element? {
        insert(member).inserted ? nil : member
    }

    package func union(_ other: CaseSet) -> CaseSet { CaseSet(bits: bits | other.bits) }
    package func intersection(_ other: CaseSet) -> CaseSet { CaseSet(bits: bits & other.bits) }
    package func symmetricDifference(_ other: CaseSet) -> CaseSet { CaseSet(bits: bits ^ other.bits) }
    package mutating func formUnion(_ other: CaseSet) { bits |= other.bits }
    package mutating func formIntersection(_ other: CaseSet) { bits &= other.bits }
    package mutating func formSymmetricDifference(_ other: CaseSet) { bits ^= other.bits }

    /// Returns the cases in the order of their declaration.
    package func makeIterator() -> Iterator { Iterator(remaining: self) }

    package struct Iterator: IteratorProtocol {
        fileprivate var remaining: CaseSet
        fileprivate var cases = Element.allCases.makeIterator()

        package mutating func next() -> Element? {
            guard !remaining.isEmpty else { return nil }
            while let element = cases.next() {
                if remaining.remove(element) != nil { return element }
            }
            return nil
        }
    }
}

/// A type with at most 32 cases. Each case has a number from 0 in the order of `allCases`.
package protocol Numbered: CaseIterable, Hashable, Sendable {
    var number: UInt32 { get }
}

extension KernelTable: Numbered {
    package var number: UInt32 { UInt32(rawValue) }
}

extension PathChangeReason: Numbered {}
