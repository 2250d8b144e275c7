import Expectations
import Pacing
import Testing

@testable import Reachability

/// Random events in random order: every request has exactly one answer in time, and nothing remains.
@Suite struct NameTableRandomTests {
    private struct Run {
        var table = NameTable()
        var dice: SplitMix64
        var now: Int64 = 0
        var questions: [NameQuestion] = []
        var libcRequests: [LookupRequest] = []
        /// The deadlines of the requests that wait for an answer.
        var waiting: [UInt64: Int64] = [:]
        var lastID: UInt64 = 0
        var answers = 0
        var complaints: [String] = []

        init(seed: UInt64) { dice = SplitMix64(seed: seed) }

        mutating func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &dice) < percent }

        mutating func take(_ effects: [NameTable.Effect]) {
            for effect in effects {
                switch effect {
                case .ask(let question):
                    if questions.contains(where: { $0.id == question.id }) { complaints.append("question \(question.id) twice") }
                    questions.append(question)
                case .askLibc(let request): libcRequests.append(request)
                case .cancelLibc(let target): libcRequests.removeAll { TargetID(owning: $0.id) == target }
                case .answer(let answer, _):
                    if waiting.removeValue(forKey: answer.id) == nil { complaints.append("an answer to \(answer.id) again") }
                    if (answer.code == 0) != !answer.addresses.isEmpty { complaints.append("a code beside addresses") }
                    if answer.ageNanoseconds ?? 0 < 0 { complaints.append("an age below zero") }
                    if answer.addresses.count > NameTable.addressLimit { complaints.append("too many addresses") }
                    answers += 1
                }
            }
            for (id, deadline) in waiting where deadline < now { complaints.append("no answer to \(id) in time") }
        }

        mutating func resolve() {
            let target = UInt64.random(in: 0..<30, using: &dice)
            lastID += 1
            let families: Set<IPAddress.Family> = [[.v4, .v6], [.v4], [.v6]].randomElement(using: &dice) ?? [.v4]
            let name = ["a.example", "b.example", "short", "x.local", "known"].randomElement(using: &dice) ?? ""
            let deadline = now + Int64.random(in: 1...3_000, using: &dice) * 1_000_000
            let request = LookupRequest(
                id: target << 32 | lastID, name: name, families: families, deadline: deadline,
                notBefore: chance(30) ? now - Int64.random(in: 0...500, using: &dice) * 1_000_000 : .min)
            waiting = waiting.filter { $0.key >> 32 != target }
            waiting[request.id] = deadline
            take(table.resolve(request, now: now))
        }

        mutating func answer() {
            guard let index = questions.indices.randomElement(using: &dice) else { return }
            let question = questions.remove(at: index)
            var result = NameQuestionResult(id: question.id, .failed)
            switch Int.random(in: 0..<6, using: &dice) {
            case 0: result.result = .noData
            case 1: result.result = .nameNotFound
            case 2: break
            default:
                result.result = .addresses
                result.ttl = UInt32.random(in: 0...20, using: &dice)
                result.addresses = (0..<Int.random(in: 1...20, using: &dice)).map {
                    question.family == .v4 ? IPAddress(v4: UInt32($0)) : IPAddress(v6: 1, UInt64($0))
                }
            }
            let server = ResolverConfiguration.Nameserver(IPAddress(v4: 1))
            result.exchanges = [NameServerExchange(server, chance(50) ? .answered : .silent, rcode: 2)]
            take(table.answered(result, now: now))
        }

        mutating func answerLibc() {
            guard let index = libcRequests.indices.randomElement(using: &dice) else { return }
            let request = libcRequests.remove(at: index)
            let isFound = chance(50)
            let answer = LookupAnswer(id: request.id, addresses: isFound ? [IPAddress(v4: 9)] : [], code: isFound ? 0 : -2)
            take(table.libcAnswered(answer, now: now))
        }

        mutating func configure() {
            var configuration = NameTable.Configuration()
            let texts = ["", "nameserver 192.0.2.1\n", "nameserver 192.0.2.2\nsearch one two\noptions ndots:2\n"]
            configuration.resolver = ResolverConfiguration(parsing: (texts.randomElement(using: &dice) ?? "").utf8)
            let services = ["", "hosts: files mdns4 dns mymachines", "hosts: dns files", "hosts: files wins dns"]
            configuration.services = NameServiceSwitch(parsing: (services.randomElement(using: &dice) ?? "").utf8)
            configuration.hosts = HostsFile(parsing: "192.0.2.9 known\n".utf8)
            take(table.configure(configuration, now: now))
        }

        mutating func step() {
            switch Int.random(in: 0..<100, using: &dice) {
            case 0..<35: resolve()
            case 35..<65: answer()
            case 65..<72: answerLibc()
            case 72..<74: configure()
            case 74..<76: table.forget()
            case 76..<79:
                let target = UInt64.random(in: 0..<30, using: &dice)
                waiting = waiting.filter { $0.key >> 32 != target }
                table.cancel(TargetID(Int(target)))
            default: pass(Int64.random(in: 0...200, using: &dice) * 1_000_000)
            }
        }

        /// Lets time pass, and stops at each time at which the table wants to be called.
        mutating func pass(_ nanoseconds: Int64) {
            let end = now + nanoseconds
            while let due = table.deadline, due <= end {
                now = max(now, due)
                take(table.tick(now: now))
                if let next = table.deadline, next <= now { return complaints.append("a tick without effect is due again") }
            }
            now = end
        }
    }

    @Test(.skippedByThreadSanitizer, arguments: 0..<20 as Range<UInt64>)
    func `every request has one answer by its deadline, and nothing remains`(seed: UInt64) {
        var run = Run(seed: seed)
        run.configure()
        for _ in 0..<600 where run.complaints.isEmpty { run.step() }
        #expect(run.answers > 50)
        // All questions end some time, as those of c-ares do.
        run.pass(4_000_000_000)
        expectEmpty(run.waiting)
        for _ in 0..<100_000 where !run.table.isIdle && run.complaints.isEmpty {
            run.answer()
            run.answerLibc()
            run.pass(100_000_000)
        }
        #expect(run.table.isIdle)
        expectEqual(run.complaints, [])
    }
}
