internal import Dispatch
internal import Foundation
internal import HTTPSession

/// What the program asks for.
extension Keeper {
    static let closed = DurableSessionError(.closed, "the durable session has been closed")

    func onQueue<Value: Sendable>(
        _ body: @escaping @Sendable (Keeper) throws(DurableSessionError) -> Value
    ) async throws(DurableSessionError) -> Value {
        let result: Result<Value, DurableSessionError> = await withCheckedContinuation { continuation in
            queue.async { [self] in
                guard phase == .open else { return continuation.resume(returning: .failure(Keeper.closed)) }
                do throws(DurableSessionError) { continuation.resume(returning: .success(try body(self))) } catch {
                    continuation.resume(returning: .failure(error))
                }
            }
        }
        return try result.get()
    }

    func add(
        _ request: TransferRequest, to destination: DownloadDestination?, resumably resuming: UploadProtocol?, handler: String,
        context: Data, writesSecrets: Bool
    ) async throws(DurableSessionError) -> DurableTask {
        guard handlers.names.contains(handler) else {
            throw DurableSessionError(.unknownHandler, "no handler is registered as '\(handler)'")
        }
        guard context.count <= limits.contextBytes else {
            throw DurableSessionError(.limitReached, "the context has \(context.count) bytes, of at most \(limits.contextBytes)")
        }
        return try await onQueue { keeper throws(DurableSessionError) in
            let intent = try Intent(request, to: destination, resuming: resuming, writesSecrets: writesSecrets) {
                (path) throws(DurableSessionError) in
                guard let mark = HiddenFile.mark(path) else {
                    throw DurableSessionError(.invalidTask, "'\(path)' is no regular file that can be read")
                }
                return mark
            }
            let now = keeper.surroundings.clock()
            let time = (request.options.resourceTimeout ?? keeper.limits.expiry).components.seconds
            return try keeper.add(
                TaskRecord(
                    id: Keeper.newID(), intent: intent, handler: handler, context: context, created: now,
                    expires: now + max(1, min(time, 365 * 24 * 3600))))
        }
    }

    private func add(_ record: TaskRecord) throws(DurableSessionError) -> DurableTask {
        guard entries.count < limits.tasks else {
            throw DurableSessionError(.limitReached, "the journal has \(entries.count) tasks, of at most \(limits.tasks)")
        }
        let size = (try? record.intent.encoded().count) ?? .max
        guard size <= limits.requestBytes else {
            throw DurableSessionError(.limitReached, "the request takes \(size) bytes, of at most \(limits.requestBytes)")
        }
        guard surroundings.mayStep() else {
            phase = .dead
            throw Keeper.closed
        }
        try journal.insert(record)
        entries[record.id] = entry(of: record)
        reattach(record.id)
        return snapshot(record.id) ?? DurableTask(record, transfer: nil)
    }

    /// Of 128 bits, in hexadecimal digits.
    private static func newID() -> String {
        (0..<2).map { _ in
            let digits = String(UInt64.random(in: 0 ... .max), radix: 16)
            return String(repeating: "0", count: 16 - digits.count) + digits
        }.joined()
    }

    private func snapshot(_ id: String) -> DurableTask? { entries[id].map { DurableTask($0.record, transfer: $0.transfer) } }

    func tasks() async throws(DurableSessionError) -> [DurableTask] {
        try await onQueue { keeper throws(DurableSessionError) in
            keeper.entries.keys.compactMap { keeper.snapshot($0) }.sorted { ($0.created, $0.id) < ($1.created, $1.id) }
        }
    }

    func events() async throws(DurableSessionError) -> [DurableEvent] {
        try await onQueue { keeper throws(DurableSessionError) in keeper.entries.values.compactMap { keeper.event(of: $0) } }
    }

    /// Where the uploads go on that have said so.
    func places() async throws(DurableSessionError) -> [URL] {
        try await onQueue { keeper throws(DurableSessionError) in keeper.entries.values.compactMap(\.record.place) }
    }

    func cancel(_ id: String) async throws(DurableSessionError) {
        try await onQueue { keeper throws(DurableSessionError) in
            guard keeper.entries[id] != nil else { throw DurableSessionError(.unknownTask, "there is no task \(id)") }
            if let error = keeper.settle(id) ?? keeper.handle(.cancel, id) { throw error }
        }
    }

    func acknowledge(_ id: String) async throws(DurableSessionError) {
        try await onQueue { keeper throws(DurableSessionError) in
            guard case .ended? = keeper.entries[id]?.record.state else {
                throw DurableSessionError(.unknownTask, "there is no event of a task \(id)")
            }
            if let error = keeper.handle(.acknowledge, id) { throw error }
        }
    }
}
