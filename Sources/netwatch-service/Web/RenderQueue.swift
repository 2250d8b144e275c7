import EventLoop
import NIOCore
import Reachability

/// The thread that renders documents and the beginnings of streams. The other threads of the program stay free, so that the state of the
/// service is answered however many documents clients ask for.
///
/// Documents that their clients have not read are limited too: while there are more than ``UnreadLimit`` allows, nothing is rendered, and
/// ``onShortage(_:)`` says so.
///
/// Connections, and users of the Unix socket, have their turns (``TurnOrder``). A connection has one request at a time, so the
/// number of jobs is limited by that of connections.
final class RenderQueue: Sendable {
    /// A piece of a document. It returns the job of the next one; `nil` after the last.
    private struct Job: Sendable {
        let client: RenderClient
        let run: @Sendable (_ isWanted: Bool) -> Job?
    }

    private struct State: Sendable {
        var order = TurnOrder<RenderClient.Share, Job>()
        var isRunning = false
        /// The number and the bytes of all documents that exist.
        var unread = UnreadLimit(documents: 0, bytes: 0)
        var onShortage: (@Sendable () -> Void)?
    }

    /// The number of unread documents and of their bytes; nothing is rendered while both are reached. A few large documents, such as the history of
    /// a year, do not reach it.
    struct UnreadLimit: Hashable, Sendable {
        var documents = 32
        var bytes = 8 << 20

        func isReached(by unread: UnreadLimit) -> Bool { unread.documents >= documents && unread.bytes >= bytes }
    }

    private let unreadLimit: UnreadLimit
    private let worker: Worker
    private let state = Locked(State())

    /// - Throws: the failed system call.
    init(unreadLimit: UnreadLimit = UnreadLimit()) throws(LoopThread.StartError) {
        self.unreadLimit = unreadLimit
        worker = try Worker(name: "netwatch-pages")
    }

    /// Sets the closure that is called when something waits because of unread documents, or removes it. It closes connections whose clients read nothing.
    func onShortage(_ body: (@Sendable () -> Void)?) { state.withLock { $0.onShortage = body } }

    /// Whether something waits because of unread documents.
    var isShort: Bool { state.withLock { unreadLimit.isReached(by: $0.unread) && $0.order.hasJobs } }

    /// Renders a document in pieces. - Returns: `nil` if the client's connection is closed before.
    func render(_ document: any PiecewiseDocument, for client: RenderClient) async -> UnreadDocument? {
        let document = Locked(document)
        let bytes = await withCheckedContinuation { continuation in
            add(job(document, client, continuation))
        }
        // Made here and not by the thread that renders: ThreadSanitizer sees no order between that thread and this task.
        return bytes.map { UnreadDocument($0, self) }
    }

    private func job(
        _ document: Locked<any PiecewiseDocument>, _ client: RenderClient,
        _ continuation: CheckedContinuation<ByteBuffer?, Never>
    ) -> Job {
        Job(client: client) { [self] isWanted in
            guard isWanted else {
                continuation.resume(returning: nil)
                return nil
            }
            // Only this thread has the document.
            guard let bytes = document.withLock({ $0.renderPiece() }) else { return job(document, client, continuation) }
            state.withLock { state in
                state.unread.documents += 1
                state.unread.bytes += bytes.count
            }
            continuation.resume(returning: ByteBuffer(bytes: bytes))
            return nil
        }
    }

    /// Notes that a document of so many bytes no longer exists.
    func release(_ count: Int) {
        let begins = state.withLock { state in
            state.unread.documents -= 1
            state.unread.bytes -= count
            guard state.order.hasJobs, !state.isRunning else { return false }
            state.isRunning = true
            return true
        }
        if begins { worker.run { [self] in work() } }
    }

    /// Runs one piece of work. - Returns: `nil` if the client's connection is closed before.
    func run<Value: Sendable>(for client: RenderClient, _ body: @escaping @Sendable () -> Value) async -> Value? {
        await withCheckedContinuation { continuation in
            add(
                Job(client: client) { isWanted in
                    continuation.resume(returning: isWanted ? body() : nil)
                    return nil
                })
        }
    }

    private func add(_ job: Job) {
        let begins = state.withLock { state in
            state.order.add(job, of: job.client.share)
            defer { state.isRunning = true }
            return !state.isRunning
        }
        if begins { worker.run { [self] in work() } }
    }

    /// Runs pieces until none waits.
    private func work() {
        while let job = next() {
            guard let remainder = job.run(job.client.isOpen) else { continue }
            state.withLock { $0.order.putBack(remainder) }
        }
    }

    private func next() -> Job? {
        let (next, onShortage) = state.withLock { state -> (Job?, (@Sendable () -> Void)?) in
            let isShort = unreadLimit.isReached(by: state.unread) && state.order.hasJobs
            let next = isShort ? nil : state.order.next()
            if next == nil { state.isRunning = false }
            return (next, isShort ? state.onShortage : nil)
        }
        onShortage?()
        return next
    }
}

/// A rendered document. While it exists, its bytes count as unread: ``RenderQueue`` renders no further ones if there are too many.
final class UnreadDocument: Sendable {
    let buffer: ByteBuffer
    private let renders: RenderQueue

    init(_ buffer: ByteBuffer, _ renders: RenderQueue) { (self.buffer, self.renders) = (buffer, renders) }

    deinit { renders.release(buffer.readableBytes) }
}
