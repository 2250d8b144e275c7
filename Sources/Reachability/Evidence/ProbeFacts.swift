/// What one kind of probe has found out on its connection. Its folder in Probes/ declares it.
package protocol ProbeFacts: Hashable, Sendable, Codable {
    /// Where the server has redirected the probe; `nil` if it has not.
    var continuation: Continuation? { get }

    /// Whether nothing is known, so that there are no facts.
    var isEmpty: Bool { get }

    /// Checks the numbers of a recording, with which a monitor computes as with those of a server.
    func checkRanges() throws(RecordedNumberError)

    /// Creates empty facts.
    init()
}

extension ProbeFacts {
    package var continuation: Continuation? { nil }
    package func checkRanges() throws(RecordedNumberError) {}
}

/// A probe that its server continues elsewhere, as HTTP does with a redirect to another host. It needs a lookup, a route and a connection of its own.
package struct Continuation: Hashable, Sendable {
    /// The target of the probe that follows.
    let endpoint: Endpoint
    /// Where the servers have redirected the probe so far, in order.
    let locations: [String]
    /// The facts from which the kind continues.
    let facts: FactsOfKinds
}

/// The facts of the kinds of probes. Most results have none.
///
/// In recordings, the keys of all facts are beside each other, and beside those of ``LevelResult``.
package struct FactsOfKinds: Hashable, Sendable {
    private var values: [any ProbeFacts] = []

    /// The facts of one kind; empty if there are none.
    subscript<Value: ProbeFacts>(_: Value.Type) -> Value {
        get {
            for case let facts as Value in values { return facts }
            return Value()
        }
        set {
            values.removeAll { $0 is Value }
            if !newValue.isEmpty { values.append(newValue) }
        }
    }

    var isEmpty: Bool { values.isEmpty }

    var continuation: Continuation? { values.lazy.compactMap(\.continuation).first }

    func checkRanges() throws(RecordedNumberError) {
        for facts in values { try facts.checkRanges() }
    }

    package static func == (one: FactsOfKinds, other: FactsOfKinds) -> Bool {
        func isIn<Value: ProbeFacts>(_ facts: Value) -> Bool { other.values.contains { ($0 as? Value) == facts } }
        return one.values.count == other.values.count && one.values.allSatisfy { isIn($0) }
    }

    package func hash(into hasher: inout Hasher) { hasher.combine(values.count) }
}

extension FactsOfKinds {
    /// Reads the facts of the given types from a recording.
    init(from decoder: any Decoder, _ types: [any ProbeFacts.Type]) throws {
        func read<Value: ProbeFacts>(_: Value.Type, _ facts: inout FactsOfKinds) throws {
            facts[Value.self] = try Value(from: decoder)
        }
        for type in types { try read(type, &self) }
    }

    func encode(to encoder: any Encoder) throws {
        for facts in values { try facts.encode(to: encoder) }
    }
}
