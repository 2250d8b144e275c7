import EventLoop
import Foundation
import Glibc
import Testing

@testable import HTTPSession

/// Servers that send surplus responses after random responses: 400 requests, or the number in `NETWATCH_SURPLUS_REQUESTS`.
/// `NETWATCH_SURPLUS_SEED` sets the seed.
@Suite(.serialized, .timeLimit(.minutes(10))) struct SurplusStressTests {
    private static let environment = ProcessInfo.processInfo.environment
    private static let count = environment["NETWATCH_SURPLUS_REQUESTS"].flatMap { Int($0) } ?? 400
    private static let seed = environment["NETWATCH_SURPLUS_SEED"].flatMap { UInt64($0) } ?? .random(in: 0 ... .max)

    /// A session that knows the server uses no connection twice, so there are many sessions.
    @Test(arguments: [1, 10])
    func `surplus responses that arrive before the next request replace no body`(every interval: Int) async throws {
        let server = try SurplusServer(every: interval, seed: Self.seed)
        var turns = server.turns.makeAsyncIterator()
        var session = try localSession()
        for number in 0..<Self.count {
            if number % 20 == 0 { session = try localSession() }
            let response = try await session.dataTask(for: TransferRequest(url: try server.url("\(number)"))).response
            try #require(response.data == Data("\(number)".utf8), "seed \(Self.seed)")
            while let path = await turns.next(), path != "\(number)" {}
        }
        #expect(server.surplusCount > 0, "seed \(Self.seed)")
    }

    /// The time in which surplus bytes of an unknown server may arrive.
    @Test func `the second request to a server is sent after the quiet period`() async throws {
        let arrivals = Locked<[ContinuousClock.Instant]>([])
        let server = try LoopbackListener { client, _ in
            var buffer = [UInt8](repeating: 0, count: 4_096)
            while recv(client, &buffer, buffer.count, 0) > 0 {
                arrivals.withLock { $0.append(.now) }
                LoopbackListener.respond("x", to: client)
            }
        }
        let session = try localSession()
        for _ in 0..<2 { _ = try await session.dataTask(for: TransferRequest(url: try server.url())).response }
        let times = arrivals.withLock { $0 }
        #expect(times.count == 2 && times[1] - times[0] >= .nanoseconds(QuietPeriods.duration), "\(times)")
    }
}
