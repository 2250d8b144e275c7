internal import CCurl

extension EngineConfiguration {
    /// Sets the options that all transfers of the session have in common.
    func apply(to handle: EasyHandle) throws(HTTPSessionError) {
        try handle.set(CURLOPT_NOSIGNAL, true)
        try handle.set(CURLOPT_QUICK_EXIT, true)
        // The session follows redirects itself, and checks their protocol.
        try handle.set(CURLOPT_FOLLOWLOCATION, false)
        try handle.set(CURLOPT_PROTOCOLS_STR, "http,https")
        try handle.set(CURLOPT_HTTP09_ALLOWED, false)
        try handle.set(CURLOPT_TCP_KEEPALIVE, true)
        switch httpVersion {
        case .automatic: try handle.set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_2TLS))
        case .http1: try handle.set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1))
        case .http2: try handle.set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE))
        }
        switch addressFamily {
        case .any: break
        case .ipv4: try handle.set(CURLOPT_IPRESOLVE, Int(CURL_IPRESOLVE_V4))
        case .ipv6: try handle.set(CURLOPT_IPRESOLVE, Int(CURL_IPRESOLVE_V6))
        }
        if let interface { try handle.set(CURLOPT_INTERFACE, "if!\(interface)") }
        if let unixSocketPath {
            try handle.set(CURLOPT_UNIX_SOCKET_PATH, unixSocketPath)
            // Connections of a Unix socket cannot be distinguished, so they cannot be checked before reuse (``IdleSockets``).
            try handle.set(CURLOPT_FORBID_REUSE, true)
        }
        if lowSpeedSeconds > 0 {
            try handle.set(CURLOPT_LOW_SPEED_LIMIT, lowSpeedBytesPerSecond)
            try handle.set(CURLOPT_LOW_SPEED_TIME, lowSpeedSeconds)
        }
        if maximumReceiveRate > 0 { try handle.set(CURLOPT_MAX_RECV_SPEED_LARGE, offset: maximumReceiveRate) }
        if maximumSendRate > 0 { try handle.set(CURLOPT_MAX_SEND_SPEED_LARGE, offset: maximumSendRate) }
    }

    /// Lets a transfer wait for a connection that is being opened to the same host, if the host may speak HTTP/2. Over TLS the handshake shows the
    /// protocol. Without TLS only the first response does, which may take long, and is HTTP/1.1 unless the session permits only HTTP/2.
    func applyWaiting(to handle: EasyHandle, isSecure: Bool) throws(HTTPSessionError) {
        try handle.set(CURLOPT_PIPEWAIT, httpVersion == .http2 || (httpVersion == .automatic && isSecure))
    }

    /// Whether each request needs its own connection. libcurl 7.88 sends the HTTP/2 preface again on a reused connection with prior knowledge, which
    /// ends the connection (curl#10634, fixed in 8.0.0).
    func needsConnectionAlone(isSecure: Bool) -> Bool {
        httpVersion == .http2 && !isSecure && CurlLibrary.version < 0x08_00_00
    }

    /// The host overrides in the format of CURLOPT_RESOLVE: `HOST:PORT:ADDRESS,ADDRESS`.
    var overrideLines: [String] {
        hostOverrides.map { override in
            let addresses = override.addresses.map { $0.contains(":") && !$0.hasPrefix("[") ? "[\($0)]" : $0 }
            return "\(override.host):\(override.port):\(addresses.joined(separator: ","))"
        }
    }
}

extension ServerTrust {
    /// Disables libcurl's own verification, which this object replaces (see the documentation of ``ServerTrust``).
    func apply(to handle: EasyHandle) throws(HTTPSessionError) {
        try handle.set(CURLOPT_SSL_VERIFYHOST, 0)
        try handle.set(CURLOPT_CAINFO, nil)
        try handle.set(CURLOPT_CAPATH, parameters.connectionTag)
        guard let proxyConnectionTag = parameters.proxyConnectionTag else { return }
        try handle.set(CURLOPT_PROXY_CAINFO, nil)
        try handle.set(CURLOPT_PROXY_CAPATH, proxyConnectionTag)
        try handle.set(CURLOPT_PROXY_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2) | Int(CURL_SSLVERSION_MAX_TLSv1_3))
    }
}

