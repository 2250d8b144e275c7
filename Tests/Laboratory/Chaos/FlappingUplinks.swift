import EventLoop
import Foundation
import NetworkLab
import Pacing

/// A client with two uplinks to the server's host. The links flap, and the default route changes between them.
final class FlappingUplinks: Sendable {
    private let uplinks: Uplinks
    private let counts = Locked(Counts())

    var client: LabHost { uplinks.client }
    var site: LabHost { uplinks.site }

    init() throws {
        uplinks = try Uplinks("one", "two")
        try uplinks.take("one")
    }

    struct Counts: Sendable {
        /// The flaps of both links.
        var flaps = 0
        /// The flaps of the link in use.
        var hits = 0
        var changes = 0
    }

    /// The counts so far.
    var past: Counts { counts.withLock { $0 } }

    /// Lets the links flap until the task is canceled, and leaves both links up.
    func flap(seed: UInt64, from pauses: ClosedRange<Int>) async {
        var random = SplitMix64(seed: seed)
        var used = "one"
        while !Task.isCancelled {
            do {
                try await Task.sleep(for: .milliseconds(Int.random(in: pauses, using: &random)))
                let name = Bool.random(using: &random) ? "one" : "two"
                let both = Int.random(in: 0..<4, using: &random) == 0
                let names = both ? ["one", "two"] : [name]
                for name in names { try site.ip("link set \(name) down") }
                try? await Task.sleep(for: .milliseconds(Int.random(in: 30...600, using: &random)))
                for name in names { try site.ip("link set \(name) up") }
                let isHit = names.contains(used)
                counts.withLock { counts in
                    counts.flaps += names.count
                    if isHit { counts.hits += 1 }
                }
                if Int.random(in: 0..<4, using: &random) == 0 {
                    used = used == "one" ? "two" : "one"
                    try uplinks.take(used)
                    counts.withLock { $0.changes += 1 }
                }
            } catch is CancellationError {
                break
            } catch {
                print("chaos: links: \(error)")
            }
        }
    }
}
