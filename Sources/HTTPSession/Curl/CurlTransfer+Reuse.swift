/// Whether a request may go on a connection that another attempt has made.
extension CurlTransfer {
    /// `local`: the connection's own address, as text.
    func mayUse(_ connection: IdleSockets.Connection, from local: UnsafePointer<CChar>?) -> Bool {
        if let local {
            let address = String(cString: local)
            // Somebody else's, who may have been allowed to go that way; one of HTTP/2 also while it is in use.
            if plan.asksBeforeConnecting, !mayGo(from: address) { return false }
            if plan.watchesWay, !receiver.transferMayReuse(from: address, to: connection.remoteAddress) { return false }
        }
        return mayReuse(connection)
    }
}
