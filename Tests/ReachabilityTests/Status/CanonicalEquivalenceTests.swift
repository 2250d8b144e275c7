import Expectations
import Testing

@testable import Reachability

/// Texts that Swift takes for equal, and whose bytes differ for a server (Unicode Standard Annex #15).
@Suite struct CanonicalEquivalenceTests {
    private let one = "\u{E9}"
    private let other = "e\u{301}"

    @Test func `settings with a value in another form are other settings`() throws {
        let changes: [(inout ProbeSettings, String) throws -> Void] = [
            { try $0.http.authorize(by: .basic(user: "user", password: $1)) },
            { try $0.http.authorize(by: .basic(user: $1, password: "word")) },
            { try $0.http.addField("X-Name", $1) },
            { try $0.http.expectBody($1) },
            { try $0.http.expectField("X-Name", $1) },
            { $0.tls.serverName = $1 },
            { $0.tls.applicationProtocols = [$1] },
            { $0.interface = $1 },
        ]
        for change in changes {
            var (first, second, same) = (ProbeSettings(), ProbeSettings(), ProbeSettings())
            try change(&first, one)
            try change(&second, other)
            try change(&same, one)
            #expect(first != second && first == same && Set([first, second, same]).count == 2)
        }
    }

    @Test func `a name of one form has no cached address of another one`() {
        var cache = NameCache()
        cache.store(.init(addresses: [], received: 0, expiry: 10, server: nil, candidate: one), one, .v4, now: 0)
        expectNil(cache.entry(other, .v4, now: 1))
        #expect(cache.entry(one, .v4, now: 1) != nil)
    }
}
