import EventLoop
import Expectations
import Foundation
import HTTPSessionTestKit
import NetworkLab
import Testing

@testable import HTTPSession

@Suite(.timeLimit(.minutes(20))) struct BearerAuthenticationTests {
    private let log = EventLog()

    private func session(_ tokens: BearerAuthentication) throws -> HTTPSessionManager {
        try HTTPSessionManager(
            configuration: localConfiguration(), handlers: TransferHandlers(interceptors: [tokens]), eventMonitors: [log])
    }

    /// A server that accepts only the token `new`.
    private func guarded() throws -> TestServer {
        try TestServer { $0["authorization"] == "Bearer new" ? StubResponse(body: "in") : StubResponse(401, body: "out") }
    }

    @Test func `a token is refreshed once for any number of waiting tasks`() async throws {
        let server = try guarded()
        let refreshes = Counter()
        let (started, mayEnd) = (Signal(), Signal())
        let tokens = BearerAuthentication(token: "old") { expired in
            expectEqual(expired, "old")
            refreshes.add()
            started.fire()
            await mayEnd.wait()
            return "new"
        }
        let session = try session(tokens)
        let tasks = (0..<20).map { _ in session.dataTask(for: TransferRequest(url: server.url())) }
        await started.wait()
        await log.await("response 401")
        mayEnd.fire()
        for task in tasks { try await expectEqual(task.string(), "in") }
        expectEqual(refreshes.count, 1)
        expectEqual(tokens.token, "new")
        expectEqual(server.requests.count { $0["authorization"] == "Bearer new" }, 20)
    }

    @Test func `without a token the first is fetched, and a token that is refused again yields the 401`() async throws {
        let server = try guarded()
        let tokens = BearerAuthentication { _ in "new" }
        try await expectEqual(session(tokens).dataTask(for: TransferRequest(url: server.url())).string(), "in")
        let refreshes = Counter()
        let useless = BearerAuthentication(token: "a") { _ in "b\(refreshes.add())" }
        try await expectEqual(session(useless).dataTask(for: TransferRequest(url: server.url())).response.statusCode, 401)
        expectEqual(refreshes.count, 2)
    }

    @Test func `a failed token refresh returns the 401, and without any token is an error`() async throws {
        struct Refused: Error {}
        let server = try guarded()
        let expired = BearerAuthentication(token: "old") { _ in throw Refused() }
        try await expectEqual(session(expired).dataTask(for: TransferRequest(url: server.url())).response.statusCode, 401)
        let none = BearerAuthentication { _ in throw Refused() }
        await expectEqual(
            failure(try session(none).dataTask(for: TransferRequest(url: server.url())))?.code, .authenticationFailed)
    }

    @Test func `a token is renewed before it expires, and used until it expires if renewal fails`() async throws {
        let server = try TestServer { StubResponse(body: StubBody(stringLiteral: $0["authorization"] ?? "")) }
        let (started, mayEnd) = (Signal(), Signal())
        let fetches = Counter()
        // The token was issued long ago, so half of its lifetime has passed immediately.
        let old = BearerToken("old", expiry: Date().addingTimeInterval(600))
        let tokens = BearerAuthentication(token: old, renewal: TokenRenewal(ahead: .seconds(3_600)), since: .distantPast) {
            expired in
            expectEqual(expired, old)
            fetches.add()
            started.fire()
            await mayEnd.wait()
            return BearerToken("new", expiry: Date().addingTimeInterval(36_000))
        }
        let session = try session(tokens)
        // No request waits for a renewal ahead of expiry.
        for _ in 0..<2 { try await expectEqual(session.dataTask(for: TransferRequest(url: server.url())).string(), "Bearer old") }
        await started.wait()
        mayEnd.fire()
        while tokens.token != "new" { await Task.yield() }
        try await expectEqual(session.dataTask(for: TransferRequest(url: server.url())).string(), "Bearer new")
        expectEqual(fetches.count, 1)
        struct Away: Error {}
        let stuck = BearerAuthentication(token: old, renewal: TokenRenewal(ahead: .seconds(3_600)), since: .distantPast) { _ in
            throw Away()
        }
        for _ in 0..<9 {
            try await expectEqual(self.session(stuck).dataTask(for: TransferRequest(url: server.url())).string(), "Bearer old")
        }
    }

    @Test func `a server that refuses every new token causes a limited number of token fetches`() async throws {
        let server = try guarded()
        let fetches = Counter()
        let tokens = BearerAuthentication(renewal: TokenRenewal(maximumCount: 3, period: .seconds(3_600))) { _ in
            BearerToken("b\(fetches.add())")
        }
        let session = try session(tokens)
        for _ in 0..<3 {
            try await expectEqual(session.dataTask(for: TransferRequest(url: server.url())).response.statusCode, 401)
        }
        expectEqual(fetches.count, 3)
        // When no unexpired token exists, reaching the limit is an error.
        let expired = BearerAuthentication(renewal: TokenRenewal(maximumCount: 1, period: .seconds(3_600))) { _ in
            BearerToken("a", expiry: .distantPast)
        }
        let other = try self.session(expired)
        try await expectEqual(other.dataTask(for: TransferRequest(url: server.url())).response.statusCode, 401)
        let error = await failure(other.dataTask(for: TransferRequest(url: server.url())))
        expectEqual(error?.code, .authenticationFailed)
        #expect(error?.reason.contains("too many tokens") == true)
    }
}

