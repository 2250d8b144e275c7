import Foundation
import Testing

/// Seeded random uploads: 40,000 steps a seed, or `NETWATCH_SIMULATION_STEPS`; the seeds are those of ``SimulationTests``.
@Suite struct UploadSimulationTests {
    private static let steps = ProcessInfo.processInfo.environment["NETWATCH_SIMULATION_STEPS"].flatMap { Int($0) } ?? 40_000

    @Test(arguments: SimulationTests.seeds)
    func `whatever is lost, an upload ends whole, or is known not to`(seed: UInt64) {
        var simulation = UploadSimulation(seed: seed)
        do {
            try simulation.run(steps: Self.steps)
            // Not a world in which nothing succeeds, or nothing fails.
            #expect(simulation.whole > simulation.uploads / 4, "seed \(seed): \(simulation.whole) of \(simulation.uploads)")
            #expect(simulation.whole < simulation.uploads, "seed \(seed)")
            #expect(simulation.kills > Self.steps / 100, "seed \(seed): \(simulation.kills)")
        } catch {
            Issue.record("seed \(seed), after \(simulation.uploads) uploads and \(simulation.kills) kills: \(error)")
        }
    }
}
