import Expectations
import Glibc
import Testing

@testable import HTTPSession

@Suite struct IdleSocketsTests {
    /// A socket that is bound to a local address and port; 0 for a free port.
    private func bound(to last: UInt8, port: UInt16 = 0) throws -> (socket: Int32, port: UInt16) {
        let made = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in()
        (address.sin_family, address.sin_port) = (sa_family_t(AF_INET), port.bigEndian)
        address.sin_addr.s_addr = (0x7F00_0000 | UInt32(last)).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(made, $0, length) == 0 && getsockname(made, $0, &length) == 0
            }
        }
        try #require(isBound)
        return (made, UInt16(bigEndian: address.sin_port))
    }

    @Test func `connections from two local addresses with the same ports have entries of their own`() throws {
        let (one, port) = try bound(to: 2)
        let (other, _) = try bound(to: 3, port: port)
        defer { for socket in [one, other] { close(socket) } }
        func connection(_ local: String) -> IdleSockets.Connection {
            .init(remoteAddress: "127.0.0.1", remotePort: 80, localAddress: local, localPort: Int32(port))
        }
        let sockets = IdleSockets()
        // The socket is found by its address too, whatever the order.
        expectEqual(sockets.insert(connection("127.0.0.2"), made: [one, other])?.socket, one)
        expectEqual(sockets.insert(connection("127.0.0.3"), made: [other, one])?.socket, other)
        expectEqual(sockets.entry(of: connection("127.0.0.2"))?.socket, one)
        expectEqual(sockets.entry(of: connection("127.0.0.3"))?.socket, other)
        expectNil(sockets.insert(connection("127.0.0.4"), made: [one, other]))
        expectNil(sockets.entry(of: connection("127.0.0.4")))
    }

    @Test func `a stale connection is one of its local address`() throws {
        let (one, port) = try bound(to: 2)
        defer { close(one) }
        func connection(_ local: String) -> IdleSockets.Connection {
            .init(remoteAddress: "192.0.2.1", remotePort: 80, localAddress: local, localPort: Int32(port))
        }
        let sockets = IdleSockets()
        _ = sockets.insert(connection("127.0.0.2"), made: [one])
        sockets.markAllStale()
        #expect(!sockets.removeStale(connection("127.0.0.3")) && sockets.removeStale(connection("127.0.0.2")))
    }
}