@Suite struct TokenLifeTests {
    private let now = Date(timeIntervalSince1970: 1_000_000)

    private func life(_ seconds: Double?, since taken: Date = .distantPast) -> TokenLife {
        TokenLife(BearerToken("t", expiry: seconds.map(now.addingTimeInterval)), TokenRenewal(ahead: .seconds(30)), at: taken)
    }

    @Test func `a token is usable until it expires, unless it was refused`() {
        for seconds in [nil, 1, 31, 1_000] as [Double?] {
            #expect(life(seconds).usable(insteadOf: nil, at: now) != nil)
            #expect(life(seconds).usable(insteadOf: "s", at: now) != nil)
            expectNil(life(seconds).usable(insteadOf: "t", at: now))
        }
        for seconds in [0, -1] as [Double] { expectNil(life(seconds).usable(insteadOf: nil, at: now)) }
        expectNil(TokenLife(nil, TokenRenewal(), at: now).usable(insteadOf: nil, at: now))
    }

    @Test func `token renewal is due shortly before expiry, but not in the first half of the token's lifetime`() {
        for seconds in [nil, 31, 1_000] as [Double?] { #expect(!life(seconds).isDue(at: now)) }
        for seconds in [30, 1] as [Double] { #expect(life(seconds).isDue(at: now)) }
        // A token with a lifetime of ten seconds.
        expectEqual([0, 4, 5, 9].map { life(10, since: now).isDue(at: now.addingTimeInterval($0)) }, [false, false, true, true])
        #expect(!TokenLife(nil, TokenRenewal(), at: now).isDue(at: now))
    }

    @Test func `the number of token fetches within the period is limited`() {
        var life = TokenLife(nil, TokenRenewal(maximumCount: 2, period: .seconds(30)), at: now)
        let second: Int64 = 1_000_000_000
        expectEqual([0, 10, 29, 30, 39, 40].map { life.mayFetch(now: $0 * second) }, [true, true, false, true, false, true])
        var ahead = TokenLife(nil, TokenRenewal(maximumCount: 2, period: .seconds(30)), at: now)
        expectEqual([true, true, false].map { ahead.mayFetch(now: 0, isAhead: $0) }, [true, false, true])
        var least = TokenLife(nil, TokenRenewal(maximumCount: -1), at: now)
        expectEqual([least.mayFetch(now: 0), least.mayFetch(now: 1)], [true, false])
    }
}
