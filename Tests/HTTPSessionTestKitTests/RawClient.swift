import COpenSSL
import FoundationEssentials
import Glibc
import HTTPSessionTestKit

/// A client that does not parse HTTP: it shows the bytes on the wire.
final class RawClient {
    struct Failure: Error {
        let call: String
        let number: Int32
    }

    /// The end of the server's side of the connection.
    enum End: Equatable {
        case closed
        case reset
        /// FIN without the close_notify of TLS.
        case truncated
        /// The connection is still open after the client's patience.
        case open
    }

    private let socket: Int32
    private var tls: OpaquePointer?

    init(_ server: TestServer) throws {
        switch server.address {
        case .ip(let host, _): socket = try RawClient.connect(host, server.port)
        case .unix(let path): socket = try RawClient.connect(unix: path)
        }
    }

    init(host: String = "127.0.0.1", port: UInt16) throws {
        socket = try RawClient.connect(host, port)
    }

    deinit {
        if let tls { SSL_free(tls) }
        close(socket)
    }

    private static func connect(_ host: String, _ port: UInt16) throws -> Int32 {
        let socket = Glibc.socket(host.contains(":") ? AF_INET6 : AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        let code: Int32
        if host.contains(":") {
            var name = sockaddr_in6()
            name.sin6_family = sa_family_t(AF_INET6)
            name.sin6_port = port.bigEndian
            inet_pton(AF_INET6, host, &name.sin6_addr)
            code = connect(socket, &name)
        } else {
            var name = sockaddr_in()
            name.sin_family = sa_family_t(AF_INET)
            name.sin_port = port.bigEndian
            inet_pton(AF_INET, host, &name.sin_addr)
            code = connect(socket, &name)
        }
        guard code == 0 else { throw Failure(call: "connect", number: errno) }
        return socket
    }

    private static func connect(unix path: String) throws -> Int32 {
        let socket = Glibc.socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var name = sockaddr_un()
        name.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &name.sun_path) { $0.copyBytes(from: path.utf8) }
        guard connect(socket, &name) == 0 else { throw Failure(call: "connect", number: errno) }
        return socket
    }

    private static func connect<Name>(_ socket: Int32, _ name: inout Name) -> Int32 {
        withUnsafePointer(to: &name) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.connect(socket, $0, socklen_t(MemoryLayout<Name>.size))
            }
        }
    }

    /// Performs the client's side of a TLS handshake without verification. `session` is that of an earlier connection, to be resumed.
    func startTLS(
        _ context: ClientContext, name: String = "localhost", resuming session: OpaquePointer? = nil
    ) throws {
        let tls = withExtendedLifetime(context) { SSL_new(context.pointer) }
        self.tls = tls
        if let session { SSL_set_session(tls, session) }
        // SSL_set_tlsext_host_name, a macro.
        _ = name.withCString {
            SSL_ctrl(tls, SSL_CTRL_SET_TLSEXT_HOSTNAME, Int(TLSEXT_NAMETYPE_host_name), UnsafeMutableRawPointer(mutating: $0))
        }
        SSL_set_fd(tls, socket)
        guard SSL_connect(tls) == 1 else {
            ERR_clear_error()
            throw Failure(call: "SSL_connect", number: 0)
        }
    }

    var isResumed: Bool { SSL_session_reused(tls) == 1 }

    /// The TLS session, to be freed with SSL_SESSION_free.
    var session: OpaquePointer? { SSL_get1_session(tls) }

    func send(_ text: String) throws {
        let bytes = Array(text.utf8)
        let count =
            tls.map { Int(SSL_write($0, bytes, Int32(bytes.count))) }
            ?? Glibc.send(socket, bytes, bytes.count, Int32(MSG_NOSIGNAL))
        guard count == bytes.count else { throw Failure(call: "send", number: errno) }
    }

    func get(_ target: String, _ fields: String = "") throws {
        try send("GET \(target) HTTP/1.1\r\nHost: localhost\r\n\(fields)\r\n")
    }

    /// Sends FIN.
    func shutdown() {
        Glibc.shutdown(socket, Int32(SHUT_WR))
    }

    /// All bytes until the end, and the end; `.open` if nothing came for `patience`.
    func readToEnd(patience: Duration = .seconds(60)) -> (bytes: [UInt8], end: End) {
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65536)
        while true {
            guard isReadable(within: patience) else { return (bytes, .open) }
            let count: Int
            errno = 0
            if let tls {
                count = Int(SSL_read(tls, &buffer, Int32(buffer.count)))
                if count <= 0 {
                    let error = SSL_get_error(tls, Int32(count))
                    let number = errno
                    ERR_clear_error()
                    if error == SSL_ERROR_ZERO_RETURN { return (bytes, .closed) }
                    return (bytes, number == ECONNRESET ? .reset : .truncated)
                }
            } else {
                count = recv(socket, &buffer, buffer.count, 0)
                if count == 0 { return (bytes, .closed) }
                if count < 0 { return (bytes, .reset) }
            }
            bytes += buffer[..<count]
        }
    }

    /// The bytes until `end`, or until the end of the connection.
    func read(until end: String) -> String {
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 1)
        while !String(decoding: bytes.suffix(end.utf8.count), as: UTF8.self).hasSuffix(end), isReadable(within: .seconds(60)) {
            let count = tls.map { Int(SSL_read($0, &buffer, 1)) } ?? recv(socket, &buffer, 1, 0)
            guard count == 1 else { break }
            bytes += buffer
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Whether bytes, or the end, come within this time.
    func isReadable(within patience: Duration) -> Bool {
        if let tls, SSL_has_pending(tls) == 1 { return true }
        var polled = pollfd(fd: socket, events: Int16(POLLIN), revents: 0)
        let (seconds, attoseconds) = patience.components
        return poll(&polled, 1, Int32(seconds * 1000 + attoseconds / 1_000_000_000_000_000)) > 0
    }
}

extension RawClient {
    /// The bytes that a server of one response sends to one GET, and how it ends the connection.
    static func exchange(
        _ reply: StubResponse, method: String = "GET", patience: Duration = .seconds(60)
    ) throws -> (text: String, end: End) {
        let server = try TestServer { _ in reply }
        let client = try RawClient(server)
        try client.send("\(method) / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        let (bytes, end) = client.readToEnd(patience: patience)
        return (String(decoding: bytes, as: UTF8.self), end)
    }
}

extension RawClient {
    /// The body that a server of one response sends to one GET.
    static func exchangeBytes(_ reply: StubResponse) throws -> (body: [UInt8], end: End) {
        let server = try TestServer { _ in reply }
        let client = try RawClient(server)
        try client.send("GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        _ = client.read(until: "\r\n\r\n")
        let (bytes, end) = client.readToEnd()
        return (bytes, end)
    }
}

/// Writes a file.
func write(_ text: String, to path: String) throws {
    try Data(text.utf8).write(to: URL(filePath: path))
}
