/// The check of a connection that the attempt has not just made.
extension CurlTransfer {
    /// Whether the next request may be sent on a connection that has carried another request.
    ///
    /// A further request of a login usually uses the connection of the last one. If the server has closed that, libcurl uses any other
    /// connection of the session: it ignores CURLOPT_FRESH_CONNECT for further requests (`this_is_a_follow`, lib/url.c).
    func maySend(on connection: IdleSockets.Connection, from local: UnsafePointer<CChar>?) -> Bool {
        if connection == lastConnection { return mayContinue(on: connection, from: local) }
        return !plan.needsFreshConnection && !plan.isolatesConnection && mayUse(connection, from: local)
    }

    /// Whether a further request may be sent on the connection of the last one.
    private func mayContinue(on connection: IdleSockets.Connection, from local: UnsafePointer<CChar>?) -> Bool {
        if let local, plan.asksBeforeConnecting, !mayUse(local: String(cString: local)) { return false }
        guard !hasSurplus(on: connection) else { return false }
        // The route of a fresh connection is the kernel's choice for this attempt.
        guard !plan.needsFreshConnection else { return true }
        if let local, plan.watchesRoute,
            !receiver.transferMayReuse(from: String(cString: local), to: connection.remoteAddress)
        {
            return false
        }
        return !engine.sockets.removeStale(connection)
    }

    /// Whether bytes follow the last response on its connection. Over TLS they may be session tickets, as the first response of a connection
    /// usually has them behind it, so they are not checked.
    private func hasSurplus(on connection: IdleSockets.Connection) -> Bool {
        guard !ending.isSecure, let entry = engine.sockets.entry(of: connection), entry.user === self,
            IdleSockets.hasSurplus(entry.socket, ssl: nil)
        else { return false }
        if !IdleSockets.isTimeoutNotice(entry.socket) { engine.recordSurplus(of: SurplusServers.Server(connection)) }
        return true
    }

    /// Whether the request may be sent on the connection. `local` is its local address as text.
    func mayUse(_ connection: IdleSockets.Connection, from local: UnsafePointer<CChar>?) -> Bool {
        if let local, plan.asksBeforeConnecting || plan.watchesRoute {
            let address = String(cString: local)
            // The connection of another request may use a network that is forbidden for this one; with HTTP/2 it may still be in use.
            if plan.asksBeforeConnecting, !mayUse(local: address) { return false }
            if plan.watchesRoute, !receiver.transferMayReuse(from: address, to: connection.remoteAddress) { return false }
        }
        return mayReuse(connection)
    }
}
