internal import EventLoop
internal import FoundationEssentials
internal import HTTPTypes
internal import Logging
internal import Pacing
package import Reachability

/// The checked form of a configuration, which the parts of a session use.
final class SessionSettings: Sendable {
    let configuration: SessionConfiguration
    let network: EngineConfiguration
    let queueLimits: TaskQueue.Limits
    /// The limits of tasks whose requests set none.
    let taskLimits: TaskStateMachine.Limits
    let workers: [Worker]
    let spareChunks = SpareChunks()
    let preparedRequest = LastPreparedRequest()
    let rules: SessionRules
    let path: PathMonitor?
    let transport: any SessionTransport
    let security: SecuritySettings
    /// The directory of resume data.
    let resumes: ResumeDirectory?
    /// The decisions of the session's own handler about servers' certificates.
    let decisions = ServerTrustDecisions()
    /// The decisions of the session's own handler about client certificates.
    let identities = ClientCertificateDecisions()

    init(
        _ configuration: SessionConfiguration, credentials: CredentialStore, path: PathMonitor?,
        transport: any SessionTransport = CurlTransport()
    ) throws(HTTPSessionError) {
        self.configuration = configuration
        self.path = path
        self.transport = transport
        var network = try EngineConfiguration(configuration)
        let connections = try SessionSettings.connections(configuration)
        network.maximumConnections = connections
        network.maximumConnectionsPerHost = network.maximumConnectionsPerHost.map { min($0, connections) }
        // Before the session opens descriptors, because Dispatch needs some of its own.
        DispatchStart.run()
        let proxies = ProxyOrigins(configuration.proxy, environment: ProcessInfo.processInfo.environment)
        rules = SessionRules(configuration, proxies: proxies, credentials: credentials)
        security = try SecuritySettings(configuration, proxies, verifiesCertificates: transport.verifiesCertificates)
        // libcurl counts all hosts behind a proxy as one; the queue does not.
        if !proxies.isEmpty { network.maximumConnectionsPerHost = nil }
        self.network = network
        if let url = configuration.resumeDirectory, !url.isFileURL {
            throw HTTPSessionError(.invalidConfiguration, "resumeDirectory is not a file URL: \(excerpt(of: url.absoluteString))")
        }
        if let url = configuration.resumeDirectory, let reason = OwnFile.objection(at: url.path, .directory) {
            throw HTTPSessionError(.invalidConfiguration, "resumeDirectory: '\(url.path)' is not used: \(reason)")
        }
        if let url = configuration.hstsFile {
            if let reason = OwnFile.objection(at: url.path) {
                throw HTTPSessionError(.invalidConfiguration, "hstsFile: '\(url.path)' is not used: \(reason)")
            }
            var isDirectory = false
            let directory = url.deletingLastPathComponent().path
            // libcurl would report no error, and store nothing.
            guard url.isFileURL, FileManager.default.fileExists(atPath: directory, isDirectory: &isDirectory), isDirectory
            else {
                throw HTTPSessionError(.invalidConfiguration, "hstsFile: no directory '\(directory)'")
            }
        }
        resumes = configuration.resumeDirectory.map { ResumeDirectory(url: $0) }
        queueLimits = TaskQueue.Limits(
            total: connections, perHost: min(configuration.maximumConnectionsPerHost, connections),
            lookups: min(configuration.maximumConcurrentLookups, connections))
        taskLimits = TaskStateMachine.Limits(
            requestTimeout: configuration.requestTimeout.saturatingNanoseconds,
            resourceTimeout: configuration.resourceTimeout.saturatingNanoseconds,
            handlerTimeout: configuration.handlerTimeout.saturatingNanoseconds,
            connectivityTimeout: configuration.connectivityTimeout.saturatingNanoseconds)
        // Two, so that a slow sync of one file does not block all other files.
        do {
            workers = [try Worker(name: "http-files-0"), try Worker(name: "http-files-1")]
        } catch {
            throw SessionCore.startError(error, nil)
        }
    }

    /// The number of connections that the process's descriptors allow, which is logged if it is less than the configuration's.
    private static func connections(_ configuration: SessionConfiguration) throws(HTTPSessionError) -> Int {
        let budget = DescriptorBudget(DescriptorUse.now())
        let wanted = configuration.maximumConnections
        guard let connections = budget.connections(wanted) else { throw budget.error }
        if connections < wanted {
            configuration.logger.notice(
                "connections are limited by the descriptors that the process may open",
                metadata: [
                    "connections": "\(connections)", "maximumConnections": "\(wanted)", "limit": "\(budget.use.limit)",
                    "open": "\(budget.use.open)",
                ])
        }
        return connections
    }

    var credentials: CredentialStore { rules.credentials }
    var proxies: ProxyOrigins { rules.proxies }

    /// Whether a request with this body uses HTTP/1.1, on a connection of its own.
    func avoidsHTTP2(for body: TransferPlan.BodyFraming) -> Bool {
        configuration.httpVersion == .automatic && body.mayExceedInitialWindow
    }

    func worker(for id: UInt64) -> Worker { workers[Int(id % UInt64(workers.count))] }

    func host(of origin: Origin) -> TaskQueue.Host {
        let isKnown =
            origin.isAddress || configuration.unixSocketPath != nil
            || configuration.hostOverrides.contains { $0.host.lowercased() == origin.host && $0.port == origin.port }
        return TaskQueue.Host(scheme: origin.scheme, name: origin.host, port: origin.port, needsLookup: !isKnown)
    }

