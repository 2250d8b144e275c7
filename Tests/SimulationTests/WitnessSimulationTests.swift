import Expectations
import Foundation
import Testing

@testable import Reachability

/// Random networks with random faults. `NETWATCH_WITNESS_STEPS` is the number of events, 100,000 otherwise; `NETWATCH_WITNESS_SEED` the
/// first seed.
@Suite struct WitnessSimulationTests {
    private static func number(_ name: String) -> Int? { ProcessInfo.processInfo.environment[name].flatMap { Int($0) } }

    @Test func `no healthy server is down because of a fault at or before the witness`() {
        let steps = Self.number("NETWATCH_WITNESS_STEPS") ?? 100_000
        let first = UInt64(Self.number("NETWATCH_WITNESS_SEED") ?? 1)
        var (seed, done, counts) = (first, 0, WitnessSimulation.Counts())
        while done < steps {
            var simulation = WitnessSimulation(seed: seed)
            simulation.run(steps: steps - done)
            for wrong in simulation.counts.wrong { Issue.record("seed \(seed): \(wrong)") }
            counts += simulation.counts
            done += max(simulation.steps, 1)
            seed += 1
        }
        print(
            "seeds \(first) to \(seed - 1), \(done) steps: down \(counts.right), of healthy servers \(counts.beyond) with a fault beyond the witness; unreachable \(counts.unreachable), up \(counts.up)"
        )
        #expect(counts.right > steps / 10_000 && counts.unreachable > steps / 2_000 && counts.up > steps / 2_000)
    }
}
