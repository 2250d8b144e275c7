import EventLoop
import Glibc

/// A name server of a network namespace, on port 53 or another one, over UDP and TCP, with one of the faults that a resolver distinguishes (RFC
/// 1035). It is ready when made, and closed with this object.
public final class NameServer: Sendable {
    /// The answers of the server. Addresses are texts.
    public enum Behavior: Sendable {
        /// Answers with one A record, and with none for other types.
        case address(String)
        /// Answers with these records of the asked type, with a TTL in seconds. An answer that is too long is truncated.
        case records([String], ttl: UInt32 = 60)
        /// Answers only these names, and NXDOMAIN for others.
        case zone([String: [String]], ttl: UInt32 = 60)
        /// Answers A with this address, and AAAA never.
        case onlyA(String)
        /// Answers A with this address, and AAAA with NXDOMAIN, as servers of containers do.
        case missingAAAA(String)
        /// Answers with a response code: 2 SERVFAIL, 3 NXDOMAIN, 5 REFUSED. Without addresses it names an authority (SOA).
        case code(UInt8)
        /// Answers with a response code and no records at all, as routers and portals make them up.
        case bareCode(UInt8)
        /// Never answers.
        case silent
        /// Answers with another id.
        case wrongID(String)
        /// Answers with another question.
        case wrongQuestion(String)
        /// Answers with bytes that are no message.
        case garbage
        /// Answers with the question and records that are cut off.
        case damaged
        /// Answers with two aliases that refer to each other.
        case aliasLoop
        /// Answers with an alias and the address of its target.
        case alias(String)
        /// Answers over UDP with an empty, truncated message, and does not listen on TCP.
        case truncatedOnly
        /// Answers each question with these messages, in their order.
        case scripted(@Sendable (Question) -> [Reply])
        /// Answers the first behavior, AAAA when ``NameServer/release()`` is called.
        indirect case late(Behavior)
    }

    /// A question to a scripted server.
    public struct Question: Sendable {
        /// The name, in the case of the question.
        public var name: String
        /// Whether the question is for A, and not for AAAA.
        public var isA: Bool
        /// Whether the question has come over TCP.
        public var isOverTCP: Bool
        /// Whether the question has an additional record: EDNS (RFC 6891).
        public var hasOptions: Bool
    }

    /// A message of a scripted server. By default, it has the flag RA, and not AA.
    public struct Reply: Sendable {
        /// A record of the message.
        public enum Record: Sendable {
            /// A or AAAA. Without an owner, it is that of the question.
            case address(String, of: String? = nil)
            /// CNAME.
            case alias(String, of: String? = nil)
            /// SOA in the authority section.
            case authority
            /// NS in the authority section.
            case nameServer(String)
            /// A or AAAA of another name in the additional section.
            case additional(String, of: String)
        }

        /// A change of the message that a resolver may refuse.
        public enum Change: Sendable {
            case otherID, otherQuestion, otherType, upperCase, noQuestion, isQuestion, isCut, isEmpty
        }

        /// The response code.
        public var code: UInt8 = 0
        /// The records of all sections.
        public var records: [Record] = []
        /// The flag AA.
        public var isAuthoritative = false
        /// The flag RA.
        public var isRecursive = true
        /// The flag TC.
        public var isTruncated = false
        /// A change of the message; `nil` for none.
        public var change: Change?
        /// The time in milliseconds after which the message is sent over UDP.
        public var delay: Int64 = 0

        /// Creates a message.
        public init(
            _ records: [Record] = [], code: UInt8 = 0, isAuthoritative: Bool = false, isRecursive: Bool = true,
            isTruncated: Bool = false, change: Change? = nil, delay: Int64 = 0
        ) {
            (self.records, self.code, self.isAuthoritative) = (records, code, isAuthoritative)
            (self.isRecursive, self.isTruncated, self.change, self.delay) = (isRecursive, isTruncated, change, delay)
        }
    }

