import Expectations
import Foundation
import NetworkLab
import Testing

/// If netlink is refused, the program reads all tables every two seconds and finds the same state.
///
/// Tests that wait for polls run without sanitizers: the other tests here run the same code.
@Suite(.requiresNamespaces, .requiresTun) struct PollingTests {
    /// A network with two uplinks, one of which has the default routes of both families, a bridge, a tap and an unreachable
    /// destination.
    private func network() throws -> Network {
        let network = try Network()
        try network.host.ip("link set lo up")
        try network.uplink("up0", "198.18.0.2/24", "198.18.0.3/24", "2001:db8:1::2/64")
        try network.uplink("up1", "198.18.1.2/24")
        try network.host.ip("address add 198.18.2.2 peer 198.18.2.1 dev up1")
        try network.host.ip("route add default via 198.18.0.1 metric 100")
        try network.host.ip("route add default via 198.18.1.1 metric 200")
        try network.host.ip("-6 route add default via 2001:db8:1::1")
        try network.host.ip("route add unreachable 198.18.9.0/24")
        try network.host.addBridge("br0")
        try network.host.addPersistentTun("tap0", .ethernet)
        return network
    }

    private func status(_ network: Network, _ sandbox: Sandbox?, _ options: [String] = []) throws -> (seen: Seen, errors: String)
    {
        let start = {
            try Program([Programs.netwatch, "status", "--json", "--netns", network.host.path] + options, output: .file)
        }
        let program = try sandbox.map { try $0.perform(start) } ?? start()
        _ = try program.wait(within: patience)
        let document = try JSONSerialization.jsonObject(with: Data(program.output.utf8)) as? [String: Any]
        guard let path = document?["path"] as? [String: Any] else { throw LabError("\(program.output)\(program.standardError)") }
        return (try Seen(record: path), program.standardError)
    }

    @Test(arguments: Sandbox.withoutNetlink)
    func `without netlink the status equals the one with netlink`(sandbox: Sandbox) throws {
        let network = try network()
        for options in [[], ["-6"], ["--interface", "up1"]] {
            let (regular, silence) = try status(network, nil, options)
            let (polled, notice) = try status(network, sandbox, options)
            expectEqual(polled.line, regular.line)
            expectEqual(polled.interfaces, regular.interfaces)
            #expect(regular.isConsistent && !polled.isConsistent)
            #expect(silence.isEmpty && notice.contains("netlink"))
        }
    }

    @Test func `without netlink the cause of a missing path is the same`() throws {
        let network = try network()
        func expectSame(_ line: String) throws {
            let (regular, polled) = (try status(network, nil).seen, try status(network, .netlink).seen)
            expectEqual(regular.line, line)
            expectEqual(polled.line, line)
            expectEqual(polled.evidence, regular.evidence)
        }
        try network.host.ip("route del default metric 100")
        try network.host.ip("route del default metric 200")
        try network.host.ip("-6 route del default")
        try expectSame("unsatisfied route/no-route")
        try network.host.ip("link set up0 down")
        try network.host.ip("link set up1 down")
        try expectSame("unsatisfied link/interface-down")
    }

    @Test(.skippedUnderSanitizers, arguments: Sandbox.withoutNetlink)
    func `without netlink a change of the path is published at the next poll`(sandbox: Sandbox) throws {
        let network = try network()
        let watch = try sandbox.perform { try ProgramObserver(watching: network.host.path) }
        let first = try #require(try watch.nextPath())
        expectEqual(first.line, "satisfied up0 wired 4+6 via 198.18.0.1 2001:db8:1::1")
        try network.host.ip("address add 198.18.0.9/24 dev up0")
        #expect(try watch.nextPath()?.interface("up0")?.addresses.contains("198.18.0.9/24") == true)
        try network.host.ip("link set up0 down")
        let second = try nextLine(watch, after: first.line)
        expectEqual(second, "satisfied up1 wired 4 via 198.18.1.1")
        try network.host.ip("link set up1 down")
        let third = try nextLine(watch, after: second)
        expectEqual(third, "unsatisfied link/interface-down")
    }

    /// The next path with another line. The tables are read one after another, so a change may come in two steps.
    private func nextLine(_ watch: ProgramObserver, after line: String) throws -> String {
        while let path = try watch.nextPath() {
            if path.line != line { return path.line }
        }
        throw LabError("the program has ended: \(watch.program.standardError)")
    }

    @Test(.skippedUnderSanitizers, arguments: ["instances", "watches"])
    func `without inotify the resolver's configuration is read, and read again from time to time`(
        lacks: String
    ) throws {
        // The program runs in its own user namespace, in which no inotify instance or watch is available.
        let script = """
            mount -t tmpfs none /etc && echo nameserver 192.0.2.53 > /etc/resolv.conf || exit
            echo 0 > /proc/sys/user/max_inotify_\(lacks) || exit
            exec 3<&0
            (read line <&3; : > /etc/resolv.conf) &
            exec "$0" watch --json
            """
        let program = try Program(
            ["unshare", "--user", "--map-root-user", "--net", "--mount", "sh", "-c", script, Programs.netwatch], input: .pipe)
        try expectEqual(program.nextLine()?.contains(#""dns":true"#), true, "\(program.standardError)")
        try program.write("\n")
        let change = try program.nextLine { $0.contains("dns-changed") }
        #expect(change.contains(#""dns":false"#))
    }
}
