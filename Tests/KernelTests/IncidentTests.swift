import Expectations
import Foundation
import NetworkLab
import Reachability
import Testing

/// The records of incidents, with the kernel's own links, routes and neighbors.
@Suite(.requiresNamespaces, .timeLimit(.minutes(10)))
struct IncidentTests {
    /// The next record of an incident.
    private func incident(_ observer: ProgramObserver) throws -> [String: Any] {
        while let record = try observer.nextRecord() {
            if record["type"] as? String == "incident" { return record }
        }
        throw LabError("no incident; stderr: \(observer.program.standardError)")
    }

    /// Writes an incident as `STATE LAYER/CODE KIND NAME SCOPE ×COUNT`.
    private func text(_ record: [String: Any]) -> String {
        let (subject, cause) = (record["subject"] as? [String: Any], record["cause"] as? [String: Any])
        let words = [
            record["state"], "\(cause?["layer"] ?? "")/\(cause?["code"] ?? "")", subject?["kind"], subject?["name"],
            record["scope"],
        ]
        return words.map { $0 as? String ?? "null" }.joined(separator: " ") + " ×\(record["target_count"] as? Int ?? -1)"
    }

    /// A host whose router serves three addresses on port 9.
    private func network() throws -> Network {
        let network = try Network()
        try network.uplink("v0", "10.1.0.1/24")
        try network.router.ip("addr add 10.1.0.254/24 dev rv0")
        try network.host.ip("route add default via 10.1.0.254")
        return network
    }

    @Test func `a link that is set down is one incident of its interface with all targets, until they have a route`() throws {
        let network = try network()
        try network.router.ip("link set lo up")
        let targets = (1...3).map { "192.0.2.\($0):9" }
        for target in targets { try network.router.ip("addr add \(target.dropLast(2))/32 dev lo") }
        let observer = try ProgramObserver(
            watching: network.host.path, ["--fail-after", "1", "--interval", "1s", "--open-after", "0"] + targets)
        // No server listens: each target is down for a reason of its own.
        var servers: Set<String> = []
        while servers.count < 3 { servers.insert(text(try incident(observer))) }
        expectEqual(servers, Set(targets.map { "open tcp/refused target \($0) server ×1" }))

        try network.host.ip("link set v0 down")
        var records: [[String: Any]] = []
        while records.last.map({ $0["target_count"] as? Int != 3 }) ?? true {
            let record = try incident(observer)
            if (record["subject"] as? [String: Any])?["kind"] as? String == "interface" { records.append(record) }
        }
        let last = try #require(records.last)
        expectEqual(text(last), "open link/interface-down interface v0 local ×3")
        expectEqual(Set(records.map { $0["incident"] as? String }).count, 1)
        #expect(Set(last["targets"] as? [String] ?? []) == Set(targets) && last["to"] is NSNull && last["recorded"] is NSNull)

        try network.host.ip("link set v0 up")
        try network.host.ip("addr replace 10.1.0.1/24 dev v0")
        try network.host.ip("route replace default via 10.1.0.254")
        while true {
            let record = try incident(observer)
            guard record["incident"] as? String == last["incident"] as? String else { continue }
            expectEqual(text(record), "over link/interface-down interface v0 local ×3")
            #expect(record["to"] is String && record["from"] as? String == last["from"] as? String)
            break
        }
    }

    /// Reads until one incident is open, of this subject and with all targets. Others may only be merged into it.
    private func awaitSingle(_ subject: String, targets: Int, _ observer: ProgramObserver) throws {
        var open: [String: String] = [:]
        var merged: [String: String] = [:]
        var count = 0
        while count < targets || open.count > 1 {
            let record = try incident(observer)
            let id = "\(record["incident"] ?? "")"
            let found = text(record).split(separator: " ").dropFirst(2).prefix(2).joined(separator: " ")
            switch record["state"] as? String {
            case "open":
                open[id] = found
                if found == subject { count = record["target_count"] as? Int ?? 0 }
            case "merged":
                merged[id] = "\(record["into"] ?? "")"
                open[id] = nil
            default:
                Issue.record("\(text(record))")
                open[id] = nil
            }
        }
        expectEqual(Array(open.values), [subject])
        let last = open.keys.first
        var heirs = Set(merged.values)
        while let next = heirs.first(where: { merged[$0] != nil }) { heirs.remove(next) }
        #expect(heirs.allSatisfy { $0 == last }, "\(merged) into \(open)")
    }

