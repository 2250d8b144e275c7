import Expectations
import FoundationEssentials
import Reachability
import Testing

@testable import HTTPSession

@Suite struct TransferReportsTests {
    /// Collects the reports of a session as text.
    private final class Collector {
        var lines: [String] = []
        var lookups = 0
        var answered = TransferFacts()

        init() { answered.firstByte = 1 }

        func reports() -> TransferReports {
            TransferReports(
                endpoint: { [self] origin in
                    lookups += 1
                    return (try? Endpoint(host: origin.host, port: UInt16(origin.port))).map {
                        FirstEndpoint(endpoint: $0, isProxy: false)
                    }
                },
                report: { [self] first, facts in lines.append("\(first.endpoint.text) \(facts == nil ? "failure" : "success")") })
        }
    }

    private func origin(_ text: String) throws -> Origin { try #require(URL(string: text).flatMap { Origin($0) }) }

    @Test func `one success and one failure of each origin are reported in 100 ms`() throws {
        let collector = Collector()
        let reports = collector.reports()
        let (first, second) = (try origin("https://a.example/"), try origin("http://a.example/"))
        for time in stride(from: 0, to: 200_000_000, by: 1_000_000) as StrideTo<Int64> {
            for origin in [first, second] {
                reports.record(.success, at: origin, collector.answered, now: time)
                reports.record(.failure, at: origin, collector.answered, now: time)
            }
        }
        let all = ["a.example:443 success", "a.example:443 failure", "a.example:80 success", "a.example:80 failure"]
        expectEqual(collector.lines, all + all)
        // The endpoint of an origin is determined once.
        expectEqual(collector.lookups, 2)
    }

    @Test func `the number of remembered origins is limited`() throws {
        let collector = Collector()
        let reports = collector.reports()
        for number in 0..<2 * TransferReports.limit {
            reports.record(.failure, at: try origin("http://h\(number).example/"), collector.answered, now: 0)
        }
        reports.record(.failure, at: try origin("http://h0.example/"), collector.answered, now: 1)
        expectEqual(collector.lines.count, 2 * TransferReports.limit + 1)
    }

    @Test func `a response is a success, and an error before or after it is a failure only if the connection failed`() {
        func outcome(_ code: HTTPSessionError.Code?, answered: Bool, _ change: (inout TransferFacts) -> Void = { _ in })
            -> TransferReports.Outcome?
        {
            var facts = TransferFacts()
            facts.firstByte = answered ? 1 : nil
            change(&facts)
            return TransferReports.outcome(of: code.map { HTTPSessionError($0, "") }, facts)
        }
        expectEqual(outcome(nil, answered: true), .success)
        expectEqual(outcome(.responseTooLarge, answered: true), .success)
        expectEqual(outcome(.cannotWriteFile, answered: true), .success)
        expectNil(outcome(.cancelled, answered: false))
        expectNil(outcome(.certificateUntrusted, answered: false))
        for code in [HTTPSessionError.Code.cannotConnectToHost, .cannotFindHost, .connectionLost, .timedOut] {
            expectEqual(outcome(code, answered: false), .failure)
        }
        expectEqual(outcome(.connectionLost, answered: true), .failure)
        // These attempts are repeated, and show nothing.
        expectNil(outcome(.connectionLost, answered: false) { $0.hadUnfitConnection = true })
        expectNil(outcome(.connectionLost, answered: false) { $0.wasUpgraded = true })
        expectNil(outcome(.connectionLost, answered: true) { $0.hadSurplus = true })
    }

    @Test func `only a new connection has a connect time`() {
        var facts = TransferFacts()
        (facts.nameLookup, facts.connect) = (4_000_000, 9_000_000)
        expectEqual(facts.connectTime, .milliseconds(5))
        facts.reusedConnection = true
        expectNil(facts.connectTime)
        expectNil(TransferFacts().connectTime)
    }
}
