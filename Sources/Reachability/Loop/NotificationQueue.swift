package import FoundationEssentials

/// Foundation's queue for the messages of `NotificationCenter.default`, which is created before it is needed.
///
/// The center creates the queue for the first message that has an observer, in a `lazy var` without a lock. If two threads post
/// then, both create one, and the messages in the replaced queue are never delivered. Measured with Swift 6.3: of four threads that
/// post at once, messages are lost in half of the processes.
///
/// Remove this when swift-foundation creates the queue under a lock (`_actorQueueManager` in `NotificationCenter.swift`).
private enum NotificationQueue {
    private final class Subject: Sendable {}

    private struct Preparation: NotificationCenter.AsyncMessage {
        typealias Subject = NotificationQueue.Subject
    }

    /// Creates the queue at its first use, by a message to an observer that ignores it.
    static let isPrepared: Bool = {
        let (center, subject) = (NotificationCenter.default, Subject())
        let token = center.addObserver(of: subject, for: Preparation.self) { _ in }
        center.post(Preparation(), subject: subject)
        center.removeObserver(token)
        return true
    }()
}

extension NotificationCenter.BaseMessageIdentifier where MessageType: NotificationCenter.AsyncMessage {
    /// An identifier, by which an observer can be added at once: the queue of the messages exists. Programs without observers never
    /// create it, because its thread needs descriptors.
    package static var prepared: Self {
        _ = NotificationQueue.isPrepared
        return Self()
    }
}
