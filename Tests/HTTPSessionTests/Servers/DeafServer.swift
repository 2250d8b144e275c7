import Foundation
import Glibc

/// A plain server whose first connection receives nothing after its first response: the kernel drops the client's segments and
/// acknowledges none. Then the server sends a surplus response. On all other connections it answers `right` to each request.
final class DeafServer: Sendable {
    private let listener: LoopbackListener
    private let mayTalk = DispatchSemaphore(value: 0)

    /// Throws if there is no socket.
    init() throws {
        let mayTalk = mayTalk
        listener = try LoopbackListener { client, number in
            guard number == 1 else {
                while DeafServer.answer("right", client) {}
                return
            }
            guard DeafServer.answer("first", client), DeafServer.dropSegments(of: client) else { return }
            mayTalk.wait()
            LoopbackListener.respond("surplus", to: client)
        }
    }

    deinit { mayTalk.signal() }

    func url() throws -> URL { try listener.url() }

    /// Sends the surplus response.
    func talk() { mayTalk.signal() }

    /// Attaches a filter that accepts no byte of any segment (SO_ATTACH_FILTER, socket(7)). A listening socket answers no client then.
    static func dropSegments(of client: Int32) -> Bool {
        // struct sock_filter: BPF_RET | BPF_K, and 0 bytes.
        var instruction: (UInt16, UInt8, UInt8, UInt32) = (0x06, 0, 0, 0)
        return withUnsafeMutableBytes(of: &instruction) { instruction in
            // struct sock_fprog: the number of instructions, and a pointer to them.
            var program: (UInt16, UnsafeMutableRawPointer?) = (1, instruction.baseAddress)
            return setsockopt(client, SOL_SOCKET, 26, &program, socklen_t(MemoryLayout.size(ofValue: program))) == 0
        }
    }

    /// Reads a GET without a body, or another request with the body `body`.
    private static func answer(_ body: String, _ client: Int32) -> Bool {
        var received = ""
        var buffer = [UInt8](repeating: 0, count: 4_096)
        repeat {
            let count = recv(client, &buffer, buffer.count, 0)
            guard count > 0 else { return false }
            received += String(decoding: buffer.prefix(count), as: UTF8.self)
        } while !received.hasSuffix(received.hasPrefix("GET") ? "\r\n\r\n" : "\r\n\r\nbody")
        return LoopbackListener.respond(body, to: client)
    }
}
