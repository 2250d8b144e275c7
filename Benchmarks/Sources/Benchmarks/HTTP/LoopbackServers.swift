import Foundation
import Glibc
import Hosts

/// The HTTP servers on loopback: an nginx of one process, and a server that never responds.
final class LoopbackServers {
    let folder: WorkFolder
    private let nginx: Nginx
    private let port: UInt16
    private let slowPort: UInt16
    private let securePort: UInt16
    private let multiplexedPort: UInt16
    private let silent: Listener
    private let certificate: SelfSignedCertificate
    /// The connections whose first response ``newConnections()`` has returned.
    private var knownConnections = 0

    /// A file of 1,024 bytes.
    var kibibyte: String { "http://127.0.0.1:\(port)/1k" }
    /// A file of 2 GiB of zeros, without blocks.
    var huge: String { "http://127.0.0.1:\(port)/huge" }
    /// The file of 1,024 bytes over TLS 1.3 and HTTP/1.1.
    var secureKibibyte: String { "https://127.0.0.1:\(securePort)/1k" }
    /// The file of 1,024 bytes over TLS 1.3 and HTTP/2, with up to 128 streams for each connection.
    var multiplexedKibibyte: String { "https://127.0.0.1:\(multiplexedPort)/1k" }
    /// A file with the certificate of the servers that use TLS.
    var authority: String { certificate.file }
    /// A document of JSON.
    var document: String { "http://127.0.0.1:\(port)/document.json" }
    /// A file of 10 MiB of zeros, without blocks.
    var tenMebibytes: String { "http://127.0.0.1:\(port)/10m" }
    /// The file of 2 GiB at 1 KiB a second. The URL has another port, so that a client with a limit of connections to a host
    /// counts them separately.
    var slow: String { "http://127.0.0.1:\(slowPort)/huge" }
    /// A URL whose server accepts connections and never responds.
    var never: String { "http://127.0.0.1:\(silent.port)/" }

    init() throws {
        let folder = try WorkFolder()
        self.folder = folder
        silent = try Listener()
        // Ports that were free a moment ago. No other program here takes ports by number.
        let free = try (0..<4).map { _ in try Listener() }
        (port, slowPort, securePort, multiplexedPort) = (free[0].port, free[1].port, free[2].port, free[3].port)
        free.forEach { $0.close() }
        certificate = try SelfSignedCertificate(for: ["127.0.0.1"], in: folder)
        let secure = "ssl_protocols TLSv1.3; access_log \(folder.file("connections")) connection if=$is_first_request;"
        nginx = try Nginx(
            folder,
            http: """
                access_log off;
                \(certificate.configuration)
                map $connection_requests $is_first_request { 1 1; default 0; }
                log_format connection '$ssl_protocol $server_protocol';
                """,
            servers: [
                "listen 127.0.0.1:\(port) backlog=4096;", "listen 127.0.0.1:\(slowPort) backlog=4096; limit_rate 1k;",
                "listen 127.0.0.1:\(securePort) ssl backlog=4096; \(secure)",
                "listen 127.0.0.1:\(multiplexedPort) ssl http2 backlog=4096; http2_max_concurrent_streams 128; \(secure)",
            ])
    }

    /// The TLS and HTTP versions of the connections over TLS since the last call, such as `TLSv1.3 HTTP/2.0`. A connection is
    /// counted at the end of its first response.
    func newConnections() throws -> [String] {
        let all = try String(contentsOfFile: folder.file("connections"), encoding: .utf8).split(separator: "\n").map(String.init)
        defer { knownConnections = all.count }
        return Array(all.dropFirst(knownConnections))
    }

    /// A TCP port of 127.0.0.1 that the kernel chose. No program accepts there: the kernel completes connections until its queue
    /// is full.
    private final class Listener {
        private let descriptor: Int32
        let port: UInt16
        private var isClosed = false

        init() throws {
            descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
            var length = socklen_t(MemoryLayout<sockaddr_in>.size)
            let descriptor = descriptor
            let failure = withUnsafeMutablePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    bind(descriptor, $0, length) != 0 || listen(descriptor, 4096) != 0
                        || getsockname(descriptor, $0, &length) != 0
                }
            }
            port = UInt16(bigEndian: address.sin_port)
            guard !failure else { throw BenchmarkError("no port on 127.0.0.1: errno \(errno)") }
        }

        func close() {
            if !isClosed { Glibc.close(descriptor) }
            isClosed = true
        }

        deinit { close() }
    }
}