    fileprivate struct Answer: Sendable {
        var descriptor: Int32
        var bytes: [UInt8]
        var peer: sockaddr_storage
        var size: socklen_t

        func send() {
            withUnsafeBytes(of: peer) { name in
                guard let peer = name.baseAddress?.assumingMemoryBound(to: sockaddr.self) else { return }
                _ = sendto(descriptor, bytes, bytes.count, 0, peer, size)
            }
        }
    }

    private let stop: Waker
    private let settling: Waker
    private let settled: Waker
    private let thread: LoopThread
    private let log: Locked<[String]>
    private let held = Locked<[Answer]>([])
    private let behavior: Locked<Behavior>

    /// The questions so far, such as `A server.example`, with `tcp` before those over TCP.
    public var questions: [String] { log.withLock { $0 } }

    /// Starts a server on an address of a namespace, which is given by the path of its file. A link-local address has a zone.
    public init(_ behavior: Behavior, in namespace: String, address: String = "127.0.0.1", port: UInt16 = 53) throws {
        let (stop, settling, settled) = (try Waker(), try Waker(), try Waker(blocks: true))
        let (log, held) = (Locked<[String]>([]), held)
        let current = Locked(behavior)
        self.behavior = current
        (self.stop, self.log, self.settling, self.settled) = (stop, log, settling, settled)
        thread = try LoopThread(name: "name-server", namespace: namespace) { () throws(LoopError) in
            let datagrams = try Self.bound(address, port, SOCK_DGRAM)
            var listener: Int32 = -1
            if case .truncatedOnly = behavior {
            } else {
                listener = try Self.bound(address, port, SOCK_STREAM)
                listen(listener, 64)
            }
            let answerer = Answerer(
                behavior: current, datagrams: datagrams, listener: listener, stop: stop, settling: settling, settled: settled,
                log: log, held: held)
            return { answerer.serve() }
        }
    }

    deinit {
        stop.wake()
        thread.join()
    }

    /// Waits until the server has answered every question that has been sent to it.
    public func settle() {
        settling.wake()
        settled.waitAndAcknowledge()
    }

    /// Replaces the behavior for later questions.
    public func setBehavior(_ behavior: Behavior) { self.behavior.withLock { $0 = behavior } }

    /// Sends the answers that were late so far.
    public func release() {
        let answers = held.withLock { held in
            defer { held = [] }
            return held
        }
        for answer in answers { answer.send() }
    }

    private static func bound(_ address: String, _ port: UInt16, _ type: __socket_type) throws(LoopError) -> Int32 {
        let parts = address.split(separator: "%").map(String.init)
        let isIPv6 = address.contains(":")
        let socket = Glibc.socket(isIPv6 ? AF_INET6 : AF_INET, Int32(type.rawValue), 0)
        var isReused: Int32 = 1
        setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &isReused, 4)
        let result: Int32
        if isIPv6 {
            var name = sockaddr_in6()
            name.sin6_family = sa_family_t(AF_INET6)
            name.sin6_port = port.bigEndian
            inet_pton(AF_INET6, parts[0], &name.sin6_addr)
            name.sin6_scope_id = parts.count > 1 ? if_nametoindex(parts[1]) : 0
            result = bound(socket, name)
        } else {
            var name = sockaddr_in()
            name.sin_family = sa_family_t(AF_INET)
            name.sin_port = port.bigEndian
            inet_pton(AF_INET, address, &name.sin_addr)
            result = bound(socket, name)
        }
        guard result == 0 else { throw LoopError(call: "bind", errno: errno) }
        return socket
    }

    private static func bound<Name>(_ socket: Int32, _ name: Name) -> Int32 {
        withUnsafeBytes(of: name) { bytes in
            bytes.baseAddress.map { bind(socket, $0.assumingMemoryBound(to: sockaddr.self), socklen_t(bytes.count)) } ?? -1
        }
    }
}

