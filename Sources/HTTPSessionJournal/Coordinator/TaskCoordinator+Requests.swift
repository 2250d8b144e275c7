internal import Dispatch
internal import Foundation
internal import HTTPSession

/// The requests of the program: new tasks, snapshots, cancellations and acknowledgements.
extension TaskCoordinator {
    static let closed = DurableSessionError(.closed, "the durable session has been closed")

    func onQueue<Value: Sendable>(
        _ body: @escaping @Sendable (TaskCoordinator) throws(DurableSessionError) -> Value
    ) async throws(DurableSessionError) -> Value {
        let result: Result<Value, DurableSessionError> = await withCheckedContinuation { continuation in
            queue.async { [self] in
                guard phase == .open else { return continuation.resume(returning: .failure(TaskCoordinator.closed)) }
                do throws(DurableSessionError) { continuation.resume(returning: .success(try body(self))) } catch {
                    continuation.resume(returning: .failure(error))
                }
            }
        }
        return try result.get()
    }

    func add(
        _ request: TransferRequest, to destination: DownloadDestination?, uploadProtocol: UploadProtocol?, handler: String?,
        context: Data, writesSecrets: Bool
    ) async throws(DurableSessionError) -> DurableTaskInfo {
        // The journal stores the absence of a name as an empty one.
        if let handler, handler.isEmpty || handlers.handler(handler) == nil {
            throw DurableSessionError(.unknownHandler, "no handler is registered as '\(handler)'")
        }
        guard context.count <= limits.contextBytes else {
            throw DurableSessionError(.limitReached, "the context has \(context.count) bytes, of at most \(limits.contextBytes)")
        }
        return try await onQueue { coordinator throws(DurableSessionError) in
            let intent = try Intent(request, to: destination, uploadProtocol: uploadProtocol, writesSecrets: writesSecrets) {
                (path) throws(DurableSessionError) in
                guard let identity = HiddenFile.identity(path) else {
                    throw DurableSessionError(.invalidTask, "'\(path)' is not a regular file that can be read")
                }
                return identity
            }
            let now = coordinator.environment.clock()
            let time = (request.options.resourceTimeout ?? coordinator.limits.expiry).components.seconds
            return try coordinator.add(
                TaskRecord(
                    id: TaskCoordinator.newID(), intent: intent, handler: handler, context: context, created: now,
                    expires: now + max(1, min(time, 365 * 24 * 3600))))
        }
    }

    private func add(_ record: TaskRecord) throws(DurableSessionError) -> DurableTaskInfo {
        guard entries.count < limits.tasks else {
            throw DurableSessionError(.limitReached, "the journal has \(entries.count) tasks, of at most \(limits.tasks)")
        }
        let size = (try? record.intent.encoded().count) ?? .max
        guard size <= limits.requestBytes else {
            throw DurableSessionError(.limitReached, "the request takes \(size) bytes, of at most \(limits.requestBytes)")
        }
        guard environment.mayStep() else {
            phase = .dead
            throw TaskCoordinator.closed
        }
        try journal.insert(record)
        entries[record.id] = entry(of: record)
        reattach(record.id)
        return snapshot(record.id) ?? DurableTaskInfo(record, transferTask: nil)
    }

    /// A random identifier of 128 bits, in hexadecimal digits.
    private static func newID() -> String {
        (0..<2).map { _ in
            let digits = String(UInt64.random(in: 0 ... .max), radix: 16)
            return String(repeating: "0", count: 16 - digits.count) + digits
        }.joined()
    }

    private func snapshot(_ id: String) -> DurableTaskInfo? {
        entries[id].map { DurableTaskInfo($0.record, transferTask: $0.transfer) }
    }

    func tasks() async throws(DurableSessionError) -> [DurableTaskInfo] {
        try await onQueue { coordinator throws(DurableSessionError) in
            coordinator.entries.keys.compactMap { coordinator.snapshot($0) }.sorted { ($0.created, $0.id) < ($1.created, $1.id) }
        }
    }

    func pendingEvents() async throws(DurableSessionError) -> [DurableEvent] {
        try await onQueue { coordinator throws(DurableSessionError) in
            coordinator.entries.values.compactMap { coordinator.event(of: $0) }
        }
    }

    /// The URLs at which servers continue uploads, as far as the servers have announced them.
    func uploadLocations() async throws(DurableSessionError) -> [URL] {
        try await onQueue { coordinator throws(DurableSessionError) in
            coordinator.entries.values.compactMap(\.record.uploadLocation)
        }
    }

    func cancel(_ id: String) async throws(DurableSessionError) {
        try await onQueue { coordinator throws(DurableSessionError) in
            guard coordinator.entries[id] != nil else { throw DurableSessionError(.unknownTask, "there is no task \(id)") }
            if let error = coordinator.retryPendingEvent(id) ?? coordinator.handle(.cancel, id) { throw error }
        }
    }

    func acknowledge(_ id: String) async throws(DurableSessionError) {
        try await onQueue { coordinator throws(DurableSessionError) in
            guard case .ended? = coordinator.entries[id]?.record.state else {
                throw DurableSessionError(.unknownTask, "there is no event of a task \(id)")
            }
            if let error = coordinator.handle(.acknowledge, id) { throw error }
        }
    }
}
