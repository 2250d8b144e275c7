internal import EventLoop
internal import Glibc
internal import Pacing

/// Resolves the names of a monitor's targets, on the loop's thread: the hosts file, DNS by c-ares, and getaddrinfo(3) on threads
/// for the modules of nsswitch.conf(5) that only glibc can load.
///
/// ``NameTable`` decides; this class has the files and sockets. Every call returns the answers that are known now. A name server that targets have of
/// their own (``LookupRequest/resolver``) has a table, a cache and sockets of its own.
final class NameService {
    /// The tokens of the sockets. They are below those of the prober.
    static let tokens: Range<UInt64> = 1 << 24..<1 << 32
    /// The shortest time in nanoseconds between two checks whether a file has changed.
    private static let checkInterval: Int64 = 1_000_000_000

    /// The names that are resolved in one way.
    private final class Lookups {
        var table = NameTable()
        var channel: DNSChannel?
        /// The results of questions for which c-ares has no memory.
        var failures: [NameQuestionResult] = []

        /// Whether nothing is awaited. The cache may have names.
        var isIdle: Bool { table.isIdle && failures.isEmpty && channel?.count ?? 0 == 0 }
        var deadline: Int64? { earlier(table.nextDeadline(), channel?.deadline ?? nil) }

        init(_ configuration: NameTable.Configuration = NameTable.Configuration()) { table.configuration = configuration }
    }

    /// The number of name servers of targets at which those without a lookup are forgotten.
    private static let idleLimit = 256

    /// The names that are resolved as the system does it.
    private let system = Lookups()
    /// The names that a name server of a target resolves alone.
    private var others: [NameServerAddress: Lookups] = [:]
    /// Those of ``others`` that are not idle.
    private var active: [NameServerAddress: Lookups] = [:]
    private var sweepCount = NameService.idleLimit
    private let libc: NameResolver
    private var hostsFile: SystemFile
    private var servicesFile: SystemFile
    private var nextCheck = Int64.min
    private var lastToken = NameService.tokens.lowerBound

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
    var deadline: Int64? {
        active.isEmpty ? system.deadline : active.values.reduce(system.deadline) { earlier($0, $1.deadline) }
    }

    // MARK: Events

    /// Resolves a name.
    func resolve(_ request: LookupRequest, on loop: borrowing EventLoop, now: Int64) -> [LookupAnswer] {
        if let server = request.resolver?.value { return resolve(request, by: server, on: loop, now: now) }
        var effects = readFiles(now: now)
        effects += system.table.resolve(request, now: now)
        return perform(effects, of: system, on: loop, now: now)
    }

    /// Resolves a name by a name server of the target. The name is complete, and the files of the machine are not asked.
    private func resolve(
        _ request: LookupRequest, by server: NameServerAddress, on loop: borrowing EventLoop, now: Int64
    ) -> [LookupAnswer] {
        let lookups = others[server] ?? makeLookups(server)
        active[server] = lookups
        return performAll(lookups.table.resolve(request, now: now), of: lookups, at: server, on: loop, now: now)
    }

    private func makeLookups(_ server: NameServerAddress) -> Lookups {
        if others.count >= sweepCount {
            others = active
            sweepCount = max(Self.idleLimit, 2 * others.count)
        }
        let resolver = ResolverConfiguration(nameservers: [server], exists: true)
        let lookups = Lookups(NameTable.Configuration(resolver: resolver, services: .onlyDNS))
        others[server] = lookups
        return lookups
    }

    /// Performs effects, and notes whether further ones may follow.
    private func performAll(
        _ effects: [NameTable.Effect], of lookups: Lookups, at server: NameServerAddress, on loop: borrowing EventLoop, now: Int64
    ) -> [LookupAnswer] {
        let answers = perform(effects, of: lookups, on: loop, now: now)
        if lookups.isIdle { active[server] = nil }
        return answers
    }

    /// Handles a ready descriptor.
    func ready(_ ready: EventLoop.Ready, on loop: borrowing EventLoop, now: Int64) -> [LookupAnswer] {
        if system.channel?.ready(ready) == true || active.isEmpty { return perform([], of: system, on: loop, now: now) }
        for (server, lookups) in active where lookups.channel?.ready(ready) == true {
            return performAll([], of: lookups, at: server, on: loop, now: now)
        }
        return []
    }

