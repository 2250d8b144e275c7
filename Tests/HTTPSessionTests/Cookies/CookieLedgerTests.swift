import Testing

@testable import HTTPSession

/// What has changed in a jar, and what becomes of it in a store.
@Suite struct CookieLedgerTests {
    private func line(_ name: String, _ value: String = "v", at domain: String = "host.example", expires: Int = 0) -> CookieLine {
        CookieLine("\(domain)\tFALSE\t/\tFALSE\t\(expires)\t\(name)\t\(value)")
    }

    @Test func `what was added, changed and removed`() {
        let old = [line("a"), line("b"), line("c"), line("d")]
        #expect(CookieChanges(from: old, to: old).isEmpty)
        #expect(CookieChanges(from: [], to: old) == CookieChanges(set: old))
        #expect(CookieChanges(from: old, to: []) == CookieChanges(removed: old))
        #expect(
            CookieChanges(from: old, to: [line("a"), line("b", "w"), line("c"), line("d")])
                == CookieChanges(set: [line("b", "w")]))
        #expect(
            CookieChanges(from: old, to: [line("b", "w"), line("a"), line("d"), line("e")])
                == CookieChanges(removed: [line("c")], set: [line("b", "w"), line("e")]))
    }

    @Test func `random changes lead from one list to the other`() {
        var random = SystemRandomNumberGenerator()
        for _ in 0..<500 {
            func some() -> [CookieLine] {
                (0..<8).filter { _ in Bool.random(using: &random) }.map {
                    line("\($0)", "\(Int.random(in: 0..<2, using: &random))")
                }
                .shuffled(using: &random)
            }
            let (old, new) = (some(), some())
            var ledger = CookieLedger(old)
            let hasChanged = ledger.apply(CookieChanges(from: old, to: new))
            #expect(hasChanged == (Set(old) != Set(new)))
            #expect(Set(ledger.lines) == Set(new))
        }
    }

    @Test func `a cookie is the same by domain, whom it is for, path and name alone`() {
        let key = CookieLine("#HttpOnly_.Host.example\tTRUE\t/A\tTRUE\t7\tname\tvalue").key
        #expect(CookieLine(".host.EXAMPLE\tTRUE\t/A\tFALSE\t0\tname\tother").key == key)
        for other in [
            "host.example\tFALSE\t/A\tTRUE\t7\tname\tvalue", ".host.example\tTRUE\t/a\tTRUE\t7\tname\tvalue",
            ".host.example\tTRUE\t/A\tTRUE\t7\tName\tvalue", ".other.example\tTRUE\t/A\tTRUE\t7\tname\tvalue",
        ] { #expect(CookieLine(other).key != key) }
    }

    @Test func `a change has a place and a number, what changes nothing has none`() {
        var ledger = CookieLedger([line("a"), line("b")])
        let version = ledger.version
        ledger.apply(CookieChanges(removed: [line("c")], set: [line("a")]))
        #expect(ledger.version == version)
        ledger.apply(CookieChanges(removed: [line("b", "other")], set: [line("a", "w"), line("c")]))
        #expect(ledger.version != version)
        #expect(ledger.lines == [line("a", "w"), line("c")])
    }

    @Test func `a store has its bound`() {
        var ledger = CookieLedger()
        for number in 0..<25 { ledger.apply(CookieChanges(set: [line("\(number)"), line("x", at: "other.example")]), most: 20) }
        #expect((15...20).contains(ledger.lines.count))
        #expect(ledger.lines.contains(line("x", at: "other.example")) && ledger.lines.contains(line("24")))
        #expect(!ledger.lines.contains(line("0")))
    }

    @Test func `a line that is over takes the place of the one that it was`() {
        let kept = CookieLine("#HttpOnly_host.example\tFALSE\t/\tTRUE\t1999999999\ta\tx\ty")
        #expect(kept.expired.text == "#HttpOnly_host.example\tFALSE\t/\tTRUE\t1\ta\tx\ty")
        #expect(kept.expired.key == kept.key)
        #expect(kept.hasExpired(at: 1_999_999_999) && !kept.hasExpired(at: 1_999_999_998) && kept.expired.hasExpired(at: 1))
        #expect(!line("a").hasExpired(at: .max))
    }

    @Test func `what another session has been given anew does not end because it expires here`() throws {
        let store = CookieStore()
        _ = store.apply(CookieChanges(set: [line("a", "old", expires: 100), line("b")]))
        let share = CookieShare(store)
        #expect(!share.isBehind)
        _ = store.apply(CookieChanges(set: [line("a", "new", expires: 300)]))
        #expect(share.isBehind)
        // The jar has dropped one by its time, and the other by a server's word.
        let changes = share.exchange([], now: 200)
        #expect(!share.isBehind)
        #expect(changes == CookieChanges(set: [line("a", "new", expires: 300)]))
        #expect(store.present.lines == [line("a", "new", expires: 300)])
    }

    @Test func `of two that are given the same cookie the later is right, for both`() {
        let store = CookieStore()
        let (one, other) = (CookieShare(store), CookieShare(store))
        #expect(one.exchange([line("a", "1")], now: 0).isEmpty)
        #expect(other.exchange([line("a", "2"), line("b")], now: 0).isEmpty)
        #expect(one.isBehind && !other.isBehind)
        #expect(one.exchange([line("a", "1")], now: 0) == CookieChanges(set: [line("a", "2"), line("b")]))
        one.settle([line("a", "2"), line("b")])
        #expect(one.exchange([line("a", "2"), line("b")], now: 0).isEmpty)
    }
}
