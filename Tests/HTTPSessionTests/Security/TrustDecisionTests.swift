import Certificates
import Expectations
import Foundation
import Testing

@testable import HTTPSession

/// The decision table of trust, row by row, without a handshake.
@Suite struct TrustDecisionTests {
    static func certificate(_ name: String) throws -> Certificate {
        Certificate(
            X509Certificate(
                derBytes: Data(name.utf8), subject: "CN=\(name)",
                keyDigest: Data((name + String(repeating: ".", count: 32)).utf8.prefix(32))))
    }

    /// The facts about a server with the certificates leaf, intermediate and root, of which it sends the first two.
    static func facts(
        chain: Int32? = nil, anchored: Int32?? = .some(nil), name: Bool? = true, sends: [String] = ["leaf", "intermediate"]
    ) throws -> ChainFacts {
        let completeChain = try ["leaf", "intermediate", "root"].map(certificate)
        func result(_ code: Int32?) -> Result<[Certificate], ChainError> {
            code.map { .failure(ChainError(code: $0, text: "code \($0)")) } ?? .success(completeChain)
        }
        return ChainFacts(
            presented: try sends.map(certificate), verified: result(chain), anchoredByPins: anchored.map(result),
            nameMatches: name)
    }

    struct Row: CustomTestStringConvertible, Sendable {
        let number: Int
        let label: String
        let mode: SecurityPolicy.PinningMode
        let allows: Bool
        let validates: Bool
        let host: String?
        let pins: [String]
        let facts: @Sendable () throws -> ChainFacts
        let answer: TrustRefusal?

        init(
            _ number: Int, _ label: String, _ mode: SecurityPolicy.PinningMode, allows: Bool, validates: Bool = true,
            host: String? = "a.test", pins: [String] = [], _ answer: TrustRefusal?,
            _ facts: @escaping @Sendable () throws -> ChainFacts = { try TrustDecisionTests.facts() }
        ) {
            (self.number, self.label, self.mode, self.allows, self.validates) = (number, label, mode, allows, validates)
            (self.host, self.pins, self.facts, self.answer) = (host, pins, facts, answer)
        }

        var testDescription: String { "row \(number): \(label)" }
    }

    private static let expired = TrustRefusal.chain(ChainError(code: 10, text: "code 10"))
    private static let unknown = TrustRefusal.chain(ChainError(code: 20, text: "code 20"))

    static let rows: [Row] = [
        Row(1, "no pinning cannot prove a name", .none, allows: true, .pinsNeeded),
        Row(1, "pins without a pinning mode cannot prove it either", .none, allows: true, pins: ["leaf"], .pinsNeeded),
        Row(2, "keys to be pinned, none given", .publicKey, allows: true, .pinsNeeded),
        Row(2, "certificates to be pinned, none given", .certificate, allows: true, .pinsNeeded),
        Row(3, "a valid chain and name", .none, allows: false, nil),
        Row(3, "an expired chain", .none, allows: false, expired) { try facts(chain: 10) },
        Row(3, "a wrong name", .none, allows: false, .name) { try facts(name: false) },
        Row(3, "a wrong name without name validation", .none, allows: false, validates: false, nil) { try facts(name: false) },
        Row(3, "no name known", .none, allows: false, host: nil, nil) { try facts(name: nil) },
        Row(3, "a host whose name was not compared", .none, allows: false, .name) { try facts(name: nil) },
        Row(4, "nothing validated", .none, allows: true, validates: false, nil) { try facts(chain: 20, name: false) },
        Row(4, "no name known", .none, allows: true, host: nil, nil) { try facts(chain: 20, name: nil) },
        Row(5, "a pinned key in an invalid chain", .publicKey, allows: false, pins: ["leaf"], unknown) { try facts(chain: 20) },
        Row(5, "a pinned certificate in an invalid chain", .certificate, allows: false, pins: ["leaf"], unknown) {
            try facts(chain: 20)
        },
        Row(5, "a pinned key and a wrong name", .publicKey, allows: false, pins: ["leaf"], .name) { try facts(name: false) },
        Row(6, "a pinned root", .certificate, allows: false, pins: ["root"], nil),
        Row(6, "a pinned leaf of an unknown authority", .certificate, allows: true, pins: ["leaf"], nil) { try facts(chain: 20) },
        Row(6, "pins that do not anchor the chain", .certificate, allows: true, pins: ["other"], .pins) {
            try facts(chain: 20, anchored: 20)
        },
        Row(6, "a pinned certificate that has expired", .certificate, allows: true, pins: ["leaf"], expired) {
            try facts(chain: 10, anchored: 10)
        },
        Row(6, "a pinned certificate with a wrong name", .certificate, allows: true, pins: ["leaf"], .name) {
            try facts(name: false)
        },
        Row(6, "an anchored chain without a pinned certificate", .certificate, allows: true, pins: ["other"], .pins),
        Row(6, "a chain that was not verified against the pins", .certificate, allows: true, pins: ["leaf"], .pins) {
            try facts(anchored: Int32??.none)
        },
        Row(7, "no certificate pinned", .certificate, allows: false, .nothingPinned),
        Row(7, "no certificate pinned, no name", .certificate, allows: true, host: nil, .nothingPinned),
        Row(8, "the leaf's key", .publicKey, allows: false, pins: ["leaf"], nil),
        Row(8, "the key of a root that the server did not send", .publicKey, allows: false, pins: ["root"], nil),
        Row(8, "no key of the chain", .publicKey, allows: false, pins: ["other"], .pins),
        Row(8, "a key that was sent and is not of the chain", .publicKey, allows: false, pins: ["other"], .pins) {
            try facts(sends: ["leaf", "intermediate", "other"])
        },
        Row(9, "the leaf's key", .publicKey, allows: true, pins: ["leaf"], nil) { try facts(chain: 20) },
        Row(9, "the key of another certificate that was sent", .publicKey, allows: true, pins: ["intermediate"], .pins) {
            try facts(chain: 20)
        },
        Row(9, "the true certificate behind an attacker's own", .publicKey, allows: true, pins: ["leaf"], .pins) {
            try facts(chain: 20, sends: ["attacker", "leaf"])
        },
        Row(9, "the leaf's key and a wrong name", .publicKey, allows: true, pins: ["leaf"], .name) {
            try facts(chain: 20, name: false)
        },
        Row(9, "a wrong name without name validation", .publicKey, allows: true, validates: false, pins: ["leaf"], nil) {
            try facts(chain: 20, name: false)
        },
        Row(10, "no key pinned", .publicKey, allows: false, .nothingPinned),
        Row(10, "no key pinned, no name known", .publicKey, allows: true, host: nil, .nothingPinned),
        Row(10, "no key pinned, no name validated", .publicKey, allows: true, validates: false, .nothingPinned),
        Row(0, "no certificate at all", .none, allows: true, validates: false, .noCertificate) { try facts(sends: []) },
    ]

