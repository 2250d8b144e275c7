import Foundation
import Glibc

/// A listening socket on 127.0.0.1 with a thread for each connection. A connection ends when its client closes it.
final class LoopbackListener: Sendable {
    let port: UInt16
    private let listener: Int32

    /// Calls `serve` with each connection and its number, starting with 1; the connection is closed when `serve` returns. Throws
    /// if the socket cannot be opened.
    init(serve: @escaping @Sendable (_ client: Int32, _ number: Int) -> Void) throws {
        listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let listener = listener
        let isListening = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listener, $0, length) == 0 && listen(listener, 64) == 0 && getsockname(listener, $0, &length) == 0
            }
        }
        guard isListening else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
        port = UInt16(bigEndian: address.sin_port)
        Thread.detachNewThread {
            var count = 0
            while case let client = accept(listener, nil, nil), client >= 0 {
                count += 1
                let number = count
                Thread.detachNewThread {
                    serve(client, number)
                    close(client)
                }
            }
            close(listener)
        }
    }

    // The accepting thread closes the socket.
    deinit { shutdown(listener, Int32(SHUT_RDWR)) }

    func url(_ path: String = "") throws -> URL {
        guard let url = URL(string: "http://127.0.0.1:\(port)/\(path)") else { throw POSIXError(.EINVAL) }
        return url
    }

    /// Sends a response with this body.
    ///
    /// - Returns: whether the response could be sent.
    @discardableResult
    static func respond(_ body: some StringProtocol, to client: Int32) -> Bool {
        let bytes = Array("HTTP/1.1 200 OK\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)".utf8)
        return send(client, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count
    }
}
