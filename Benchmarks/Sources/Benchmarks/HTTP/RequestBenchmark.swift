import Hosts

/// Requests with bodies of 1 KiB, 64 at a time. Measures how many a second, and the processor time of each.
enum RequestBenchmark {
    /// Measures each client without other transfers.
    static func run(_ programs: LoadPrograms, _ isQuick: Bool) throws -> [Row] {
        let servers = try LoopbackServers()
        let (rounds, requests) = isQuick ? (2, 4_000) : (7, 40_000)
        var limit = RequestRuns(programs.multi, servers.kibibyte, requests)
        var session = RequestRuns(programs.session, servers.kibibyte, requests)
        var asyncHTTPClient = RequestRuns(programs.asyncHTTPClient, servers.kibibyte, requests)
        // URLSession is so slow that fewer requests give the same result.
        var urlSession = RequestRuns(programs.urlSession, servers.kibibyte, requests / 10)
        for _ in 0..<rounds {
            try limit.run(numbers: 5)
            try session.run(numbers: 5)
            try asyncHTTPClient.run(numbers: 3)
            try urlSession.run(numbers: 3)
        }
        return rows("1 KiB, 64 at a time", session, limit, asyncHTTPClient, rounds, [("URLSession", urlSession, 10, nil)])
    }

    /// Measures the requests over TLS 1.3, with connections that are kept.
    static func runSecure(_ programs: LoadPrograms, _ isQuick: Bool) throws -> [Row] {
        try run(
            programs, isQuick, "1 KiB over TLS 1.3, 64 at a time", \.secureKibibyte, atOnce: 64, connections: 1...64,
            "TLSv1.3 HTTP/1.1")
    }

    /// Measures the requests as 100 streams of one connection.
    static func runMultiplexed(_ programs: LoadPrograms, _ isQuick: Bool) throws -> [Row] {
        try run(
            programs, isQuick, "1 KiB over HTTP/2, 100 streams", \.multiplexedKibibyte, atOnce: 100, connections: 1...1,
            "TLSv1.3 HTTP/2.0")
    }

    /// Measures each client over TLS.
    ///
    /// URLSession is left out, because its documents name no way to trust a given certificate.
    ///
    /// - Throws: ``BenchmarkError`` if a client used another protocol, or a number of connections that is not in `connections`.
    private static func run(
        _ programs: LoadPrograms, _ isQuick: Bool, _ name: String, _ url: KeyPath<LoopbackServers, String>, atOnce: Int,
        connections: ClosedRange<Int>, _ version: String
    ) throws -> [Row] {
        let servers = try LoopbackServers()
        let (rounds, requests) = isQuick ? (2, 4_000) : (7, 40_000)
        let runs = { RequestRuns($0, servers[keyPath: url], requests, atOnce: atOnce, servers.authority) }
        var (limit, session) = (runs(programs.multi), runs(programs.session))
        var asyncHTTPClient = runs(programs.asyncHTTPClient)
        let check = { (client: String) in
            let used = try servers.newConnections()
            guard connections.contains(used.count), used.allSatisfy({ $0 == version }) else {
                throw BenchmarkError("\(client): \(used.count) connections, \(Set(used).sorted()) instead of \(version)")
            }
        }
        for _ in 0..<rounds {
            try limit.run(numbers: 5)
            try check(programs.multi)
            try session.run(numbers: 5)
            try check(programs.session)
            try asyncHTTPClient.run(numbers: 3)
            try check(programs.asyncHTTPClient)
        }
        return rows(name, session, limit, asyncHTTPClient, rounds)
    }

    /// A client beside HTTPSession, the least ratio of requests a second, and the largest ratio of the processor time.
    private typealias Peer = (name: String, runs: RequestRuns, leastRate: Double, largestCost: Double?)

    private static func rows(
        _ name: String, _ session: RequestRuns, _ limit: RequestRuns, _ asyncHTTPClient: RequestRuns, _ rounds: Int,
        _ further: [Peer] = []
    ) -> [Row] {
        let peers: [Peer] =
            [("curl multi in C", limit, 0.75, nil), ("async-http-client", asyncHTTPClient, 1.2, 1 / 1.5)] + further
        let rates = peers.map { peer in
            Row.against(
                "\(name): requests a second, median of \(rounds)", session.rate, peer.runs.rate, count, peer.name,
                atLeast: peer.leastRate)
        }
        let costs = peers.map { peer in
            Row.against(
                "\(name): processor time of a request", session.cost, peer.runs.cost, microseconds, peer.name,
                atMost: peer.largestCost)
        }
        return rates + costs
    }

    /// Measures the requests beside 1,000 transfers that wait for a response.
    static func runBesideIdle(_ programs: LoadPrograms, _ isQuick: Bool) throws -> [Row] {
        let servers = try LoopbackServers()
        let (rounds, requests) = isQuick ? (2, 4_000) : (7, 40_000)
        // curl_multi_poll checks every transfer in each turn, so fewer requests are made.
        let pollRequests = isQuick ? 400 : 2_000
        var limit = RequestRuns(programs.multi, servers.kibibyte, requests, servers.never, "1000")
        var poll = RequestRuns(programs.multi, servers.kibibyte, pollRequests, servers.never, "1000", "poll")
        var session = RequestRuns(programs.session, servers.kibibyte, requests, servers.never, "1000")
        for _ in 0..<rounds {
            try limit.run(numbers: 5)
            try session.run(numbers: 5)
            try poll.run(numbers: 5)
        }
        let name = "1 KiB, 64 at a time, beside 1,000 idle transfers: "
        let (socketAction, multiPoll) = ("curl multi in C", "curl_multi_poll in C")
        return [
            .against(
                name + "requests a second, median of \(rounds)", session.rate, limit.rate, count, socketAction, atLeast: 0.7),
            .against(name + "processor time of a request", session.cost, limit.cost, microseconds, socketAction, atMost: nil),
            .against(name + "processor time of a request", session.cost, poll.cost, microseconds, multiPoll, atMost: nil),
        ]
    }

    /// Measures the memory of 1,000 running transfers, each of which receives 1 KiB a second.
    static func runSlow(_ programs: LoadPrograms, _ isQuick: Bool) throws -> [Row] {
        let servers = try LoopbackServers()
        var limit = RequestRuns(programs.multi, servers.kibibyte, 100, servers.slow, "1000")
        var session = RequestRuns(programs.session, servers.kibibyte, 100, servers.slow, "1000")
        for _ in 0..<(isQuick ? 1 : 5) {
            try limit.run(numbers: 5)
            try session.run(numbers: 5)
        }
        return [
            .against(
                "1,000 slow transfers: resident memory of each", session.beside / 1000, limit.beside / 1000, kibibytes,
                "curl multi in C", atMost: nil),
            .bound("1,000 slow transfers: resident memory of each", session.beside / 1000, kibibytes, atMost: 35),
        ]
    }
}
