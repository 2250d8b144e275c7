import Testing

@testable import HTTPSession

@Suite struct HandleSetupTests {
    private func plan(_ url: String = "https://a.test/1", _ change: (inout TransferPlan) -> Void = { _ in }) -> TransferPlan {
        var plan = TransferPlan(url: url, method: "GET")
        change(&plan)
        return plan
    }

    @Test func `attempts that differ in their address and their fields find the same setup`() throws {
        let first = try #require(HandleSetup(plan(), trust: nil))
        #expect(first.fits(plan("https://b.test/2"), trust: nil))
        #expect(first.fits(plan { $0.headerLines = ["Accept: x"] }, trust: nil))
        #expect(first.fits(plan { $0.usesProxy = true }, trust: nil))
        #expect(first.fits(plan { $0.preemptiveCredential = Credential(user: "u", password: "p") }, trust: nil))
    }

    @Test func `attempts that differ in anything else do not`() throws {
        let first = try #require(HandleSetup(plan(), trust: nil))
        let others = [
            plan("http://a.test/1"), plan { $0.method = "HEAD" }, plan { $0.isolatesConnection = true },
            plan { $0.connectTimeoutMilliseconds = 1 }, plan { $0.needsFreshConnection = true },
            plan { $0.maximumIdleSeconds = 1 }, plan { $0.maximumLookupSeconds = 1 }, plan { $0.asksBeforeConnecting = true },
            plan { $0.watchesRoute = true }, plan { $0.handlesCookies = false }, plan { $0.decompresses = false },
            plan { $0.avoidsHTTP2 = true }, plan { $0.bufferSize = 1 << 20 }, plan { $0.maximumSendRate = 1 },
            plan { $0.packetSize = 1 },
        ]
        for other in others { #expect(!first.fits(other, trust: nil), "\(other)") }
        // A property that a plan gets one day is said anew by every attempt, or compared: then it belongs in one of these tests.
        let saidAnew = ["url", "headerLines", "usesProxy", "preemptiveCredential"]
        #expect(
            Mirror(reflecting: plan()).children.count == saidAnew.count + ["login", "proxyLogin", "body"].count + others.count)
    }

    @Test func `how long a connection may have been idle is said anew by every attempt, where it is said at all`() throws {
        let first = try #require(HandleSetup(plan { $0.maximumIdleSeconds = 3 }, trust: nil))
        #expect(first.fits(plan { $0.maximumIdleSeconds = 4 }, trust: nil))
        #expect(first.fits(plan { $0.maximumIdleSeconds = 0 }, trust: nil))
        #expect(!first.fits(plan(), trust: nil))
    }

    @Test func `a server judged by one policy finds no setup of another`() throws {
        let plan = plan()
        func trust(_ policy: PreparedPolicy) -> ServerTrust { ServerTrust(policy: policy, host: "a.test") }
        var other = SecurityPolicy.default
        other.minimumTLSVersion = .v1_3
        let policy = try PreparedPolicy.of(.default)
        let first = try #require(HandleSetup(plan, trust: trust(policy)))
        #expect(first.fits(plan, trust: trust(policy)))
        #expect(!first.fits(plan, trust: trust(try PreparedPolicy.of(other))))
        #expect(!first.fits(plan, trust: nil))
    }

    @Test func `of a login and of a body nothing is kept`() throws {
        let first = try #require(HandleSetup(plan(), trust: nil))
        let login = TransferPlan.Login(user: "u", password: "p", schemes: [.digest])
        for other in [
            plan { $0.login = login }, plan { $0.proxyLogin = login }, plan { $0.body = .length(1) },
            plan { $0.body = .untilEnd },
        ] {
            #expect(HandleSetup(other, trust: nil) == nil)
            #expect(!first.fits(other, trust: nil))
        }
    }
}