    private func awaitUp(_ count: Int, _ observer: ProgramObserver) throws {
        var up: Set<String> = []
        while up.count < count, let record = try observer.nextRecord() {
            if record["type"] as? String == "target", record["status"] as? String == "up" {
                up.insert("\(record["target"] ?? "")")
            }
        }
    }

    private static let atOnce = ["--fail-after", "1", "--interval", "1s", "--open-after", "0"]

    @Test func `a gateway that becomes silent is one incident of all its targets, into which the others are merged`() throws {
        let network = try network()
        try network.router.ip("link set lo up")
        let addresses = ["192.0.2.1", "198.51.100.1", "203.0.113.1"]
        var servers: [Server] = []
        defer { for server in servers { server.close() } }
        for address in addresses {
            try network.router.ip("addr add \(address)/32 dev lo")
            servers.append(try network.router.serve(at: address, port: 9))
        }
        let observer = try ProgramObserver(watching: network.host.path, Self.atOnce + addresses.map { "\($0):9" })
        try awaitUp(3, observer)
        // The router neither answers nor forwards. Its link has a carrier.
        try network.router.ip("addr flush dev rv0")
        try awaitSingle("gateway 10.1.0.254", targets: 3, observer)
    }

    @Test func `a host that vanishes behind a router is one incident of its ports`() throws {
        let network = try network()
        let far = try network.lab.host()
        try network.lab.connect(network.router, "s0", far, "e0")
        try network.router.ip("addr add 10.2.0.1/24 dev s0")
        try network.router.ip("link set s0 up")
        try network.router.set("ipv4.ip_forward", "1")
        try far.ip("addr add 10.2.0.2/24 dev e0")
        try far.ip("link set e0 up")
        try far.ip("route add default via 10.2.0.1")
        let servers = try [7, 9].map { try far.serve(at: "10.2.0.2", port: $0) }
        defer { for server in servers { server.close() } }
        let observer = try ProgramObserver(
            watching: network.host.path, Self.atOnce + ["10.2.0.2:7", "10.2.0.2:9"])
        try awaitUp(2, observer)
        try far.ip("addr flush dev e0")
        try awaitSingle("host 10.2.0.2", targets: 2, observer)
    }

    @Test func `a recording with incidents replays to identical records`() throws {
        let network = try network()
        let file = FileManager.default.temporaryDirectory.appending(path: "incidents-\(UUID().uuidString)").path
        defer { try? FileManager.default.removeItem(atPath: file) }
        let observer = try ProgramObserver(
            watching: network.host.path,
            ["--count", "6", "--fail-after", "1", "--open-after", "0", file, "10.1.0.254:9", "10.1.0.254:10"],
            command: "record")
        var recorded: [[String: Any]] = [observer.hello]
        while let record = try observer.nextRecord() { recorded.append(record) }
        _ = try observer.program.wait(within: patience)
        let replay = try Program([Programs.netwatch, "replay", "--json", file], output: .file)
        _ = try replay.wait(within: patience)
        let replayed = try replay.output.split(separator: "\n").map {
            try #require(JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any])
        }
        #expect(recorded.contains { $0["type"] as? String == "incident" })
        #expect(replayed.count >= recorded.count)
        for (one, other) in zip(recorded, replayed) {
            expectEqual(NSDictionary(dictionary: one), NSDictionary(dictionary: other))
        }
    }

    @Test func `on a machine with IPv6 only, a target with IPv4 is no incident once the path is satisfied`() throws {
        let network = try Network()
        try network.uplink("v0")
        // The kernel routes IPv4 packets over the interface, and has no source address for them.
        try network.host.ip("route add default dev v0")
        let observer = try ProgramObserver(watching: network.host.path, ["192.0.2.1:9"])
        expectEqual(text(try incident(observer)), "open address/no-address interface v0 local ×1")
        try network.host.ip("addr add 2001:db8::1/64 dev v0 nodad")
        try network.host.ip("-6 route add default via 2001:db8::254")
        let over = try incident(observer)
        expectEqual(text(over), "over address/no-address interface v0 local ×1")

        // The target stays unreachable, and its cause names the family.
        let status = try Program(
            [Programs.netwatch, "status", "--json", "--netns", network.host.path, "192.0.2.1:9"], output: .file)
        try expectEqual(status.wait(within: patience), 1, "\(status.ending)")
        #expect(status.output.contains("interface v0 has no usable IPv4 address"), "\(status.output)")
        try network.host.ip("link set lo up")
        let other = try ProgramObserver(watching: network.host.path, ["--open-after", "0", "192.0.2.1:9", "[::1]:9"])
        // The only incident is that of the other target.
        expectEqual(text(try incident(other)), "open tcp/refused target [::1]:9 server ×1")
    }
}