    /// The endpoint that has to be reached for a request to `origin`: its proxy or the server. `nil` if it cannot be probed.
    func endpoint(for origin: Origin) -> Endpoint? {
        guard !origin.isLoopback, configuration.unixSocketPath == nil else { return nil }
        if let proxy = proxies.proxyURL(for: origin) {
            // A proxy on this machine can always be reached; it reports itself what it cannot reach.
            guard !rules.hasLoopbackProxy(before: origin) else { return nil }
            guard let host = proxy.host(percentEncoded: false), let port = proxy.port else { return nil }
            return SessionSettings.endpoint(host: host, port: port)
        }
        let override = configuration.hostOverrides.first { $0.host.lowercased() == origin.host && $0.port == origin.port }
        return SessionSettings.endpoint(host: override?.addresses.first ?? origin.host, port: origin.port)
    }

    /// The endpoint that a connection to the origin is made to, on this machine as well; `nil` for a Unix domain socket.
    func firstEndpoint(for origin: Origin) -> FirstEndpoint? {
        guard configuration.unixSocketPath == nil else { return nil }
        if let proxy = proxies.proxyURL(for: origin) {
            guard let host = proxy.host(percentEncoded: false), let port = proxy.port else { return nil }
            return SessionSettings.endpoint(host: host, port: port).map { FirstEndpoint(endpoint: $0, isProxy: true) }
        }
        let override = configuration.hostOverrides.first { $0.host.lowercased() == origin.host && $0.port == origin.port }
        return SessionSettings.endpoint(host: override?.addresses.first ?? origin.host, port: origin.port)
            .map { FirstEndpoint(endpoint: $0, isProxy: false) }
    }

    /// The reports of transfers' outcomes to a path monitor.
    func transferReports(to path: PathMonitor) -> TransferReports {
        TransferReports(endpoint: firstEndpoint) { first, facts in
            guard let facts else { return path.reportFailure(of: first.endpoint) }
            // The time to connect through a proxy may include its own connection.
            path.reportSuccess(
                of: first.endpoint, address: facts.remoteAddress.flatMap { IPAddress($0) },
                roundTrip: first.isProxy ? nil : facts.connectTime)
        }
    }

    private static func endpoint(host: String, port: Int) -> Endpoint? {
        let host = host.withoutBrackets
        return try? Endpoint(host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)")
    }

    /// How servers in trouble are probed.
    var probes: ProbeSettings {
        let families: Set<IPAddress.Family> =
            switch configuration.addressFamily {
            case .any: [.v4, .v6]
            case .ipv4: [.v4]
            case .ipv6: [.v6]
            }
        return ProbeSettings(interval: .seconds(5), failAfter: 1, families: families, interface: configuration.interface)
    }

    /// Checks whether the request may be sent at all. - Returns: The origin of the request.
    func check(_ request: TransferRequest) throws(HTTPSessionError) -> Origin { try rules.check(request) }

    /// The proxy of requests to the origin; `nil` for none, as over a Unix socket (CURLOPT_UNIX_SOCKET_PATH(3)).
    func proxy(before origin: Origin, isSecure: Bool) -> String? {
        configuration.unixSocketPath == nil ? proxies.proxyText(for: origin, isSecure: isSecure) : nil
    }

    /// The properties of the present network, if it leads to the origin; `nil` if they are not known.
    func network(to origin: Origin) -> TransactionMetrics.Network? {
        guard let path, !origin.isLoopback, let present = path.currentPath, present.status == .satisfied else { return nil }
        return TransactionMetrics.Network(
            isCellular: present.usesInterfaceType(.cellular), isExpensive: present.isExpensive,
            isConstrained: present.isConstrained)
    }

    /// Checks whether the present network may be used for the request.
    func checkNetwork(for request: TransferRequest, to origin: Origin) throws(HTTPSessionError) {
        guard let path = path?.currentPath, !origin.isLoopback else { return }
        let allowance = NetworkAllowance(request.options, configuration)
        if let refusal = allowance.refusal(of: path, boundTo: configuration.interface) {
            throw SessionSettings.notAllowed(refusal, request)
        }
    }

    /// Whether the present network may certainly be used for the request.
    func hasNetwork(for request: TransferRequest, to origin: Origin) -> Bool {
        path?.currentPath?.status == .satisfied && (try? checkNetwork(for: request, to: origin)) != nil
    }

    /// Whether each connection's own address has to be checked before use.
    func asksBeforeConnecting(for request: TransferRequest, to origin: Origin) -> Bool {
        path != nil && !origin.isLoopback && !NetworkAllowance(request.options, configuration).allowsEverything
    }

    /// Whether connections to the origin are judged by the kernel's routes. They are not if the session is bound to one interface, or if the
    /// origin is on this machine.
    func watchesRoute(to origin: Origin) -> Bool {
        path != nil && configuration.interface == nil && configuration.unixSocketPath == nil && !origin.isLoopback
    }

    /// The error for a request that may not use a connection from this local address; `nil` if it may.
    func refusal(of request: TransferRequest, from local: String) -> HTTPSessionError? {
        guard let path = path?.currentPath, let local = IPAddress(local) else { return nil }
        return NetworkAllowance(request.options, configuration).refusal(of: path, from: local).map {
            SessionSettings.notAllowed($0, request)
        }
    }

    private static func notAllowed(_ refusal: String, _ request: TransferRequest) -> HTTPSessionError {
        HTTPSessionError(.networkNotAllowed, "the network is \(refusal), which is not allowed", context: .init(of: request))
    }
}

/// The endpoint that a connection for a request is made to: the server, or the proxy before it.
package struct FirstEndpoint: Hashable, Sendable {
    /// The endpoint.
    package var endpoint: Endpoint
    /// Whether it is the proxy.
    package var isProxy: Bool
}
