import Foundation
import NetworkLab

/// Servers on loopback of a host, a few of which close or open each 20 ms.
struct FlappingServers {
    static let firstPort = 20_000
    let count: Int
    private let program: Program

    /// Starts the servers. They are ready when the initializer returns. - Parameter changes: the number of them that change each 20 ms.
    init(_ count: Int, on host: LabHost, seed: UInt64, changes: Int = 3) throws {
        self.count = count
        program = try Program(["/usr/bin/python3", "-c", Self.script, "\(count)", "\(seed)", "\(changes)"], on: host)
        guard try program.nextLine() == "ready" else { throw LabError("the servers did not start: \(program.ending)") }
    }

    /// The targets as a configuration.
    var configuration: String {
        let targets = (0..<count).map { "  - 127.0.0.1:\(Self.firstPort + $0)\n" }.joined()
        return "interval: 500ms\nfail_after: 1\nopen_after: 0s\ntargets:\n\(targets)"
    }

    private static let script = """
        import random, selectors, socket, sys, time
        count, seed, changes = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
        random.seed(seed)
        poll = selectors.DefaultSelector()
        servers = [None] * count
        def begin(number):
            server = socket.socket()
            server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            server.bind(("127.0.0.1", \(firstPort) + number))
            server.listen(64)
            server.setblocking(False)
            poll.register(server, selectors.EVENT_READ)
            servers[number] = server
        def end(number):
            poll.unregister(servers[number])
            servers[number].close()
            servers[number] = None
        for number in range(count): begin(number)
        print("ready", flush=True)
        due = time.monotonic()
        while True:
            for key, _ in poll.select(max(0, due - time.monotonic())):
                try: key.fileobj.accept()[0].close()
                except OSError: pass
            if time.monotonic() < due: continue
            due = time.monotonic() + 0.02
            for number in random.sample(range(count), changes):
                end(number) if servers[number] else begin(number)
        """
}
