import Expectations
import Glibc
import Pacing
import Testing

@testable import Reachability

private let second = IncidentTranscript.second

/// Random failures, whose incidents are compared with rules that each reader may rely on.
@Suite struct IncidentRandomTests {
    private typealias T = IncidentTranscript

    /// What a reader of the published incidents knows, and what is true of the targets.
    private struct Reader {
        let seed: UInt64
        var open: [String: Incident] = [:]
        var ended: Set<String> = []
        var last: [String: Int64] = [:]

        mutating func read(_ incident: Incident, at now: Int64) {
            let known = open[incident.id]
            #expect(!ended.contains(incident.id), "seed \(seed): \(incident) after its end")
            if incident.isOpen {
                if let known {
                    let isNews =
                        incident.targetCount > known.targetCount || !incident.cause.isSameFailure(as: known.cause)
                        || incident.scope != known.scope
                    #expect(isNews && now - (last[incident.id] ?? 0) >= second, "seed \(seed): \(incident) after \(known)")
                    #expect(known.began == incident.began && known.subject == incident.subject, "seed \(seed)")
                }
                (open[incident.id], last[incident.id]) = (incident, now)
            } else {
                #expect(known != nil && incident.targetCount >= known?.targetCount ?? 0, "seed \(seed): \(incident)")
                #expect((incident.state == .merged) == (incident.into != nil), "seed \(seed): \(incident)")
                if let into = incident.into { #expect(open[into] != nil, "seed \(seed): \(incident) into \(into)") }
                open[incident.id] = nil
                ended.insert(incident.id)
            }
            let subjects = open.values.map { "\($0.kind) \($0.subject)" }
            #expect(Set(subjects).count == subjects.count, "seed \(seed): two incidents of one subject: \(subjects)")
        }
    }

    @Test(.skippedByThreadSanitizer, arguments: [Int64(0), 5])
    func `each failing target belongs to one incident, and each published one ends once`(
        openAfter: Int64
    ) throws {
        let addresses = (0..<4).map { "198.51.100.\($0)" }
        func hostUnreachable(_ address: String) -> Cause {
            T.cause(.network, .hostUnreachable, ["hop": "203.0.113.1", "address": address])
        }
        let names = ["one.example", "two.example", "three.test"]
        for seed in 0..<40 as Range<UInt64> {
            var (t, random) = (T(timing: .init(openAfter: openAfter * second)), SplitMix64(seed: seed))
            var reader = Reader(seed: seed)
            var failing: Set<Int> = []
            for _ in 0..<1_500 {
                let number = Int.random(in: 0..<20, using: &random)
                let (address, isFlapping) = (addresses[number % 4], Int.random(in: 0..<8, using: &random) == 0)
                t.timing.closeAfter = Bool.random(using: &random) ? 0 : second
                switch Int.random(in: 0..<12, using: &random) {
                case 0..<5:
                    let causes = [
                        T.silentGateway, T.noCarrier, T.refused, T.hop("203.0.113.1"), T.oneNetwork, T.severalNetworks, T.silent,
                        hostUnreachable(address), T.unresolved(names[number % 3]), T.cause(.http, .status),
                    ]
                    t.fail(number, causes[Int.random(in: 0..<causes.count, using: &random)], at: address, flapping: isFlapping)
                    failing.insert(number)
                case 5..<8:
                    t.succeed(number, at: address, flapping: isFlapping)
                    if isFlapping { failing.insert(number) } else { failing.remove(number) }
                case 8:
                    t.remove(number)
                    failing.remove(number)
                case 9: try t.resolve()
                default: t.now += Int64.random(in: 0...(second / 2), using: &random)
                }
                guard Bool.random(using: &random) else { continue }
                // Each has another result, so that none waits for one, and no row of failures, which would end its flapping.
                for number in failing.sorted() { try t.probe(number, fails: false) }
                for number in failing.sorted() { try t.probe(number) }
                for incident in t.take() { reader.read(incident, at: t.now) }
                #expect(t.book.deadline.map { $0 > t.now } ?? true, "seed \(seed)")
                expectEqual(t.book.memberCount, failing.count, "seed \(seed)")
                expectEqual(t.book.openCount, reader.open.count, "seed \(seed)")
                let wrong = failing.filter { number in
                    guard let member = t.book.subject(of: TargetID(number)) else { return true }
                    guard let id = member.id else { return openAfter == 0 }
                    return reader.open[id]?.subject != member.subject
                }
                expectEqual(wrong, [], "seed \(seed)")
            }
            for number in 0..<20 { t.succeed(number) }
            for _ in 0..<3 {
                for incident in t.take() { reader.read(incident, at: t.now) }
                t.now += 2 * second
            }
            #expect(reader.open.isEmpty && t.book.openCount == 0 && t.book.deadline == nil, "seed \(seed)")
        }
    }

    @Test(
        .skippedByThreadSanitizer, arguments: [("gateway", 20_000), ("targets", 20_000), ("hosts", 20_000), ("merged", 100_000)])
    func `100,000 targets need constant or logarithmic time each`(_ kind: String, _ most: Int) {
        // Other programs do not use the thread's time.
        func processorTime() -> Int64 {
            var time = timespec()
            clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
            return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
        }
        var times: [Int64] = []
        for count in [most / 20, most] {
            var (t, published) = (T(), 0)
            let start = processorTime()
            for number in 0..<count {
                switch kind {
                case "gateway": t.fail(number, T.silentGateway)
                case "targets": t.fail(number, T.refused)
                case "hosts": t.fail(number, T.silent, at: "10.\(number >> 16).\(number >> 8 & 255).\(number & 254)")
                default: t.fail(number, T.oneNetwork)
                }
                // A turn handles at most 512 targets.
                if number % 512 == 511 { published += t.take().count }
            }
            published += t.take().count
            if kind == "merged" {
                t.fail(count, T.severalNetworks)
                published += t.take().count
                expectEqual(t.book.openCount, 1)
            }
            for number in 0...count { t.succeed(number) }
            published += t.take().count
            times.append(processorTime() - start)
            #expect(published > 0 && t.book.openCount == 0 && t.book.memberCount == 0)
        }
        // Twenty times as many targets; quadratic work would need 400 times as long.
        #expect(times[1] < times[0] * 80, "\(times)")
    }
}
