internal import CCurl
internal import Glibc
internal import Reachability

/// The connection of an attempt, and the check of its addresses.
extension CurlTransfer {
    /// The addresses of the connection in use.
    var ends: (local: String, remote: String)? {
        // Before that, libcurl returns the values of the handle's last attempt.
        guard !madeSockets.isEmpty || requests > 0 else { return nil }
        guard let local = handle.string(CURLINFO_LOCAL_IP), let remote = handle.string(CURLINFO_PRIMARY_IP) else { return nil }
        return (local, remote)
    }

    /// Whether the connection is one of a socket to itself: no server listens at the address, and the kernel chose the port of the destination for the
    /// socket too. The first bytes that arrive are those that were sent.
    var isConnectedToItself: Bool {
        let port = handle.long(CURLINFO_LOCAL_PORT)
        guard port > 0, port == handle.long(CURLINFO_PRIMARY_PORT), let ends else { return false }
        return ends.local == ends.remote
    }

    /// Whether a connection to the address may be made. Called before its socket exists, so the kernel is asked which local address it would have.
    func mayConnect(to address: UnsafePointer<sockaddr>, _ length: socklen_t) -> Bool {
        guard let remote = KernelRoutes.address(address) else { return true }
        // Without a route, the connection attempt fails with the system's error.
        var chosen: IPAddress?
        if case .from(let sources) = KernelRoutes.route(to: address, length, over: engine.network.interface) {
            chosen = sources.first
        }
        if let chosen, !mayUse(local: "\(chosen)") { return false }
        if plan.watchesRoute { record(RouteTracker.ConnectAttempt(remote: remote, chosen: chosen)) }
        return true
    }

    /// Whether a connection from this local address may be used. Always `true` without ``TransferPlan/asksBeforeConnecting``.
    func mayUse(local: String) -> Bool {
        guard plan.asksBeforeConnecting, let refusal = receiver.transferRefusal(from: local) else { return true }
        networkRefusal = refusal
        return false
    }

    /// Prevents that closing the connection sends anything. Called before an attempt is ended because its route is lost: the packets would go
    /// nowhere. The kernel would continue to ask for the next hop's address on a dead link. A later connection on the restored link would wait up to
    /// a second for the next ARP request (`retrans_time_ms`, arp(7)). The server is informed when it sends something.
    ///
    /// Does nothing for HTTP/2, whose connection has other streams and returns to libcurl. Does nothing either for a request with a body: a server
    /// that only reads would never be informed.
    func silence() {
        guard usesHTTP2 == false, plan.body == .none else { return }
        for socket in sockets { IdleSockets.silence(socket) }
    }

    /// Whether the remote end has acknowledged everything that was sent.
    var isAcknowledged: Bool {
        // During the handshake, libcurl may not have the port yet.
        (sockets.isEmpty ? madeSockets : sockets).contains { socket in
            var info = tcp_info()
            var size = socklen_t(MemoryLayout<tcp_info>.size)
            return getsockopt(socket, Int32(IPPROTO_TCP), TCP_INFO, &info, &size) == 0
                && Int(info.tcpi_state) == Int(TCP_ESTABLISHED) && info.tcpi_unacked == 0
        }
    }

    /// The sockets of the connection in use, which libcurl identifies by its local address and port.
    private var sockets: [curl_socket_t] {
        let port = Int32(truncatingIfNeeded: handle.long(CURLINFO_LOCAL_PORT))
        guard port > 0 else { return [] }
        let address = handle.string(CURLINFO_LOCAL_IP) ?? ""
        return (madeSockets + [connectionInUse?.entry.socket ?? -1]).filter { IdleSockets.isLocalEnd($0, address, port) }
    }
}
