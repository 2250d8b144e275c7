import Foundation
import Testing

/// Seeded random lives of durable tasks: 10,000 steps a seed, or `NETWATCH_SIMULATION_STEPS`; the seeds are those of ``SimulationTests``.
@Suite struct JournalSimulationTests {
    private static let steps = ProcessInfo.processInfo.environment["NETWATCH_SIMULATION_STEPS"].flatMap { Int($0) } ?? 10_000

    @Test(arguments: SimulationTests.seeds)
    func `no task is lost, none is done twice that must not be, and each has one end that is true`(seed: UInt64) {
        var simulation = JournalSimulation(seed: seed)
        do {
            try simulation.run(steps: Self.steps)
            // Not a world in which nothing happens.
            for outcome in ["finished", "failed", "cancelled", "expired", "interrupted"] {
                #expect(simulation.outcomes[outcome, default: 0] > Self.steps / 10_000, "seed \(seed): \(simulation.outcomes)")
            }
            #expect(simulation.kills > Self.steps / 50, "seed \(seed)")
            #expect(simulation.toldAgain > Self.steps / 1_000, "seed \(seed): \(simulation.toldAgain) of \(simulation.finished)")
        } catch {
            Issue.record("seed \(seed), after \(simulation.finished) tasks and \(simulation.kills) kills: \(error)")
        }
    }
}
