import EventLoop
import Foundation
import NetworkLab

@testable import Reachability

/// A name service on a loop inside a namespace with name servers that the test chooses.
///
/// The service's clock is the bench's. It stands still while somebody has something to do, and then goes to the service's next deadline at once. So
/// an answer that waits for nothing takes no time, however busy the machine is. c-ares measures its timeouts by the kernel's clock: they are lower
/// bounds.
struct NameBench {
    /// The longest time in milliseconds in which an answer is on its way after its server has sent it.
    private static let grace: Int64 = 20
    private let servers = Locked<[NameServer]>([])
    /// Whether the clock is the kernel's: for answers of other threads, whose work the bench does not see.
    var usesKernelClock = false
    let namespace: ProbeNamespace
    var nameservers = [IPAddress(v4: 0x7f00_0001)]
    /// The zone of the name servers, if they are link-local.
    var zone: String?
    /// The files of the namespace: `hosts`, `nsswitch.conf`.
    var files: [String: String] = ["nsswitch.conf": "hosts: files dns\n"]
    var search: [String] = []
    /// The configuration of the resolver, instead of that of ``nameservers`` and ``search``.
    var configuration: ResolverConfiguration?

    init() throws { namespace = try ProbeNamespace() }

    /// Starts a name server of the namespace.
    func serve(_ behavior: NameServer.Behavior, at address: String = "127.0.0.1", port: UInt16 = 53) throws -> NameServer {
        let server = try NameServer(behavior, in: namespace.path, address: address, port: port)
        servers.withLock { $0.append(server) }
        return server
    }

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
        let nameservers = nameservers.map { ResolverConfiguration.Nameserver($0, zone: zone) }
        let (search, given) = (search, configuration)
        let (path, usesKernelClock, servers) = (folder.path, usesKernelClock, servers)
        return try namespace.perform {
            var loop = try EventLoop()
            let mailbox = Mailbox<LookupAnswer>()
            mailbox.attach(loop.waker)
            let names = try NameService(namespace: nil, filesDirectory: path) { mailbox.post($0) }
            let configuration = given ?? ResolverConfiguration(nameservers: nameservers, search: search, exists: true)
            let started = MonotonicClock.now()
            var now = started
            _ = names.configure(configuration, on: loop, now: now)
            var outcome = Outcome()
            var (waiting, next) = (Set<UInt64>(), requests)
            func take(_ answers: [LookupAnswer]) {
                for answer in answers {
                    waiting.remove(answer.id)
                    outcome.answers[answer.id] = answer
                    outcome.milliseconds[answer.id] = (now - started) / 1_000_000
                }
            }
            /// Waits for a descriptor or an answer, or lets the time of the next deadline come.
            func wait() -> (ready: [EventLoop.Ready], answers: [LookupAnswer]) {
                if usesKernelClock {
                    let ready = loop.wait(until: names.deadline)
                    now = MonotonicClock.now()
                    return (ready, mailbox.takeAll())
                }
                for isSettled in [false, true] {
                    if isSettled { for server in servers.withLock({ $0 }) { server.settle() } }
                    let ready = loop.wait(until: MonotonicClock.now() + NameBench.grace * 1_000_000)
                    let answers = mailbox.takeAll()
                    if !ready.isEmpty || !answers.isEmpty { return (ready, answers) }
                }
                now = max(now, names.deadline ?? now + 1_000_000)
                return ([], [])
            }
            while !next.isEmpty {
                for var request in next {
                    waiting.insert(request.id)
                    request.deadline = now + deadline * 1_000_000
                    take(names.resolve(request, on: loop, now: now))
                }
                while !waiting.isEmpty {
                    guard now - started < 120_000_000_000 else {
                        throw ProbeNamespace.Failure(description: "no answer to \(waiting.count) requests")
                    }
                    let (ready, answers) = wait()
                    for answer in answers { take(names.libcAnswered(answer, on: loop, now: now)) }
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
        _ name: String = "server.example", _ families: Set<IPAddress.Family> = [.v4, .v6], by resolver: NameServerAddress? = nil,
        deadline: Int64 = 3_000
    ) throws -> (answer: LookupAnswer, milliseconds: Int64) {
        let request = LookupRequest(id: 1, name: name, families: families, resolver: resolver.map { Boxed($0) })
        let outcome = try run([request], deadline: deadline)
        guard let answer = outcome.answers[1], let time = outcome.milliseconds[1] else {
            throw ProbeNamespace.Failure(description: "no answer")
        }
        return (answer, time)
    }

    /// Resolves one name by getaddrinfo(3), on a thread with the files of the bench.
    func askGlibc(_ name: String) throws -> LookupAnswer {
        let folder = try TemporaryDirectory()
        for (name, text) in files { try folder.write(text, to: name) }
        let answers = Mailbox<LookupAnswer>()
        let arrival = try Waker()
        let resolver = try NameResolver(namespace: NetworkNamespace(namespace.path), filesDirectory: folder.path) { answer in
            answers.post(answer)
            arrival.wake()
        }
        resolver.resolve(LookupRequest(id: 1, name: name, families: [.v4, .v6]))
        let end = MonotonicClock.now() + 120_000_000_000
        while MonotonicClock.now() < end {
            if let answer = answers.takeAll().first {
                guard case .arranged = resolver.files else {
                    throw ProbeNamespace.Failure(description: "files: \(resolver.files)")
                }
                return answer
            }
            var poller = pollfd(fd: arrival.descriptor, events: Int16(POLLIN), revents: 0)
            if poll(&poller, 1, 1_000) > 0 { arrival.acknowledge() }
        }
        throw ProbeNamespace.Failure(description: "getaddrinfo does not end")
    }

    /// The cause of a failed lookup, as `LAYER/CODE`, with the values of some evidence.
    func cause(_ answer: LookupAnswer, by resolver: NameServerAddress? = nil, _ keys: String...) -> String {
        var host = Transcript.Host()
        host.hasResolver = !nameservers.isEmpty
        let cause = CauseOfLookup.cause(
            answer, name: "server.example", by: resolver, elapsed: answer.elapsedNanoseconds, in: host.localState)
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
