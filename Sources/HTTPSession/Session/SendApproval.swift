/// The handler that approves each request before it is sent, for programs that record across processes whether a request may have been sent.
package struct SendApproval: Sendable {
    /// Called before every attempt, off the session's thread, within ``SessionConfiguration/handlerTimeout``. If it throws, the task fails.
    package var approve: @Sendable () async throws -> Void
    /// Called when the last approved attempt has ended, if neither it nor an earlier attempt has sent any of its request. Called on the session's
    /// thread, so it must not block.
    package var wasNotSent: @Sendable () -> Void

    package init(
        approve: @escaping @Sendable () async throws -> Void, wasNotSent: @escaping @Sendable () -> Void
    ) {
        self.approve = approve
        self.wasNotSent = wasNotSent
    }
}
