/// The check of a connection that another attempt has made.
extension CurlTransfer {
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
