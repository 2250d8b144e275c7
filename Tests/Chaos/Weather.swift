import Foundation
import NetworkLab
import Pacing

/// A client with two uplinks to the server's host, which flap and take turns.
final class Weather: Sendable {
    let client: LabHost
    let site: LabHost
    private let lab = Lab()

    init() throws {
        client = try lab.host(loopback: true)
        site = try lab.host(loopback: true)
        try site.ip("addr add 203.0.113.9/32 dev lo")
        for (name, network) in [("one", "10.9.1"), ("two", "10.9.2")] {
            try lab.connect(client, name, site, name)
            for (host, address) in [(site, "\(network).1"), (client, "\(network).2")] {
                try host.ip("link set \(name) addrgenmode none")
                try host.ip("addr add \(address)/24 dev \(name)")
                try host.ip("link set \(name) up")
            }
        }
        try take("one")
    }

    /// What goes out from now on goes there.
    private func take(_ name: String) throws {
        for (index, other) in ["one", "two"].enumerated() {
            try client.ip("route replace default via 10.9.\(index + 1).1 dev \(other) metric \(other == name ? 10 : 20)")
        }
    }

    struct Counts: Sendable {
        var flaps = 0
        var changes = 0
    }

    /// Flaps until the task is cancelled, and leaves both links up.
    func blow(seed: UInt64, from pauses: ClosedRange<Int>) async -> Counts {
        var random = SplitMix64(seed: seed)
        var counts = Counts()
        while !Task.isCancelled {
            do {
                try await Task.sleep(for: .milliseconds(Int.random(in: pauses, using: &random)))
                let name = Bool.random(using: &random) ? "one" : "two"
                let both = Int.random(in: 0..<4, using: &random) == 0
                let names = both ? ["one", "two"] : [name]
                for name in names { try site.ip("link set \(name) down") }
                try? await Task.sleep(for: .milliseconds(Int.random(in: 30...600, using: &random)))
                for name in names { try site.ip("link set \(name) up") }
                counts.flaps += names.count
                if Int.random(in: 0..<4, using: &random) == 0 {
                    try take(name)
                    counts.changes += 1
                }
            } catch is CancellationError {
                break
            } catch {
                print("chaos: weather: \(error)")
            }
        }
        return counts
    }
}
