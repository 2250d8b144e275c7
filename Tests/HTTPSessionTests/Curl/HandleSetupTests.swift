import Testing

@testable import HTTPSession

@Suite struct HandleSetupTests {
    private func setup(_ url: String = "https://a.test/1", _ change: (inout TransferPlan) -> Void = { _ in }) -> HandleSetup? {
        var plan = TransferPlan(url: url, method: "GET")
        change(&plan)
        return HandleSetup(plan, trust: nil)
    }

    @Test func `attempts that differ in their address and their fields find the same setup`() throws {
        let first = try #require(setup())
        #expect(setup("https://b.test/2") == first)
        #expect(setup { $0.headerLines = ["Accept: x"] } == first)
    }

    @Test func `attempts that differ in anything else do not`() throws {
        let first = try #require(setup())
        #expect(setup("http://a.test/1") != first)
        #expect(setup { $0.method = "HEAD" } != first)
        #expect(setup { $0.handlesCookies = false } != first)
        #expect(setup { $0.decompresses = false } != first)
        #expect(setup { $0.needsFreshConnection = true } != first)
        #expect(setup { $0.avoidsHTTP2 = true } != first)
        #expect(setup { $0.bufferSize = 1 << 20 } != first)
        #expect(setup { $0.connectTimeoutMilliseconds = 1 } != first)
    }

    @Test func `how long a connection may have been idle is said anew by every attempt, where it is said at all`() throws {
        let first = try #require(setup { $0.maximumIdleSeconds = 3 })
        #expect(setup { $0.maximumIdleSeconds = 4 } == first)
        #expect(setup { $0.maximumIdleSeconds = 0 } == first)
        #expect(setup() != first)
    }

    @Test func `a server judged by one policy finds no setup of another`() throws {
        let plan = TransferPlan(url: "https://a.test/1", method: "GET")
        func trust(_ policy: PreparedPolicy) -> ServerTrust { ServerTrust(policy: policy, host: "a.test") }
        var other = SecurityPolicy.default
        other.minimumTLSVersion = .v1_3
        let policy = try PreparedPolicy.of(.default)
        let first = try #require(HandleSetup(plan, trust: trust(policy)))
        #expect(HandleSetup(plan, trust: trust(policy)) == first)
        #expect(HandleSetup(plan, trust: trust(try PreparedPolicy.of(other))) != first)
        #expect(HandleSetup(plan, trust: nil) != first)
    }

    @Test func `of a login and of a body nothing is kept`() {
        let login = TransferPlan.Login(user: "u", password: "p", schemes: [.digest])
        #expect(setup { $0.login = login } == nil)
        #expect(setup { $0.proxyLogin = login } == nil)
        #expect(setup { $0.body = .length(1) } == nil)
        #expect(setup { $0.body = .untilEnd } == nil)
    }
}
