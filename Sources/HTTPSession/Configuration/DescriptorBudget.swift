internal import EventLoop

/// The connections for which the process has descriptors, decided when a session begins.
///
/// The last descriptors stay free: without one, libdispatch ends the process, the C library finds no name, and no file can be written.
struct DescriptorBudget: Hashable {
    /// Descriptors that are not for connections: the session's own (2 loops, 3 workers), libdispatch's, and those of a few lookups and files
    /// that are open for a moment.
    static let reserve = 16 + DispatchStart.descriptors
    /// A connection's socket, and the file that its transfer reads or writes.
    static let perConnection = 2
    /// Sockets do not use the last descriptors: a session may have begun when fewer were open.
    static let untouched = 4

    let use: DescriptorUse

    init(_ use: DescriptorUse) { self.use = use }

    /// The number of connections, at most `wanted`. `nil`: not even one is possible.
    func connections(_ wanted: Int) -> Int? {
        let free = use.limit - use.open - DescriptorBudget.reserve
        guard free >= DescriptorBudget.perConnection else { return nil }
        return min(wanted, free / DescriptorBudget.perConnection)
    }

    /// The error of a session for which not even one connection is possible.
    var error: HTTPSessionError {
        HTTPSessionError(
            .transferFailed,
            "\(use.open) of the \(use.limit) descriptors that the process may open are open, too many for a connection; raise the limit, "
                + "as by 'ulimit -n 256' or LimitNOFILE=", context: .init(systemError: DescriptorBudget.tooManyOpenFiles))
    }

    /// The error of a socket that took one of the last descriptors, if it did.
    static func refusal(of descriptor: Int32, limit: Int) -> HTTPSessionError? {
        guard Int(descriptor) >= limit - untouched else { return nil }
        return HTTPSessionError(
            .cannotConnectToHost, "the process has no descriptor left of \(limit) (RLIMIT_NOFILE); raise it with 'ulimit -n'",
            context: .init(systemError: tooManyOpenFiles))
    }

    /// EMFILE.
    private static let tooManyOpenFiles: Int32 = 24
}
