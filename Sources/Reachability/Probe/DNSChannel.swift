internal import CAres
internal import EventLoop
internal import Glibc

/// A channel of c-ares: asks the name servers of one configuration, on the loop's thread and inside its network namespace.
///
/// c-ares asks the next server after a failure or ``timeoutMilliseconds``, repeats the round once with twice the time, and asks
/// over TCP if an answer is truncated. Each question is sent as one message of this class, without EDNS, so that its number
/// identifies its evidence in ``DNSSockets``.
struct DNSChannel: ~Copyable {
    /// The time until the next server is asked. A probe's deadline of three seconds then has room for two dead servers.
    static let timeoutMilliseconds: Int32 = 700
    /// The number of rounds over all servers.
    static let rounds: Int32 = 2

    /// Random numbers of the system, four for each system call.
    private struct RandomNumbers {
        private var generator = SystemRandomNumberGenerator()
        private var bits: UInt64 = 0
        private var count = 0

        mutating func next() -> UInt16 {
            if count == 0 { (bits, count) = (generator.next(), 4) }
            defer { (bits, count) = (bits >> 16, count - 1) }
            return UInt16(truncatingIfNeeded: bits)
        }
    }

    private final class Results {
        var results: [NameQuestionResult] = []
        var isEnding = false
    }

    private let handle: ares_channel
    private let sockets: DNSSockets
    private let results = Results()
    /// The open questions by the number of the table.
    private var questions: [UInt64: DNSQuestion] = [:]
    private var numbers = RandomNumbers()
    /// The time at which c-ares must check its timeouts, or an earlier one; `nil` if no question is open.
    private(set) var deadline: Int64?

    /// c-ares before 1.19 has no other way to prevent that it reads the files of the machine.
    private static let noFile = "/dev/null"

    private static let isPrepared = ares_library_init(ARES_LIB_INIT_ALL) == ARES_SUCCESS

    /// Creates a channel for the servers of a configuration, without sockets. `makeToken` returns an unused token for the loop.
    ///
    /// - Throws: ``LoopError`` with ENOMEM if c-ares has no memory.
    init(_ configuration: ResolverConfiguration, makeToken: @escaping () -> UInt64) throws(LoopError) {
        guard Self.isPrepared else { throw LoopError(call: "ares_library_init", errno: ENOMEM) }
        // A server that the file names twice is asked once in each round.
        let nameservers = configuration.askedNameservers
        let sockets = DNSSockets(nameservers, makeToken: makeToken)
        let object = Unmanaged.passUnretained(sockets).toOpaque()
        var options = ares_options()
        options.flags = ARES_FLAG_NOSEARCH | ARES_FLAG_NOALIASES | (configuration.usesTCP ? ARES_FLAG_USEVC : 0)
        options.timeout = Self.timeoutMilliseconds
        options.tries = Self.rounds
        options.ndots = 1
        options.sock_state_cb = DNSTrampolines.stateChanged
        options.sock_state_cb_data = object
        var handle: ares_channel?
        let mask =
            ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_NDOTS | ARES_OPT_SOCK_STATE_CB | ARES_OPT_LOOKUPS
            | ARES_OPT_RESOLVCONF | ARES_OPT_DOMAINS | ARES_OPT_NOROTATE
        // c-ares copies the texts.
        var status: Int32 = 0
        var path = Array(Self.noFile.utf8CString)
        var lookups = Array("b".utf8CString)
        path.withUnsafeMutableBufferPointer { path in
            lookups.withUnsafeMutableBufferPointer { lookups in
                options.resolvconf_path = path.baseAddress
                options.lookups = lookups.baseAddress
                status = ares_init_options(&handle, &options, mask)
            }
        }
        guard status == ARES_SUCCESS, let handle else { throw LoopError(call: "ares_init_options", errno: ENOMEM) }
        ares_set_socket_functions(handle, DNSTrampolines.socketFunctions, object)
        guard Self.setServers(nameservers, of: handle) else {
            ares_destroy(handle)
            throw LoopError(call: "ares_set_servers", errno: ENOMEM)
        }
        self.sockets = sockets
        self.handle = handle
    }

    deinit {
        results.isEnding = true
        ares_destroy(handle)
    }

