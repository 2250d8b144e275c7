internal import Dispatch
internal import EventLoop
internal import Foundation

/// Delivery of events: to the registered handler that a task names, or else to the iterators over the session's events.
extension TaskCoordinator {
    enum Delivery: Sendable {
        case event(String)
        /// The events of earlier processes precede this one.
        case endOfEarlierEvents
    }

    func deliver(_ id: String) {
        guard let entry = entries[id] else { return }
        if handlers.handler(entry.record.handler) != nil {
            deliveries.continuation.yield(.event(id))
        } else {
            eventQueue.append(id)
            serveReaders()
        }
    }

    /// Calls the handlers, one after another.
    func callHandlers() {
        Task { [weak self, stream = deliveries.stream] in
            for await delivery in stream {
                switch delivery {
                case .event(let id):
                    guard let event = await self?.event(id), let handler = self?.handlers.handler(event.task.handler) else {
                        continue
                    }
                    await handler(event)
                case .endOfEarlierEvents: await self?.handlers.didFinishEvents?()
                }
            }
        }
    }

    private func event(_ id: String) async -> DurableEvent? {
        try? await onQueue { coordinator throws(DurableSessionError) in
            coordinator.entries[id].flatMap { coordinator.event(of: $0) }
        }
    }

    func event(of entry: Entry) -> DurableEvent? {
        guard case .ended(let outcome) = entry.record.state else { return nil }
        return DurableEvent(DurableTaskInfo(entry.record, transferTask: nil), DurableEvent.Outcome(outcome), of: self)
    }

    // MARK: Iterators

    /// Whether a call of `next()` has been canceled. The cancellation may come before the queue knows the call.
    private final class Cancellation: Sendable {
        let isCancelled = Locked(false)
    }

    /// The next event for an iterator; `nil` if the session is closed or the calling task is canceled.
    func nextEvent() async -> DurableEvent? {
        let cancellation = Cancellation()
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                queue.async { [self] in
                    // Checked on the queue: the handler below removes a reader that it finds, and this one comes too late for it.
                    guard phase == .open, !cancellation.isCancelled.withLock({ $0 }) else {
                        return continuation.resume(returning: nil)
                    }
                    eventQueue.add(.init(id: ObjectIdentifier(cancellation), continuation: continuation))
                    serveReaders()
                }
            }
        } onCancel: {
            cancellation.isCancelled.withLock { $0 = true }
            queue.async { [self] in
                // A reader that has received its event keeps it: the event is in use, and is not lost.
                eventQueue.removeReader(ObjectIdentifier(cancellation))?.continuation.resume(returning: nil)
            }
        }
    }

    private func serveReaders() {
        while !eventQueue.readers.isEmpty, let id = eventQueue.popFirst() {
            // An event that was acknowledged by its identifier is no longer in the journal.
            guard let event = entries[id].flatMap({ event(of: $0) }) else { continue }
            eventQueue.popFirstReader()?.continuation.resume(returning: event)
        }
    }

    func dismissReaders() {
        while let reader = eventQueue.popFirstReader() { reader.continuation.resume(returning: nil) }
    }
}