/// The server's thread.
private struct Answerer {
    let behavior: Locked<NameServer.Behavior>
    let datagrams, listener: Int32
    let stop, settling, settled: Waker
    let log: Locked<[String]>
    let held: Locked<[NameServer.Answer]>

    func serve() {
        var delayed: [(due: Int64, answer: NameServer.Answer)] = []
        defer {
            close(datagrams)
            if listener >= 0 { close(listener) }
        }
        var polled = [
            pollfd(fd: datagrams, events: Int16(POLLIN), revents: 0),
            pollfd(fd: stop.descriptor, events: Int16(POLLIN), revents: 0),
            pollfd(fd: listener, events: Int16(POLLIN), revents: 0),
            pollfd(fd: settling.descriptor, events: Int16(POLLIN), revents: 0),
        ]
        while true {
            let due = delayed.map(\.due).min()
            let timeout = due.map { max(0, ($0 - MonotonicClock.now() + 999_999) / 1_000_000) } ?? -1
            guard poll(&polled, 4, Int32(clamping: timeout)) >= 0, polled[1].revents == 0 else { return }
            if polled[0].revents != 0 { delayed += answerDatagram() }
            let now = MonotonicClock.now()
            for (due, answer) in delayed where due <= now { answer.send() }
            delayed.removeAll { $0.due <= now }
            if polled[2].revents != 0 { answerStream() }
            guard polled[0].revents == 0, polled[2].revents == 0, polled[3].revents != 0 else { continue }
            settling.acknowledge()
            settled.wake()
        }
    }

    // Returns the answers that are sent later.
    private func answerDatagram() -> [(due: Int64, answer: NameServer.Answer)] {
        var question = [UInt8](repeating: 0, count: 512)
        var name = sockaddr_storage()
        var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let count = withUnsafeMutableBytes(of: &name) { bytes -> Int in
            guard let peer = bytes.baseAddress?.assumingMemoryBound(to: sockaddr.self) else { return 0 }
            return recvfrom(datagrams, &question, question.count, 0, peer, &size)
        }
        guard count > 12, let message = Message(Array(question.prefix(count))) else { return [] }
        log.withLock { $0.append(message.description) }
        let behavior = behavior.withLock { $0 }
        if case .scripted(let script) = behavior {
            let now = MonotonicClock.now()
            return script(message.question(isOverTCP: false)).map { reply in
                let bytes = message.bytes(of: reply)
                return (
                    now + reply.delay * 1_000_000, NameServer.Answer(descriptor: datagrams, bytes: bytes, peer: name, size: size)
                )
            }
        }
        guard let bytes = message.answer(behavior, limit: 512) else { return [] }
        let answer = NameServer.Answer(descriptor: datagrams, bytes: bytes, peer: name, size: size)
        if case .late = behavior, !message.isA { held.withLock { $0.append(answer) } } else { answer.send() }
        return []
    }

    // One connection at a time, with any number of questions. A client that sends nothing for a second is left.
    private func answerStream() {
        let connection = accept(listener, nil, nil)
        guard connection >= 0 else { return }
        defer { close(connection) }
        var limit = timeval(tv_sec: 1, tv_usec: 0)
        setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        var length = [UInt8](repeating: 0, count: 2)
        while recv(connection, &length, 2, Int32(MSG_WAITALL)) == 2 {
            var question = [UInt8](repeating: 0, count: Int(length[0]) << 8 | Int(length[1]))
            guard recv(connection, &question, question.count, Int32(MSG_WAITALL)) == question.count,
                let message = Message(question)
            else { return }
            log.withLock { $0.append("tcp \(message)") }
            guard let answer = message.answer(behavior.withLock { $0 }, limit: 65_535) else { continue }
            let framed = [UInt8(answer.count >> 8), UInt8(truncatingIfNeeded: answer.count)] + answer
            guard Glibc.send(connection, framed, framed.count, Int32(MSG_NOSIGNAL)) == framed.count else { return }
        }
    }
}