    private static func setServers(_ nameservers: [ResolverConfiguration.Nameserver], of handle: ares_channel) -> Bool {
        var nodes = nameservers.map { server in
            var node = ares_addr_node()
            node.family = server.address.family == .v4 ? AF_INET : AF_INET6
            withUnsafeMutableBytes(of: &node.addr) { $0.copyBytes(from: server.address.bytes) }
            return node
        }
        return nodes.withUnsafeMutableBufferPointer { nodes in
            guard let first = nodes.baseAddress else { return true }
            for index in nodes.indices.dropLast() { nodes[index].next = first + index + 1 }
            return ares_set_servers(handle, first) == ARES_SUCCESS
        }
    }

    /// The number of open questions.
    var count: Int { questions.count }

    /// Asks a question. Its result is among those of ``takeResults(on:)``, possibly at once.
    mutating func ask(_ asked: NameQuestion, now: Int64) {
        guard let question = makeQuestion(asked) else { return results.results.append(NameQuestionResult(id: asked.id, .failed)) }
        sockets.begin(question)
        questions[asked.id] = question
        deadline = min(deadline ?? .max, now + Int64(Self.timeoutMilliseconds) * 1_000_000)
        sockets.beginCall()
        question.message.withUnsafeBufferPointer { bytes in
            ares_send(
                handle, bytes.baseAddress, Int32(bytes.count), DNSTrampolines.answered,
                Unmanaged.passRetained(question).toOpaque())
        }
    }

    private mutating func makeQuestion(_ asked: NameQuestion) -> DNSQuestion? {
        guard let number = freeNumber() else { return nil }
        var bytes: UnsafeMutablePointer<UInt8>?
        var count: Int32 = 0
        let type: Int32 = asked.family == .v4 ? 1 : 28  // A and AAAA (RFC 1035 section 3.2.2, RFC 3596 section 2.1)
        let status = ares_create_query(asked.name, 1, type, number, 1, &bytes, &count, 0)
        defer { ares_free_string(bytes) }
        guard status == ARES_SUCCESS, let bytes else { return nil }
        let message = Array(UnsafeBufferPointer(start: bytes, count: Int(count)))
        return DNSQuestion(asked, number: number, message: message) { [sockets, results] question, result in
            // The sockets and the question refer to each other until here, also if the channel ends.
            sockets.end(question)
            if results.isEnding { return }
            var result = result
            result.exchanges = question.evidence(sockets.servers)
            results.results.append(result)
        }
    }

    // Numbers cannot be guessed (RFC 5452 section 9.2). The number of open questions is limited, so a free one is found soon.
    private mutating func freeNumber() -> UInt16? {
        for _ in 0..<64 {
            let number = numbers.next()
            if sockets.isFree(number) { return number }
        }
        return nil
    }

    /// Handles a ready descriptor. - Returns: whether it is one of the channel: tokens of closed sockets and of other channels are ignored.
    mutating func ready(_ ready: EventLoop.Ready) -> Bool {
        guard let descriptor = sockets.descriptor(of: ready.token) else { return false }
        sockets.beginCall()
        // An error is reported by reading.
        ares_process_fd(
            handle, ready.isReadable || ready.isBroken ? descriptor : -1, ready.isWritable ? descriptor : -1)
        return true
    }

    /// Handles the timeouts that are due.
    mutating func tick(now: Int64) {
        guard let due = deadline, due <= now else { return }
        sockets.beginCall()
        ares_process_fd(handle, -1, -1)
        var time = timeval()
        guard let next = ares_timeout(handle, nil, &time) else { return deadline = nil }
        // c-ares rounds the time down to milliseconds.
        deadline =
            MonotonicClock.now() + Int64(next.pointee.tv_sec) * 1_000_000_000 + Int64(next.pointee.tv_usec) * 1_000 + 1_000_000
    }

    /// Returns the results since the last call, and registers the sockets in the loop.
    mutating func takeResults(on loop: borrowing EventLoop) -> [NameQuestionResult] {
        sockets.synchronize(on: loop)
        guard !results.results.isEmpty else { return [] }
        let taken = results.results
        results.results = []
        for result in taken { questions[result.id] = nil }
        if questions.isEmpty { deadline = nil }
        return taken
    }

    /// Returns the evidence of an open question so far.
    func evidence(of id: UInt64) -> [NameServerExchange] { questions[id]?.evidence(sockets.servers) ?? [] }

    /// Closes all sockets. The channel is not used afterwards.
    func removeSockets(from loop: borrowing EventLoop) {
        results.isEnding = true
        ares_cancel(handle)
        sockets.synchronize(on: loop)
    }
}
