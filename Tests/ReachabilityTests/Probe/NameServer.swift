import EventLoop
import Glibc

@testable import Reachability

/// A name server on 127.0.0.1:53 of a namespace. It gives the same answer to every question (RFC 1035, 4.1).
final class NameServer: Sendable {
    enum Behavior: Sendable {
        /// Answers with one A record, and with none for other types.
        case address(IPAddress)
        /// Answers with a response code: 2 SERVFAIL, 3 NXDOMAIN, 5 REFUSED.
        case code(UInt8)
        /// Never answers.
        case silent
    }

    private let stop: Waker
    private let thread: LoopThread

    init(_ behavior: Behavior, in namespace: ProbeNamespace) throws {
        let stop = try Waker()
        self.stop = stop
        thread = try LoopThread(name: "name-server", namespace: namespace.path) { () throws(LoopError) in
            let socket = Glibc.socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0)
            var name = sockaddr_in()
            name.sin_family = sa_family_t(AF_INET)
            name.sin_port = UInt16(53).bigEndian
            name.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
            let bound = withUnsafeBytes(of: name) { bytes in
                bytes.baseAddress.map { bind(socket, $0.assumingMemoryBound(to: sockaddr.self), socklen_t(bytes.count)) } ?? -1
            }
            guard bound == 0 else { throw LoopError(call: "bind", errno: errno) }
            return { Self.serve(socket, behavior, until: stop) }
        }
    }

    deinit {
        stop.wake()
        thread.join()
    }

    private static func serve(_ socket: Int32, _ behavior: Behavior, until stop: Waker) {
        defer { close(socket) }
        var polled = [
            pollfd(fd: socket, events: Int16(POLLIN), revents: 0), pollfd(fd: stop.descriptor, events: Int16(POLLIN), revents: 0),
        ]
        while poll(&polled, 2, -1) >= 0, polled[1].revents == 0 {
            var question = [UInt8](repeating: 0, count: 512)
            var name = sockaddr_storage()
            var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
            withUnsafeMutableBytes(of: &name) { bytes in
                guard let peer = bytes.baseAddress?.assumingMemoryBound(to: sockaddr.self) else { return }
                let count = recvfrom(socket, &question, question.count, 0, peer, &size)
                guard count > 12, let answer = answer(to: Array(question.prefix(count)), behavior) else { return }
                _ = sendto(socket, answer, answer.count, 0, peer, size)
            }
        }
    }

    private static func answer(to question: [UInt8], _ behavior: Behavior) -> [UInt8]? {
        var end = 12
        while end < question.count, question[end] != 0 { end += Int(question[end]) + 1 }
        guard end + 5 <= question.count else { return nil }
        let isA = question[end + 2] == 1
        var (code, records): (UInt8, [UInt8]) = (0, [])
        switch behavior {
        case .silent: return nil
        case .code(let number): code = number
        case .address(let address): if isA { records = [0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 1, 0, 4] + address.bytes }
        }
        // The header has QR, RD and RA and counts one question. The question's additional section (EDNS) is left out.
        let head = question[0..<2] + [0x81, 0x80 | code, 0, 1, 0, records.isEmpty ? 0 : 1, 0, 0, 0, 0]
        return head + question[12..<(end + 5)] + records
    }
}
