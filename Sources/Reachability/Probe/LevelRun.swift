internal import Certificates
internal import Pacing

/// The levels of one probe on its connection: it takes the server's bytes with their times, and returns the bytes to send. The prober
/// owns the socket.
final class LevelRun {
    /// The time for which a TLS 1.3 server that has requested a client certificate may still refuse, in nanoseconds: its alert arrives
    /// one round trip after the handshake (RFC 8446 section 4.4.2.4).
    static let refusalTime: Int64 = 500_000_000

    /// The result; complete if ``hasEnded``.
    private(set) var result = LevelResult()
    private(set) var hasEnded = false
    /// Whether the connection ends in the ordinary way. A connection whose handshake or response is not complete is reset.
    var endsGracefully: Bool { !result.isAtDeadline && (result.handshakeEnd == nil || result.handshakeEnd == .completed) }
    /// The time at which the levels end in any case, on the monotonic clock in nanoseconds.
    private(set) var deadline: Int64
    /// The URL of a redirect within the target's host, for which the owner opens another connection; otherwise `nil`.
    private(set) var redirection: HTTPURL?
    private let plan: LevelPlan
    /// The context of the TLS clients with these settings.
    let context: TLSClientContext
    /// The tunnel that the proxy is about to open; `nil` without one.
    private var tunnel: ProxyTunnel?
    private var client: TLSClient?
    private var probe: HTTPProbe?
    private var output: [UInt8] = []
    /// The processor time of earlier handshakes of the probe.
    private var nanosecondsSpent: Int64 = 0
    private var started: Int64 = 0
    private var requested: Int64?
    private var firstByte: Int64?
    /// The start of the connection to ``redirection``.
    private var reconnecting: Int64?
    /// The result of the exchanges that redirected within the host.
    private var earlier: LevelResult?
    /// Whether all URLs so far have the origin of the target, and whether they have its host.
    private var (keepsOrigin, keepsHost): (Bool, Bool)
    /// The facts of the response that led to ``redirection``.
    private var redirectingFacts: HTTPProbeFacts?

    /// Creates the levels of a probe. ``connected(_:)`` begins them.
    init(_ plan: LevelPlan, deadline: Int64) {
        self.plan = plan
        self.deadline = deadline
        (keepsOrigin, keepsHost) = (plan.keepsOrigin, plan.keepsHost)
        context = TLSClientContext.of(
            TLSClientSettings(authorities: plan.tls.authorities, isInsecure: plan.tls.isInsecure, identity: plan.identity))
        probe = plan.request.map {
            HTTPProbe(
                $0, expecting: plan.expectation, isFollowing: plan.followsRedirects, after: plan.redirects,
                isCanary: plan.isCanary, verifiesCertificates: !plan.tls.isInsecure)
        }
    }

    /// Whether connections are those to a proxy, whatever the URL.
    var usesProxy: Bool { plan.proxy != nil }

    /// Whether the next connection begins with a TLS handshake.
    var beginsWithTLS: Bool { probe.map { $0.request.url.scheme == .https } ?? plan.usesTLS }

    /// Notes that the connection to ``redirection`` begins.
    func willConnect(_ now: Int64) { reconnecting = now }

    /// Notes that the connection to ``redirection`` is established. ``connected(_:)`` begins its levels, perhaps later.
    func didConnect(_ now: Int64) {
        result.furtherConnectNanoseconds = reconnecting.map { max(0, now - $0) }
        reconnecting = nil
    }

    /// Begins the levels on a connection that is established.
    func connected(_ now: Int64) {
        let usesTLS = beginsWithTLS
        nanosecondsSpent = client?.nanosecondsSpent ?? 0
        (started, redirection, client) = (now, nil, nil)
        (requested, firstByte) = (nil, nil)
        guard usesTLS else { return sendRequest(now) }
        guard let proxy = plan.proxy, let url = probe?.request.url else { return startHandshake() }
        let tunnel = ProxyTunnel(to: url.endpoint, through: proxy)
        self.tunnel = tunnel
        output += tunnel.request
    }

    private func startHandshake() {
        do throws(CertificateError) {
            let client = try TLSClient(
                context: context, serverName: plan.serverName, applicationProtocols: plan.applicationProtocols,
                nanosecondsSpent: nanosecondsSpent)
            self.client = client
            output += client.start()
        } catch {
            result.localFailure = error.reason
            end()
        }
    }

