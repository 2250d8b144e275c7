/// Whoever has to know, across processes, whether a request may have left.
package struct Departure: Sendable {
    /// Asked before every attempt, within ``SessionConfiguration/handlerTimeout``, off the session's thread; what it throws ends the task.
    package var willLeave: @Sendable () async throws -> Void
    /// The last attempt that ``willLeave`` was asked about has ended, and neither it nor one before it has sent anything of its request. Called
    /// on the session's thread; it must not wait.
    package var hasStayed: @Sendable () -> Void

    package init(
        willLeave: @escaping @Sendable () async throws -> Void, hasStayed: @escaping @Sendable () -> Void
    ) {
        self.willLeave = willLeave
        self.hasStayed = hasStayed
    }
}
