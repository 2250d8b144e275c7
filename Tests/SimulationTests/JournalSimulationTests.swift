import Testing

/// Seeded random lives of durable tasks, with 10,000 steps a seed or `NETWATCH_SIMULATION_STEPS`. The seeds are those of
/// ``SimulationTests``.
@Suite struct JournalSimulationTests {
    private static let steps = SimulationTests.steps(otherwise: 10_000)

    @Test(arguments: SimulationTests.seeds)
    func `killed processes lose no durable task, repeat no unsafe request, and give each task one true outcome`(seed: UInt64) {
        var simulation = JournalSimulation(seed: seed)
        do {
            try simulation.run(steps: Self.steps)
            // The run must have reached each outcome.
            for outcome in ["finished", "failed", "cancelled", "expired", "interrupted"] {
                #expect(simulation.outcomes[outcome, default: 0] > Self.steps / 10_000, "seed \(seed): \(simulation.outcomes)")
            }
            #expect(simulation.kills > Self.steps / 50, "seed \(seed)")
            let (redelivered, finished) = (simulation.redelivered, simulation.finished)
            #expect(redelivered > Self.steps / 1_000, "seed \(seed): \(redelivered) of \(finished)")
        } catch {
            Issue.record("seed \(seed), after \(simulation.finished) tasks and \(simulation.kills) kills: \(error)")
        }
    }
}
