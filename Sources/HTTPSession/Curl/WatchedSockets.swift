internal import CCurl
internal import EventLoop
internal import Glibc

/// An engine's event loop, and the sockets in it.
///
/// libcurl removes the socket of a connection that becomes idle, and adds it again for the next request. That would take two system calls for each
/// request, so the socket of an idle connection stays in the loop. If the server closes the connection or sends something, the event removes it.
///
/// The kernel removes a closed descriptor by itself, and another socket may then have its number. ``made(_:)`` and ``close(_:)`` report both.
/// libcurl 7.88 reports neither for the sockets of its resolver. It does not report either that it closes a socket that has not connected, because
/// another address was faster. So an idle socket stays only if it was reported as made, and was last watched for reading alone: libcurl watches a
/// socket that connects for writing.
final class WatchedSockets {
    private struct Entry {
        /// The events that the kernel watches; `nil` if the descriptor is not in the loop.
        var interest: EventLoop.Interest?
        /// Whether libcurl watches the socket.
        var isInUse = false
        /// Whether libcurl reports that it closes the socket.
        var isConnection = false
    }

    // Unchecked: see SessionLoop.
    @exclusivity(unchecked) private var loop: EventLoop
    /// The entry of each descriptor. The kernel assigns the lowest free number, so the array is short.
    private var entries: [Entry] = []
    /// The number of connected sockets that libcurl has closed so far.
    private(set) var closedCount = 0

    var waker: Waker { loop.waker }

    init() throws(LoopError) { loop = try EventLoop() }

    private subscript(socket: curl_socket_t) -> Entry {
        get { entries.indices.contains(Int(socket)) ? entries[Int(socket)] : Entry() }
        set {
            guard socket >= 0 else { return }
            while entries.count <= Int(socket) { entries.append(Entry()) }
            entries[Int(socket)] = newValue
        }
    }

    // MARK: Called by libcurl

    /// Watches a socket, or changes the events for which it is watched (`CURL_POLL_IN` and others).
    func watch(_ socket: curl_socket_t, for interest: EventLoop.Interest) throws(LoopError) {
        var entry = self[socket]
        if entry.interest == nil {
            try add(socket, for: interest)
        } else if entry.interest != interest {
            try loop.change(socket, interest: interest, token: token(of: socket))
        }
        (entry.interest, entry.isInUse) = (interest, true)
        self[socket] = entry
    }

    /// Stops watching a socket (`CURL_POLL_REMOVE`). Its descriptor may be closed already.
    func release(_ socket: curl_socket_t) {
        if self[socket].isConnection, self[socket].interest == .read {
            self[socket].isInUse = false
        } else {
            loop.remove(socket)
            self[socket] = Entry()
        }
    }

    /// Records a new socket (`CURLOPT_SOCKOPTFUNCTION`).
    func made(_ socket: curl_socket_t) throws(LoopError) {
        let former = self[socket]
        self[socket] = Entry(isConnection: true)
        // A socket with this number was closed without a report. If libcurl has not noticed, it does not ask again to watch the number.
        if former.isInUse, let interest = former.interest { try watch(socket, for: interest) }
    }

    /// Closes the socket of a connection (`CURLOPT_CLOSESOCKETFUNCTION`). - Returns: The result of close(2).
    func close(_ socket: curl_socket_t) -> Int32 {
        // A child process may have a copy of the descriptor until it executes a program: the kernel would report its events until then.
        if self[socket].interest != nil { loop.remove(socket) }
        self[socket] = Entry()
        closedCount += 1
        return Glibc.close(socket)
    }

    // MARK: Called by the engine

    /// Waits as ``EventLoop`` does. - Returns: The ready sockets, of which ``isInUse(_:)`` has to be asked.
    func wait(until deadline: Int64?) -> [EventLoop.Ready] { loop.wait(until: deadline) }

    /// The socket of an event.
    func socket(of ready: EventLoop.Ready) -> curl_socket_t { curl_socket_t(truncatingIfNeeded: ready.token) }

    /// Whether libcurl has to handle an event of the socket. Otherwise the connection is idle, and its socket is removed, because the event would be
    /// reported again and again. libcurl checks the connection before it uses it again.
    func isInUse(_ socket: curl_socket_t) -> Bool {
        let entry = self[socket]
        if !entry.isInUse, entry.interest != nil {
            loop.remove(socket)
            self[socket].interest = nil
        }
        return entry.isInUse
    }

    private func add(_ socket: curl_socket_t, for interest: EventLoop.Interest) throws(LoopError) {
        do throws(LoopError) { try loop.add(socket, interest: interest, token: token(of: socket)) } catch {
            // The limit of watches per user (epoll(7)): idle sockets need none.
            guard error.errno == ENOSPC, removeIdle() else { throw error }
            try loop.add(socket, interest: interest, token: token(of: socket))
        }
    }

    /// - Returns: Whether there were idle sockets.
    private func removeIdle() -> Bool {
        var hasRemoved = false
        for index in entries.indices where entries[index].interest != nil && !entries[index].isInUse {
            loop.remove(Int32(index))
            entries[index].interest = nil
            hasRemoved = true
        }
        return hasRemoved
    }

    private func token(of socket: curl_socket_t) -> UInt64 { UInt64(UInt32(bitPattern: socket)) }
}
