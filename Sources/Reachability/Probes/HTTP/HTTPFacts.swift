/// What an HTTP probe has found out: the exchange, the redirects that its owner follows, and the proxy's refusal.
package struct HTTPFacts: ProbeFacts {
    /// The facts of the exchange; `nil` if no request was sent.
    var exchange: HTTPProbeFacts?
    /// How the exchange ended; `nil` if no request was sent.
    var ending: HTTPEnding?
    /// The redirect to another host with which the conversation ended; otherwise `nil`.
    var redirection: Boxed<HTTPRedirection>?
    /// The URLs of the redirects before a handshake on another connection to the same host, in order; `nil` if there are none, or if a
    /// request followed the handshake.
    var handshakeRedirects: [String]?
    /// How the proxy has refused a tunnel to the server; `nil` if it has not.
    var proxyFailure: ProxyTunnelFailure?

    // The names of earlier versions.
    private enum CodingKeys: String, CodingKey {
        case redirection, handshakeRedirects
        case exchange = "http"
        case ending = "httpEnding"
        case proxyFailure = "boxedProxyFailure"
    }

    package init() {}

    package var isEmpty: Bool { self == HTTPFacts() }

    package var continuation: Continuation? {
        redirection.map { redirection in
            var state = HTTPFacts()
            state.redirection = redirection
            var facts = FactsOfKinds()
            facts[HTTPFacts.self] = state
            return Continuation(
                endpoint: redirection.value.url.probeEndpoint, locations: redirection.value.redirects.locations, facts: facts)
        }
    }

    package func checkRanges() throws(RecordedNumberError) {
        if case .systemError(let errno) = ending { try RecordedRanges.check("systemError", errno, RecordedRanges.errno) }
        guard let response = exchange?.response else { return }
        try RecordedRanges.check("status", response.status, 0..<1_000)
        try RecordedRanges.check("receivedBytes", response.receivedBytes, RecordedRanges.count)
        try RecordedRanges.check("bodyBytes", response.bodyBytes, RecordedRanges.count)
    }
}

extension LevelResult {
    /// The facts of the HTTP exchange; `nil` if no request was sent.
    package var http: HTTPProbeFacts? {
        get { facts[HTTPFacts.self].exchange }
        set { facts[HTTPFacts.self].exchange = newValue }
    }
    /// How the HTTP exchange ended; `nil` if no request was sent.
    package var httpEnding: HTTPEnding? {
        get { facts[HTTPFacts.self].ending }
        set { facts[HTTPFacts.self].ending = newValue }
    }
    /// The redirect to another host with which the conversation ended; otherwise `nil`.
    var redirection: Boxed<HTTPRedirection>? {
        get { facts[HTTPFacts.self].redirection }
        set { facts[HTTPFacts.self].redirection = newValue }
    }
    /// ``HTTPFacts/handshakeRedirects``
    package var handshakeRedirects: [String]? {
        get { facts[HTTPFacts.self].handshakeRedirects }
        set { facts[HTTPFacts.self].handshakeRedirects = newValue }
    }
    /// How the proxy has refused a tunnel to the server; `nil` if it has not.
    package var proxyFailure: ProxyTunnelFailure? {
        get { facts[HTTPFacts.self].proxyFailure }
        set { facts[HTTPFacts.self].proxyFailure = newValue }
    }
}
