// Reports of connections that a program makes to monitored servers anyway.
//
// A report replaces a probe, or causes one. Reports are cheap: those of servers that are not monitored are dropped, and of each
// server at most one success and one failure in 100 ms reach the monitor's thread.

extension PathMonitor {
    /// Reports that a server answered on a connection of the program's own.
    ///
    /// For the ``ServerMonitor``s and ``ServerGroup``s on this monitor that have the endpoint, the answer counts as a successful
    /// probe: their next scheduled probe is skipped. Monitors that are bound to an interface, or that do not use the address's
    /// family, ignore the report, and so do those whose server has no route.
    ///
    /// ```swift
    /// monitor.reportSuccess(of: try Endpoint("db.example.com:5432"), address: peer, roundTrip: .milliseconds(12))
    /// ```
    /// - Parameters:
    ///   - endpoint: the host and port to which the program connected.
    ///   - address: the address that answered; `nil`, the default, for the one that answered a probe last.
    ///   - roundTrip: the time from the TCP SYN to its answer, if the program measured it. A server that has never answered a
    ///     probe is probed at once if the round trip or the address is not known.
    public func reportSuccess(of endpoint: Endpoint, address: IPAddress? = nil, roundTrip: Duration? = nil) {
        core.report(PassiveReport(endpoint, .success(address: address?.unmapped, roundTrip: roundTrip)))
    }

    /// Reports that a connection of the program's own to a server was not possible, or ended early.
    ///
    /// The ``ServerMonitor``s and ``ServerGroup``s on this monitor that have the endpoint probe the server at once, but not
    /// within a second of their last probe. The report itself does not change a status.
    ///
    /// - Parameter endpoint: the host and port to which the program connected.
    public func reportFailure(of endpoint: Endpoint) { core.report(PassiveReport(endpoint, .failure)) }
}

extension ServerGroup {
    /// Reports that a server answered on a connection of the program's own. See
    /// ``PathMonitor/reportSuccess(of:address:roundTrip:)``.
    ///
    /// - Parameters:
    ///   - endpoint: one of the group's servers.
    ///   - address: the address that answered; `nil`, the default, for the one that answered a probe last.
    ///   - roundTrip: the time from the TCP SYN to its answer, if the program measured it.
    public func reportSuccess(of endpoint: Endpoint, address: IPAddress? = nil, roundTrip: Duration? = nil) {
        self.report(PassiveReport(endpoint, .success(address: address?.unmapped, roundTrip: roundTrip)))
    }

    /// Reports that a connection of the program's own to a server was not possible, or ended early. See
    /// ``PathMonitor/reportFailure(of:)``.
    ///
    /// - Parameter endpoint: one of the group's servers.
    public func reportFailure(of endpoint: Endpoint) { self.report(PassiveReport(endpoint, .failure)) }
}

extension ServerMonitor {
    /// Reports that the server answered on a connection of the program's own. See
    /// ``PathMonitor/reportSuccess(of:address:roundTrip:)``.
    ///
    /// - Parameters:
    ///   - address: the address that answered; `nil`, the default, for the one that answered a probe last.
    ///   - roundTrip: the time from the TCP SYN to its answer, if the program measured it.
    public func reportSuccess(address: IPAddress? = nil, roundTrip: Duration? = nil) {
        group.reportSuccess(of: endpoint, address: address, roundTrip: roundTrip)
    }

    /// Reports that a connection of the program's own to the server was not possible, or ended early. See
    /// ``PathMonitor/reportFailure(of:)``.
    public func reportFailure() { group.reportFailure(of: endpoint) }
}
