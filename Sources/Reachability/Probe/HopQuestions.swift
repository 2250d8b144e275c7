internal import CLinux
internal import EventLoop
internal import Glibc
internal import Pacing

/// Questions to a first hop, to find out whether it is alive: datagrams to a closed port, connections, and echo requests if the
/// system permits them (`net.ipv4.ping_group_range`, icmp(7)).
package final class HopQuestions: Sendable {
    /// The time for all answers. The kernel sends an unanswered SYN again after a second.
    package static let timeLimit = Duration.milliseconds(1_500)

    private let found = Locked(HopAnswers(asked: []))
    private let thread: LoopThread

    /// Starts the questions on a thread of its own, inside `namespace`. The result is `nil` if the system refuses the thread, or the
    /// entry into the namespace.
    package init?(to hop: Neighbor.Key, in namespace: NetworkNamespace?, timeLimit: Duration = HopQuestions.timeLimit) {
        let started = try? LoopThread(name: "first hop", namespace: namespace?.path) { [found] () throws(LoopError) in
            return {
                var sockets = QuestionSockets(hop)
                let answers = sockets.answers(within: timeLimit)
                found.withLock { $0 = answers }
            }
        }
        guard let started else { return nil }
        thread = started
    }

    /// Waits for the end of the questions, and returns the answers.
    package func answers() -> HopAnswers {
        thread.join()
        return found.withLock { $0 }
    }
}

/// The sockets of the questions. They are closed with this value.
private struct QuestionSockets: ~Copyable {
    private struct Question {
        let kind: HopAnswers.Question
        let descriptor: Int32
    }

    /// The ports of connections: those of services that home routers have, and one that no service uses. Closed ports answer too.
    private static let ports: [UInt16] = [53, 80, 33_434]
    /// The port of datagrams, from the range of traceroute(8).
    private static let closedPort: UInt16 = 33_434
    /// The number of datagrams and echo requests, and the time between them in nanoseconds. Two of three may be lost.
    private static let copies = 3
    private static let copyGap: Int64 = 300_000_000

    private let hop: Neighbor.Key
    private var open: [Question] = []

    init(_ hop: Neighbor.Key) {
        self.hop = hop
    }

    deinit {
        for question in open { close(question.descriptor) }
    }

    /// Asks, and returns when the hop has answered one question, or at the time limit.
    mutating func answers(within timeLimit: Duration) -> HopAnswers {
        let start = MonotonicClock.now()
        let deadline = start.addingSaturated(timeLimit.saturatingNanoseconds)
        add(.datagram, SOCK_DGRAM, 0, Self.closedPort)
        add(.echo, SOCK_DGRAM, Int32(hop.address.family == .v4 ? IPPROTO_ICMP : IPPROTO_ICMPV6), 0)
        for port in Self.ports { add(.connection, SOCK_STREAM, Int32(IPPROTO_TCP), port) }
        open = open.filter { question in
            guard question.kind == .connection || send(question) else {
                close(question.descriptor)
                return false
            }
            return true
        }
        var answers = HopAnswers(asked: HopAnswers.Question.allCases.filter { kind in open.contains { $0.kind == kind } })
        var copies = 1
        while true {
            let now = MonotonicClock.now()
            guard now < deadline, !open.isEmpty else { return answers }
            let isSending = copies < Self.copies
            let next = isSending ? start.addingSaturated(Int64(copies) * Self.copyGap) : deadline
            guard now < next else {
                copies += 1
                for question in open where question.kind != .connection { _ = send(question) }
                continue
            }
            var polled = open.map {
                pollfd(fd: $0.descriptor, events: Int16($0.kind == .connection ? POLLOUT : POLLIN), revents: 0)
            }
            guard poll(&polled, nfds_t(polled.count), Int32(clamping: (min(next, deadline) - now) / 1_000_000 + 1)) > 0 else {
                continue
            }
            var remaining: [Question] = []
            for (question, entry) in zip(open, polled) {
                if entry.revents != 0 {
                    if isAnswered(question) {
                        answers.answered = question.kind
                    } else if question.kind == .connection {
                        // A connection that failed for another reason would remain ready.
                        close(question.descriptor)
                        continue
                    }
                }
                remaining.append(question)
            }
            open = remaining
            if answers.answered != nil { return answers }
        }
    }

    private mutating func add(_ kind: HopAnswers.Question, _ type: __socket_type, _ protocolNumber: Int32, _ port: UInt16) {
        let flags = Int32(type.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
        let family = hop.address.family
        let descriptor = Glibc.socket(family == .v4 ? AF_INET : AF_INET6, flags, protocolNumber)
        guard descriptor >= 0 else { return }
        SocketOptions.bind(descriptor, toIndex: hop.interface)
        ErrorQueue.enable(on: descriptor, family)
        if kind == .connection { SocketOptions.closeByReset(descriptor) }
        let zone = hop.address.isLinkLocal ? hop.interface : 0
        let result = SocketAddress(hop.address, port: port, zone: zone).connect(descriptor)
        guard result == 0 || errno == EINPROGRESS || (kind == .connection && errno == ECONNREFUSED) else {
            close(descriptor)
            return
        }
        open.append(Question(kind: kind, descriptor: descriptor))
    }

    /// Sends a datagram or an echo request. Returns false if this machine refuses it.
    private func send(_ question: Question) -> Bool {
        if question.kind == .datagram { return Glibc.send(question.descriptor, "", 1, 0) >= 0 || errno != EPERM }
        // The kernel sets the identifier and the checksum.
        let request: [UInt8] = [hop.address.family == .v4 ? 8 : 128, 0, 0, 0, 0, 0, 0, 1]
        return Glibc.send(question.descriptor, request, request.count, 0) >= 0
    }

    /// Whether the hop itself has answered.
    private func isAnswered(_ question: Question) -> Bool {
        let report = ErrorQueue.report(of: question.descriptor)
        if let report, report.reporter.origin != 1, report.reporter.offender == hop.address { return true }
        if question.kind != .connection {
            var bytes: (UInt64, UInt64) = (0, 0)
            let isReceived = recv(question.descriptor, &bytes, 16, 0) >= 0
            return isReceived || (errno == ECONNREFUSED && report == nil)
        }
        if report != nil { return false }
        var number: Int32 = 0
        var size = socklen_t(MemoryLayout<Int32>.size)
        guard getsockopt(question.descriptor, SOL_SOCKET, SO_ERROR, &number, &size) == 0 else { return false }
        if number != 0 { return number == ECONNREFUSED || number == ECONNRESET }
        var info = tcp_info()
        size = socklen_t(MemoryLayout<tcp_info>.size)
        return getsockopt(question.descriptor, Int32(IPPROTO_TCP), TCP_INFO, &info, &size) == 0
            && Int(info.tcpi_state) == Int(TCP_ESTABLISHED)
    }
}
