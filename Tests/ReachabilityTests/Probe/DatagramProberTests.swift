import EventLoop
import Expectations
import Glibc
import NetworkLab
import Pacing
import Testing

@testable import Reachability

/// Datagrams of probes through the real kernel, in a namespace without other sockets.
@Suite(.requiresNamespaces) struct DatagramProberTests {
    private static let home = IPAddress(v4: 0x7f00_0001)

    /// A question whose answer is the same text in reverse order. A second copy is sent after a while.
    private struct Reverse: DatagramPlan {
        let scheme = Endpoint.Scheme.unwritten
        let text: [UInt8]

        func makeRun(number: UInt64) -> any DatagramRun { Run(text) }

        private final class Run: DatagramRun {
            private let text: [UInt8]
            private var output: [[UInt8]] = []
            private var started: Int64 = 0
            private(set) var result = LevelResult()
            private(set) var hasEnded = false
            private(set) var due = Int64.max

            init(_ text: [UInt8]) { self.text = text }

            func begin(_ now: Int64) {
                (started, due) = (now, now + 50_000_000)
                output.append(text)
            }
            func takeOutput() -> [[UInt8]] {
                defer { output = [] }
                return output
            }
            func receive(_ datagram: UnsafeRawBufferPointer, now: Int64) {
                guard datagram.elementsEqual(text.reversed()) else { return }
                result.answerNanoseconds = max(1, now - started)
                hasEnded = true
            }
            func tick(_ now: Int64) {
                due = .max
                output.append(text)
            }
        }
    }

    /// Runs an attempt to its end. `serve` is called for each datagram of the server's socket. - Returns: `nil` without a result within ten seconds.
    private static func probe(
        port: UInt16, text: String = "abc", server: Int32? = nil, serve: ([UInt8], SocketAddress) -> Void = { _, _ in }
    ) throws -> ProbeResult? {
        var loop = try EventLoop()
        var prober = DatagramProber()
        if let server { try loop.add(server, interest: .read, token: 1) }
        let plan = Reverse(text: Array(text.utf8))
        if let result = prober.start(ProbeAttempt(id: 7, address: home, port: port), plan, on: loop, now: .read()) {
            return result
        }
        let end = MonotonicClock.now() + 10_000_000_000
        while MonotonicClock.now() < end {
            for ready in loop.wait(until: min(prober.deadline ?? end, end)) {
                guard ready.token == 1, let server else {
                    if let result = prober.ready(ready, on: loop, now: .read()) { return result }
                    continue
                }
                var buffer = [UInt8](repeating: 0, count: 512)
                var name = sockaddr_in()
                var size = socklen_t(MemoryLayout<sockaddr_in>.size)
                let count = buffer.withUnsafeMutableBytes { buffer in
                    withUnsafeMutablePointer(to: &name) {
                        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                            recvfrom(server, buffer.baseAddress, buffer.count, 0, $0, &size)
                        }
                    }
                }
                guard count >= 0 else { continue }
                serve(Array(buffer[..<count]), SocketAddress(home, port: UInt16(bigEndian: name.sin_port)))
            }
            if let result = prober.advance(on: loop, now: .read()).first { return result }
        }
        return nil
    }

    private static func server() throws -> (socket: Int32, port: UInt16) {
        let socket = Glibc.socket(AF_INET, Int32(SOCK_DGRAM.rawValue | SOCK_NONBLOCK.rawValue), 0)
        try #require(socket >= 0 && SocketAddress(home, port: 0).bind(socket) == 0)
        return (socket, try #require(SocketAddress(of: socket)).port)
    }

    private static func answer(_ bytes: [UInt8], from socket: Int32, to address: SocketAddress) {
        _ = bytes.withUnsafeBytes { bytes in address.withPointer { sendto(socket, bytes.baseAddress, bytes.count, 0, $0, $1) } }
    }

    @Test func `an answer is the result, and datagrams that are none are ignored`() throws {
        try ProbeNamespace().perform {
            let (socket, port) = try Self.server()
            defer { close(socket) }
            let result = try Self.probe(port: port, server: socket) { bytes, sender in
                for answer in [[], [0, 1, 2], bytes, Array(bytes.reversed())] { Self.answer(answer, from: socket, to: sender) }
            }
            #expect(result?.errno == 0 && result?.id == 7 && result?.roundTripNanoseconds ?? 0 > 0)
        }
    }

    @Test func `a question is repeated at the time that the conversation names`() throws {
        try ProbeNamespace().perform {
            let (socket, port) = try Self.server()
            defer { close(socket) }
            var count = 0
            let result = try Self.probe(port: port, server: socket) { bytes, sender in
                count += 1
                if count == 2 { Self.answer(bytes.reversed(), from: socket, to: sender) }
            }
            #expect(result?.errno == 0 && count == 2)
        }
    }

    @Test func `an answer of another port does not arrive`() throws {
        try ProbeNamespace().perform {
            let (socket, port) = try Self.server()
            let (forger, _) = try Self.server()
            defer {
                close(socket)
                close(forger)
            }
            var count = 0
            let result = try Self.probe(port: port, server: socket) { bytes, sender in
                count += 1
                Self.answer(bytes.reversed(), from: count == 1 ? forger : socket, to: sender)
            }
            #expect(result?.errno == 0 && count == 2)
        }
    }

    @Test func `a closed port is reported by its host`() throws {
        try ProbeNamespace().perform {
            let result = try #require(try Self.probe(port: 9))
            #expect(result.errno == ECONNREFUSED && result.call == ProbeResult.answer)
            #expect(result.reporter?.type == 3 && result.reporter?.code == 3 && result.reporter?.offender == Self.home)
        }
    }

    @Test func `a filter of this machine refuses the question`() throws {
        let namespace = try ProbeNamespace()
        try namespace.run(
            "nft", "-f -", input: "table ip t { chain c { type filter hook output priority 0; udp dport 9 drop\n }\n }\n")
        try namespace.perform {
            let result = try #require(try Self.probe(port: 9))
            #expect(result.errno == EPERM && result.call == "sendto")
        }
    }
}
