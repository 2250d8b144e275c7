internal import EventLoop
internal import Glibc
internal import Pacing

/// Resolves the names of a monitor's targets, on the loop's thread: the hosts file, DNS by c-ares, and getaddrinfo(3) on threads
/// for the modules of nsswitch.conf(5) that only glibc can load.
///
/// ``NameTable`` decides; this class has the files and sockets. Every call returns the answers that are known now.
final class NameService {
    /// The tokens of the sockets. They are below those of the prober.
    static let tokens: Range<UInt64> = 1 << 24..<1 << 32
    /// The shortest time in nanoseconds between two checks whether a file has changed.
    private static let checkInterval: Int64 = 1_000_000_000

    private var table = NameTable()
    private var channel: DNSChannel?
    private let libc: NameResolver
    private var hostsFile: SystemFile
    private var servicesFile: SystemFile
    private var nextCheck = Int64.min
    private var lastToken = NameService.tokens.lowerBound
    /// The results of questions for which c-ares has no memory.
    private var failures: [NameQuestionResult] = []

    /// Creates a service without sockets and threads.
    ///
    /// - Parameters:
    ///   - namespace: the namespace of the calling thread, for getaddrinfo's threads and the files.
    ///   - filesDirectory: replaces `/etc/netns/NAME`.
    ///   - sink: receives each answer of getaddrinfo on another thread. The owner passes it to
    ///     ``libcAnswered(_:on:now:)``.
    /// - Throws: `LoopError` if no descriptor is available.
    init(
        namespace: NetworkNamespace?, filesDirectory: String? = nil, sink: @escaping @Sendable (LookupAnswer) -> Void
    ) throws(LoopError) {
        let directory = filesDirectory ?? namespace?.name.map { "/etc/netns/\($0)" }
        hostsFile = SystemFile("hosts", directory: directory)
        servicesFile = SystemFile("nsswitch.conf", directory: directory)
        libc = try NameResolver(namespace: namespace, filesDirectory: filesDirectory, sink: sink)
    }

    /// Returns whether a ready descriptor's token belongs, or belonged, to the service.
    static func owns(_ token: UInt64) -> Bool { tokens.contains(token) }

    /// The time at which ``tick(on:now:)`` is due, on the monotonic clock in nanoseconds; `nil` for never.
    var deadline: Int64? { earlier(table.nextDeadline(), channelDeadline) }

    // MARK: Events

    /// Resolves a name.
    func resolve(_ request: LookupRequest, on loop: borrowing EventLoop, now: Int64) -> [LookupAnswer] {
        var effects = readFiles(now: now)
        effects += table.resolve(request, now: now)
        return perform(effects, on: loop, now: now)
    }

    /// Handles a ready descriptor.
    func ready(_ ready: EventLoop.Ready, on loop: borrowing EventLoop, now: Int64) -> [LookupAnswer] {
        channel?.ready(ready)
        return perform([], on: loop, now: now)
    }

    /// Handles the passing of time.
    func tick(on loop: borrowing EventLoop, now: Int64) -> [LookupAnswer] {
        guard let deadline, deadline <= now else { return [] }
        channel?.tick(now: now)
        // Results of this moment count before the deadlines of the requests.
        let early = perform([], on: loop, now: now)
        return early + perform(table.tick(now: now), on: loop, now: now)
    }

    /// Handles an answer of getaddrinfo.
    func libcAnswered(_ answer: LookupAnswer, on loop: borrowing EventLoop, now: Int64) -> [LookupAnswer] {
        perform(table.libcAnswered(answer, now: now), on: loop, now: now)
    }

    /// Handles a possible change of resolv.conf. Running lookups are restarted if it has changed.
    func configure(_ resolver: ResolverConfiguration, on loop: borrowing EventLoop, now: Int64) -> [LookupAnswer] {
        libc.configurationChanged()
        guard resolver != table.configuration.resolver else { return [] }
        removeChannel(on: loop)
        var configuration = table.configuration
        configuration.resolver = resolver
        return perform(table.configure(configuration, now: now), on: loop, now: now)
    }

    /// Forgets the answers of another network.
    func forget() { table.forget() }

    /// Removes the waiting request of a target.
    func cancel(_ target: TargetID) { table.cancel(target) }

    /// Closes the sockets, and ends the threads without waiting for them.
    func stop(on loop: borrowing EventLoop) {
        removeChannel(on: loop)
        libc.stop()
    }

    // MARK: Effects

    private func perform(_ effects: [NameTable.Effect], on loop: borrowing EventLoop, now: Int64) -> [LookupAnswer] {
        var effects = effects
        var answers: [LookupAnswer] = []
        while true {
            for effect in effects {
                switch effect {
                case .ask(let question): ask(question, now: now)
                case .askLibc(let request): libc.resolve(request)
                case .cancelLibc(let target): libc.cancel(target)
                case .answer(var answer, let unanswered):
                    for (family, id) in unanswered { answer[family]?.exchanges = evidence(of: id) }
                    answers.append(answer)
                }
            }
            let results = takeResults(on: loop)
            if results.isEmpty { return answers }
            effects = results.flatMap { table.answered($0, now: now) }
        }
    }

    private func ask(_ question: NameQuestion, now: Int64) {
        if channel == nil {
            channel = try? DNSChannel(table.configuration.resolver) { [unowned self] in makeToken() }
        }
        guard channel != nil else { return failures.append(NameQuestionResult(id: question.id, .failed)) }
        channel?.ask(question, now: now)
    }

    // Tokens are used again only after four billion sockets.
    private func makeToken() -> UInt64 {
        lastToken = lastToken + 1 < Self.tokens.upperBound ? lastToken + 1 : Self.tokens.lowerBound
        return lastToken
    }

    private func takeResults(on loop: borrowing EventLoop) -> [NameQuestionResult] {
        defer { failures = [] }
        return failures + (channel?.takeResults(on: loop) ?? [])
    }

    private func evidence(of id: UInt64) -> [NameServerExchange] { channel?.evidence(of: id) ?? [] }

    private var channelDeadline: Int64? { channel?.deadline ?? nil }

    private func removeChannel(on loop: borrowing EventLoop) {
        channel?.removeSockets(from: loop)
        channel = nil
    }

    // MARK: Files

    private func readFiles(now: Int64) -> [NameTable.Effect] {
        guard now >= nextCheck else { return [] }
        nextCheck = now + Self.checkInterval
        var configuration = table.configuration
        if let bytes = hostsFile.readIfChanged() { configuration.hosts = HostsFile(parsing: bytes) }
        if let bytes = servicesFile.readIfChanged() { configuration.services = NameServiceSwitch(parsing: bytes) }
        var name = [CChar](repeating: 0, count: 256)
        if gethostname(&name, name.count - 1) == 0 {
            configuration.hostName = String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        }
        return configure(configuration, now: now)
    }

    // The questions of the former lookups stay open in the channel, and their results are ignored.
    private func configure(_ configuration: NameTable.Configuration, now: Int64) -> [NameTable.Effect] {
        guard configuration != table.configuration else { return [] }
        libc.configurationChanged()
        return table.configure(configuration, now: now)
    }
}
