import Testing

/// Seeded random uploads, with 40,000 steps a seed or `NETWATCH_SIMULATION_STEPS`. The seeds are those of ``SimulationTests``.
@Suite struct UploadSimulationTests {
    private static let steps = SimulationTests.steps(otherwise: 40_000)

    @Test(arguments: SimulationTests.seeds)
    func `an upload over a lossy network ends complete or is known to be incomplete`(seed: UInt64) {
        var simulation = UploadSimulation(seed: seed)
        do {
            try simulation.run(steps: Self.steps)
            // Some uploads must succeed and some must fail.
            #expect(simulation.complete > simulation.uploads / 4, "seed \(seed): \(simulation.complete) of \(simulation.uploads)")
            #expect(simulation.complete < simulation.uploads, "seed \(seed)")
            #expect(simulation.kills > Self.steps / 100, "seed \(seed): \(simulation.kills)")
        } catch {
            Issue.record("seed \(seed), after \(simulation.uploads) uploads and \(simulation.kills) kills: \(error)")
        }
    }
}
