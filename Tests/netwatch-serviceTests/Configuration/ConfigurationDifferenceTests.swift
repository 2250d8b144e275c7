import Expectations
import Reachability
import Testing

@testable import netwatch_service

@Suite struct ConfigurationDifferenceTests {
    @Test func `a target is known by its key, and its probes restart only with other settings`() throws {
        let former = try Self.configuration([("a", "db.example:1"), ("b", "db.example:2"), ("c", "db.example:3")])
        var next = try Self.configuration([("c", "db.example:3"), ("a", "db.example:9"), ("d", "db.example:4")])
        let difference = ConfigurationDifference(
            from: (former, former.targets.map(\.settings)), to: (next, next.targets.map(\.settings)))
        expectEqual(difference.removed, [1])
        expectEqual(difference.added, [2])
        expectEqual(difference.changed, [.init(former: 0, next: 1)])
        expectEqual(difference.retained, [.init(former: 2, next: 0)])
        expectEqual(former.restartKeys(for: next), [])
        expectEqual(difference.counts(from: former, to: next).description, "+1 −1 ~1")

        // Another name or group changes no probe.
        next.targets[0].name = "Third"
        next.targets[0].group = "group"
        var settings = next.targets.map(\.settings)
        let renamed = ConfigurationDifference(from: (former, former.targets.map(\.settings)), to: (next, settings))
        expectEqual(renamed.retained, difference.retained)
        // A user has changed it all the same.
        expectEqual(renamed.counts(from: former, to: next), ReloadCounts(added: 1, removed: 1, changed: 2))
        settings[0].failAfter = 5
        let changed = ConfigurationDifference(from: (former, former.targets.map(\.settings)), to: (next, settings))
        #expect(changed.changed.contains(.init(former: 2, next: 0)))
    }

    @Test func `values of the start need a restart`() throws {
        let former = Configuration()
        var next = Configuration()
        next.listen = ListenAddress.standard.with(port: 1)
        next.allowedHosts = ["box.example"]
        next.state = "/var/lib/other"
        next.timeZone = "Europe/Berlin"
        expectEqual(former.restartKeys(for: next), ["listen", "allowed_hosts", "state", "time_zone"])
    }

    private static func configuration(_ targets: [(id: String, text: String)]) throws -> Configuration {
        var configuration = Configuration()
        configuration.targets = try targets.map { id, text in
            ConfiguredTarget(id: id, endpoint: try Endpoint(text), settings: ProbeSettings(), origin: .standard)
        }
        return configuration
    }
}
