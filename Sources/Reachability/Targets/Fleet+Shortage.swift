/// The shortage of sockets, as reported to users.
extension Fleet {
    /// Returns whether the limit of open files now delays probes, and the targets that wait; `nil` if this has not changed since the
    /// last call.
    mutating func takeShortage() -> (isReported: Bool, waiting: [TargetID])? {
        guard shortageChanged else { return nil }
        shortageChanged = false
        let waiting = shortage.isReported ? waitingForSockets : []
        return (shortage.isReported, waiting)
    }

    /// The targets that wait for sockets. Others wait for places of TLS handshakes.
    private var waitingForSockets: [TargetID] {
        postponed.indices.flatMap { lacksSockets[$0] ? postponed[$0].filter { isPostponed($0) } : [] }
    }

    /// Whether targets wait because of the limit of open files.
    var isShortOfFiles: Bool {
        admission.isLimitedByFiles && postponed.indices.contains { lacksSockets[$0] && !postponed[$0].isEmpty }
    }
}