extension TransferPlan {
    /// Sets the options of this attempt, except its URL and its fields.
    func apply(to handle: EasyHandle) throws(HTTPSessionError) {
        try applyMethod(to: handle)
        try handle.set(CURLOPT_CONNECTTIMEOUT_MS, Int(clamping: connectTimeoutMilliseconds))
        try handle.set(CURLOPT_BUFFERSIZE, bufferSize)
        // Set also without a proxy and without exceptions: otherwise libcurl would use those of the environment.
        try handle.set(CURLOPT_PROXY, proxy ?? "")
        try handle.set(CURLOPT_NOPROXY, "")
        if let maximumSendRate { try handle.set(CURLOPT_MAX_SEND_SPEED_LARGE, offset: maximumSendRate) }
        if avoidsHTTP2 { try handle.set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1)) }
        if needsFreshConnection || isolatesConnection { try handle.set(CURLOPT_FRESH_CONNECT, true) }
        if isolatesConnection { try handle.set(CURLOPT_FORBID_REUSE, true) }
        if let login {
            try apply(login, user: CURLOPT_USERNAME, password: CURLOPT_PASSWORD, schemes: CURLOPT_HTTPAUTH, to: handle)
        }
        if let proxyLogin {
            try apply(
                proxyLogin, user: CURLOPT_PROXYUSERNAME, password: CURLOPT_PROXYPASSWORD, schemes: CURLOPT_PROXYAUTH, to: handle)
        } else {
            // The user of the proxy's URL may be sent by any scheme that the proxy offers.
            try handle.set(CURLOPT_PROXYAUTH, Int(bitPattern: ~0 & ~(UInt(1) << 31) & ~(UInt(1) << 4)))
        }
    }

    /// Sets the ages of connections and lookups, which change with time, so every attempt sets them.
    ///
    /// - Parameters:
    ///   - handle: The handle of the attempt.
    ///   - isAlone: Whether each request of the session needs its own connection (``EngineConfiguration/needsConnectionAlone(isSecure:)``).
    /// - Throws: ``HTTPSessionError/Code/transferFailed`` if libcurl refuses an option.
    func applyAges(to handle: EasyHandle, isAlone: Bool) throws(HTTPSessionError) {
        if let maximumLookupSeconds { try handle.set(CURLOPT_DNS_CACHE_TIMEOUT, maximumLookupSeconds) }
        guard let maximumIdleSeconds else { return }
        // For libcurl an age of 0 is no limit. This replaces the value of the setup, so it has all reasons for a new connection.
        try handle.set(
            CURLOPT_FRESH_CONNECT, isAlone || needsFreshConnection || isolatesConnection || maximumIdleSeconds == 0)
        try handle.set(CURLOPT_MAXAGE_CONN, maximumIdleSeconds)
    }

    private func applyMethod(to handle: EasyHandle) throws(HTTPSessionError) {
        switch body {
        case .none:
            switch method {
            case "GET": break
            case "HEAD": try handle.set(CURLOPT_NOBODY, true)
            default: try handle.set(CURLOPT_CUSTOMREQUEST, method)
            }
        case .length(let length):
            try handle.set(CURLOPT_UPLOAD, true)
            try handle.set(CURLOPT_INFILESIZE_LARGE, offset: length)
            if method != "PUT" { try handle.set(CURLOPT_CUSTOMREQUEST, method) }
        case .untilEnd:
            try handle.set(CURLOPT_UPLOAD, true)
            try handle.set(CURLOPT_INFILESIZE_LARGE, offset: -1)
            if method != "PUT" { try handle.set(CURLOPT_CUSTOMREQUEST, method) }
        }
    }

    private func apply(
        _ login: Login, user: CURLoption, password: CURLoption, schemes: CURLoption, to handle: EasyHandle
    ) throws(HTTPSessionError) {
        var mask: UInt = 0
        for scheme in login.schemes {
            switch scheme {
            case .basic: mask |= 1 << 0
            case .digest: mask |= 1 << 1
            case .negotiate: mask |= 1 << 2
            case .ntlm: mask |= 1 << 3
            case .bearer: mask |= 1 << 6
            }
        }
        if login.schemes == [.bearer] {
            try handle.set(CURLOPT_XOAUTH2_BEARER, login.password)
        } else {
            try handle.set(user, login.user)
            try handle.set(password, login.password)
        }
        try handle.set(schemes, Int(bitPattern: mask))
    }
}
