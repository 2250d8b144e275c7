import Expectations
import Glibc
import Pacing
import Testing
import Wire

@testable import Reachability

/// The result of an exchange does not depend on the pieces in which its bytes arrive.
@Suite struct HTTPExchangeSplitTests {
    private struct Result: Equatable, CustomStringConvertible {
        var progress: HTTPExchange.Progress
        var head: HTTPResponseReader.Head?
        var body: [UInt8]
        var facts: HTTPResponseFacts

        init(_ exchange: HTTPExchange) {
            (progress, head, body, facts) = (exchange.progress, exchange.head, exchange.body, exchange.facts)
        }

        var description: String { "\(progress) \(facts)" }
    }

    private static let head = "HTTP/1.1 200 OK\r\n"
    static let responses: [[UInt8]] =
        [
            "\(head)Content-Length: 5\r\n\r\nhello", "\(head)A: b\r\n c\r\n\r\nhello\n", "HTTP/1.0 503\n\nsorry",
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\nA: b\n\n\(head)Content-Length: 2\r\n\r\nokEXTRA",
            "\(head)Transfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n1\n,\n0\r\nT: u\r\n\r\nEXTRA",
            "\(head)Transfer-Encoding: chunked\r\n\r\n5\r\nhello\rX", "\(head)Transfer-Encoding: chunked\r\n\r\nzz\r\n",
            "\(head)Content-Length: 5, 6\r\n\r\n", "\(head)bad line\r\n\r\n", "SSH-2.0-OpenSSH_9.2p1 Debian\r\n",
            "\(String(repeating: "garbage ", count: 20))\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "\n", "HTTP/2 200\r\n\r\n",
            "\(head)\(String(repeating: "A: b\r\n", count: 520))\r\n",
            "HTTP/1.1 204 \(String(repeating: "long reason ", count: 10))\r\n\r\n",
            "\(head)Transfer-Encoding: chunked\r\n\r\n1;\(String(repeating: "e", count: 4200))\r\n",
        ].map { Array($0.utf8) } + [
            [0, 0, 18, 4, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 100], [21, 3, 3, 0, 2, 2, 40], [0, 1, 2, 3], [0x16],
        ]

    /// Each byte of a short response, and some of a long one.
    private static func positions(_ response: [UInt8]) -> StrideTo<Int> {
        stride(from: 0, to: response.count, by: response.count < 200 ? 1 : 211)
    }

    private func result(_ pieces: some Sequence<ArraySlice<UInt8>>) -> Result {
        var exchange = HTTPExchange(method: "GET")
        for piece in pieces { exchange.receive(piece) }
        exchange.endOfInput()
        return Result(exchange)
    }

    @Test(arguments: responses) func `a response byte by byte, or cut at any byte, has the same result`(response: [UInt8]) {
        let expected = result([response[...]])
        expectEqual(result(response.indices.map { response[$0...$0] }), expected)
        for cut in Self.positions(response) {
            let cutResult = result([response[..<cut], response[cut...]])
            if cutResult != expected { Issue.record("cut at \(cut): \(cutResult), expected \(expected)") }
        }
    }

    @Test(arguments: responses) func `a response that is truncated at any byte has one result`(response: [UInt8]) {
        for end in Self.positions(response) {
            let whole = result([response[..<end]])
            let single = result(response[..<end].indices.map { response[$0...$0] })
            if whole != single { Issue.record("truncated at \(end): \(whole), byte by byte \(single)") }
            #expect(whole.progress != .awaitingHead && whole.progress != .receivingBody)
        }
    }

    @Test func `random changes and random pieces have the same result`() {
        let seed = getenv("NETWATCH_SEED").flatMap { UInt64(String(cString: $0)) } ?? .random(in: 0 ... .max)
        print("NETWATCH_SEED=\(seed)")
        var random = SplitMix64(seed: seed)
        for round in 0..<3000 {
            var response = Self.responses[Int.random(in: 0..<Self.responses.count, using: &random)]
            for _ in 0..<Int.random(in: 0...4, using: &random) where !response.isEmpty {
                let index = Int.random(in: 0..<response.count, using: &random)
                switch Int.random(in: 0..<4, using: &random) {
                case 0: response[index] = .random(in: 0...255, using: &random)
                case 1: response.remove(at: index)
                case 2: response.insert([0, 9, 10, 13, 32, 45, 48, 58, 59].randomElement(using: &random) ?? 0, at: index)
                default: response.insert(contentsOf: response[index...].prefix(20), at: index)
                }
            }
            var pieces: [ArraySlice<UInt8>] = []
            var rest = response[...]
            while !rest.isEmpty {
                pieces.append(rest.prefix(Int.random(in: 1...40, using: &random)))
                rest = rest.dropFirst(pieces.last?.count ?? 1)
            }
            let (one, other) = (result([response[...]]), result(pieces))
            if one != other { Issue.record("NETWATCH_SEED=\(seed) round \(round): \(one), in pieces \(other)") }
        }
    }
}
