internal import EventLoop

/// The number of connections for which the process has descriptors, computed when a session starts.
///
/// The last descriptors stay free: without one, libdispatch ends the process, the C library resolves no name, and no file can be written.
struct DescriptorBudget: Hashable {
    /// The descriptors that are not for connections: the session's own (2 loops, 3 workers), libdispatch's, and those of lookups and files that
    /// are open for a short time.
    static let reserve = 16 + DispatchStart.descriptors
    /// The descriptors of one connection: its socket, and the file that its transfer reads or writes.
    static let perConnection = 2
    /// The last descriptors, which sockets never use. The process may have opened more files since the session computed its connections.
    static let alwaysFree = 4

    let use: DescriptorUse

    init(_ use: DescriptorUse) { self.use = use }

    /// The number of connections, at most `wanted`; `nil` if not even one is possible.
    func connections(_ wanted: Int) -> Int? {
        let free = use.limit - use.open - DescriptorBudget.reserve
        guard free >= DescriptorBudget.perConnection else { return nil }
        return min(wanted, free / DescriptorBudget.perConnection)
    }

    /// The error of a session that cannot have a single connection.
    var error: HTTPSessionError {
        HTTPSessionError(
            .transferFailed,
            "\(use.open) of the \(use.limit) descriptors that the process may open are open, too many for a connection; raise the limit, "
                + "for example with 'ulimit -n 256' or LimitNOFILE=",
            context: .init(systemError: DescriptorBudget.tooManyOpenFiles))
    }

    /// The error of a socket that took one of the last descriptors; `nil` if it did not.
    static func refusal(of descriptor: Int32, limit: Int) -> HTTPSessionError? {
        guard Int(descriptor) >= limit - alwaysFree else { return nil }
        return HTTPSessionError(
            .cannotConnectToHost, "the process has no descriptor left of \(limit) (RLIMIT_NOFILE); raise it with 'ulimit -n'",
            context: .init(systemError: tooManyOpenFiles))
    }

    /// EMFILE.
    private static let tooManyOpenFiles: Int32 = 24
}