/// A question.
private struct Message: CustomStringConvertible {
    private let bytes: [UInt8]
    private let end: Int
    private let name: String

    init?(_ bytes: [UInt8]) {
        var end = 12
        var labels: [String] = []
        while end < bytes.count, bytes[end] != 0 {
            let next = end + Int(bytes[end]) + 1
            guard next <= bytes.count else { return nil }
            labels.append(String(decoding: bytes[(end + 1)..<next], as: UTF8.self))
            end = next
        }
        guard end + 5 <= bytes.count else { return nil }
        (self.bytes, self.end, name) = (bytes, end + 5, labels.joined(separator: "."))
    }

    var isA: Bool { bytes[end - 3] == 1 }
    var description: String { "\(isA ? "A" : "AAAA") \(name)" }

    /// The answer, or nil for silence. `limit` is the size above which it is truncated.
    func answer(_ behavior: NameServer.Behavior, limit: Int) -> [UInt8]? {
        switch behavior {
        case .silent: return nil
        // Over UDP, there may be several messages.
        case .scripted(let script): return script(question(isOverTCP: true)).first.map { bytes(of: $0) }
        case .late(let behavior): return answer(behavior, limit: limit)
        case .code(let code): return [0, 3].contains(code) ? negative(code) : message(code)
        case .bareCode(let code): return message(code)
        case .address(let address): return isA ? message(records: record(address, ttl: 1), count: 1) : negative()
        case .onlyA(let address): return isA ? message(records: record(address, ttl: 60), count: 1) : nil
        case .missingAAAA(let address): return isA ? message(records: record(address, ttl: 60), count: 1) : negative(3)
        case .records(let addresses, let ttl): return records(addresses, ttl, limit)
        case .zone(let names, let ttl): return names[name].map { records($0, ttl, limit) } ?? negative(3)
        case .wrongID(let address):
            var answer = records([address], 60, limit)
            answer[0] ^= 0xff
            return answer
        case .wrongQuestion(let address):
            var answer = records([address], 60, limit)
            answer[13] = UInt8(ascii: "z")
            return answer
        case .garbage: return [UInt8](repeating: 0xfe, count: 60)
        case .damaged: return message(records: [0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 200, 1], count: 1)
        case .truncatedOnly: return message(flags: 0x83)
        case .aliasLoop:
            // x → the question's name, and the question's name → x. The second name stands behind the first record.
            let other = UInt8(end + 12)
            let first: [UInt8] = [0xc0, 12, 0, 5, 0, 1, 0, 0, 0, 60, 0, 3, 1, UInt8(ascii: "x"), 0]
            let second: [UInt8] = [0xc0, other, 0, 5, 0, 1, 0, 0, 0, 60, 0, 2, 0xc0, 12]
            return message(records: first + second, count: 2)
        case .alias(let address):
            guard isA == !address.contains(":") else { return message() }
            let alias: [UInt8] = [0xc0, 12, 0, 5, 0, 1, 0, 0, 0, 60, 0, 3, 1, UInt8(ascii: "x"), 0]
            var target = record(address, ttl: 60)
            target[1] = UInt8(end + 12)
            return message(records: alias + target, count: 2)
        }
    }

    func question(isOverTCP: Bool) -> NameServer.Question {
        NameServer.Question(name: name, isA: isA, isOverTCP: isOverTCP, hasOptions: bytes[11] > 0)
    }

