public import FoundationEssentials

extension HTTPSessionManager {
    /// Posted when a session that was told to end has ended; AFNetworking's `AFURLSessionDidInvalidateNotification`. A session that
    /// ends because nobody holds it posts nothing.
    public struct DidInvalidate: NotificationCenter.AsyncMessage {
        /// The session.
        public typealias Subject = HTTPSessionManager
    }

    /// Posts it.
    var postsEnd: @Sendable () -> Void { { NotificationCenter.default.post(DidInvalidate(), subject: self) } }
}

extension NotificationCenter.MessageIdentifier
where Self == NotificationCenter.BaseMessageIdentifier<HTTPSessionManager.DidInvalidate> {
    /// ``HTTPSessionManager/DidInvalidate``.
    public static var sessionDidInvalidate: Self { .init() }
}
