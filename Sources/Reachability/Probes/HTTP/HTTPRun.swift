internal import Certificates
internal import Pacing

/// The conversation of an HTTP probe: the handshake, requests, responses and redirects within the host.
final class HTTPRun: StreamRun {
    private(set) var result = LevelResult()
    private(set) var hasEnded = false
    /// Whether the handshake and the response are complete.
    var endsGracefully: Bool { !result.isAtDeadline && (result.handshakeEnd == nil || result.handshakeEnd == .completed) }
    let deadline: Int64
    /// The URL of a redirect within the target's host, for which the owner opens another connection; otherwise `nil`.
    private(set) var redirection: HTTPURL?
    private let plan: HTTPPlan
    let context: TLSClientContext?
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

    init(_ plan: HTTPPlan, deadline: Int64) {
        self.plan = plan
        self.deadline = deadline
        (keepsOrigin, keepsHost) = (plan.keepsOrigin, plan.keepsHost)
        context = plan.tls.makeContext()
        probe = plan.request.map {
            HTTPProbe(
                $0, expecting: plan.expectation, isFollowing: plan.followsRedirects, after: plan.redirects,
                isCanary: plan.isCanary, verifiesCertificates: !plan.tls.settings.isInsecure)
        }
    }

    var beginsWithTLS: Bool { probe.map { $0.request.url.scheme == .https } ?? plan.scheme.usesTLS }

    /// The port of ``redirection``; that of the proxy if there is one.
    func nextPort(after port: UInt16) -> UInt16? { redirection.map { plan.proxy == nil ? $0.endpoint.port : port } }

    func willConnect(_ now: Int64) { reconnecting = now }

    func didConnect(_ now: Int64) {
        result.furtherConnectNanoseconds = reconnecting.map { max(0, now - $0) }
        reconnecting = nil
    }

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
        client = result.startHandshake(plan.tls, context, nanosecondsSpent: nanosecondsSpent, output: &output)
        if client == nil { end() }
    }

    func takeOutput() -> [UInt8] {
        defer { output = [] }
        return output
    }

    func noteSent(_ count: Int) { result.bytesSent += count }

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

    func connectionFailed(_ number: Int32) {
        guard !hasEnded else { return }
        if handOverRedirection() { return }
        if tunnel != nil { return tunnelFailed(.systemError(number)) }
        if requested != nil { result.httpEnding = .systemError(number) }
        end(.systemError(number))
    }

    func deadlineReached(_ progress: ConnectionProgress?) {
        guard !hasEnded else { return }
        if handOverRedirection() { return }
        result.note(progress)
        result.isAtDeadline = true
        if tunnel != nil { return tunnelFailed(.deadline) }
        if requested != nil { result.httpEnding = .deadline }
        end(.deadline)
    }

    private func handshakeCompleted(_ client: TLSClient, _ now: Int64) {
        result.handshakeNanoseconds = max(0, now - started)
        // A server whose certificate is not accepted receives no request: neither its path nor its credentials.
        if plan.tls.settings.isInsecure || client.facts.isCertificateAccepted { sendRequest(now) } else { end() }
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

    /// Ends the conversation with a redirect within the host whose connection is not established. The owner makes a probe of its URL, which
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

    /// Ends the conversation with a redirect whose request the owner sends.
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

    /// Ends the conversation. `handshakeEnd` counts if the handshake has not ended by itself.
    private func end(_ handshakeEnd: TLSHandshakeEnd = .completed) {
        if let client { result.endHandshake(client, handshakeEnd, output: &output) }
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