    /// Handles the passing of time.
    func tick(on loop: borrowing EventLoop, now: Int64) -> [LookupAnswer] {
        guard let deadline, deadline <= now else { return [] }
        var answers = tick(system, on: loop, now: now)
        // A fixed order, so that a recording has the answers in it.
        for (server, lookups) in active.sorted(by: { ($0.key.address, $0.key.port) < ($1.key.address, $1.key.port) }) {
            answers += tick(lookups, on: loop, now: now)
            if lookups.isIdle { active[server] = nil }
        }
        return answers
    }

    private func tick(_ lookups: Lookups, on loop: borrowing EventLoop, now: Int64) -> [LookupAnswer] {
        guard let deadline = lookups.deadline, deadline <= now else { return [] }
        lookups.channel?.tick(now: now)
        // Results of this moment count before the deadlines of the requests.
        let early = perform([], of: lookups, on: loop, now: now)
        return early + perform(lookups.table.tick(now: now), of: lookups, on: loop, now: now)
    }

    /// Handles an answer of getaddrinfo.
    func libcAnswered(_ answer: LookupAnswer, on loop: borrowing EventLoop, now: Int64) -> [LookupAnswer] {
        perform(system.table.libcAnswered(answer, now: now), of: system, on: loop, now: now)
    }

    /// Handles a possible change of resolv.conf. Running lookups are restarted if it has changed.
    func configure(_ resolver: ResolverConfiguration, on loop: borrowing EventLoop, now: Int64) -> [LookupAnswer] {
        libc.configurationChanged()
        guard resolver != system.table.configuration.resolver else { return [] }
        removeChannel(of: system, on: loop)
        var configuration = system.table.configuration
        configuration.resolver = resolver
        return perform(system.table.configure(configuration, now: now), of: system, on: loop, now: now)
    }

    /// Forgets the answers of another network.
    func forget() {
        system.table.forget()
        for lookups in others.values { lookups.table.forget() }
    }

    /// Removes the waiting request of a target.
    func cancel(_ target: TargetID) {
        system.table.cancel(target)
        for lookups in active.values { lookups.table.cancel(target) }
    }

    /// Closes the sockets, and ends the threads without waiting for them.
    func stop(on loop: borrowing EventLoop) {
        removeChannel(of: system, on: loop)
        for lookups in others.values { removeChannel(of: lookups, on: loop) }
        (others, active) = ([:], [:])
        libc.stop()
    }

    // MARK: Effects

    private func perform(
        _ effects: [NameTable.Effect], of lookups: Lookups, on loop: borrowing EventLoop, now: Int64
    ) -> [LookupAnswer] {
        var effects = effects
        var answers: [LookupAnswer] = []
        while true {
            for effect in effects {
                switch effect {
                case .ask(let question): ask(question, of: lookups, now: now)
                case .askLibc(let request): libc.resolve(request)
                case .cancelLibc(let target): libc.cancel(target)
                case .answer(var answer, let unanswered):
                    for (family, id) in unanswered { answer[family]?.exchanges = lookups.channel?.evidence(of: id) ?? [] }
                    answers.append(answer)
                }
            }
            let results = takeResults(of: lookups, on: loop)
            if results.isEmpty { return answers }
            effects = results.flatMap { lookups.table.answered($0, now: now) }
        }
    }

    private func ask(_ question: NameQuestion, of lookups: Lookups, now: Int64) {
        if lookups.channel == nil {
            lookups.channel = try? DNSChannel(lookups.table.configuration.resolver) { [unowned self] in makeToken() }
        }
        guard lookups.channel != nil else { return lookups.failures.append(NameQuestionResult(id: question.id, .failed)) }
        lookups.channel?.ask(question, now: now)
    }

    // Tokens are used again only after four billion sockets.
    private func makeToken() -> UInt64 {
        lastToken = lastToken + 1 < Self.tokens.upperBound ? lastToken + 1 : Self.tokens.lowerBound
        return lastToken
    }

    private func takeResults(of lookups: Lookups, on loop: borrowing EventLoop) -> [NameQuestionResult] {
        defer { lookups.failures = [] }
        return lookups.failures + (lookups.channel?.takeResults(on: loop) ?? [])
    }

    private func removeChannel(of lookups: Lookups, on loop: borrowing EventLoop) {
        lookups.channel?.removeSockets(from: loop)
        lookups.channel = nil
    }

    // MARK: Files

    private func readFiles(now: Int64) -> [NameTable.Effect] {
        guard now >= nextCheck else { return [] }
        nextCheck = now + Self.checkInterval
        var configuration = system.table.configuration
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
        guard configuration != system.table.configuration else { return [] }
        libc.configurationChanged()
        return system.table.configure(configuration, now: now)
    }
}
