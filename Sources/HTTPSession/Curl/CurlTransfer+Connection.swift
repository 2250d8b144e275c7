internal import CCurl
internal import Glibc
internal import Reachability

/// The connection that an attempt goes over, and what it may go over.
extension CurlTransfer {
    /// The addresses of the connection in use.
    var ends: (local: String, remote: String)? {
        // Until then libcurl tells of the handle's last attempt.
        guard !madeSockets.isEmpty || requests > 0 else { return nil }
        guard let local = handle.string(CURLINFO_LOCAL_IP), let remote = handle.string(CURLINFO_PRIMARY_IP) else { return nil }
        return (local, remote)
    }

    /// Before a socket is made: which of this machine's addresses it would have is the kernel's word.
    func mayConnect(to address: UnsafePointer<sockaddr>, _ length: socklen_t) -> Bool {
        guard let remote = KernelRoutes.address(address) else { return true }
        // Where there is no route, the connection will say so.
        var chosen: IPAddress?
        if case .from(let sources) = KernelRoutes.way(to: address, length, over: engine.network.interface) {
            chosen = sources.first
        }
        if let chosen, !mayGo(from: "\(chosen)") { return false }
        if plan.watchesWay { note(RouteTracker.ConnectAttempt(remote: remote, chosen: chosen)) }
        return true
    }

    /// Whether a connection from that address may be used; asked where the plan says so.
    func mayGo(from local: String) -> Bool {
        guard plan.asksBeforeConnecting, let refusal = receiver.transferMayGo(from: local) else { return true }
        networkRefusal = refusal
        return false
    }

    /// Before it is given up because its connection's way is lost: what closing that would send goes nowhere. The kernel would go on asking
    /// for the next hop's address on a link that carries nothing, and whoever connects when the link is back would wait up to a second for
    /// its next question (`retrans_time_ms`, arp(7)). The server hears of the end when it sends something.
    ///
    /// Not where it may matter to others: a connection of HTTP/2 has other streams, and goes back to libcurl. Nor to a server that only reads:
    /// it would never hear.
    func silence() {
        let port = Int32(truncatingIfNeeded: handle.long(CURLINFO_LOCAL_PORT))
        guard port > 0, usesHTTP2 == false, plan.body == .none else { return }
        let sockets = madeSockets + [connectionInUse?.entry.socket ?? -1]
        for socket in sockets where IdleSockets.port(of: socket) == port { IdleSockets.silence(socket) }
    }
}
