import Expectations
import Testing

@testable import HTTPSession

@Suite struct HandleSetupTests {
    private func plan(_ url: String = "https://a.test/1", _ change: (inout TransferPlan) -> Void = { _ in }) -> TransferPlan {
        var plan = TransferPlan(url: url, method: "GET")
        change(&plan)
        return plan
    }

    @Test func `attempts with different URLs and header fields share a handle setup`() throws {
        let first = try #require(HandleSetup(plan(), trust: nil))
        #expect(first.fits(plan("https://b.test/2"), trust: nil))
        #expect(first.fits(plan { $0.headerLines = ["Accept: x"] }, trust: nil))
        #expect(first.fits(plan { $0.expectsUpgrade = true }, trust: nil))
        #expect(first.fits(plan { ($0.cookies, $0.handlesCookies) = ("a=1", false) }, trust: nil))
        #expect(first.fits(plan { $0.requestsCompression = false }, trust: nil))
        #expect(first.fits(plan { $0.expectsContinue = true }, trust: nil))
        #expect(first.fits(plan { $0.preemptiveCredential = Credential(user: "u", password: "p") }, trust: nil))
    }

    @Test func `attempts that differ in any other property do not share a handle setup`() throws {
        let first = try #require(HandleSetup(plan(), trust: nil))
        let others = [
            plan("http://a.test/1"), plan { $0.method = "HEAD" }, plan { $0.isolatesConnection = true },
            plan { $0.connectTimeoutMilliseconds = 1 }, plan { $0.needsFreshConnection = true },
            plan { $0.maximumIdleSeconds = 1 }, plan { $0.maximumLookupSeconds = 1 }, plan { $0.asksBeforeConnecting = true },
            plan { $0.watchesRoute = true }, plan { $0.proxy = "http://p" }, plan { $0.decompresses = false },
            plan { $0.avoidsHTTP2 = true }, plan { $0.bufferSize = 1 << 20 }, plan { $0.maximumSendRate = 1 },
            plan { $0.packetSize = 1 },
        ]
        for other in others { #expect(!first.fits(other, trust: nil), "\(other)") }
        // A new property of a plan is either set by every attempt or compared; add it to one of these lists.
        let setByEachAttempt = [
            "url", "headerLines", "proxyHeaderLines", "cookies", "handlesCookies", "expectsUpgrade", "preemptiveCredential",
            "requestsCompression", "expectsContinue", "latin1Lines", "proxyLatin1Lines",
        ]
        expectEqual(
            Mirror(reflecting: plan()).children.count,
            setByEachAttempt.count + ["login", "proxyLogin", "body"].count
                + others.count)
    }

    @Test func `the maximum idle time is set by every attempt if the setup has one`() throws {
        let first = try #require(HandleSetup(plan { $0.maximumIdleSeconds = 3 }, trust: nil))
        #expect(first.fits(plan { $0.maximumIdleSeconds = 4 }, trust: nil))
        #expect(first.fits(plan { $0.maximumIdleSeconds = 0 }, trust: nil))
        #expect(!first.fits(plan(), trust: nil))
    }

    @Test func `attempts with different security policies do not share a handle setup`() throws {
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

    @Test func `attempts with another proxy, identity or decision do not share a handle setup`() throws {
        let (plan, policy, decisions) = (plan(), try PreparedPolicy.of(.default), ServerTrustDecisions())
        let identity = try ClientIdentity(
            certificate: MintedCertificates.data("client.pem"), privateKey: MintedCertificates.data("client.key"))
        func trust(
            proxy: String? = nil, _ identity: ClientIdentity? = nil, _ decisions: ServerTrustDecisions? = nil
        ) -> ServerTrust {
            ServerTrust(
                policy: policy, host: "a.test", proxy: proxy.map { .init(policy: policy, host: $0) }, identity: identity,
                decisions: decisions)
        }
        let all = [trust(), trust(proxy: "proxy.test"), trust(proxy: "other.test"), trust(identity), trust(nil, decisions)]
        for (number, one) in all.enumerated() {
            let setup = try #require(HandleSetup(plan, trust: one))
            expectEqual(all.indices.filter { setup.fits(plan, trust: all[$0]) }, [number])
        }
        let before = try #require(HandleSetup(plan, trust: all[4]))
        decisions.removeAll()
        #expect(!before.fits(plan, trust: trust(nil, decisions)))
    }

    @Test func `a handle setup with a login or a body is not reused`() throws {
        let first = try #require(HandleSetup(plan(), trust: nil))
        let login = TransferPlan.Login(user: "u", password: "p", schemes: [.digest])
        for other in [
            plan { $0.login = login }, plan { $0.proxyLogin = login }, plan { $0.body = .length(1) },
            plan { $0.body = .untilEnd },
        ] {
            expectNil(HandleSetup(other, trust: nil))
            #expect(!first.fits(other, trust: nil))
        }
    }
}
