import Foundation
import NetworkLab
import Pacing

/// A client with two uplinks to the server's host, which flap and take turns.
final class Weather: Sendable {
    private let uplinks: Uplinks

    var client: LabHost { uplinks.client }
    var site: LabHost { uplinks.site }

    init() throws {
        uplinks = try Uplinks("one", "two")
        try uplinks.take("one")
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
                    try uplinks.take(name)
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
