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
        let name = "1 KiB, 64 at a time: "
        let others: [(String, RequestRuns, Double, Double?)] = [
            ("curl multi in C", limit, 0.75, nil), ("async-http-client", asyncHTTPClient, 1.2, 1 / 1.5),
            ("URLSession", urlSession, 10, nil),
        ]
        let rates = others.map { other, runs, asked, _ in
            Row.against(
                name + "requests a second, median of \(rounds)", session.rate, runs.rate, count, other, atLeast: asked)
        }
        let costs = others.map { other, runs, _, asked in
            Row.against(name + "processor time of a request", session.cost, runs.cost, microseconds, other, atMost: asked)
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
        let name = "the same beside 1,000 idle transfers: "
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
