internal import Certificates
internal import Pacing

/// What the levels of one connection show about a target. The bytes of the levels are the server's own, so that a failure is its fault.
struct LevelFindings: Sendable {
    /// Why the probe fails; `nil` if it succeeds.
    var failure: Finding?
    /// Why a server that works is degraded.
    private(set) var degradation: Cause?
    /// The errno of a connection that a layer below has ended.
    private(set) var systemError: Int32?

    /// Creates findings of a probe that has failed.
    init(failure: Finding) { self.failure = failure }

    /// Judges the levels of a connection.
    ///
    /// - Parameters:
    ///   - levels: the result of the levels.
    ///   - address: the address to which the connection was made.
    ///   - route: the route to the address.
    ///   - endpoint: the target.
    ///   - settings: the settings of its probes.
    ///   - redirection: the redirect that has led to this endpoint; `nil` if there is none.
    ///   - started: the start of the probe.
    ///   - now: the present time.
    init(
        _ levels: LevelResult, at address: IPAddress, over route: ChosenRoute, of endpoint: Endpoint, _ settings: ProbeSettings,
        after redirection: Boxed<HTTPRedirection>?, started: Moment, now: Moment
    ) {
        // The host of the target, in sentences about what its server answers.
        var firstHost: String { redirection?.value.redirects.firstHost ?? endpoint.hostText }
        let peer = settings.http.proxy(for: endpoint) ?? endpoint
        let proxy = peer == endpoint ? nil : settings.http.proxy
        if let reason = levels.localFailure {
            let cause = Cause(.local, .cannotRead, detail: "the TLS handshake cannot begin: \(reason)")
            failure = Finding(cause, accusesServer: false)
            return
        }
        if let proxy, let failure = levels.proxyFailure {
            self.failure = Finding(CauseOfProxy.cause(failure, proxy, to: endpoint), accusesServer: false)
            return
        }
        if let facts = levels.tls, let end = levels.handshakeEnd {
            let isOwn = route.kind == .local || address.isLoopback
            let host = proxy != nil ? endpoint.hostText : isOwn ? "this machine (\(address))" : "\(address)"
            let handshake = FinishedHandshake(
                facts: facts, end: end, host: host, now: now.wallClockNanoseconds / 1_000_000_000,
                certificateDays: settings.tls.certificateDays, isInsecure: settings.tls.isInsecure)
            switch handshake.judgment {
            case .failed(let cause):
                let finding =
                    proxy.map { CauseOfProxy.finding(cause, facts, $0, to: endpoint) } ?? Finding(cause, accusesServer: true)
                failure = finding.with(
                    finding.cause.behind(levels.handshakeRedirects ?? [], of: firstHost), accusesServer: finding.accusesServer)
            case .failedBelow: if case .systemError(let number) = end { systemError = number }
            case .passed(let degradation): self.degradation = degradation
            }
            if failure != nil || systemError != nil { return }
        }
        guard let http = levels.http else { return }
        let judged = CauseOfHTTP(
            facts: http, ending: levels.httpEnding ?? .exchange, host: firstHost,
            elapsedNanoseconds: now.elapsed(since: started).saturatingNanoseconds)
        failure = judged.cause.map { Finding($0, accusesServer: $0.layer == .http) }
        // Without TLS, the proxy may have answered in place of the server.
        if let proxy, levels.tls == nil, let cause = failure?.cause {
            failure = CauseOfProxy.finding(cause, http.response, proxy)
        }
    }
}

extension Cause {
    /// Returns a cause that names the redirects of a host, if there are any. A cause that names them stays as it is.
    package func behind(_ locations: [String], of host: String) -> Cause {
        guard let last = locations.last, evidence["redirects"] == nil else { return self }
        return Cause(
            layer, code, detail: "\(host) redirects to \(last): \(detail)",
            evidence: evidence.merging(["redirects": .list(locations)]) { own, _ in own })
    }
}