    /// Returns the bytes to send now.
    func takeOutput() -> [UInt8] {
        defer { output = [] }
        return output
    }

    /// Counts bytes that were sent.
    func noteSent(_ count: Int) { result.bytesSent += count }

    /// Handles bytes of the server.
    func receive(_ bytes: UnsafeRawBufferPointer, now: Int64) {
        result.bytesReceived += bytes.count
        guard !hasEnded, redirection == nil else { return }
        let bytes = receiveTunnel(bytes, now)
        guard !bytes.isEmpty, !hasEnded else { return }
        guard let client else { return receiveResponse(bytes, now) }
        let wasHandshaking = client.state == .handshaking
        let step = client.receive(bytes)
        output += step.bytesToSend
        if wasHandshaking, client.facts.isComplete { handshakeCompleted(client, now) }
        if !step.plaintext.isEmpty { step.plaintext.withUnsafeBytes { receiveResponse($0, now) } }
        guard !hasEnded, redirection == nil else { return }
        switch step.state {
        case .failed: end(.protocolError)
        case .closed: inputEnded(now)
        case .established where probe == nil && !client.mayStillBeRefused: end(.completed)
        case .established, .handshaking: break
        }
    }

    /// Handles the answer of the proxy. Returns the bytes behind it, which are those of the server.
    private func receiveTunnel(_ bytes: UnsafeRawBufferPointer, _ now: Int64) -> UnsafeRawBufferPointer {
        guard var tunnel else { return bytes }
        let count = tunnel.receive(bytes)
        self.tunnel = tunnel
        guard tunnel.isOpen else {
            if tunnel.hasEnded { tunnelFailed(.exchange) }
            return UnsafeRawBufferPointer(rebasing: bytes[..<0])
        }
        self.tunnel = nil
        result.tunnelNanoseconds = max(0, now - started)
        started = now
        startHandshake()
        return UnsafeRawBufferPointer(rebasing: bytes[count...])
    }

    private func tunnelFailed(_ ending: HTTPEnding) {
        guard let facts = tunnel?.facts else { return }
        result.proxyFailure = ProxyTunnelFailure(response: facts, ending: ending)
        tunnel = nil
        end()
    }

    /// Notes that the server has closed its side of the connection.
    func inputEnded(_ now: Int64) {
        guard !hasEnded, redirection == nil else { return }
        if tunnel != nil {
            tunnel?.endOfInput()
            return tunnelFailed(.exchange)
        }
        guard probe != nil, requested != nil else { return end(.endOfFile) }
        probe?.endOfInput()
        advance(now)
        if !hasEnded, redirection == nil { end() }
    }

    /// Notes that the connection has failed, or cannot be established.
    func connectionFailed(_ number: Int32) {
        guard !hasEnded else { return }
        if handOverRedirection() { return }
        if tunnel != nil { return tunnelFailed(.systemError(number)) }
        if requested != nil { result.httpEnding = .systemError(number) }
        end(.systemError(number))
    }

    /// Ends the levels at the deadline, with the connection's progress; `nil` if it is not known.
    func deadlineReached(_ progress: ConnectionProgress?) {
        guard !hasEnded else { return }
        if handOverRedirection() { return }
        result.progress = progress
        result.isAcknowledged = progress.map { $0.unacknowledged == 0 && !$0.hasUnsentBytes } ?? true
        result.hasGap = progress.map { $0.outOfOrder > 0 } ?? false
        if tunnel != nil {
            result.isAtDeadline = true
            return tunnelFailed(.deadline)
        }
        // A server that was silent after the handshake has accepted the client.
        let isAccepted = probe == nil && client?.state == .established
        result.isAtDeadline = !isAccepted
        if requested != nil { result.httpEnding = .deadline }
        end(isAccepted ? .completed : .deadline)
    }

    private func handshakeCompleted(_ client: TLSClient, _ now: Int64) {
        result.handshakeNanoseconds = max(0, now - started)
        // A server whose certificate is not accepted receives no request: neither its path nor its credentials.
        if probe != nil { return isAccepted(client.facts) ? sendRequest(now) : end() }
        if client.mayStillBeRefused { deadline = min(deadline, now.addingSaturated(Self.refusalTime)) }
    }

