import Foundation
import Glibc
import Hosts

/// The HTTP servers on loopback: an nginx of one process, and a server that never responds.
final class LoopbackServers {
    let folder: WorkFolder
    private let nginx: Nginx
    private let port: UInt16
    private let slowPort: UInt16
    private let silent: Listener

    /// A file of 1,024 bytes.
    var kibibyte: String { "http://127.0.0.1:\(port)/1k" }
    /// A file of 2 GiB of zeros, without blocks.
    var huge: String { "http://127.0.0.1:\(port)/huge" }
    /// The file of 2 GiB at 1 KiB a second. The URL has another port, so that a client with a limit of connections to a host
    /// counts them separately.
    var slow: String { "http://127.0.0.1:\(slowPort)/huge" }
    /// A URL whose server accepts connections and never responds.
    var never: String { "http://127.0.0.1:\(silent.port)/" }

    init() throws {
        let folder = try WorkFolder()
        self.folder = folder
        silent = try Listener()
        // Two ports that were free a moment ago. No other program here takes ports by number.
        let (plain, slow) = try (Listener(), Listener())
        (port, slowPort) = (plain.port, slow.port)
        plain.close()
        slow.close()
        nginx = try Nginx(
            folder,
            servers: [
                "listen 127.0.0.1:\(port) backlog=4096;", "listen 127.0.0.1:\(self.slowPort) backlog=4096; limit_rate 1k;",
            ])
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