    @Test(arguments: rows) func `each row of the trust decision table holds`(_ row: Row) throws {
        var policy = SecurityPolicy(pinningMode: row.mode, pinnedCertificates: Set(try row.pins.map(Self.certificate)))
        policy.allowsInvalidCertificates = row.allows
        policy.validatesDomainName = row.validates
        expectEqual(answer(policy, row.host, try row.facts()), row.answer)
    }

    @Test func `every row of the trust decision table has a test`() {
        #expect(Set(Self.rows.map(\.number)).isSuperset(of: 1...10))
    }

    private func answer(_ policy: SecurityPolicy, _ host: String?, _ facts: ChainFacts) -> TrustRefusal? {
        do throws(TrustRefusal) {
            try TrustDecision.evaluate(policy, host: host, facts)
            return nil
        } catch {
            return error
        }
    }

    // MARK: Host pins

    private func pinned(_ pattern: String, _ pins: String..., allows: Bool = false) throws -> SecurityPolicy {
        var policy = SecurityPolicy.default
        policy.hostPins = [try HostPins(pattern, pins: pins.map { try Self.certificate($0).publicKeyPin.description })]
        policy.allowsInvalidCertificates = allows
        return policy
    }

    @Test func `host pins match any certificate of the verified chain`() throws {
        for name in ["leaf", "intermediate", "root"] {
            expectNil(answer(try pinned("a.test", name), "a.test", try Self.facts()))
        }
        let refusal = TrustRefusal.hostPins([try HostPattern("a.test")])
        expectEqual(answer(try pinned("a.test", "other"), "a.test", try Self.facts(sends: ["leaf", "other"])), refusal)
    }

    @Test func `host pins of other hosts have no effect`() throws {
        expectNil(answer(try pinned("b.test", "other"), "a.test", try Self.facts()))
        expectNil(answer(try pinned("*.test", "other"), "a.b.test", try Self.facts()))
    }

    @Test func `a backup pin matches like the first pin`() throws {
        expectNil(answer(try pinned("a.test", "old", "leaf"), "a.test", try Self.facts()))
    }

    @Test func `the pins of all patterns that match a host are combined`() throws {
        var policy = try pinned("a.test", "old")
        policy.hostPins += try pinned("**.test", "root").hostPins
        expectNil(answer(policy, "a.test", try Self.facts()))
    }

    @Test func `if invalid chains are allowed a host pin must match the server's own key, and the name must match`() throws {
        let invalid = try Self.facts(chain: 20, anchored: nil)
        expectNil(answer(try pinned("a.test", "leaf", allows: true), "a.test", invalid))
        let refusal = TrustRefusal.hostPins([try HostPattern("a.test")])
        expectEqual(answer(try pinned("a.test", "intermediate", allows: true), "a.test", invalid), refusal)
        expectEqual(answer(try pinned("a.test", "leaf", allows: true), "a.test", try Self.facts(chain: 20, name: false)), .name)
        expectEqual(answer(try pinned("b.test", "leaf", allows: true), "a.test", invalid), .pinsNeeded)
    }

    @Test func `no policy accepts a server whose chain was not verified`() throws {
        let own = try Self.certificate("leaf")
        for mode in SecurityPolicy.PinningMode.allCases {
            let policy = SecurityPolicy(pinningMode: mode, pinnedCertificates: [own])
            #expect(answer(policy, "a.test", ChainFacts(presented: [own])) != nil)
        }
    }
}
