package import EventLoop
import Glibc

/// Accepts connections and gives each a thread. When it has stopped, all threads have ended.
package final class Listener: Sendable {
    /// The work of a connection's thread. The connection closes when it returns, or before.
    package typealias Conversation = @Sendable (_ socket: Descriptor, _ stop: Waker) -> Void

    /// The port of an IP address; 0 for a Unix domain socket.
    package let port: UInt16
    private let stop: Waker
    private let thread: LoopThread

    /// - Throws: ``TestServerError``.
    package init(
        at address: ListeningAddress, namespace: String?, maximumConnections: Int, receiveBuffer: Int?,
        conversation: @escaping Conversation
    ) throws {
        do {
            let stop = try Waker()
            let bound = Locked<Result<UInt16, TestServerError>>(.success(0))
            thread = try LoopThread(name: "test-server", namespace: namespace) { () throws(LoopError) -> () -> Void in
                let waker = try Waker()
                // A socket belongs to the network namespace of the thread that opens it.
                let socket: Descriptor
                do {
                    socket = try Descriptor.listening(at: address, receiveBuffer: receiveBuffer)
                    guard let port = SocketAddress(of: socket.number)?.port else {
                        throw TestServerError("getsockname", errno: errno)
                    }
                    bound.withLock { $0 = .success(port) }
                } catch {
                    let failure = TestServerError(error)
                    bound.withLock { $0 = .failure(failure) }
                    return {}
                }
                let acceptor = Acceptor(
                    socket: socket, stop: stop, ended: waker, maximumConnections: max(1, maximumConnections),
                    conversation: conversation)
                return {
                    acceptor.run()
                    if case .unix(let path) = address { unlink(path) }
                }
            }
            do { port = try bound.withLock { $0 }.get() } catch {
                thread.join()
                throw error
            }
            self.stop = stop
        } catch {
            throw TestServerError(error)
        }
    }

    deinit { end() }

    /// Ends all threads and waits for them. A second call does nothing.
    package func end() {
        stop.wake()
        thread.join()
    }
}

/// The work of a listener's thread.
// @unchecked: made on the listener's thread and used there; the connections' threads see only `over` and `ended`.
private final class Acceptor: @unchecked Sendable {
    private let socket: Descriptor
    private let stop: Waker
    private let ended: Waker
    private let over = Locked<[Int]>([])
    private let maximumConnections: Int
    private let conversation: Listener.Conversation
    private var threads: [Int: LoopThread] = [:]
    private var accepted = 0
    /// The descriptors that no connection uses.
    private static let alwaysFree = 8

    init(
        socket: Descriptor, stop: Waker, ended: Waker, maximumConnections: Int, conversation: @escaping Listener.Conversation
    ) {
        self.socket = socket
        self.stop = stop
        self.ended = ended
        self.maximumConnections = maximumConnections
        self.conversation = conversation
    }

    func run() {
        while true {
            // Beyond the limit connections wait in the kernel's queue.
            let hasRoom = threads.count < maximumConnections
            var polled = [
                pollfd(fd: stop.descriptor, events: Int16(POLLIN), revents: 0),
                pollfd(fd: ended.descriptor, events: Int16(POLLIN), revents: 0),
                pollfd(fd: hasRoom ? socket.number : -1, events: Int16(POLLIN), revents: 0),
            ]
            guard poll(&polled, nfds_t(polled.count), -1) > 0 || errno == EINTR else { break }
            if polled[0].revents != 0 { break }
            if polled[1].revents != 0 {
                ended.acknowledge()
                join(
                    over.withLock { over in
                        defer { over = [] }
                        return over
                    })
            }
            if polled[2].revents != 0 { accept() }
        }
        join(Array(threads.keys))
    }

    private func join(_ keys: [Int]) {
        for key in keys { threads.removeValue(forKey: key)?.join() }
    }

    private func accept() {
        // libdispatch ends the process if it finds no descriptor, which it needs once a second (DispatchStart). The last ones stay free, and the
        // connection stays in the queue: try again in a moment.
        guard DescriptorUse.leavesFree(Acceptor.alwaysFree, duplicating: socket.number) else {
            var polled = [
                pollfd(fd: stop.descriptor, events: Int16(POLLIN), revents: 0),
                pollfd(fd: ended.descriptor, events: Int16(POLLIN), revents: 0),
            ]
            poll(&polled, 2, 10)
            return
        }
        let number = Glibc.accept(socket.number, nil, nil)
        guard number >= 0, let connection = try? Descriptor(number, "accept") else {
            // If the process has no descriptor left, the connection stays in the queue and the socket readable: try again in a moment.
            var polled = pollfd(fd: stop.descriptor, events: Int16(POLLIN), revents: 0)
            if errno == EMFILE || errno == ENFILE { poll(&polled, 1, 10) }
            return
        }
        _ = fcntl(number, F_SETFD, FD_CLOEXEC)
        _ = fcntl(number, F_SETFL, fcntl(number, F_GETFL) | O_NONBLOCK)
        accepted += 1
        let key = accepted
        // The closure of the thread must not keep the connection open after the thread's end.
        let handedOver = Locked<Descriptor?>(connection)
        let (conversation, stop, over, ended) = (conversation, stop, over, ended)
        // If no thread can be made, the connection closes here, as on any overloaded machine.
        threads[key] = try? LoopThread(name: "test-connection", namespace: nil) {
            {
                let socket = handedOver.withLock { descriptor in
                    defer { descriptor = nil }
                    return descriptor
                }
                if let socket { conversation(socket, stop) }
                over.withLock { $0.append(key) }
                ended.wake()
            }
        }
    }
}
