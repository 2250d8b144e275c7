import EventLoop
import Expectations
import Foundation
import Glibc
import HTTPSession
import Reachability
import Testing

/// A session's transfers as evidence for a monitor of the same server, on loopback addresses.
@Suite(.timeLimit(.minutes(5))) struct PassiveEvidenceTests {
    /// A monitor of a server that is not due again for an hour after its first probes.
    private func monitor(of server: SwitchedServer) async throws -> (PathMonitor, ServerMonitor) {
        let monitor = try PathMonitor()
        let settings = ProbeSettings(interval: .seconds(3_600), failAfter: 1)
        let watched = try ServerMonitor("\(server.host):\(server.port)", settings: settings, monitor: monitor)
        for await update in watched.updates where update.status.cause != nil {
            try #require(update.cause?.code == .refused)
            break
        }
        return (monitor, watched)
    }

    @Test func `a transfer's success makes a server up, and a failed transfer causes the probes that find it down`()
        async throws
    {
        let server = try SwitchedServer()
        let (monitor, watched) = try await monitor(of: server)
        var updates = watched.updates.makeAsyncIterator()
        await expectEqual(updates.next()?.cause?.code, .refused)

        try server.listen()
        let session = try HTTPSessionManager(configuration: localConfiguration(), monitor: monitor)
        let response = try await session.dataTask(for: TransferRequest(url: server.url)).response
        expectEqual(response.data, Data("well".utf8))
        let up = try #require(await updates.next())
        guard case .up(let route) = up.status else {
            Issue.record("\(up.status)")
            return
        }
        #expect("\(route.address)" == server.host && route.roundTrip > .zero && route.roundTrip < .seconds(60))
        // The only connection was that of the request.
        expectEqual(server.connections.count, 1)

        server.stop()
        let error = await failure(session.dataTask(for: TransferRequest(url: server.url)))
        expectEqual(error?.code, .cannotConnectToHost)
        let down = try #require(await updates.next())
        #expect(down.cause?.code == .refused && !down.status.isReachable)
    }

    @Test func `the transfers of a session without a monitor change no status`() async throws {
        let server = try SwitchedServer()
        let (monitor, watched) = try await monitor(of: server)
        try server.listen()
        _ = try await localSession().dataTask(for: TransferRequest(url: server.url)).response
        let other = try HTTPSessionManager(configuration: localConfiguration(), monitor: try PathMonitor())
        _ = try await other.dataTask(for: TransferRequest(url: server.url)).response
        #expect(server.connections.count == 2 && watched.current?.cause?.code == .refused)
        // A report to its own monitor arrives.
        monitor.reportSuccess(of: watched.endpoint, address: IPAddress(server.host), roundTrip: .milliseconds(3))
        for await update in watched.updates where update.status.isReachable {
            expectEqual(update.roundTrip, .milliseconds(3))
            break
        }
        expectEqual(server.connections.count, 2)
    }
}

/// A server on a loopback address of its own, which refuses connections while it does not listen.
private final class SwitchedServer: Sendable {
    let host: String
    let port: UInt16
    /// The accepted connections.
    let connections = Counter()
    private let socket: Int32

    let url: URL

    init() throws {
        // Other tests bind 127.0.0.1, so that no other server has this address and port.
        let number = UInt32.random(in: 0x7f10_0001...0x7ffe_fffe)
        host = [24, 16, 8, 0].map { "\(number >> $0 & 0xff)" }.joined(separator: ".")
        socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = number.bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let socket = socket
        let isBound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(socket, $0, length) == 0 && getsockname(socket, $0, &length) == 0
            }
        }
        guard isBound else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
        port = UInt16(bigEndian: address.sin_port)
        guard let url = URL(string: "http://\(host):\(port)/") else { throw POSIXError(.EINVAL) }
        self.url = url
    }

    deinit {
        stop()
        close(socket)
    }

    /// Accepts connections, and answers one request on each.
    func listen() throws {
        guard Glibc.listen(socket, 64) == 0 else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
        let (socket, connections) = (socket, connections)
        Thread.detachNewThread {
            while case let client = accept(socket, nil, nil), client >= 0 {
                connections.add()
                var request: [UInt8] = []
                var buffer = [UInt8](repeating: 0, count: 4_096)
                while !request.contains(Array("\r\n\r\n".utf8)) {
                    let count = recv(client, &buffer, buffer.count, 0)
                    guard count > 0 else { break }
                    request += buffer[..<count]
                }
                let response = Array("HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\nwell".utf8)
                send(client, response, response.count, Int32(MSG_NOSIGNAL))
                close(client)
            }
        }
    }

    /// Refuses connections from now on.
    func stop() { shutdown(socket, Int32(SHUT_RDWR)) }
}
