import EventLoop
import Glibc
import HTTPSessionTestKit

/// A name server that receives every query and answers none, for tests of slow lookups.
///
/// A client uses it if its `/etc/resolv.conf` names it. A test arranges that in a mount namespace of its own, and takes port 53 in a network
/// namespace of its own.
package final class SilentResolver: Sendable {
    /// The UDP port.
    package let port: UInt16
    private let stopped: Waker
    private let thread: LoopThread
    private let log: ServerLog<[String]>

    /// Starts a name server.
    ///
    /// - Parameters:
    ///   - address: a numeric address.
    ///   - port: the UDP port; 0 lets the kernel choose.
    ///   - namespace: the file of the network namespace to listen in; `nil` for the namespace of the caller.
    /// - Throws: ``TestServerError``.
    package init(at address: String = "127.0.0.1", port: UInt16 = 53, namespace: String? = nil) throws {
        let log = ServerLog<[String]>([])
        do {
            let stopped = try Waker()
            let bound = Locked<Result<UInt16, TestServerError>>(.success(0))
            thread = try LoopThread(name: "silent-resolver", namespace: namespace) { () throws(LoopError) -> () -> Void in
                do {
                    let name = try SocketAddress(.ip(address, port: port))
                    let socket = try Descriptor.socket(name.family, SOCK_DGRAM)
                    guard name.bind(socket.number) == 0 else {
                        throw TestServerError("bind", errno: errno)
                    }
                    guard let port = SocketAddress(of: socket.number)?.port else {
                        throw TestServerError("getsockname", errno: errno)
                    }
                    bound.withLock { $0 = .success(port) }
                    return { listen(socket, stopped, log) }
                } catch {
                    let failure = TestServerError(error)
                    bound.withLock { $0 = .failure(failure) }
                    return {}
                }
            }
            do { self.port = try bound.withLock { $0 }.get() } catch {
                thread.join()
                throw error
            }
            self.stopped = stopped
        } catch {
            throw TestServerError(error)
        }
        self.log = log
    }

    deinit { stop() }

    /// Stops the server. The kernel then refuses queries.
    package func stop() {
        stopped.wake()
        thread.join()
    }

    /// The names in the first 4,096 queries, in their order, with repetitions.
    package var names: [String] { log.state }

    /// Waits until this number of queries has arrived, for at most `limit`; 30 s by default.
    ///
    /// - Throws: ``TestServerError`` if they do not come in time.
    @discardableResult
    package func awaitQuestions(_ count: Int, within limit: Duration = .seconds(30)) async throws -> [String] {
        try await log.wait(for: "\(count) questions", within: limit) { $0.count >= count }
    }
}

private func listen(_ socket: Descriptor, _ stopped: Waker, _ log: ServerLog<[String]>) {
    var buffer = [UInt8](repeating: 0, count: 4096)
    while true {
        var polled = [
            pollfd(fd: stopped.descriptor, events: Int16(POLLIN), revents: 0),
            pollfd(fd: socket.number, events: Int16(POLLIN), revents: 0),
        ]
        guard poll(&polled, 2, -1) > 0 || errno == EINTR else { return }
        if polled[0].revents != 0 { return }
        let count = recv(socket.number, &buffer, buffer.count, 0)
        guard count > 0 else { continue }
        let name = questionName(buffer[..<count])
        log.change { names in
            if names.count < 4096 { names.append(name) }
        }
    }
}

/// The name in the first question of a message (RFC 1035 section 4.1.2), with dots; `?` for a message that has no question.
private func questionName(_ message: ArraySlice<UInt8>) -> String {
    var rest = message.dropFirst(12)
    var labels: [String] = []
    while let length = rest.popFirst(), length != 0 {
        guard length < 64, rest.count >= length else { return "?" }
        labels.append(String(decoding: rest.prefix(Int(length)), as: UTF8.self))
        rest = rest.dropFirst(Int(length))
    }
    return labels.isEmpty ? "?" : labels.joined(separator: ".")
}
