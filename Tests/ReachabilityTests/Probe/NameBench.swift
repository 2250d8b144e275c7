import EventLoop
import Foundation

@testable import Reachability

/// A name service on a loop inside a namespace with name servers that the test chooses.
struct NameBench {
    let namespace: ProbeNamespace
    var nameservers = [IPAddress(v4: 0x7f00_0001)]
    /// The zone of the name servers, if they are link-local.
    var zone: String?
    /// The files of the namespace: `hosts`, `nsswitch.conf`.
    var files: [String: String] = ["nsswitch.conf": "hosts: files dns\n"]
    var search: [String] = []

    init() throws { namespace = try ProbeNamespace() }

    /// Answers, with the milliseconds from the first request to each.
    struct Outcome: Sendable {
        var answers: [UInt64: LookupAnswer] = [:]
        var milliseconds: [UInt64: Int64] = [:]
        /// The number of descriptors that the process has more than before.
        var descriptors = 0
    }

    /// Runs a service until all requests are answered. `deadline` is that of each request, in milliseconds. After the answers,
    /// `followUp` may return further requests, each time.
    func run(
        _ requests: [LookupRequest], deadline: Int64 = 3_000,
        followUp: @escaping @Sendable (Outcome) -> [LookupRequest] = { _ in [] }
    ) throws -> Outcome {
        let folder = try TemporaryDirectory()
        for (name, text) in files { try folder.write(text, to: name) }
        let servers = nameservers.map { ResolverConfiguration.Nameserver($0, zone: zone) }
        let search = search
        let path = folder.path
        return try namespace.perform {
            var loop = try EventLoop()
            let mailbox = Mailbox<LookupAnswer>()
            mailbox.attach(loop.waker)
            let names = try NameService(namespace: nil, filesDirectory: path) { mailbox.post($0) }
            let configuration = ResolverConfiguration(
                nameservers: servers, search: search, exists: true)
            _ = names.configure(configuration, on: loop, now: MonotonicClock.now())
            var outcome = Outcome()
            var (waiting, next) = (Set<UInt64>(), requests)
            let started = MonotonicClock.now()
            func take(_ answers: [LookupAnswer]) {
                for answer in answers {
                    waiting.remove(answer.id)
                    outcome.answers[answer.id] = answer
                    outcome.milliseconds[answer.id] = (MonotonicClock.now() - started) / 1_000_000
                }
            }
            while !next.isEmpty {
                for var request in next {
                    waiting.insert(request.id)
                    request.deadline = MonotonicClock.now() + deadline * 1_000_000
                    take(names.resolve(request, on: loop, now: MonotonicClock.now()))
                }
                while !waiting.isEmpty {
                    guard MonotonicClock.now() - started < 30_000_000_000 else {
                        throw ProbeNamespace.Failure(description: "no answer to \(waiting.count) requests")
                    }
                    let ready = loop.wait(until: names.deadline)
                    let now = MonotonicClock.now()
                    for answer in mailbox.takeAll() { take(names.libcAnswered(answer, on: loop, now: now)) }
                    for descriptor in ready { take(names.ready(descriptor, on: loop, now: now)) }
                    take(names.tick(on: loop, now: now))
                }
                next = followUp(outcome)
            }
            names.stop(on: loop)
            return outcome
        }
    }

    /// Resolves one name.
    func ask(
        _ name: String = "server.example", _ families: Set<IPAddress.Family> = [.v4, .v6], deadline: Int64 = 3_000
    ) throws -> (answer: LookupAnswer, milliseconds: Int64) {
        let outcome = try run([LookupRequest(id: 1, name: name, families: families)], deadline: deadline)
        guard let answer = outcome.answers[1], let time = outcome.milliseconds[1] else {
            throw ProbeNamespace.Failure(description: "no answer")
        }
        return (answer, time)
    }

    /// The cause of a failed lookup, as `LAYER/CODE`, with the values of some evidence.
    func cause(_ answer: LookupAnswer, _ keys: String...) -> String {
        var host = Transcript.Host()
        host.hasResolver = !nameservers.isEmpty
        let cause = CauseOfLookup.cause(
            answer, name: "server.example", elapsed: answer.elapsedNanoseconds, in: host.localState)
        let evidence = keys.map { key in
            switch cause.evidence[key] {
            case .text(let text): "\(key)=\(text)"
            case .number(let number): "\(key)=\(number)"
            default: "\(key)=?"
            }
        }
        return ([cause.layer.rawValue + "/" + cause.code.rawValue] + evidence).joined(separator: " ")
    }
}
