import Pacing

/// A parser under test. It takes the bytes of a server, a file or the kernel, and throws if a rule about its results is broken.
struct FuzzDriver: Sendable {
    /// The name, which is also the name of the folder with the corpus.
    let name: String
    let run: @Sendable ([UInt8]) throws -> Void

    static let all = [
        http, httpLimits, url, expectation, codings, tls, certificate, staple, dns, names, fields, forms, json, netlink, echo,
        answer, dialogue, schedule,
    ]

    /// Throws ``BrokenRule`` unless the condition holds.
    static func require(
        _ condition: Bool, _ rule: @autoclosure () -> String, line: UInt = #line, file: StaticString = #fileID
    ) throws(BrokenRule) {
        if !condition { throw BrokenRule(description: "\(file):\(line): \(rule())") }
    }
}

/// A rule that the result of a parser breaks.
struct BrokenRule: Error, CustomStringConvertible {
    let description: String
}

/// Random numbers that depend on the input alone, so that a reproducer needs nothing else.
func randomNumbers(for input: [UInt8]) -> SplitMix64 {
    // FNV-1a.
    SplitMix64(seed: input.reduce(0xcbf2_9ce4_8422_2325) { ($0 ^ UInt64($1)) &* 0x0000_0100_0000_01b3 })
}

/// Returns the input in pieces of random sizes, small ones more often.
func pieces(of input: [UInt8], _ random: inout SplitMix64) -> [ArraySlice<UInt8>] {
    let longest = [1, 3, 17, 200, 3000].randomElement(using: &random) ?? 1
    var pieces: [ArraySlice<UInt8>] = []
    var rest = input[...]
    while !rest.isEmpty {
        pieces.append(rest.prefix(.random(in: 1...longest, using: &random)))
        rest = rest.dropFirst(pieces.last?.count ?? 1)
    }
    return pieces
}