    private func isAccepted(_ facts: TLSHandshakeFacts) -> Bool {
        plan.tls.isInsecure || facts.isCertificateAccepted
    }

    private func sendRequest(_ now: Int64) {
        guard let request = probe?.request else { return end() }
        requested = now
        output += client?.send(request.bytes()) ?? request.bytes(through: plan.proxy)
    }

    private func receiveResponse(_ bytes: UnsafeRawBufferPointer, _ now: Int64) {
        guard probe != nil else { return }
        if firstByte == nil {
            firstByte = now
            result.processingNanoseconds = requested.map { max(0, now - $0) }
        }
        probe?.receive(bytes)
        advance(now)
    }

    private func advance(_ now: Int64) {
        guard let before = probe, let step = probe?.next() else { return }
        switch step {
        case .receive: break
        case .finished:
            result.transferNanoseconds = transferTime(now)
            end()
        case .follow(let request)
        where request.url.endpoint.host == before.request.url.endpoint.host && plan.continues(to: request.url):
            note(request.url, after: before.request.url)
            redirection = request.url
            redirectingFacts = before.facts
            result.transferNanoseconds = transferTime(now)
            earlier = earlier.map { $0.redirected(result) } ?? result
            result = LevelResult()
        case .follow(let request):
            note(request.url, after: before.request.url)
            // The target itself has answered: with a redirect to another host, to which its owner finds the way.
            result.transferNanoseconds = transferTime(now)
            if let redirects = probe?.redirects { handOver(request, after: before.facts, redirects) }
        }
    }

    /// Ends the levels with a redirect within the host whose connection is not established. The owner makes a probe of its URL, which
    /// finds the cause as that of any other connection.
    ///
    /// - Returns: Whether there is such a redirect.
    private func handOverRedirection() -> Bool {
        guard redirection != nil, let probe, let redirectingFacts else { return false }
        handOver(probe.request, after: redirectingFacts, probe.redirects)
        return true
    }

    private func note(_ url: HTTPURL, after former: HTTPURL) {
        keepsOrigin = keepsOrigin && url.hasSameOrigin(as: former)
        keepsHost = keepsHost && url.endpoint.host == former.endpoint.host
    }

    /// Ends the levels with a redirect whose request the owner sends.
    private func handOver(_ request: HTTPProbeRequest, after facts: HTTPProbeFacts, _ redirects: Redirects) {
        var facts = facts
        (facts.otherHost, facts.isRedirectAuthentic) = (redirects.otherHost, redirects.isRedirectAuthentic == true ? true : nil)
        // The response behind the redirect decides.
        facts.mismatch = nil
        result.http = facts
        result.redirection = Boxed(
            HTTPRedirection(
                method: request.method, url: request.url, redirects: redirects, keepsOrigin: keepsOrigin, keepsHost: keepsHost,
                cookies: request.cookies))
        probe = nil
        end()
    }

    private func transferTime(_ now: Int64) -> Int64? { firstByte.map { max(0, now - $0) } }

    /// Ends the levels. `handshakeEnd` counts if the handshake has not ended by itself.
    private func end(_ handshakeEnd: TLSHandshakeEnd = .completed) {
        if let client {
            result.tls = client.facts
            let isOpen = client.state == .established || client.state == .closed
            let isRefusedLater = probe == nil && requested == nil && handshakeEnd != .completed
            result.handshakeEnd = isOpen && isRefusedLater ? handshakeEnd : client.handshakeEnd ?? handshakeEnd
            output += client.close()
        }
        if let probe, requested != nil || redirection != nil {
            result.http = probe.facts
        } else if client != nil, earlier != nil {
            result.handshakeRedirects = probe?.redirects.locations
        }
        if result.http != nil { result.httpEnding = result.httpEnding ?? .exchange }
        if let earlier { result = earlier.redirected(result) }
        (client, probe) = (nil, nil)
        hasEnded = true
    }
}

extension CertificateError {
    /// The reason in one line.
    fileprivate var reason: String {
        switch self {
        case .invalid(let reason): reason
        case .noAuthorities(let variable, let path, let number):
            "\(variable): '\(path)' \(number == 0 ? "has no certificate" : "cannot be read: \(errorText(number))")"
        case .unknownCiphers, .unknownCipherSuites: "OpenSSL refuses its ciphers"
        }
    }
}