    /// The bytes of a scripted message.
    func bytes(of reply: NameServer.Reply) -> [UInt8] {
        if reply.change == .isEmpty { return [] }
        var sections: [(count: UInt8, bytes: [UInt8])] = [(0, []), (0, []), (0, [])]
        func add(_ section: Int, _ owner: String?, _ type: UInt8, _ data: [UInt8]) {
            let head = (owner.map { Self.encoded($0) } ?? [0xc0, 12]) + [0, type, 0, 1, 0, 0, 0, 60]
            sections[section].bytes += head + [UInt8(data.count >> 8), UInt8(truncatingIfNeeded: data.count)] + data
            sections[section].count += 1
        }
        func type(_ address: String) -> UInt8 { address.contains(":") ? 28 : 1 }
        for record in reply.records {
            switch record {
            case .address(let address, let owner): add(0, owner, type(address), Self.encoded(address: address))
            case .alias(let target, let owner): add(0, owner, 5, Self.encoded(target))
            case .authority:
                add(1, "", 6, Self.encoded("ns.example") + Self.encoded("root.example") + [UInt8](repeating: 1, count: 20))
            case .nameServer(let name): add(1, "example", 2, Self.encoded(name))
            case .additional(let address, let owner): add(2, owner, type(address), Self.encoded(address: address))
            }
        }
        var question = Array(bytes[12..<end])
        var head = Array(bytes[0..<2])
        let answerBit: UInt8 = reply.change == .isQuestion ? 0 : 0x80
        head += [
            answerBit | (reply.isAuthoritative ? 4 : 0) | (reply.isTruncated ? 2 : 0) | 1,
            (reply.isRecursive ? 0x80 : 0) | reply.code, 0,
            1,
        ]
        for section in sections { head += [0, section.count] }
        switch reply.change {
        case .otherID: head[0] ^= 0xff
        case .otherQuestion: question[1] = UInt8(ascii: "z")
        case .otherType: question[question.count - 3] = 16
        case .upperCase: question = question.dropLast(4).map { $0 >= 0x61 && $0 <= 0x7a ? $0 & 0xdf : $0 } + question.suffix(4)
        case .noQuestion: (question, head[5]) = ([], 0)
        case .isQuestion, .isCut, .isEmpty, nil: break
        }
        let message = head + question + sections.flatMap(\.bytes)
        return reply.change == .isCut ? message.dropLast(5) : message
    }

    private static func encoded(_ name: String) -> [UInt8] {
        name.split(separator: ".").flatMap { [UInt8($0.utf8.count)] + Array($0.utf8) } + [0]
    }

    private static func encoded(address: String) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: address.contains(":") ? 16 : 4)
        inet_pton(address.contains(":") ? AF_INET6 : AF_INET, address, &bytes)
        return bytes
    }

    private func records(_ addresses: [String], _ ttl: UInt32, _ limit: Int) -> [UInt8] {
        let asked = addresses.filter { !$0.contains(":") == isA }
        guard !asked.isEmpty else { return negative() }
        let answer = message(records: asked.flatMap { record($0, ttl: ttl) }, count: asked.count)
        return answer.count <= limit ? answer : message(flags: 0x83)
    }

    private func record(_ address: String, ttl: UInt32) -> [UInt8] {
        let bytes = Self.encoded(address: address)
        let time = withUnsafeBytes(of: ttl.bigEndian) { Array($0) }
        return [0xc0, 12, 0, bytes.count == 4 ? 1 : 28, 0, 1] + time + [0, UInt8(bytes.count)] + bytes
    }

    /// An answer without addresses, with the SOA record of the root (RFC 2308 section 3).
    private func negative(_ code: UInt8 = 0) -> [UInt8] {
        let data: [UInt8] = [0, 0] + [UInt8](repeating: 0, count: 20)
        let authority: [UInt8] = [0, 0, 6, 0, 1, 0, 0, 0, 60, 0, UInt8(data.count)] + data
        var bytes = message(code)
        bytes[9] = 1
        return bytes + authority
    }

    // The header has QR, RD and RA and counts one question. The question's additional section (EDNS) is left out.
    private func message(_ code: UInt8 = 0, flags: UInt8 = 0x81, records: [UInt8] = [], count: Int = 0) -> [UInt8] {
        let counts = [0, 1, UInt8(count >> 8), UInt8(truncatingIfNeeded: count), 0, 0, 0, 0]
        return bytes[0..<2] + [flags, 0x80 | code] + counts + bytes[12..<end] + records
    }
}
