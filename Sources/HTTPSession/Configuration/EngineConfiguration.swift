internal import FoundationEssentials
internal import HTTPTypes
internal import Wire

/// The part of a `SessionConfiguration` that an engine reads: what all transfers of a session share, checked.
package struct EngineConfiguration: Sendable {
    package var httpVersion = SessionConfiguration.HTTPVersion.automatic
    /// The largest number of connections to one host; `nil` if only the queue limits it.
    package var maximumConnectionsPerHost: Int? = 6
    package var maximumConnections = 256
    package var addressFamily = SessionConfiguration.AddressFamily.any
    package var interface: String?
    package var unixSocketPath: String?
    package var hostOverrides: [SessionConfiguration.HostOverride] = []
    package var lowSpeedBytesPerSecond = 0
    package var lowSpeedSeconds = 0
    package var maximumReceiveRate: Int64 = 0
    package var maximumSendRate: Int64 = 0
    /// The store of cookies; `nil` if none are stored or sent.
    package var cookieStore: CookieStore?
    package var hstsPath: String?
    package var enforcesHSTS = true

    /// Checks a configuration.
    ///
    /// - Throws: ``HTTPSessionError/Code/invalidConfiguration`` with the name of the first property whose value is out of its range.
    package init(_ configuration: SessionConfiguration) throws(HTTPSessionError) {
        func check(_ isValid: Bool, _ reason: @autoclosure () -> String) throws(HTTPSessionError) {
            guard isValid else { throw HTTPSessionError(.invalidConfiguration, reason()) }
        }
        try check((1...1_000).contains(configuration.maximumConnectionsPerHost), "maximumConnectionsPerHost is not 1 to 1,000")
        try check((1...10_000).contains(configuration.maximumConnections), "maximumConnections is not 1 to 10,000")
        try check((1...64).contains(configuration.maximumConcurrentLookups), "maximumConcurrentLookups is not 1 to 64")
        try check((0...1_000).contains(configuration.maximumRedirects), "maximumRedirects is not 0 to 1,000")
        try check(configuration.maximumResponseSize >= 0, "maximumResponseSize is negative")
        try check(configuration.maximumDecompressionRatio >= 1, "maximumDecompressionRatio is below 1")
        for (name, value) in [
            ("connectTimeout", configuration.connectTimeout), ("requestTimeout", configuration.requestTimeout),
            ("resourceTimeout", configuration.resourceTimeout), ("handlerTimeout", configuration.handlerTimeout),
            ("connectivityTimeout", configuration.connectivityTimeout),
        ] {
            try check(TransferRequest.timeouts.contains(value), "\(name) is not 1 ms to 10 years")
        }
        if let name = TransferRequest.framing.first(where: configuration.additionalHeaderFields.contains) {
            throw HTTPSessionError(.invalidConfiguration, "additionalHeaderFields: \(name.rawName) is set by the engine")
        }
        if let name = configuration.additionalHeaderFields.repeatedSingleton {
            throw HTTPSessionError(.invalidConfiguration, "additionalHeaderFields: \(name.rawName) may occur only once")
        }
        try check(
            configuration.additionalHeaderFields[.proxyAuthorization] == nil,
            "additionalHeaderFields: \(TransferRequest.proxyAuthorizationRefusal)")
        if let limit = configuration.lowSpeedLimit {
            try check(limit.bytesPerSecond > 0 && limit.duration >= .seconds(1), "lowSpeedLimit is not at least 1 byte/s for 1 s")
            lowSpeedBytesPerSecond = min(limit.bytesPerSecond, Int(Int32.max))
            lowSpeedSeconds = Int(min(limit.duration.components.seconds, 86_400))
        }
        for (name, rate) in [
            ("maximumReceiveRate", configuration.maximumReceiveRate), ("maximumSendRate", configuration.maximumSendRate),
        ] {
            try check(rate.map { $0 > 0 } ?? true, "\(name) is not positive")
        }
        for override in configuration.hostOverrides {
            if let objection = override.objection {
                throw HTTPSessionError(.invalidConfiguration, "hostOverrides: '\(override.host)': \(objection)")
            }
        }
        if case .explicit(let proxy, _) = configuration.proxy {
            if let problem = ProxyText.problem(proxy) { throw HTTPSessionError(.invalidConfiguration, "proxy: \(problem)") }
            try check(
                // libcurl decodes the user name and writes it into a Digest response without escapes, a DEL too.
                !proxy.hasControlCharacter && PercentEncoding.decode(proxy)?.hasControlCharacter != true,
                "proxy: it has a control character")
        }
        for text in [configuration.interface, configuration.unixSocketPath].compactMap(\.self) {
            try check(
                !text.isEmpty && !text.hasControlCharacter,
                "interface and unixSocketPath are not empty and have no control characters")
        }
        httpVersion = configuration.httpVersion
        maximumConnectionsPerHost = configuration.maximumConnectionsPerHost
        maximumConnections = configuration.maximumConnections
        addressFamily = configuration.addressFamily
        interface = configuration.interface
        unixSocketPath = configuration.unixSocketPath
        hostOverrides = configuration.hostOverrides
        maximumReceiveRate = configuration.maximumReceiveRate ?? 0
        maximumSendRate = configuration.maximumSendRate ?? 0
        cookieStore =
            switch configuration.cookies {
            case .none: nil
            case .ephemeral: CookieStore()
            case .file(let url): try CookieStore(file: url, logger: configuration.logger)
            case .shared(let store): store
            }
        hstsPath = configuration.hstsFile?.path
        enforcesHSTS = configuration.enforcesHSTS
    }
}
